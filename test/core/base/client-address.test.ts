import { describe, expect, test } from 'vitest';
import { networkOf, plainAddress } from '../../../src/core/base/client-address.ts';

describe('client address', () => {
  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:c000:201', '192.0.2.1'],
    ['0000:0000:0000:0000:0000:ffff:c000:0201', '192.0.2.1'],
    ['2001:db8::1', '2001:db8::1'],
    ['64:ff9b::192.0.2.1', '64:ff9b::192.0.2.1'],
    // A host that may choose the lower half of its address does not pass for one of IPv4.
    ['2001:db8::ffff:192.0.2.1', '2001:db8::ffff:192.0.2.1'],
    ['1::ffff:c000:201', '1::ffff:c000:201'],
    ['::1:ffff:c000:201', '::1:ffff:c000:201'],
    ['fe80::1%eth0', 'fe80::1'],
    ['not:an:address', 'not:an:address'],
    ['', ''],
  ])('%s is recorded as %s', (address, expected) => expect(plainAddress(address)).toBe(expected));

  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002:ffff:ffff:ffff:ffff', '2001:db8:1:2::/64'],
    ['2001:db8:1:3::', '2001:db8:1:3::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:db8::2:3:4:5:6', '2001:db8:0:2::/64'],
    ['::1', '0:0:0:0::/64'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ])('%s counts as %s', (address, expected) => expect(networkOf(address)).toBe(expected));
});
