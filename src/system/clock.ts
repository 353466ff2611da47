import type { Clock } from '../ports/ports.ts';

/** The result of the work, or undefined once the time is up; the work then continues, and its outcome is ignored. */
export function within<T>(timeoutMs: number, work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), timeoutMs);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** A clock that follows the wall clock. */
export type WallClock = Clock & {
  /**
   * Call it every second, and from no work that has read the clock before: goes back to where the wall clock was set,
   * and returns from which time to which, in milliseconds since the Unix epoch. Undefined: there is nothing to follow.
   */
  follow(): StepBack | undefined;
  /** Goes to where the wall clock is, at once. Call it before anything was decided by it. */
  begin(): void;
};

export type StepBack = { readonly fromMs: number; readonly toMs: number };

/** A wall clock that is further behind was wrong before, or is wrong now. */
const MAX_SLEWED_MS = 60_000;
/** It has stood there for so long before it is followed: it may be set once more by whatever has set it. */
const STANDS_FOR_MS = 10_000;
/** By how much it may differ meanwhile from a clock that nobody sets. */
const STANDS_WITHIN_MS = 1_000;

/**
 * Follows the wall clock. When that is set back, this one goes on at half speed until the two agree again, so that
 * nothing that waits for time to pass waits forever. A wall clock that was set back by more than a minute is followed
 * once it has stood there for 10 seconds, by `follow` alone: between two calls of it, time never runs backwards.
 * `fromMs`: what an older clock shows, where this one is to go by the same time.
 */
export function createClock(
  wallMs: () => number = Date.now,
  monotonicMs: () => number = () => performance.now(),
  fromMs = 0,
): WallClock {
  let nowMs = Math.max(fromMs, wallMs());
  let readAtMs = monotonicMs();
  /** Since when the wall clock stands where it was set, and how far it is from the clock that nobody sets. */
  let stands: { readonly sinceMs: number; readonly offsetMs: number } | undefined;
  const read = (): number => {
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
  };
  return {
    nowMs: read,
    begin() {
      nowMs = wallMs();
      readAtMs = monotonicMs();
    },
    follow() {
      const shownMs = read();
      const wall = wallMs();
      const monotonic = monotonicMs();
      const offsetMs = wall - monotonic;
      const isSteady = stands !== undefined && Math.abs(offsetMs - stands.offsetMs) <= STANDS_WITHIN_MS;
      if (!isSteady) stands = shownMs - wall > MAX_SLEWED_MS ? { sinceMs: monotonic, offsetMs } : undefined;
      if (stands === undefined || monotonic - stands.sinceMs < STANDS_FOR_MS) return undefined;
      stands = undefined;
      nowMs = wall;
      readAtMs = monotonic;
      return { fromMs: shownMs, toMs: wall };
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

/** The time of another machine, read off a clock of one's own. */
export class ComparedClock implements Clock {
  readonly #own: Clock;
  /** How far the other machine is ahead. */
  #aheadMs = 0;

  constructor(own: Clock) {
    this.#own = own;
  }

  readonly nowMs = (): number => this.#own.nowMs() + this.#aheadMs;

  /** Asks something whose answer has the other's time. Call it every few seconds: clocks are set. */
  async compare<T>(ask: () => Promise<T>, theirsOf: (answer: T) => number | undefined): Promise<T> {
    const askedMs = this.#own.nowMs();
    const answer = await ask();
    const theirsMs = theirsOf(answer);
    if (theirsMs === undefined) return answer;
    // The other machine read its clock at some moment in between. No more is known, so a difference that fits is kept.
    const [leastMs, mostMs] = [theirsMs - this.#own.nowMs(), theirsMs - askedMs];
    if (this.#aheadMs < leastMs || this.#aheadMs > mostMs) this.#aheadMs = Math.round((leastMs + mostMs) / 2);
    return answer;
  }
}
