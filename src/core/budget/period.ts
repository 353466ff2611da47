import { assert } from '../base/result.ts';
import { localClock } from '../base/time.ts';

/** The day and the month that contain an instant. Each lasts from its start up to, but not including, its reset. */
export type PeriodWindow = {
  /** The local date, `2026-11-04`. */
  readonly day: string;
  /** The local month, `2026-11`. */
  readonly month: string;
  readonly dailyStartMs: number;
  readonly dailyResetMs: number;
  readonly monthlyStartMs: number;
  readonly monthlyResetMs: number;
};

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
// No zone is further than 15 h from UTC, so a local midnight is well inside this distance of the same midnight in UTC.
const SEARCH_MS = 26 * HOUR_MS;

/**
 * Local days and months of one IANA time zone (docs/spec.md, Budgets).
 *
 * A day begins at the first instant at which the local clock shows its midnight or later. So the days follow each other
 * without gap or overlap on every clock there is: a midnight that is skipped (the day begins with its first existing
 * minute), a midnight that comes twice (the first one counts), a whole day that is skipped.
 */
export class PeriodCalendar {
  readonly timezone: string;
  /** Local times are written as if they were UTC. */
  readonly #localMs: (atMs: number) => number;
  #window: PeriodWindow | undefined;

  /** Takes a name that `parseBudgetConfig` has accepted. */
  constructor(timezone: string) {
    this.timezone = timezone;
    this.#localMs = localClock(timezone);
  }

  /** Computed once per local day: two comparisons while the day lasts. */
  windowAt(nowMs: number): PeriodWindow {
    const known = this.#window;
    if (known !== undefined && nowMs >= known.dailyStartMs && nowMs < known.dailyResetMs) return known;
    return (this.#window = this.#compute(nowMs));
  }

  /** The window of a local date, `2026-11-04`, whenever that is. */
  windowOfDay(day: string): PeriodWindow {
    const midnight = Date.parse(day);
    assert(Number.isFinite(midnight), 'a local date is written yyyy-mm-dd');
    return this.#windowOf(startOfDay(midnight));
  }

  #compute(nowMs: number): PeriodWindow {
    assert(Number.isFinite(nowMs), 'an instant is a finite number of milliseconds');
    let midnight = startOfDay(this.#localMs(nowMs));
    // Set back over midnight, the local clock shows the old date again although the new day has begun.
    while (this.#firstInstantOf(midnight + DAY_MS) <= nowMs) midnight += DAY_MS;
    return this.#windowOf(midnight);
  }

  #windowOf(midnight: number): PeriodWindow {
    const date = new Date(midnight);
    const day = date.toISOString().slice(0, 'yyyy-mm-dd'.length);
    const firstOfMonth = (offset: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + offset, 1);
    return {
      day,
      month: day.slice(0, 'yyyy-mm'.length),
      dailyStartMs: this.#firstInstantOf(midnight),
      dailyResetMs: this.#firstInstantOf(midnight + DAY_MS),
      monthlyStartMs: this.#firstInstantOf(firstOfMonth(0)),
      monthlyResetMs: this.#firstInstantOf(firstOfMonth(1)),
    };
  }

  /** The first instant whose local time is `localMs` or later. */
  #firstInstantOf(localMs: number): number {
    const offsetBefore = this.#offsetMs(localMs - SEARCH_MS);
    const offsetAfter = this.#offsetMs(localMs + SEARCH_MS);
    if (offsetBefore === offsetAfter) return localMs - offsetBefore;
    const changeMs = this.#changeBetween(localMs - SEARCH_MS, localMs + SEARCH_MS, offsetBefore);
    const onOldClock = localMs - offsetBefore;
    return onOldClock < changeMs ? onOldClock : Math.max(changeMs, localMs - offsetAfter);
  }

  /** The first instant at which the offset is no longer `offsetBefore`. Zones change at whole seconds at the finest. */
  #changeBetween(beforeMs: number, afterMs: number, offsetBefore: number): number {
    let low = Math.floor(beforeMs / 1000);
    let high = Math.ceil(afterMs / 1000);
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.#offsetMs(middle * 1000) === offsetBefore) low = middle;
      else high = middle;
    }
    return high * 1000;
  }

  #offsetMs(atMs: number): number {
    const wholeSecondMs = Math.floor(atMs / 1000) * 1000;
    return this.#localMs(wholeSecondMs) - wholeSecondMs;
  }
}

const startOfDay = (localMs: number): number => Math.floor(localMs / DAY_MS) * DAY_MS;
