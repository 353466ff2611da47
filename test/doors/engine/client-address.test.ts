import { describe, expect, test } from 'vitest';
import { addressBehind } from '../../../src/doors/engine/client-address.ts';

const addressOf = (proxies: readonly string[], peer: string, ...forwarded: readonly string[]): string =>
  addressBehind(proxies)(peer, forwarded);

describe('client address', () => {
  test.each([
    [
      'nobody is believed unless it is a proxy of ours',
      { proxies: [], peer: '127.0.0.1', forwarded: ['9.9.9.9'], expected: '127.0.0.1' },
    ],
    [
      'another peer says what it likes',
      { proxies: ['10.0.0.1'], peer: '10.0.0.2', forwarded: ['9.9.9.9'], expected: '10.0.0.2' },
    ],
    ['a proxy of ours is', { proxies: ['10.0.0.1'], peer: '10.0.0.1', forwarded: ['9.9.9.9'], expected: '9.9.9.9' }],
    [
      'what the client itself wrote stands first',
      { proxies: ['10.0.0.1'], peer: '10.0.0.1', forwarded: ['1.1.1.1, 9.9.9.9'], expected: '9.9.9.9' },
    ],
    [
      'or in a line of its own',
      { proxies: ['10.0.0.1'], peer: '10.0.0.1', forwarded: ['1.1.1.1', '9.9.9.9'], expected: '9.9.9.9' },
    ],
    [
      'through two proxies',
      { proxies: ['10.0.0.0/8'], peer: '10.0.0.1', forwarded: ['1.1.1.1, 9.9.9.9, 10.2.3.4'], expected: '9.9.9.9' },
    ],
    ['with ports', { proxies: ['10.0.0.1'], peer: '10.0.0.1', forwarded: ['9.9.9.9:4711'], expected: '9.9.9.9' }],
    [
      'over IPv6',
      {
        proxies: ['fd00::/8'],
        peer: 'fd00:0000:0000:0000:0000:0000:0000:0001',
        forwarded: ['[2001:db8::7]:4711'],
        expected: '2001:db8::7',
      },
    ],
    [
      'a proxy that comes over IPv4 to a socket of IPv6',
      { proxies: ['10.0.0.0/8'], peer: '::ffff:10.0.0.1', forwarded: ['9.9.9.9'], expected: '9.9.9.9' },
    ],
    [
      'a client that came over IPv4 to a proxy that listens on IPv6',
      { proxies: ['10.0.0.1'], peer: '10.0.0.1', forwarded: ['::ffff:9.9.9.9'], expected: '9.9.9.9' },
    ],
    [
      'or to this gateway',
      { proxies: [], peer: '0000:0000:0000:0000:0000:ffff:0909:0909', forwarded: [], expected: '9.9.9.9' },
    ],
    [
      'a proxy that another one names as one of IPv4 in IPv6',
      { proxies: ['10.0.0.0/8'], peer: '10.0.0.1', forwarded: ['9.9.9.9, [::ffff:10.2.3.4]:80'], expected: '9.9.9.9' },
    ],
    [
      'a proxy on the same link',
      { proxies: ['fe80::1'], peer: 'fe80::1%eth0', forwarded: ['9.9.9.9'], expected: '9.9.9.9' },
    ],
    [
      'a request that began at a proxy',
      { proxies: ['10.0.0.0/8'], peer: '10.0.0.1', forwarded: ['10.0.0.9'], expected: '10.0.0.9' },
    ],
    ['without the header', { proxies: ['10.0.0.1'], peer: '10.0.0.1', forwarded: [], expected: '10.0.0.1' }],
    [
      'what is no address',
      { proxies: ['10.0.0.1'], peer: '10.0.0.1', forwarded: ['9.9.9.9, unknown'], expected: '10.0.0.1' },
    ],
    ['nor this', { proxies: ['10.0.0.1'], peer: '10.0.0.1', forwarded: ['fe80::1%eth0'], expected: '10.0.0.1' }],
  ])('%s', (_what, { proxies, peer, forwarded, expected }) =>
    expect(addressOf(proxies, peer, ...forwarded)).toBe(expected),
  );
});
