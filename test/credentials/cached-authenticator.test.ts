import { describe, expect, test } from 'vitest';
import { fail, ok } from '../../src/core/base/result.ts';
import { digestOf } from '../../src/credentials/secret-token.ts';
import { CachedAuthenticator, VerifiedCache } from '../../src/credentials/verified-cache.ts';
import type { Authenticated } from '../../src/ports/use-case.ts';

const ALICE: Authenticated = { principal: { subject: 'key:1', scopes: ['read'], orgId: null }, expiresAtMs: Infinity };

function start() {
  const asked: { readonly bearer: string; readonly answer: (authenticated: Authenticated | undefined) => void }[] = [];
  const authenticator = new CachedAuthenticator({
    cache: new VerifiedCache(),
    ask: (bearer) =>
      new Promise((resolve) => {
        asked.push({
          bearer,
          answer: (authenticated) =>
            resolve(authenticated === undefined ? fail({ kind: 'unauthenticated', detail: 'no' }) : ok(authenticated)),
        });
      }),
    digestOf,
    nowMs: () => 0,
    failuresPerMinute: 10,
  });
  return { authenticator, asked };
}

describe('cached authenticator', () => {
  test('many requests with one unknown bearer verify it once, later ones not at all', async () => {
    const { authenticator, asked } = start();
    const answers = Promise.all([1, 2, 3].map(() => authenticator.authenticate('alice')));
    asked[0]?.answer(ALICE);
    expect(await answers).toEqual([1, 2, 3].map(() => ({ ok: true, value: ALICE })));
    expect(await authenticator.authenticate('alice')).toEqual({ ok: true, value: ALICE });
    expect(asked.map(({ bearer }) => bearer)).toEqual(['alice']);
  });

  test('forged tokens of a network are counted before they are verified', async () => {
    const { authenticator, asked } = start();
    const forged = (nth: number) => authenticator.authenticate(`a.${nth}.c`, '2001:db8::1');
    const flood = Promise.all(Array.from({ length: 1_000 }, (_, nth) => forged(nth)));
    expect(asked).toHaveLength(10);
    for (const { answer } of asked) answer(undefined);
    expect((await flood).filter((each) => !each.ok && each.fault.kind === 'rate_limited')).toHaveLength(990);
    // Another address of the same network; then keys, which cost nothing, and another network.
    expect(await authenticator.authenticate('a.b.c', '2001:db8::2')).toMatchObject({ fault: { limit: 10 } });
    for (const [bearer, address] of [
      ['svc_key', '2001:db8::1'],
      ['a.b.c', '192.0.2.1'],
    ] as const) {
      const answer = authenticator.authenticate(bearer, address);
      asked.at(-1)!.answer(ALICE);
      expect((await answer).ok).toBe(true);
    }
    expect(asked).toHaveLength(12);
  });

  test('tokens that hold use nothing up', async () => {
    const { authenticator, asked } = start();
    for (let nth = 0; nth < 100; nth += 1) {
      const answer = authenticator.authenticate(`a.${nth}.c`, '192.0.2.1');
      asked[nth]!.answer(ALICE);
      expect((await answer).ok).toBe(true);
    }
  });

  test('a refusal is not cached', async () => {
    const { authenticator, asked } = start();
    for (const round of [0, 1]) {
      const answer = authenticator.authenticate('mallory');
      asked[round]?.answer(undefined);
      expect((await answer).ok).toBe(false);
    }
    expect(asked).toHaveLength(2);
  });

  test('no answer from before a revocation is used after it', async () => {
    const { authenticator, asked } = start();
    const early = authenticator.authenticate('alice');
    authenticator.drop('key:1');
    const late = authenticator.authenticate('alice');
    expect(asked).toHaveLength(2);
    asked[0]?.answer(ALICE);
    await early;
    asked[1]?.answer(undefined);
    expect((await late).ok).toBe(false);
    const later = authenticator.authenticate('alice');
    expect(asked).toHaveLength(3); // what was asked before the revocation was not kept
    asked[2]?.answer(undefined);
    expect((await later).ok).toBe(false);
  });
});
