import { DECISION_CAUSES, type DecisionCause } from '../decision-cause.ts';
import { PairCounts } from './pair-counts.ts';

export type Counts = {
  readonly allow: number;
  readonly deny: number;
  readonly pending: number;
  readonly spentMicroUsd: number;
};

const MINUTES = 60;
export const HOUR_MINUTES = MINUTES;
/** The day that is shown touches this many hours. */
const HOURS = 25;
/** What is counted in a minute: checks by decision. */
const CELLS = 3;
const PLACE = { allow: 0, deny: 1, pending: 2 } as const;
/** Rules and agents that are counted in an hour by themselves. */
const MAX_NAMED = 256;

/** One hour of an org, or of all. */
export class Hour {
  /** Hours since the Unix epoch. */
  readonly at: number;
  /** By minute and decision. */
  readonly checks = new Uint32Array(MINUTES * CELLS);
  readonly spentMicroUsd = new Float64Array(MINUTES);
  /** By the place of the cause in its table. */
  readonly causes = new Uint32Array(DECISION_CAUSES.length);
  /** Denies by policy and rule, and by team and agent. */
  readonly rules = new PairCounts(MAX_NAMED);
  readonly agents = new PairCounts(MAX_NAMED);

  constructor(at: number) {
    this.at = at;
  }

  countsOf(cell: number): Counts {
    const from = cell * CELLS;
    return {
      allow: this.checks[from + PLACE.allow]!,
      deny: this.checks[from + PLACE.deny]!,
      pending: this.checks[from + PLACE.pending]!,
      spentMicroUsd: this.spentMicroUsd[cell]!,
    };
  }
}

const CAUSE_PLACE = Object.fromEntries(DECISION_CAUSES.map((cause, at) => [cause, at])) as Record<
  DecisionCause,
  number
>;

/** A day of counts. An hour in which nothing happens takes no memory. */
export class Series {
  #hours: Hour[] = [];
  /** The hour that is counted in; none has its number before the first. */
  #last: Hour | undefined;
  /** Since it was made, which may be longer than a day ago. */
  readonly total = { allow: 0, deny: 0, pending: 0, spentMicroUsd: 0 };

  /** The latest last. */
  get hours(): readonly Hour[] {
    return this.#hours;
  }

  /** The latest hour, if it is this one: what comes late is counted where the clock is. */
  hourAt(at: number): Hour | undefined {
    const last = this.#last;
    return last !== undefined && last.at >= at ? last : undefined;
  }

  beginHour(at: number): Hour {
    const hour = new Hour(at);
    this.#hours.push(hour);
    this.#last = hour;
    return hour;
  }

  addCheck(hour: Hour, cell: number, decision: keyof typeof PLACE): void {
    hour.checks[cell * CELLS + PLACE[decision]]! += 1;
    this.total[decision] += 1;
  }

  addSpend(hour: Hour, cell: number, microUsd: number): void {
    hour.spentMicroUsd[cell]! += microUsd;
    this.total.spentMicroUsd += microUsd;
  }

  /** Removes the hours that the day before this one does not touch, and returns them. */
  prune(at: number): readonly Hour[] {
    const first = at - HOURS + 1;
    const over = this.#hours.filter((hour) => hour.at < first);
    if (over.length > 0) this.#hours = this.#hours.filter((hour) => hour.at >= first);
    if (this.#hours.length === 0) this.#last = undefined;
    return over;
  }
}

export const addCause = ({ causes }: Hour, cause: DecisionCause): void => {
  causes[CAUSE_PLACE[cause]]! += 1;
};

/** What was counted from this minute on. */
export function sumFrom(hours: readonly Hour[], first: number): Counts {
  const sum = { allow: 0, deny: 0, pending: 0, spentMicroUsd: 0 };
  for (const { at, checks, spentMicroUsd } of hours)
    for (let cell = Math.max(0, first - at * MINUTES); cell < MINUTES; cell += 1) {
      const from = cell * CELLS;
      sum.allow += checks[from + PLACE.allow]!;
      sum.deny += checks[from + PLACE.deny]!;
      sum.pending += checks[from + PLACE.pending]!;
      sum.spentMicroUsd += spentMicroUsd[cell]!;
    }
  return sum;
}
