import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createClock } from '../../src/system/clock.ts';

/** A clock on a wall and a stopwatch that a test sets. */
function open(wallMs: number) {
  const now = { wallMs, monotonicMs: 0 };
  const clock = createClock(
    () => now.wallMs,
    () => now.monotonicMs,
  );
  return {
    clock,
    pass: (ms: number) => {
      now.wallMs += ms;
      now.monotonicMs += ms;
    },
    setWall: (ms: number) => {
      now.wallMs = ms;
    },
  };
}

describe('clock', () => {
  test('follows the wall clock, also when that is set forward', () => {
    const { clock, pass, setWall } = open(1_000);
    expect(clock.nowMs()).toBe(1_000);
    pass(500);
    expect(clock.nowMs()).toBe(1_500);
    setWall(9_000);
    expect(clock.nowMs()).toBe(9_000);
  });

  test('runs at half speed after the wall clock is set back, until both agree', () => {
    const { clock, pass, setWall } = open(10_000);
    clock.nowMs();
    setWall(8_000);
    expect(clock.nowMs()).toBe(10_000);
    pass(1_000); // the wall says 9,000
    expect(clock.nowMs()).toBe(10_500);
    pass(1_000);
    expect(clock.nowMs()).toBe(11_000);
    pass(1_000);
    expect(clock.nowMs()).toBe(11_500);
    pass(1_000); // here they meet
    expect(clock.nowMs()).toBe(12_000);
    pass(1_000);
    expect(clock.nowMs()).toBe(13_000);
  });

  test('never runs backwards or stands still for long, however the wall clock jumps', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 1_000 }), fc.integer({ min: -100_000, max: 100_000 }))),
        (steps) => {
          const { clock, pass, setWall } = open(1_000_000);
          let last = clock.nowMs();
          let wallMs = 1_000_000;
          for (const [passedMs, jumpMs] of steps) {
            pass(passedMs);
            wallMs += passedMs + jumpMs;
            setWall(wallMs);
            const now = clock.nowMs();
            expect(now).toBeGreaterThanOrEqual(last);
            expect(now).toBe(Math.floor(now));
            last = now;
          }
          pass(10_000);
          expect(clock.nowMs()).toBeGreaterThanOrEqual(last + 4_999);
        },
      ),
    );
  });

  /** Follows once a second for so many seconds; when it stepped, in seconds, and where it was then. */
  const followFor = ({ clock, pass }: ReturnType<typeof open>, secs: number) => {
    const steps: { readonly afterSecs: number; readonly fromMs: number; readonly toMs: number }[] = [];
    for (let sec = 0; sec <= secs; sec += 1) {
      if (sec > 0) pass(1_000);
      const step = clock.follow();
      if (step !== undefined) steps.push({ afterSecs: sec, ...step });
    }
    return steps;
  };

  test('follows a wall clock that has stood more than a minute back for ten seconds', () => {
    const opened = open(200_000);
    opened.clock.nowMs();
    opened.setWall(139_999);
    expect(followFor(opened, 30)).toEqual([{ afterSecs: 10, fromMs: 205_000, toMs: 149_999 }]);
    expect(opened.clock.nowMs()).toBe(169_999);
  });

  test('does not follow a wall clock that is a minute back', () => {
    const opened = open(200_000);
    opened.clock.nowMs();
    opened.setWall(140_000);
    expect(followFor(opened, 30)).toEqual([]);
    expect(opened.clock.nowMs()).toBe(215_000);
  });

  test('does not follow one that is set again within ten seconds', () => {
    const opened = open(200_000);
    opened.clock.nowMs();
    opened.setWall(100_000);
    expect(followFor(opened, 9)).toEqual([]);
    opened.setWall(90_000);
    expect(followFor(opened, 9)).toEqual([]);
    opened.setWall(218_000);
    expect(followFor(opened, 30)).toEqual([]);
    expect(opened.clock.nowMs()).toBe(248_000);
  });

  test('steps only when told to follow', () => {
    const { clock, pass, setWall } = open(200_000);
    clock.follow();
    setWall(100_000);
    clock.follow();
    pass(20_000);
    expect(clock.nowMs()).toBe(210_000);
    expect(clock.follow()).toEqual({ fromMs: 210_000, toMs: 120_000 });
    expect(clock.nowMs()).toBe(120_000);
  });

  test('advances when read every millisecond while the wall clock is behind', () => {
    const { clock, pass, setWall } = open(10_000);
    clock.nowMs();
    setWall(0);
    for (let ms = 0; ms < 1_000; ms += 1) {
      pass(1);
      clock.nowMs();
    }
    expect(clock.nowMs()).toBe(10_500);
  });

  test('a clock started beside an older one follows it, also after a set-back', () => {
    const now = { wallMs: 10_000, monotonicMs: 0 };
    const older = createClock(
      () => now.wallMs,
      () => now.monotonicMs,
    );
    now.wallMs = 8_000;
    const restarted = createClock(
      () => now.wallMs,
      () => now.monotonicMs,
      older.nowMs(),
    );
    expect(restarted.nowMs()).toBe(10_000);
    const times = [1_000, 1_000, 1_000, 1_000, 1_000].map((ms) => {
      now.wallMs += ms;
      now.monotonicMs += ms;
      return [older.nowMs(), restarted.nowMs()];
    });
    expect(times).toEqual([
      [10_500, 10_500],
      [11_000, 11_000],
      [11_500, 11_500],
      [12_000, 12_000],
      [13_000, 13_000],
    ]);
    expect(
      createClock(
        () => now.wallMs,
        () => now.monotonicMs,
        5_000,
      ).nowMs(),
    ).toBe(13_000); // a message that took long to come
  });
});
