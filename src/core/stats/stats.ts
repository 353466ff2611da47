/** What was checked, denied and spent in the last 24 hours (docs/spec.md, Statistics). In memory only, and bounded. */
import type { AgentIdentity } from '../base/ids.ts';
import type { CheckAnswer } from '../commands.ts';
import { DECISION_CAUSES, type DecisionCause } from '../decision-cause.ts';
import { LatencyDay, type Percentiles } from './latency.ts';
import { PairCounts } from './pair-counts.ts';
import { addCause, type Counts, HOUR_MINUTES, type Hour, Series, sumFrom } from './series.ts';

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1_440;
/** Hours of orgs that are held at once, of 1.5 KB each; beyond that, orgs count only as a part of all. */
const MAX_HOURS = 8_000;
/** Rules and agents that are counted by themselves, over all hours. */
const MAX_NAMES = 50_000;
/** Rules that are counted by themselves since the start. */
const MAX_RULES = 500;
/** The longest lists that are shown. */
export const MOST_SHOWN = 50;
const NO_ORG = '';

/** Undefined names: all others. */
export type RuleCount = {
  readonly policy: string | undefined;
  readonly ruleId: string | undefined;
  readonly count: number;
};
export type AgentCount = { readonly agent: AgentIdentity | undefined; readonly count: number };
export type StatsMinute = Counts & { readonly atMs: number; readonly latency: Percentiles | undefined };
export type OrgStats = Counts & { readonly orgId: string };
export type StatsView = {
  readonly fromMs: number;
  readonly toMs: number;
  readonly sum: Counts;
  readonly causes: readonly { readonly cause: DecisionCause; readonly count: number }[];
  /** The most denies first, here and below. */
  readonly rules: readonly RuleCount[];
  readonly agents: readonly AgentCount[];
  readonly orgs: readonly OrgStats[];
  /** Only for who sees all: it is the gateway's. */
  readonly latency: Percentiles | undefined;
  /** Those in which something happened, the oldest first. */
  readonly minutes: readonly StatsMinute[];
  /** Some of it was counted only for all orgs together, since there were too many. */
  readonly isIncomplete: boolean;
};

export class Stats {
  readonly #startedAtMs: number;
  /** Its rules and agents are those that belong to no org that is counted by itself. */
  readonly #all = new Series();
  readonly #orgs = new Map<string, Series>();
  /** Orgs of which something was counted only for all, and the minute of the last such count. */
  readonly #missed = new Map<string, number>();
  readonly #latency: LatencyDay;
  /** The current minute, as it was reckoned last. */
  #minute = 0;
  #minuteEndsMs = 0;
  #hour = 0;
  #cell = 0;
  #hours = 0;
  #names = 0;
  /** Denies since the start, for the metrics. */
  readonly causes = Object.fromEntries(DECISION_CAUSES.map((cause) => [cause, 0])) as Record<DecisionCause, number>;
  readonly rules = new PairCounts(MAX_RULES);

  /** `latencyBoundsMs`: the upper bounds of the buckets that `noteLatency` is given. */
  constructor(startedAtMs: number, latencyBoundsMs: readonly number[]) {
    this.#startedAtMs = startedAtMs;
    this.#latency = new LatencyDay(latencyBoundsMs);
  }

  /** Who could not prove who it is counts for no org and no agent. */
  countCheck(
    agent: AgentIdentity,
    answer: Pick<CheckAnswer, 'decision' | 'cause' | 'policy' | 'ruleId'>,
    nowMs: number,
  ): void {
    if (nowMs >= this.#minuteEndsMs) this.#turnTo(nowMs);
    const { decision, cause } = answer;
    const all = this.#all.hourAt(this.#hour) ?? this.#all.beginHour(this.#hour);
    this.#all.addCheck(all, this.#cell, decision);
    const isKnown = cause !== 'credential' && cause !== 'unrecorded';
    const series = isKnown && agent.orgId !== NO_ORG ? this.#seriesOf(agent.orgId) : undefined;
    const hour = series && this.#hourOf(series, agent.orgId);
    if (hour !== undefined) series!.addCheck(hour, this.#cell, decision);
    if (cause === undefined) return;
    this.causes[cause] += 1;
    addCause(all, cause);
    if (hour !== undefined) addCause(hour, cause);
    this.#name(hour ?? all, agent, answer, isKnown);
  }

  countSpend(orgId: string, microUsd: number, nowMs: number): void {
    if (nowMs >= this.#minuteEndsMs) this.#turnTo(nowMs);
    const all = this.#all.hourAt(this.#hour) ?? this.#all.beginHour(this.#hour);
    this.#all.addSpend(all, this.#cell, microUsd);
    const series = orgId === NO_ORG ? undefined : this.#seriesOf(orgId);
    const hour = series && this.#hourOf(series, orgId);
    if (hour !== undefined) series!.addSpend(hour, this.#cell, microUsd);
  }

  /** Call it every few seconds, with the counts of the histogram since the start. */
  noteLatency(counts: readonly number[], nowMs: number): void {
    this.#latency.note(counts, Math.floor(nowMs / MINUTE_MS));
  }

  /** Drops what is older than a day. Call it every minute. */
  prune(nowMs: number): void {
    this.#turnTo(nowMs);
    this.#forget(this.#all.prune(this.#hour));
    for (const [orgId, series] of this.#orgs) {
      const over = series.prune(this.#hour);
      this.#hours -= over.length;
      this.#forget(over);
      if (series.hours.length === 0) this.#orgs.delete(orgId);
    }
    for (const [orgId, minute] of this.#missed) if (minute <= this.#minute - DAY_MINUTES) this.#missed.delete(orgId);
  }

  /** What was counted since the start. */
  get total(): Counts {
    return this.#all.total;
  }

  /** What the orgs did that were active in the last day, since they became so. */
  get orgTotals(): readonly OrgStats[] {
    return Array.from(this.#orgs, ([orgId, { total }]) => ({ orgId, ...total }));
  }

  /** Of one org, or of all. */
  view(orgId: string | undefined, nowMs: number): StatsView {
    const minute = Math.floor(nowMs / MINUTE_MS);
    const first = Math.max(minute - DAY_MINUTES + 1, Math.floor(this.#startedAtMs / MINUTE_MS));
    const isOfAll = orgId === undefined;
    const inDay = (series: Series | undefined): readonly Hour[] =>
      (series?.hours ?? []).filter(({ at }) => (at + 1) * HOUR_MINUTES > first);
    const hours = inDay(isOfAll ? this.#all : this.#orgs.get(orgId));
    const named = isOfAll
      ? [[NO_ORG, hours] as const, ...Array.from(this.#orgs, ([id, series]) => [id, inDay(series)] as const)]
      : [[orgId, hours] as const];
    return {
      fromMs: Math.max(first * MINUTE_MS, this.#startedAtMs),
      toMs: nowMs,
      sum: sumFrom(hours, first),
      causes: causesOf(hours),
      rules: rulesOf(named.flatMap(([, of]) => of)),
      agents: agentsOf(named),
      orgs: this.#orgStats(isOfAll ? [...this.#orgs.keys()] : [orgId], first),
      latency: isOfAll ? this.#latency.since(first - 1) : undefined,
      minutes: hours.flatMap((hour) => this.#minutesOf(hour, first, isOfAll)),
      isIncomplete: isOfAll ? this.#missed.size > 0 : this.#missed.has(orgId),
    };
  }

  /** Never back: what comes late is counted where the clock is. */
  #turnTo(nowMs: number): void {
    this.#minute = Math.max(this.#minute, Math.floor(nowMs / MINUTE_MS));
    this.#minuteEndsMs = (this.#minute + 1) * MINUTE_MS;
    this.#hour = Math.floor(this.#minute / HOUR_MINUTES);
    this.#cell = this.#minute % HOUR_MINUTES;
  }

  #name(
    { rules, agents }: Hour,
    { teamId, agentId }: AgentIdentity,
    { policy, ruleId }: Pick<CheckAnswer, 'policy' | 'ruleId'>,
    isKnown: boolean,
  ): void {
    const hasRoom = this.#names < MAX_NAMES;
    if (policy !== undefined && ruleId !== undefined) {
      this.rules.add(policy, ruleId, true);
      if (rules.add(policy, ruleId, hasRoom)) this.#names += 1;
    }
    if (isKnown && agents.add(teamId, agentId, hasRoom)) this.#names += 1;
  }

  #seriesOf(orgId: string): Series | undefined {
    const known = this.#orgs.get(orgId);
    if (known !== undefined) return known;
    if (this.#hours >= MAX_HOURS) return this.#miss(orgId);
    const series = new Series();
    this.#orgs.set(orgId, series);
    return series;
  }

  #hourOf(series: Series, orgId: string): Hour | undefined {
    const known = series.hourAt(this.#hour);
    if (known !== undefined) return known;
    if (this.#hours >= MAX_HOURS) return this.#miss(orgId);
    this.#hours += 1;
    return series.beginHour(this.#hour);
  }

  #miss(orgId: string): undefined {
    if (this.#missed.size < MAX_HOURS || this.#missed.has(orgId)) this.#missed.set(orgId, this.#minute);
  }

  #forget(hours: readonly Hour[]): void {
    for (const { rules, agents } of hours) this.#names -= rules.size + agents.size;
  }

  #minutesOf(hour: Hour, first: number, withLatency: boolean): readonly StatsMinute[] {
    const found: StatsMinute[] = [];
    for (let cell = 0; cell < HOUR_MINUTES; cell += 1) {
      const minute = hour.at * HOUR_MINUTES + cell;
      const counts = hour.countsOf(cell);
      if (minute < first || isNothing(counts)) continue;
      const latency = withLatency ? this.#latency.ofMinute(minute) : undefined;
      found.push({ atMs: minute * MINUTE_MS, ...counts, latency });
    }
    return found;
  }

  #orgStats(orgIds: readonly string[], first: number): readonly OrgStats[] {
    return orgIds
      .map((orgId) => ({ orgId, ...sumFrom(this.#orgs.get(orgId)?.hours ?? [], first) }))
      .filter((counts) => !isNothing(counts))
      .sort((one, other) => other.deny - one.deny || other.allow - one.allow)
      .slice(0, MOST_SHOWN);
  }
}

const isNothing = ({ allow, deny, pending, spentMicroUsd }: Counts): boolean =>
  allow + deny + pending + spentMicroUsd === 0;

const causesOf = (hours: readonly Hour[]): StatsView['causes'] =>
  DECISION_CAUSES.map((cause, at) => ({ cause, count: hours.reduce((sum, { causes }) => sum + causes[at]!, 0) }))
    .filter(({ count }) => count > 0)
    .sort((one, other) => other.count - one.count);

function rulesOf(hours: readonly Hour[]): readonly RuleCount[] {
  const sums = new Map<string, RuleCount>();
  let others = 0;
  for (const { rules } of hours) {
    others += rules.others;
    for (const [policy, ruleId, count] of rules.entries()) {
      const key = JSON.stringify([policy, ruleId]);
      sums.set(key, { policy, ruleId, count: count + (sums.get(key)?.count ?? 0) });
    }
  }
  return mostOf(sums.values(), others, (count) => ({ policy: undefined, ruleId: undefined, count }));
}

function agentsOf(named: readonly (readonly [orgId: string, hours: readonly Hour[]])[]): readonly AgentCount[] {
  const sums = new Map<string, AgentCount>();
  let others = 0;
  for (const [orgId, hours] of named)
    for (const { agents } of hours) {
      others += agents.others;
      for (const [teamId, agentId, count] of agents.entries()) {
        const key = JSON.stringify([orgId, teamId, agentId]);
        sums.set(key, { agent: { orgId, teamId, agentId }, count: count + (sums.get(key)?.count ?? 0) });
      }
    }
  return mostOf(sums.values(), others, (count) => ({ agent: undefined, count }));
}

/** The most first; those that were not counted by themselves, or are too many to show, come last, as one. */
export function mostOf<T extends { readonly count: number }>(
  sums: Iterable<T>,
  others: number,
  asOthers: (count: number) => T,
): readonly T[] {
  const sorted = [...sums].sort((one, other) => other.count - one.count);
  const rest = sorted.slice(MOST_SHOWN).reduce((sum, { count }) => sum + count, others);
  return [...sorted.slice(0, MOST_SHOWN), ...(rest > 0 ? [asOthers(rest)] : [])];
}
