import { Hour } from './hour.ts';

/** The day that is shown minute by minute touches this many hours. */
const RECENT_HOURS = 25;
/** The month that is shown hour by hour touches this many. */
const KEPT_HOURS = 721;

/** A month of counts. An hour in which nothing happens takes no memory. */
export class Series {
  /** The latest last. */
  #hours: Hour[] = [];
  /** Since it was made, which may be longer than a month ago. */
  readonly total = { allow: 0, deny: 0, pending: 0, spentMicroUsd: 0 };

  get hours(): readonly Hour[] {
    return this.#hours;
  }

  /** The latest hour, if it is this one: what comes late is counted where the clock is. */
  hourAt(at: number): Hour | undefined {
    const last = this.#hours[this.#hours.length - 1];
    return last !== undefined && last.at >= at ? last : undefined;
  }

  beginHour(at: number): Hour {
    const hour = new Hour(at);
    this.#hours.push(hour);
    return hour;
  }

  /** Takes back an hour that was saved, in the order of time. */
  restore(hour: Hour): void {
    this.#hours.push(hour);
  }

  /** The clock was set back: removes the hours that have not come yet, and returns them. */
  setBack(at: number): readonly Hour[] {
    const ahead = this.#hours.filter((hour) => hour.at > at);
    if (ahead.length > 0) this.#hours = this.#hours.filter((hour) => hour.at <= at);
    return ahead;
  }

  /**
   * Removes the hours that the month before this one does not touch, and returns them. Hours that the day before does
   * not touch become sums, which `keeps` may refuse; the names of all slices of hours that ended an hour ago become one
   * list.
   */
  prune(at: number, keeps: (sum: Hour) => boolean): readonly Hour[] {
    const first = at - KEPT_HOURS + 1;
    const over = new Set(this.#hours.filter((hour) => hour.at < first));
    for (let nth = this.#hours.length - 1; nth >= 0 && !this.#hours[nth]!.isSum; nth -= 1) {
      const hour = this.#hours[nth]!;
      if (hour.at > at - RECENT_HOURS) {
        if (hour.at < at - 1) hour.mergeNames();
        continue;
      }
      hour.sumUp();
      if (!over.has(hour) && !keeps(hour)) over.add(hour);
    }
    if (over.size > 0) this.#hours = this.#hours.filter((hour) => !over.has(hour));
    return [...over];
  }
}
