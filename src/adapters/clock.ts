import type { Clock } from '../gateway/ports.ts';

/**
 * Follows the wall clock but never runs backwards. When the wall clock is set back, this one goes on at half speed
 * until the two agree again, so that nothing that waits for time to pass waits for ever. `fromMs`: what an older clock
 * shows, where this one is to go by the same time.
 */
export function createClock(
  wallMs: () => number = Date.now,
  monotonicMs: () => number = () => performance.now(),
  fromMs = 0,
): Clock {
  let nowMs = Math.max(fromMs, wallMs());
  let readAtMs = monotonicMs();
  return {
    nowMs() {
      const monotonic = monotonicMs();
      const wall = wallMs();
      const passedMs = monotonic - readAtMs;
      if (wall >= nowMs + passedMs / 2) {
        nowMs = wall;
        readAtMs = monotonic;
      } else if (passedMs >= 2) {
        nowMs += Math.floor(passedMs / 2);
        readAtMs = monotonic;
      }
      return nowMs;
    },
  };
}

/** The wall clock of the start and the time that has passed since: it does not notice when the wall clock is set. */
export function createSteadyClock(
  wallMs: () => number = Date.now,
  monotonicMs: () => number = () => performance.now(),
): Clock {
  const startMs = wallMs() - monotonicMs();
  return { nowMs: () => Math.floor(startMs + monotonicMs()) };
}
