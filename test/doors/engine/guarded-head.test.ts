import { describe, expect, test } from 'vitest';
import { addressBehind } from '../../../src/doors/engine/client-address.ts';
import type { Exchange } from '../../../src/doors/engine/exchange.ts';
import { GuardedHead } from '../../../src/doors/engine/guarded-head.ts';

type Sent = readonly (readonly [name: string, value: string])[];

const OWN = { origins: ['https://gateway.test'], hosts: ['gateway.test'] };
const BOTH = { origins: true, hosts: true };

/** The head that came with these headers from a proxy, and whether the connection was cut at it. */
function read(sent: Sent, asksForBody = true) {
  let isCut = false;
  const exchange = {
    asksForBody: () => asksForBody,
    noteChunks: () => undefined,
    remoteAddress: () => '10.0.0.1',
    close: () => {
      isCut = true;
    },
  } as unknown as Exchange;
  const request = {
    method: 'post',
    path: '/',
    query: '',
    header: () => '',
    forEach: (take: (name: string, value: string) => void) => {
      for (const [name, value] of sent) take(name, value);
    },
  };
  const head = new GuardedHead(request, exchange, addressBehind(['10.0.0.1']));
  const isRead = head.read(request);
  return { head, isRead, isCut };
}

describe('guarded head', () => {
  test.each<Sent>([
    [['transfer-encoding', 'chunked, gzip']],
    [['transfer-encoding', 'gzip']],
    [['transfer-encoding', '']],
    [
      ['content-length', '3'],
      ['content-length', '4'],
    ],
    [
      ['content-length', ''],
      ['content-length', '4'],
    ],
    [
      ['transfer-encoding', 'chunked'],
      ['transfer-encoding', 'identity'],
    ],
  ])('a request that does not say where its body ends is cut off: %j', (...sent) => {
    const { isCut, isRead } = read(sent);
    expect({ isRead, isCut }).toEqual({ isRead: false, isCut: true });
  });

  test('a request that says it once, or twice alike, is read', () => {
    for (const sent of [
      [['transfer-encoding', 'Chunked']],
      [['content-length', '3']],
      [
        ['content-length', '3'],
        ['content-length', '3'],
      ],
    ] as Sent[])
      expect(read(sent)).toMatchObject({ isRead: true, isCut: false });
  });

  test('a client that waits in vain to be asked for its body is cut off', () => {
    expect(read([['expect', '100-Continue']], false)).toMatchObject({ isRead: false, isCut: true });
  });

  test.each([
    ['Bearer a', 'Bearer b'],
    ['Bearer a', 'Bearer a'],
    ['', 'Bearer a'],
    ['Bearer a', ''],
  ])('two credentials are refused, even if one is empty or both are equal: %j and %j', (one, other) => {
    const { head } = read([
      ['authorization', one],
      ['authorization', other],
    ]);
    expect(head.refusal(OWN, { origins: false, hosts: false })).toEqual({
      kind: 'invalid_argument',
      field: 'Authorization',
      problem: 'must not be sent more than once',
    });
  });

  test('a page of another site is refused by its origin, or by the name it asks for', () => {
    const { head: foreign } = read([
      ['origin', 'https://evil.test'],
      ['host', 'gateway.test'],
    ]);
    const { head: rebound } = read([
      ['origin', 'http://evil.test'],
      ['host', 'evil.test'],
    ]);
    const none = { origins: false, hosts: false };
    expect([foreign.refusal(OWN, BOTH)?.kind, foreign.refusal(OWN, none)]).toEqual(['foreign_origin', undefined]);
    expect([rebound.refusal(OWN, BOTH)?.kind, rebound.refusal(OWN, none)]).toEqual(['foreign_host', undefined]);
  });

  test('the address is taken from X-Forwarded-For of a proxy, and from no other header', () => {
    const { head } = read([
      ['x-forwarded-for', '9.9.9.9'],
      ['x-real-ip', '6.6.6.6'], // anybody may send it: proxies do not overwrite it
      ['x-forwarded-for', '8.8.8.8, 10.0.0.1'],
    ]);
    expect(head.address).toBe('8.8.8.8');
  });
});
