/**
 * Counts of checks, denies and spending: a day minute by minute, a month hour by hour (docs/spec.md, Statistics).
 * Bounded, and saved by the caller of `takeUnsaved`.
 */
import type { AgentIdentity } from '../base/ids.ts';
import { DECISION_CAUSES, type DecisionCause } from '../check/cause.ts';
import type { CheckAnswer } from '../commands.ts';
import { AGENT, type Counts, HOUR_MINUTES, Hour, type HourRow, RULE, sumFrom } from './hour.ts';
import { LatencyRing } from './latency.ts';
import { PairTallies } from './pair-tallies.ts';
import { Series } from './series.ts';
import {
  type AgentCount,
  causesOf,
  hoursOf,
  isNothing,
  MINUTE_MS,
  MOST_SHOWN,
  minutesOf,
  mostOf,
  type OrgNames,
  type OrgStats,
  type RuleCount,
  type StatsView,
  talliesOf,
  topOf,
} from './view.ts';
import { DEFAULT_WINDOW, type StatsWindow, WINDOWS } from './windows.ts';

const DAY_MINUTES = 1_440;
const MONTH_HOURS = 720;
/** Recent hours of orgs that are held at once, of 2 KB each; beyond that, orgs count only as a part of all. */
const MAX_HOURS = 8_000;
/** Hours of orgs that are sums, of less than 1 KB each; beyond that, they are dropped a day later. */
const MAX_SUMS = 20_000;
/** Rules and agents that are counted by themselves, over all hours. */
const MAX_NAMES = 100_000;
/** Rules that are counted by themselves since the start. */
const MAX_RULES = 500;
const NO_ORG = '';

/** The saved latencies of all orgs in an hour: its minutes, as far as they were measured. */
type LatencyRow = {
  readonly at: number;
  readonly minutes: readonly (readonly [minute: number, ...buckets: number[]])[];
};
export type StatsRow = HourRow | LatencyRow;
/** By key: the row to be saved, or undefined for one that is to be removed. */
export type UnsavedStats = { readonly key: string; readonly row: StatsRow | undefined };

const keyOf = (orgId: string, at: number): string => `${orgId}/${at}`;
const latencyKeyOf = (at: number): string => `/latency/${at}`;

export class Stats {
  #sinceMs: number;
  /** Its rules and agents are those that belong to no org that is counted by itself. */
  readonly #all = new Series();
  readonly #orgs = new Map<string, Series>();
  /** Orgs of which something was counted only for all, and the minute of the last such count. */
  readonly #missed = new Map<string, number>();
  readonly #minuteLatency: LatencyRing;
  readonly #hourLatency: LatencyRing;
  #knownLatency: readonly number[] = [];
  /** The current minute, as it was reckoned last. */
  #minute = 0;
  #minuteEndsMs = 0;
  #hour = 0;
  #cell = 0;
  #recent = 0;
  #sums = 0;
  #names = 0;
  #unsaved: { readonly orgId: string; readonly hour: Hour }[] = [];
  #removed: string[] = [];
  readonly #unsavedLatency = new Set<number>();
  /** Denies since the start, for the metrics. */
  readonly causes = Object.fromEntries(DECISION_CAUSES.map((cause) => [cause, 0])) as Record<DecisionCause, number>;
  readonly rules = new PairTallies(MAX_RULES, 1);

  /** `latencyBoundsMs`: the upper bounds of the buckets that `noteLatency` is given. */
  constructor(startedAtMs: number, latencyBoundsMs: readonly number[]) {
    this.#sinceMs = startedAtMs;
    this.#minuteLatency = new LatencyRing(latencyBoundsMs, DAY_MINUTES);
    this.#hourLatency = new LatencyRing(latencyBoundsMs, MONTH_HOURS + 1);
  }

  /** Who could not prove who it is counts for no org and no agent. */
  countCheck(
    agent: AgentIdentity,
    answer: Pick<CheckAnswer, 'decision' | 'cause' | 'policy' | 'ruleId'>,
    nowMs: number,
  ): void {
    if (nowMs >= this.#minuteEndsMs) this.#turnTo(nowMs);
    const { decision, cause, policy, ruleId } = answer;
    const all = this.#all.hourAt(this.#hour) ?? this.#begin(this.#all);
    all.countCheck(this.#cell, decision);
    this.#all.total[decision] += 1;
    this.#note(NO_ORG, all);
    const isKnown = cause !== 'credential' && cause !== 'unrecorded';
    const hour = isKnown && agent.orgId !== NO_ORG ? this.#hourOf(agent.orgId) : undefined;
    if (hour !== undefined) {
      hour.countCheck(this.#cell, decision);
      this.#orgs.get(agent.orgId)!.total[decision] += 1;
      this.#note(agent.orgId, hour);
    }
    const names = (hour ?? all).namesIn(this.#cell);
    const before = names.size;
    const hasRoom = this.#names < MAX_NAMES;
    if (policy !== undefined && ruleId !== undefined) names.rules.of(policy, ruleId, hasRoom)[RULE[decision]]! += 1;
    if (isKnown) {
      const tally = names.agents.of(agent.teamId, agent.agentId, hasRoom);
      tally[AGENT.checks]! += 1;
      if (decision === 'deny') tally[AGENT.denies]! += 1;
    }
    this.#names += names.size - before;
    if (cause === undefined) return;
    this.causes[cause] += 1;
    names.countCause(cause);
    if (policy !== undefined && ruleId !== undefined) this.rules.of(policy, ruleId, true)[0]! += 1;
  }

  countSpend({ orgId, teamId, agentId }: AgentIdentity, microUsd: number, nowMs: number): void {
    if (nowMs >= this.#minuteEndsMs) this.#turnTo(nowMs);
    const all = this.#all.hourAt(this.#hour) ?? this.#begin(this.#all);
    all.countSpend(this.#cell, microUsd);
    this.#all.total.spentMicroUsd += microUsd;
    this.#note(NO_ORG, all);
    const hour = orgId === NO_ORG ? undefined : this.#hourOf(orgId);
    if (hour !== undefined) {
      hour.countSpend(this.#cell, microUsd);
      this.#orgs.get(orgId)!.total.spentMicroUsd += microUsd;
      this.#note(orgId, hour);
    }
    const names = (hour ?? all).namesIn(this.#cell);
    const before = names.size;
    names.agents.of(teamId, agentId, this.#names < MAX_NAMES)[AGENT.spentMicroUsd]! += microUsd;
    this.#names += names.size - before;
  }

  /** Call it every few seconds, with the counts of the histogram since the start. */
  noteLatency(counts: readonly number[], nowMs: number): void {
    const fresh = counts.map((count, bucket) => Math.max(0, count - (this.#knownLatency[bucket] ?? 0)));
    this.#knownLatency = [...counts];
    if (fresh.every((count) => count === 0)) return;
    const minute = Math.floor(nowMs / MINUTE_MS);
    const hour = Math.floor(minute / HOUR_MINUTES);
    this.#minuteLatency.add(fresh, minute);
    this.#hourLatency.add(fresh, hour);
    this.#unsavedLatency.add(hour);
  }

  /** Makes sums of what is older than a day, and drops what is older than a month. Call it every minute. */
  prune(nowMs: number): void {
    this.#turnTo(nowMs);
    for (const hour of this.#all.prune(this.#hour, (sum) => this.#note(NO_ORG, sum)))
      this.#removed.push(keyOf(NO_ORG, hour.at), latencyKeyOf(hour.at));
    for (const [orgId, series] of this.#orgs) {
      for (const hour of series.prune(this.#hour, (sum) => this.#keep(orgId, sum)))
        this.#removed.push(keyOf(orgId, hour.at));
      if (series.hours.length === 0) this.#orgs.delete(orgId);
    }
    this.#recount();
    for (const [orgId, minute] of this.#missed) if (minute <= this.#minute - DAY_MINUTES) this.#missed.delete(orgId);
  }

  /** The clock was set back: nothing could be added, in the order of time, to hours that have not come yet. */
  setBack(nowMs: number): void {
    this.#minute = Math.min(this.#minute, Math.floor(nowMs / MINUTE_MS));
    this.#turnTo(nowMs);
    const all: readonly (readonly [string, Series])[] = [[NO_ORG, this.#all], ...this.#orgs];
    for (const [orgId, series] of all)
      for (const hour of series.setBack(this.#hour)) this.#removed.push(keyOf(orgId, hour.at));
    this.#sinceMs = Math.min(this.#sinceMs, nowMs);
    this.prune(nowMs);
  }

  /** Takes changed rows, at most so many; the caller saves them. */
  takeUnsaved(most: number): readonly UnsavedStats[] {
    const rows: UnsavedStats[] = this.#removed.splice(0, most).map((key) => ({ key, row: undefined }));
    for (const { orgId, hour } of this.#unsaved.splice(0, most - rows.length)) {
      hour.isDirty = false;
      rows.push({ key: keyOf(orgId, hour.at), row: hour.rowOf(orgId) });
    }
    for (const at of this.#unsavedLatency) {
      if (rows.length >= most) break;
      this.#unsavedLatency.delete(at);
      rows.push({ key: latencyKeyOf(at), row: this.#latencyRow(at) });
    }
    return rows;
  }

  /** Puts back rows that could not be saved. */
  putBack(rows: readonly UnsavedStats[]): void {
    for (const { key, row } of rows) {
      if (row === undefined) this.#removed.push(key);
      else if (!('orgId' in row)) this.#unsavedLatency.add(row.at);
      else {
        const series = row.orgId === NO_ORG ? this.#all : this.#orgs.get(row.orgId);
        const hour = series?.hours.find(({ at }) => at === row.at);
        if (hour !== undefined) this.#note(row.orgId, hour);
      }
    }
  }

  /** Takes back saved rows, in any order, before anything is counted. Rows older than a month are removed. */
  restore(rows: Iterable<StatsRow>, nowMs: number): void {
    this.#turnTo(nowMs);
    const hours: HourRow[] = [];
    for (const row of rows) {
      if ('orgId' in row) hours.push(row);
      else this.#restoreLatency(row);
    }
    for (const row of hours.sort((one, other) => one.at - other.at)) {
      // A clock that was set back leaves hours of the future, to which nothing could be added in their order.
      if (row.at > this.#hour) continue;
      const series = row.orgId === NO_ORG ? this.#all : (this.#orgs.get(row.orgId) ?? new Series());
      if (row.orgId !== NO_ORG) this.#orgs.set(row.orgId, series);
      series.restore(Hour.ofRow(row));
      this.#sinceMs = Math.min(this.#sinceMs, row.at * HOUR_MINUTES * MINUTE_MS);
    }
    this.prune(nowMs);
  }

  /** Counts since the start. */
  get total(): Counts {
    return this.#all.total;
  }

  /** Counts since the start, by org; only orgs that were active in the last month. */
  get orgTotals(): readonly OrgStats[] {
    return Array.from(this.#orgs, ([orgId, { total }]) => ({ orgId, ...total })).filter((org) => !isNothing(org));
  }

  /** The view of one org, or of all. */
  view(orgId: string | undefined, nowMs: number, window: StatsWindow = DEFAULT_WINDOW): StatsView {
    const { minutes, points } = WINDOWS[window];
    const minute = Math.floor(nowMs / MINUTE_MS);
    const first = Math.max(minute - minutes + 1, Math.floor(this.#sinceMs / MINUTE_MS));
    const isOfAll = orgId === undefined;
    const inWindow = (series: Series | undefined): readonly Hour[] =>
      (series?.hours ?? []).filter(({ at }) => (at + 1) * HOUR_MINUTES > first);
    const hours = inWindow(isOfAll ? this.#all : this.#orgs.get(orgId));
    const orgs = isOfAll ? Array.from(this.#orgs, ([id, series]) => [id, inWindow(series)] as const) : [];
    const named: readonly OrgNames[] = [[isOfAll ? NO_ORG : orgId, hours] as const, ...orgs].flatMap(([id, of]) =>
      of.flatMap((hour) => hour.namesFrom(first).map((names) => ({ orgId: id, names }))),
    );
    const { rules, agents, otherDenies } = talliesOf(named);
    const latency = points === 'minutes' ? this.#minuteLatency : this.#hourLatency;
    return {
      window,
      fromMs: Math.max(first * MINUTE_MS, this.#sinceMs),
      toMs: nowMs,
      sum: sumFrom(hours, first),
      causes: causesOf(named),
      rules: mostOf<RuleCount>(
        rules.map(({ policy, ruleId, deny }) => ({ policy, ruleId, count: deny })),
        otherDenies.rules,
        (count) => ({ policy: undefined, ruleId: undefined, count }),
      ),
      agents: mostOf<AgentCount>(
        agents.map(({ agent, denies }) => ({ agent, count: denies })),
        otherDenies.agents,
        (count) => ({ agent: undefined, count }),
      ),
      orgs: this.#orgStats(isOfAll ? [...this.#orgs.keys()] : [orgId], first),
      top: topOf(rules, agents),
      latency: isOfAll ? latency.from(points === 'minutes' ? first : Math.floor(first / HOUR_MINUTES)) : undefined,
      points: (points === 'minutes' ? minutesOf : hoursOf)(hours, first, isOfAll ? latency : undefined),
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

  #begin(series: Series): Hour {
    return series.beginHour(this.#hour);
  }

  /** It is to be saved. */
  #note(orgId: string, hour: Hour): true {
    if (!hour.isDirty) {
      hour.isDirty = true;
      this.#unsaved.push({ orgId, hour });
    }
    return true;
  }

  #hourOf(orgId: string): Hour | undefined {
    const series = this.#orgs.get(orgId);
    const known = series?.hourAt(this.#hour);
    if (known !== undefined) return known;
    if (this.#recent >= MAX_HOURS) return this.#miss(orgId);
    this.#recent += 1;
    if (series !== undefined) return this.#begin(series);
    const fresh = new Series();
    this.#orgs.set(orgId, fresh);
    return this.#begin(fresh);
  }

  #miss(orgId: string): undefined {
    if (this.#missed.size < MAX_HOURS || this.#missed.has(orgId)) this.#missed.set(orgId, this.#minute);
  }

  #keep(orgId: string, sum: Hour): boolean {
    if (this.#sums >= MAX_SUMS) {
      this.#miss(orgId);
      return false;
    }
    this.#sums += 1;
    if (this.#names >= MAX_NAMES / 2) sum.dropNames();
    return this.#note(orgId, sum);
  }

  #recount(): void {
    this.#recent = 0;
    this.#sums = 0;
    this.#names = 0;
    for (const series of [this.#all, ...this.#orgs.values()])
      for (const hour of series.hours) {
        this.#names += hour.nameCount;
        if (hour.isSum) this.#sums += 1;
        else this.#recent += 1;
      }
  }

  #latencyRow(at: number): LatencyRow {
    const minutes: (readonly [number, ...number[]])[] = [];
    for (let minute = at * HOUR_MINUTES; minute < (at + 1) * HOUR_MINUTES; minute += 1) {
      const buckets = this.#minuteLatency.bucketsOf(minute);
      if (buckets.length > 0) minutes.push([minute, ...buckets]);
    }
    return { at, minutes };
  }

  #restoreLatency({ at, minutes }: LatencyRow): void {
    for (const [minute, ...buckets] of minutes) {
      if (minute > this.#minute - DAY_MINUTES) this.#minuteLatency.add(buckets, minute);
      if (at > this.#hour - MONTH_HOURS && at <= this.#hour) this.#hourLatency.add(buckets, at);
    }
  }

  #orgStats(orgIds: readonly string[], first: number): readonly OrgStats[] {
    return orgIds
      .map((orgId) => ({ orgId, ...sumFrom(this.#orgs.get(orgId)?.hours ?? [], first) }))
      .filter((counts) => !isNothing(counts))
      .sort((one, other) => other.deny - one.deny || other.allow - one.allow)
      .slice(0, MOST_SHOWN);
  }
}
