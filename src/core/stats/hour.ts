/** Counts of one hour: minute by minute while it is recent, then as one sum. */
import { DECISION_CAUSES, type DecisionCause } from '../check/cause.ts';
import { addTo, PairTallies } from './pair-tallies.ts';

export type Counts = {
  readonly allow: number;
  readonly deny: number;
  readonly pending: number;
  readonly spentMicroUsd: number;
};

export const HOUR_MINUTES = 60;
/** Names are told apart in slices of so many minutes, while an hour is recent. */
const SLICE_MINUTES = 5;
const SLICES = HOUR_MINUTES / SLICE_MINUTES;
/** Rules and agents that a slice counts by themselves; and an hour that is over. */
const MAX_NAMED = 256;
const MAX_KEPT_NAMES = 64;

/** The numbers of a minute: checks by decision, then money. */
const PLACE = { allow: 0, deny: 1, pending: 2 } as const;
const SPENT = 3;
const WIDTH = 4;
const CAUSE_PLACE = Object.fromEntries(DECISION_CAUSES.map((cause, at) => [cause, at])) as Record<
  DecisionCause,
  number
>;
export type Decision = keyof typeof PLACE;

/** The numbers of a rule are its decisions; those of an agent are its checks, its denies and its spend. */
export const RULE = PLACE;
export const AGENT = { checks: 0, denies: 1, spentMicroUsd: 2 } as const;
const NAMED_WIDTH = 3;

/** Counts by more than decisions: denies by cause, and the counts of rules and agents. */
export class Names {
  readonly causes: number[] = new Array<number>(DECISION_CAUSES.length).fill(0);
  readonly rules: PairTallies;
  readonly agents: PairTallies;

  constructor(most = MAX_NAMED) {
    this.rules = new PairTallies(most, NAMED_WIDTH);
    this.agents = new PairTallies(most, NAMED_WIDTH);
  }

  get size(): number {
    return this.rules.size + this.agents.size;
  }

  countCause(cause: DecisionCause): void {
    this.causes[CAUSE_PLACE[cause]]! += 1;
  }

  causeCount(cause: DecisionCause): number {
    return this.causes[CAUSE_PLACE[cause]] ?? 0;
  }

  add({ causes, rules, agents }: Names): void {
    addTo(this.causes, causes);
    this.rules.add(rules);
    this.agents.add(agents);
  }
}

/** As it is saved: JSON. */
export type HourRow = {
  readonly orgId: string;
  /** Hours since the Unix epoch. */
  readonly at: number;
  /** The minute of the hour, then its numbers; one row of minute 0 for an hour that is a sum. */
  readonly minutes: readonly (readonly number[])[];
  readonly isSum: boolean;
  /** By name: the table of causes may grow. */
  readonly causes: readonly (readonly [cause: DecisionCause, count: number])[];
  readonly rules: readonly (readonly [policy: string, rule: string, ...numbers: number[]])[];
  readonly agents: readonly (readonly [team: string, agent: string, ...numbers: number[]])[];
  readonly others: { readonly rules: readonly number[]; readonly agents: readonly number[] };
};

/** An hour of an org, or of all. */
export class Hour {
  /** Hours since the Unix epoch. */
  readonly at: number;
  /** By minute, {@link WIDTH} numbers each; of an hour that is a sum, one row. */
  #numbers = new Float64Array(HOUR_MINUTES * WIDTH);
  /** By the slice of the hour; of an hour that is over for long, one. */
  #names: (Names | undefined)[] = new Array<undefined>(SLICES).fill(undefined);
  /** Something was counted since it was saved. */
  isDirty = false;

  constructor(at: number) {
    this.at = at;
  }

  /** Whether its minutes are one sum. */
  get isSum(): boolean {
    return this.#numbers.length === WIDTH;
  }

  countCheck(minute: number, decision: Decision): void {
    this.#numbers[minute * WIDTH + PLACE[decision]]! += 1;
  }

  countSpend(minute: number, microUsd: number): void {
    this.#numbers[minute * WIDTH + SPENT]! += microUsd;
  }

  /** The names that are counted in this minute. */
  namesIn(minute: number): Names {
    const slice = this.#names.length === 1 ? 0 : Math.floor(minute / SLICE_MINUTES);
    return (this.#names[slice] ??= new Names());
  }

  /** The names of all slices that reach this minute since the epoch, or a later one. */
  namesFrom(first: number): readonly Names[] {
    const width = HOUR_MINUTES / this.#names.length;
    return this.#names.filter(
      (names, slice): names is Names => names !== undefined && this.at * HOUR_MINUTES + (slice + 1) * width > first,
    );
  }

  get nameCount(): number {
    return this.#names.reduce((sum, names) => sum + (names?.size ?? 0), 0);
  }

  countsOf(minute: number): Counts {
    const from = minute * WIDTH;
    return {
      allow: this.#numbers[from + PLACE.allow]!,
      deny: this.#numbers[from + PLACE.deny]!,
      pending: this.#numbers[from + PLACE.pending]!,
      spentMicroUsd: this.#numbers[from + SPENT]!,
    };
  }

  /** Its minutes from this one of the epoch on; of a sum, its only one. */
  *minutesFrom(first: number): Iterable<number> {
    if (this.isSum) {
      if ((this.at + 1) * HOUR_MINUTES > first) yield 0;
      return;
    }
    for (let minute = Math.max(0, first - this.at * HOUR_MINUTES); minute < HOUR_MINUTES; minute += 1) yield minute;
  }

  /** Makes one list of the names of its slices. */
  mergeNames(): void {
    if (this.#names.length === 1) return;
    this.#names = [this.#allNames(MAX_NAMED)];
  }

  /** Makes one row of its minutes, and keeps only the names that count most. */
  sumUp(): void {
    const sum = new Float64Array(WIDTH);
    this.#numbers.forEach((number, at) => (sum[at % WIDTH]! += number));
    this.#numbers = sum;
    this.mergeNames();
    this.#cutNames(MAX_KEPT_NAMES);
  }

  /** Counts all rules and agents together. */
  dropNames(): void {
    this.#cutNames(0);
  }

  #cutNames(most: number): void {
    const [names] = this.#names;
    if (names === undefined || names.size <= most) return;
    const kept = new Names(most / 2);
    addTo(kept.causes, names.causes);
    keepMost(names.rules, kept.rules, (numbers) => numbers[RULE.deny]! * 1_000 + numbers[RULE.allow]!);
    keepMost(names.agents, kept.agents, (numbers) => numbers[AGENT.denies]! * 1_000 + numbers[AGENT.checks]!);
    this.#names = [kept];
  }

  rowOf(orgId: string): HourRow {
    const minutes: number[][] = [];
    for (let from = 0; from < this.#numbers.length; from += WIDTH) {
      const numbers = this.#numbers.subarray(from, from + WIDTH);
      if (numbers.some((number) => number !== 0)) minutes.push([from / WIDTH, ...numbers]);
    }
    const all = this.#allNames(Number.POSITIVE_INFINITY);
    return {
      orgId,
      at: this.at,
      minutes,
      isSum: this.isSum,
      causes: DECISION_CAUSES.flatMap((cause) => (all.causeCount(cause) === 0 ? [] : [[cause, all.causeCount(cause)]])),
      rules: Array.from(all.rules.entries(), ([policy, rule, numbers]) => [policy, rule, ...numbers] as const),
      agents: Array.from(all.agents.entries(), ([team, agent, numbers]) => [team, agent, ...numbers] as const),
      others: { rules: all.rules.others, agents: all.agents.others },
    };
  }

  #allNames(most: number): Names {
    const all = new Names(most);
    for (const names of this.#names) if (names !== undefined) all.add(names);
    return all;
  }

  /** As it was saved; its names are those of the whole hour. */
  static ofRow({ at, minutes, isSum, causes, rules, agents, others }: HourRow): Hour {
    const hour = new Hour(at);
    if (isSum) hour.#numbers = new Float64Array(WIDTH);
    for (const [minute = 0, ...numbers] of minutes) hour.#numbers.set(numbers.slice(0, WIDTH), minute * WIDTH);
    const names = new Names();
    for (const [policy, rule, ...numbers] of rules) addTo(names.rules.of(policy, rule, true), numbers);
    for (const [team, agent, ...numbers] of agents) addTo(names.agents.of(team, agent, true), numbers);
    for (const [cause, count] of causes) if (cause in CAUSE_PLACE) names.causes[CAUSE_PLACE[cause]] = count;
    addTo(names.rules.others, others.rules);
    addTo(names.agents.others, others.agents);
    hour.#names = [names];
    return hour;
  }
}

function keepMost(from: PairTallies, kept: PairTallies, weightOf: (numbers: readonly number[]) => number): void {
  addTo(kept.others, from.others);
  const sorted = [...from.entries()].sort(([, , one], [, , other]) => weightOf(other) - weightOf(one));
  for (const [first, second, numbers] of sorted) addTo(kept.of(first, second, true), numbers);
}

/** Sums up the counts from this minute of the epoch on. */
export function sumFrom(hours: readonly Hour[], first: number): Counts {
  const sum = { allow: 0, deny: 0, pending: 0, spentMicroUsd: 0 };
  for (const hour of hours)
    for (const minute of hour.minutesFrom(first)) {
      const counts = hour.countsOf(minute);
      sum.allow += counts.allow;
      sum.deny += counts.deny;
      sum.pending += counts.pending;
      sum.spentMicroUsd += counts.spentMicroUsd;
    }
  return sum;
}
