import { describe, expect, test } from 'vitest';
import { createClockGuard } from '../../src/system/clock-guard.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** A gateway that starts on the hundredth day, and the leaps that it sees, in days. */
function start(witnessedDays: readonly number[]) {
  let wallMs = 100 * DAY;
  let monotonicMs = 0;
  const leaps: number[][] = [];
  const guard = createClockGuard({
    witnessedMs: witnessedDays.map((day) => day * DAY),
    onLeap: (fromMs, toMs) => leaps.push([fromMs / DAY, toMs / DAY]),
    wallMs: () => wallMs,
    monotonicMs: () => monotonicMs,
  });
  return {
    isBelieved: () => guard.isBelieved(),
    run: (ms: number) => {
      wallMs += ms;
      monotonicMs += ms;
    },
    setAhead: (ms: number) => {
      wallMs += ms;
    },
    leaps,
  };
}

describe('clock guard', () => {
  test('believes a clock that has gone on without a leap', () => {
    const { isBelieved, leaps } = start([99.2, 99.9]);
    expect({ believed: isBelieved(), leaps }).toEqual({ believed: true, leaps: [] });
  });

  test('waits for a day of running after a leap, and believes a smaller step at once', () => {
    const { isBelieved, run, setAhead, leaps } = start([]);
    setAhead(23 * HOUR);
    expect(isBelieved()).toBe(true);
    setAhead(2 * DAY);
    expect(isBelieved()).toBe(false);
    run(DAY - 1);
    expect(isBelieved()).toBe(false);
    run(1);
    expect(isBelieved()).toBe(true);
    expect(leaps).toHaveLength(1);
  });

  test('does not believe a clock that leapt within a day while the gateway was off', () => {
    expect(start([90]).isBelieved()).toBe(false);
    expect(start([90, 99.5]).isBelieved()).toBe(false);
    expect(start([90, 98.5, 99.4]).isBelieved()).toBe(true); // older than a day
  });
});
