/**
 * A wall clock that is set forward or back by an hour, while people and programs are counted: nobody is locked out by
 * it, and no limit opens.
 */
import { describe, expect, test } from 'vitest';
import { ClusterClock } from '../../src/cluster/clock.ts';
import { ok } from '../../src/core/base/result.ts';
import { afterFailure, type Lockout, lockedForSecs, NO_FAILURES } from '../../src/core/identity/account.ts';
import { RateLimiter } from '../../src/fairness/rate-limit.ts';
import { PostgresClock } from '../../src/stores/postgres/clock.ts';
import type { Postgres } from '../../src/stores/postgres/postgres.ts';
import { createClock, createSteadyClock } from '../../src/system/clock.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const STEPS = [
  ['forward', HOUR_MS],
  ['back', -HOUR_MS],
] as const;

/** The time of a machine: it passes, and its wall clock is set. */
function machine() {
  const now = { wallMs: Date.UTC(2030, 0, 1), monotonicMs: 0 };
  return {
    wallMs: () => now.wallMs,
    monotonicMs: () => now.monotonicMs,
    pass: (ms: number) => {
      now.wallMs += ms;
      now.monotonicMs += ms;
    },
    step: (ms: number) => {
      now.wallMs += ms;
    },
  };
}

describe.each(STEPS)('when the clock of the gateway is set %s by an hour', (_way, stepMs) => {
  test("a caller at its limit gets at most one more minute's worth, at least half of it", () => {
    const { wallMs, monotonicMs, pass, step } = machine();
    const clock = createClock(wallMs, monotonicMs);
    const limiter = new RateLimiter(60);
    const grantedIn = (minutes: number): number => {
      let granted = 0;
      for (let passedMs = 0; passedMs < minutes * MINUTE_MS; passedMs += 100) {
        pass(100);
        if (limiter.take('busy', clock.nowMs()).ok) granted += 1;
      }
      return granted;
    };
    expect(grantedIn(1)).toBeLessThanOrEqual(120);
    const before = grantedIn(1);
    expect(before).toBeGreaterThanOrEqual(59);
    expect(before).toBeLessThanOrEqual(61);
    step(stepMs);
    for (let minute = 0; minute < 180; minute += 1) {
      const granted = grantedIn(1);
      expect(granted, `minute ${minute}`).toBeGreaterThanOrEqual(29);
      expect(granted, `minute ${minute}`).toBeLessThanOrEqual(minute === 0 ? 121 : 61);
    }
    expect(grantedIn(1)).toBeGreaterThanOrEqual(59);
  });

  test("a lock lasts a quarter of an hour by the database's clock", async () => {
    const { wallMs, monotonicMs, pass, step } = machine();
    const database = machine();
    const postgres = {
      attempt: async (work: (on: unknown) => Promise<unknown>) =>
        ok(await work({ query: async () => ({ rows: [{ now: new Date(database.wallMs()) }], rowCount: 1 }) })),
    };
    const clock = new PostgresClock(postgres as unknown as Postgres, createSteadyClock(wallMs, monotonicMs));
    const wait = async (ms: number): Promise<void> => {
      for (let passedMs = 0; passedMs < ms; passedMs += 2 * SECOND_MS) {
        pass(2 * SECOND_MS);
        database.pass(2 * SECOND_MS);
        await clock.sync();
      }
    };
    const fail = (lockout: Lockout, times: number): Lockout =>
      Array.from({ length: times }).reduce<Lockout>((last) => afterFailure(last, clock.nowMs()), lockout);
    await clock.sync();
    const locked = fail(NO_FAILURES, 5);
    expect(lockedForSecs(locked, clock.nowMs())).toBe(900);
    const almost = fail(NO_FAILURES, 4);
    step(stepMs);
    // Before the database has been asked for the time again.
    expect(lockedForSecs(locked, clock.nowMs())).toBe(900);
    expect(lockedForSecs(almost, clock.nowMs())).toBeUndefined();
    const lockedThen = fail(NO_FAILURES, 5);
    await wait(10 * MINUTE_MS);
    expect([locked, lockedThen].map((each) => lockedForSecs(each, clock.nowMs()))).toEqual([300, 300]);
    await wait(5 * MINUTE_MS);
    expect([locked, lockedThen].map((each) => lockedForSecs(each, clock.nowMs()))).toEqual([undefined, undefined]);
  });
});

describe('clock steps', () => {
  test.each(STEPS)(
    "affect neither sign-in nor lockout, with the database's clock set %s by an hour",
    async (_way, stepMs) => {
      const { wallMs, monotonicMs, pass } = machine();
      const database = machine();
      const postgres = {
        attempt: async (work: (on: unknown) => Promise<unknown>) =>
          ok(await work({ query: async () => ({ rows: [{ now: new Date(database.wallMs()) }], rowCount: 1 }) })),
      };
      const clock = new PostgresClock(postgres as unknown as Postgres, createSteadyClock(wallMs, monotonicMs));
      await clock.sync();
      database.step(stepMs);
      for (let round = 0; round < 3; round += 1) {
        expect(lockedForSecs({ failures: 4, lockedUntilMs: null }, clock.nowMs())).toBeUndefined();
        let lockout: Lockout = NO_FAILURES;
        for (let count = 0; count < 5; count += 1) lockout = afterFailure(lockout, clock.nowMs());
        expect(lockedForSecs(lockout, clock.nowMs())).toBe(900);
        pass(2 * SECOND_MS);
        database.pass(2 * SECOND_MS);
        await clock.sync();
      }
    },
  );

  test('of the database are followed by its cluster: ahead at once, back after 10 s', async () => {
    const { wallMs, monotonicMs, pass } = machine();
    const database = machine();
    const known = new ClusterClock(wallMs, createSteadyClock(wallMs, monotonicMs));
    const clock = createClock(known.nowMs, monotonicMs);
    const aheadAfterBeat = async (): Promise<number> => {
      pass(SECOND_MS);
      database.pass(SECOND_MS);
      await known.compare(
        async () => database.wallMs(),
        (ms) => ms,
      );
      clock.follow();
      return clock.nowMs() - database.wallMs();
    };
    expect(await aheadAfterBeat()).toBe(0);
    database.step(HOUR_MS);
    expect(await aheadAfterBeat()).toBe(0);
    database.step(-HOUR_MS);
    for (let second = 1; second <= 10; second += 1)
      expect(await aheadAfterBeat()).toBe(HOUR_MS - (second * SECOND_MS) / 2);
    expect(await aheadAfterBeat()).toBe(0);
    expect(known.skewMs).toBe(0);
  });
});
