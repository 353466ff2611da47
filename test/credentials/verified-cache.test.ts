import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { SecretDigest } from '../../src/core/base/ids.ts';
import { VerifiedCache } from '../../src/credentials/verified-cache.ts';
import type { Authenticated } from '../../src/ports/use-case.ts';

const digest = (text: string) => text as SecretDigest;
const of = (subject: string, expiresAtMs = Infinity): Authenticated => ({
  principal: { subject, scopes: ['read'], orgId: null },
  expiresAtMs,
});

describe('verified cache', () => {
  test("an entry lives until its age or the credential's expiry, whichever is first", () => {
    const cache = new VerifiedCache({ maxEntries: 10, maxAgeMs: 1000 });
    cache.put(digest('long'), of('key:1'), 0, cache.epoch);
    cache.put(digest('short'), of('key:2', 500), 0, cache.epoch);
    cache.put(digest('past'), of('key:3', 0), 0, cache.epoch);
    expect(['long', 'short', 'past'].map((name) => cache.get(digest(name), 499)?.principal.subject)).toEqual([
      'key:1',
      'key:2',
      undefined,
    ]);
    expect(cache.get(digest('short'), 500)).toBeUndefined();
    expect(cache.get(digest('long'), 999)?.principal.subject).toBe('key:1');
    expect(cache.get(digest('long'), 1000)).toBeUndefined();
    expect(cache.size).toBe(0);
  });

  test('the least recently used entry makes room when full', () => {
    const cache = new VerifiedCache({ maxEntries: 2, maxAgeMs: 1000 });
    cache.put(digest('a'), of('key:a'), 0, cache.epoch);
    cache.put(digest('b'), of('key:b'), 0, cache.epoch);
    cache.get(digest('a'), 1);
    cache.put(digest('c'), of('key:c'), 1, cache.epoch);
    expect(['a', 'b', 'c'].map((name) => cache.get(digest(name), 2) !== undefined)).toEqual([true, false, true]);
  });

  test('a credential verified again takes no room of another and counts as used', () => {
    const cache = new VerifiedCache({ maxEntries: 2, maxAgeMs: 1000 });
    const has = (...names: string[]) => names.map((name) => cache.get(digest(name), 500) !== undefined);
    for (const name of ['a', 'b', 'b']) cache.put(digest(name), of(`key:${name}`), 0, cache.epoch);
    expect(has('b', 'a')).toEqual([true, true]);
    for (const name of ['b', 'c']) cache.put(digest(name), of(`key:${name}`), 0, cache.epoch);
    expect(has('a', 'b', 'c')).toEqual([false, true, true]);
  });

  test('a revocation drops every credential of the subject and of no other', () => {
    const cache = new VerifiedCache();
    cache.put(digest('raw'), of('key:1'), 0, cache.epoch);
    cache.put(digest('token'), of('key:1'), 0, cache.epoch);
    cache.put(digest('other'), of('key:2'), 0, cache.epoch);
    cache.drop('key:1');
    expect(['raw', 'token', 'other'].map((name) => cache.get(digest(name), 1) !== undefined)).toEqual([
      false,
      false,
      true,
    ]);
  });

  test("a revocation drops the subject's other credentials after one has gone", () => {
    const cache = new VerifiedCache();
    cache.put(digest('short'), of('key:1', 10), 0, cache.epoch);
    cache.put(digest('long'), of('key:1'), 0, cache.epoch);
    expect(cache.get(digest('short'), 10)).toBeUndefined();
    cache.drop('key:1');
    expect(cache.get(digest('long'), 11)).toBeUndefined();
  });

  test('an answer requested before a revocation is not kept', () => {
    const cache = new VerifiedCache();
    const asked = cache.epoch;
    cache.drop('key:1');
    cache.put(digest('raw'), of('key:1'), 0, asked);
    expect(cache.size).toBe(0);
  });

  test('keeps its bound and no expired or dropped entry after any calls', () => {
    const step = fc.oneof(
      fc.record({
        type: fc.constant('put' as const),
        bearer: fc.nat(8),
        subject: fc.nat(3),
        livesMs: fc.integer({ min: -5, max: 40 }),
      }),
      fc.record({ type: fc.constant('get' as const), bearer: fc.nat(8) }),
      fc.record({ type: fc.constant('drop' as const), subject: fc.nat(3) }),
      fc.record({ type: fc.constant('wait' as const), ms: fc.nat(10) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        const cache = new VerifiedCache({ maxEntries: 4, maxAgeMs: 20 });
        const putAt = new Map<number, { subject: string; atMs: number; untilMs: number }>();
        let nowMs = 0;
        for (const taken of steps) {
          if (taken.type === 'wait') nowMs += taken.ms;
          if (taken.type === 'put') {
            const untilMs = nowMs + taken.livesMs;
            cache.put(digest(`b${taken.bearer}`), of(`key:${taken.subject}`, untilMs), nowMs, cache.epoch);
            if (untilMs > nowMs) putAt.set(taken.bearer, { subject: `key:${taken.subject}`, atMs: nowMs, untilMs });
          }
          if (taken.type === 'drop') {
            cache.drop(`key:${taken.subject}`);
            for (const [bearer, { subject }] of putAt) if (subject === `key:${taken.subject}`) putAt.delete(bearer);
          }
          if (taken.type === 'get') {
            const found = cache.get(digest(`b${taken.bearer}`), nowMs);
            const model = putAt.get(taken.bearer);
            if (found !== undefined) {
              expect(found.principal.subject).toBe(model?.subject);
              expect(nowMs).toBeLessThan(Math.min(model?.untilMs ?? 0, (model?.atMs ?? 0) + 20));
            }
          }
          expect(cache.size).toBeLessThanOrEqual(4);
        }
      }),
    );
  });
});
