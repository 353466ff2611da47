import { describe, expect, test } from 'vitest';
import { addressBehind } from '../../../src/doors/engine/client-address.ts';

const addressOf = (proxies: readonly string[], peer: string, ...forwarded: readonly string[]): string =>
  addressBehind(proxies)(peer, {
    forEach: (each) => {
      for (const value of forwarded) each('x-forwarded-for', value);
      each('x-real-ip', '6.6.6.6'); // anybody may send it: proxies do not overwrite it
    },
  });

describe('client address', () => {
  test.each([
    ['nobody is believed unless it is a proxy of ours', [], '127.0.0.1', ['9.9.9.9'], '127.0.0.1'],
    ['another peer says what it likes', ['10.0.0.1'], '10.0.0.2', ['9.9.9.9'], '10.0.0.2'],
    ['a proxy of ours is', ['10.0.0.1'], '10.0.0.1', ['9.9.9.9'], '9.9.9.9'],
    ['what the client itself wrote stands first', ['10.0.0.1'], '10.0.0.1', ['1.1.1.1, 9.9.9.9'], '9.9.9.9'],
    ['or in a line of its own', ['10.0.0.1'], '10.0.0.1', ['1.1.1.1', '9.9.9.9'], '9.9.9.9'],
    ['through two proxies', ['10.0.0.0/8'], '10.0.0.1', ['1.1.1.1, 9.9.9.9, 10.2.3.4'], '9.9.9.9'],
    ['with ports', ['10.0.0.1'], '10.0.0.1', ['9.9.9.9:4711'], '9.9.9.9'],
    ['over IPv6', ['fd00::/8'], 'fd00:0000:0000:0000:0000:0000:0000:0001', ['[2001:db8::7]:4711'], '2001:db8::7'],
    ['a proxy that comes over IPv4 to a socket of IPv6', ['10.0.0.0/8'], '::ffff:10.0.0.1', ['9.9.9.9'], '9.9.9.9'],
    [
      'a client that came over IPv4 to a proxy that listens on IPv6',
      ['10.0.0.1'],
      '10.0.0.1',
      ['::ffff:9.9.9.9'],
      '9.9.9.9',
    ],
    ['or to this gateway', [], '0000:0000:0000:0000:0000:ffff:0909:0909', [], '9.9.9.9'],
    [
      'a proxy that another one names as one of IPv4 in IPv6',
      ['10.0.0.0/8'],
      '10.0.0.1',
      ['9.9.9.9, [::ffff:10.2.3.4]:80'],
      '9.9.9.9',
    ],
    ['a proxy on the same link', ['fe80::1'], 'fe80::1%eth0', ['9.9.9.9'], '9.9.9.9'],
    ['a request that began at a proxy', ['10.0.0.0/8'], '10.0.0.1', ['10.0.0.9'], '10.0.0.9'],
    ['without the header', ['10.0.0.1'], '10.0.0.1', [], '10.0.0.1'],
    ['what is no address', ['10.0.0.1'], '10.0.0.1', ['9.9.9.9, unknown'], '10.0.0.1'],
    ['nor this', ['10.0.0.1'], '10.0.0.1', ['fe80::1%eth0'], '10.0.0.1'],
  ])('%s', (_what, proxies, peer, forwarded, expected) =>
    expect(addressOf(proxies, peer, ...forwarded)).toBe(expected),
  );
});
