import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { afterFailure, lockedForSecs, NO_FAILURES } from '../../../src/core/identity/account.ts';

const MINUTE_MS = 60_000;

describe('lockout', () => {
  test('the fifth failure locks for fifteen minutes, and the next counts as one', () => {
    let lockout = NO_FAILURES;
    for (const failures of [1, 2, 3, 4]) {
      lockout = afterFailure(lockout, 0);
      expect(lockout).toEqual({ failures, lockedUntilMs: null });
    }
    lockout = afterFailure(lockout, 1000);
    expect(lockout).toEqual({ failures: 5, lockedUntilMs: 901_000 });
    expect([1000, 1001, 900_001, 900_999, 901_000].map((nowMs) => lockedForSecs(lockout, nowMs))).toEqual([
      900,
      900,
      1,
      1,
      undefined,
    ]);
    expect(afterFailure(lockout, 900_999)).toEqual(lockout);
    expect(afterFailure(lockout, 901_000)).toEqual({ failures: 1, lockedUntilMs: null });
  });

  test('counts at most five attempts in any fifteen minutes after a lock', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 5 * MINUTE_MS }), { maxLength: 200, size: 'max' }), (pausesMs) => {
        let lockout = NO_FAILURES;
        let nowMs = 0;
        let countedSinceLock = 0;
        for (const pauseMs of pausesMs) {
          nowMs += pauseMs;
          const wasLocked = lockedForSecs(lockout, nowMs) !== undefined;
          const next = afterFailure(lockout, nowMs);
          if (wasLocked) expect(next).toBe(lockout);
          else countedSinceLock = lockout.lockedUntilMs === null ? countedSinceLock + 1 : 1;
          expect(countedSinceLock).toBeLessThanOrEqual(5);
          expect(lockedForSecs(next, nowMs) !== undefined).toBe(countedSinceLock === 5);
          lockout = next;
        }
      }),
    );
  });
});
