import type { Clock } from '../ports/ports.ts';

/** The result of the work, or undefined once the time is up; the work then continues, and its outcome is ignored. */
export function within<T>(timeoutMs: number, work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), timeoutMs);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/**
 * Follows the wall clock but never runs backwards. When the wall clock is set back, this one goes on at half speed
 * until the two agree again, so that nothing that waits for time to pass waits forever. `fromMs`: what an older clock
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
