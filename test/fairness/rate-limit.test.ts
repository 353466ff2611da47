import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RateLimiter } from '../../src/fairness/rate-limit.ts';

const takes = (limiter: RateLimiter, caller: string, count: number, nowMs: number): number =>
  Array.from({ length: count }, () => limiter.take(caller, nowMs).ok).filter(Boolean).length;

describe('rate limit', () => {
  test("a minute's worth may come at once, then as many as the rate refills", () => {
    const limiter = new RateLimiter(60);
    expect(takes(limiter, 'a', 100, 0)).toBe(60);
    expect(limiter.take('a', 500)).toEqual({
      ok: false,
      fault: { kind: 'rate_limited', retryAfterSecs: 1, limit: 60 },
    });
    expect(takes(limiter, 'a', 10, 1_000)).toBe(1);
    expect(takes(limiter, 'a', 100, 31_000)).toBe(30);
    expect(takes(limiter, 'a', 100, 3_600_000)).toBe(60);
    expect(limiter.refused).toBe(40 + 1 + 9 + 70 + 40);
  });

  test('the time to wait is sufficient and not a second too long', () => {
    const limiter = new RateLimiter(2);
    takes(limiter, 'a', 2, 0);
    expect(limiter.take('a', 0)).toMatchObject({ fault: { retryAfterSecs: 30 } });
    expect(limiter.take('a', 29_000)).toMatchObject({ fault: { retryAfterSecs: 1 } });
    expect(limiter.take('a', 30_000).ok).toBe(true);
  });

  test('0 limits nothing', () => {
    expect(takes(new RateLimiter(0), 'a', 10_000, 0)).toBe(10_000);
  });

  test('limits one caller without affecting another', () => {
    const limiter = new RateLimiter(5);
    takes(limiter, 'greedy', 1_000, 0);
    expect(takes(limiter, 'modest', 5, 0)).toBe(5);
  });

  test('refused requests cost nothing: a persistent caller still gets its share', () => {
    const limiter = new RateLimiter(60);
    let granted = 0;
    for (let ms = 0; ms < 120_000; ms += 10) granted += limiter.take('a', ms).ok ? 1 : 0;
    expect(granted).toBe(179); // 60 at once, and one for each of the following 119 seconds that is whole
  });

  test("no minute grants more than two minutes' worth, whatever the times", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.array(fc.integer({ min: 0, max: 5_000 }), { maxLength: 200, size: 'max' }),
        (perMinute, gaps) => {
          const limiter = new RateLimiter(perMinute);
          const granted: number[] = [];
          let nowMs = 0;
          for (const gap of gaps) {
            nowMs += gap;
            if (limiter.take('a', nowMs).ok) granted.push(nowMs);
          }
          for (const from of granted)
            expect(granted.filter((at) => at >= from && at < from + 60_000).length).toBeLessThanOrEqual(2 * perMinute);
        },
      ),
    );
  });

  test('a crowd of callers is kept within bounds, the busy ones longest', () => {
    const limiter = new RateLimiter(1);
    expect(limiter.take('busy', 0).ok).toBe(true);
    for (let n = 0; n < 99_999; n += 1) limiter.take(`caller-${n}`, 0);
    expect(limiter.take('busy', 0).ok).toBe(false);
    for (let n = 0; n < 99_999; n += 1) limiter.take(`other-${n}`, 0);
    expect(limiter.take('busy', 0).ok).toBe(false);
    expect(limiter.take('caller-0', 0).ok).toBe(true); // forgotten
  });
});
