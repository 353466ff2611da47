/** The statistics of several gateways as one. */

import type { Counts } from './hour.ts';
import type { Percentiles } from './latency.ts';
import {
  type AgentCount,
  type AgentTally,
  MOST_SHOWN,
  mostOf,
  type RuleCount,
  type RuleTally,
  type StatsPoint,
  type StatsView,
  sumAgent,
  sumRule,
  topOf,
} from './view.ts';

/**
 * Merges views of the same time of day and the same orgs. Percentiles cannot be added up: the slowest gateway's are
 * shown.
 */
export function mergedStats(views: readonly [StatsView, ...StatsView[]]): StatsView {
  return {
    window: views[0].window,
    fromMs: Math.min(...views.map(({ fromMs }) => fromMs)),
    toMs: Math.max(...views.map(({ toMs }) => toMs)),
    sum: views.map(({ sum }) => sum).reduce(sumOf),
    causes: summed(
      views.flatMap(({ causes }) => causes),
      ({ cause }) => cause,
    ),
    rules: shown(
      views.flatMap(({ rules }) => rules),
      ({ policy, ruleId }): string | undefined => policy && JSON.stringify([policy, ruleId]),
      (count): RuleCount => ({ policy: undefined, ruleId: undefined, count }),
    ),
    agents: shown(
      views.flatMap(({ agents }) => agents),
      ({ agent }): string | undefined => agent && JSON.stringify([agent.orgId, agent.teamId, agent.agentId]),
      (count): AgentCount => ({ agent: undefined, count }),
    ),
    orgs: orgsOf(views),
    latency: views.map(({ latency }) => latency).reduce(slower),
    top: mergedTop(views.map(({ top }) => top)),
    points: pointsOf(views),
    isIncomplete: views.some(({ isIncomplete }) => isIncomplete),
  };
}

const sumOf = (one: Counts, other: Counts): Counts => ({
  allow: one.allow + other.allow,
  deny: one.deny + other.deny,
  pending: one.pending + other.pending,
  spentMicroUsd: one.spentMicroUsd + other.spentMicroUsd,
});

/** Null: nothing was measured. */
const slowerOf = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.max(one, other);

function slower(one: Percentiles | undefined, other: Percentiles | undefined): Percentiles | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return { p50: slowerOf(one.p50, other.p50), p95: slowerOf(one.p95, other.p95), p99: slowerOf(one.p99, other.p99) };
}

/** Sums up counts by key, in descending order. */
function summed<T extends { readonly count: number }>(all: readonly T[], keyOf: (each: T) => string): readonly T[] {
  const sums = new Map<string, T>();
  for (const each of all) sums.set(keyOf(each), { ...each, count: each.count + (sums.get(keyOf(each))?.count ?? 0) });
  return [...sums.values()].sort((one, other) => other.count - one.count);
}

/** Rows without a key count those that were not shown individually. */
function shown<T extends { readonly count: number }>(
  all: readonly T[],
  keyOf: (each: T) => string | undefined,
  asOthers: (count: number) => T,
): readonly T[] {
  const named = summed(
    all.filter((each) => keyOf(each) !== undefined),
    (each) => keyOf(each)!,
  );
  const others = all.reduce((sum, each) => sum + (keyOf(each) === undefined ? each.count : 0), 0);
  return mostOf(named, others, asOthers);
}

function orgsOf(views: readonly StatsView[]): StatsView['orgs'] {
  const sums = new Map<string, Counts>();
  for (const { orgId, ...counts } of views.flatMap(({ orgs }) => orgs)) {
    const known = sums.get(orgId);
    sums.set(orgId, known === undefined ? counts : sumOf(known, counts));
  }
  return Array.from(sums, ([orgId, counts]) => ({ orgId, ...counts }))
    .sort((one, other) => other.deny - one.deny || other.allow - one.allow)
    .slice(0, MOST_SHOWN);
}

function mergedTop(tops: readonly StatsView['top'][]): StatsView['top'] {
  const rules = new Map<string, RuleTally>();
  const agents = new Map<string, AgentTally>();
  for (const top of tops) {
    for (const tally of top.rules) sumRule(rules, tally);
    // An agent of both lists is the same tally twice.
    const own = new Map([...top.agents, ...top.spenders].map((tally) => [JSON.stringify(tally.agent), tally]));
    for (const tally of own.values()) sumAgent(agents, tally);
  }
  return topOf([...rules.values()], [...agents.values()]);
}

function pointsOf(views: readonly StatsView[]): readonly StatsPoint[] {
  const sums = new Map<number, StatsPoint>();
  for (const point of views.flatMap(({ points }) => points)) {
    const known = sums.get(point.atMs);
    const { atMs, latency } = point;
    sums.set(
      atMs,
      known === undefined ? point : { atMs, ...sumOf(known, point), latency: slower(known.latency, latency) },
    );
  }
  return [...sums.values()].sort((one, other) => one.atMs - other.atMs);
}
