/** Statistics of a span of time, of one org or of all. */
import type { AgentIdentity } from '../base/ids.ts';
import { DECISION_CAUSES, type DecisionCause } from '../check/cause.ts';
import { AGENT, type Counts, HOUR_MINUTES, type Hour, type Names, RULE } from './hour.ts';
import type { LatencyRing, Percentiles } from './latency.ts';
import type { StatsWindow } from './windows.ts';

export const MINUTE_MS = 60_000;
/** The longest lists that are shown. */
export const MOST_SHOWN = 50;

/** Undefined names: all others. */
export type RuleCount = {
  readonly policy: string | undefined;
  readonly ruleId: string | undefined;
  readonly count: number;
};
export type AgentCount = { readonly agent: AgentIdentity | undefined; readonly count: number };
export type RuleTally = {
  readonly policy: string;
  readonly ruleId: string;
  readonly allow: number;
  readonly deny: number;
  readonly pending: number;
};
export type AgentTally = {
  readonly agent: AgentIdentity;
  readonly checks: number;
  readonly denies: number;
  readonly spentMicroUsd: number;
};
export type StatsPoint = Counts & { readonly atMs: number; readonly latency: Percentiles | undefined };
export type OrgStats = Counts & { readonly orgId: string };

export type StatsView = {
  readonly window: StatsWindow;
  readonly fromMs: number;
  readonly toMs: number;
  readonly sum: Counts;
  readonly causes: readonly { readonly cause: DecisionCause; readonly count: number }[];
  /** The most denies first, here and below. */
  readonly rules: readonly RuleCount[];
  readonly agents: readonly AgentCount[];
  readonly orgs: readonly OrgStats[];
  /** The most first: rules by checks that they decided, agents by checks, and by money. */
  readonly top: {
    readonly rules: readonly RuleTally[];
    readonly agents: readonly AgentTally[];
    readonly spenders: readonly AgentTally[];
  };
  /** Only for who sees all: it is the gateway's. */
  readonly latency: Percentiles | undefined;
  /** Minutes or hours, by the window: those in which something happened, the oldest first. */
  readonly points: readonly StatsPoint[];
  /** Some of it was counted only for all orgs together, since there were too many. */
  readonly isIncomplete: boolean;
};

export const isNothing = ({ allow, deny, pending, spentMicroUsd }: Counts): boolean =>
  allow + deny + pending + spentMicroUsd === 0;

/** The names of an org, which is '' for what belongs to none. */
export type OrgNames = { readonly orgId: string; readonly names: Names };

export const causesOf = (all: readonly OrgNames[]): StatsView['causes'] =>
  DECISION_CAUSES.map((cause) => ({ cause, count: all.reduce((sum, { names }) => sum + names.causeCount(cause), 0) }))
    .filter(({ count }) => count > 0)
    .sort((one, other) => other.count - one.count);

/** Tallies of rules and agents, and how many denies belong to those that were not counted individually. */
export function talliesOf(all: readonly OrgNames[]): {
  readonly rules: readonly RuleTally[];
  readonly agents: readonly AgentTally[];
  readonly otherDenies: { readonly rules: number; readonly agents: number };
} {
  const rules = new Map<string, RuleTally>();
  const agents = new Map<string, AgentTally>();
  const otherDenies = { rules: 0, agents: 0 };
  for (const { orgId, names } of all) {
    otherDenies.rules += names.rules.others[RULE.deny] ?? 0;
    otherDenies.agents += names.agents.others[AGENT.denies] ?? 0;
    for (const [policy, ruleId, [allow = 0, deny = 0, pending = 0]] of names.rules.entries())
      sumRule(rules, { policy, ruleId, allow, deny, pending });
    for (const [teamId, agentId, [checks = 0, denies = 0, spentMicroUsd = 0]] of names.agents.entries())
      sumAgent(agents, { agent: { orgId, teamId, agentId }, checks, denies, spentMicroUsd });
  }
  return { rules: [...rules.values()], agents: [...agents.values()], otherDenies };
}

export function sumRule(sums: Map<string, RuleTally>, tally: RuleTally): void {
  const key = JSON.stringify([tally.policy, tally.ruleId]);
  const known = sums.get(key);
  sums.set(
    key,
    known === undefined
      ? tally
      : {
          ...known,
          allow: known.allow + tally.allow,
          deny: known.deny + tally.deny,
          pending: known.pending + tally.pending,
        },
  );
}

export function sumAgent(sums: Map<string, AgentTally>, tally: AgentTally): void {
  const { orgId, teamId, agentId } = tally.agent;
  const key = JSON.stringify([orgId, teamId, agentId]);
  const known = sums.get(key);
  sums.set(
    key,
    known === undefined
      ? tally
      : {
          agent: known.agent,
          checks: known.checks + tally.checks,
          denies: known.denies + tally.denies,
          spentMicroUsd: known.spentMicroUsd + tally.spentMicroUsd,
        },
  );
}

export const topOf = (rules: readonly RuleTally[], agents: readonly AgentTally[]): StatsView['top'] => ({
  rules: most(rules, ({ allow, deny, pending }) => allow + deny + pending),
  agents: most(agents, ({ checks }) => checks),
  spenders: most(agents, ({ spentMicroUsd }) => spentMicroUsd),
});

/** Only those that have any of it. */
const most = <T>(all: readonly T[], numberOf: (each: T) => number): readonly T[] =>
  all
    .filter((each) => numberOf(each) > 0)
    .sort((one, other) => numberOf(other) - numberOf(one))
    .slice(0, MOST_SHOWN);

/** The most first; those that were not counted by themselves, or are too many to show, come last, as one. */
export function mostOf<T extends { readonly count: number }>(
  sums: Iterable<T>,
  others: number,
  asOthers: (count: number) => T,
): readonly T[] {
  const sorted = [...sums].filter(({ count }) => count > 0).sort((one, other) => other.count - one.count);
  const rest = sorted.slice(MOST_SHOWN).reduce((sum, { count }) => sum + count, others);
  return [...sorted.slice(0, MOST_SHOWN), ...(rest > 0 ? [asOthers(rest)] : [])];
}

/** Minute by minute; an hour that is a sum shows at its beginning. */
export function minutesOf(hours: readonly Hour[], first: number, latency: LatencyRing | undefined): StatsPoint[] {
  const points: StatsPoint[] = [];
  for (const hour of hours)
    for (const cell of hour.minutesFrom(first)) {
      const counts = hour.countsOf(cell);
      const minute = hour.at * HOUR_MINUTES + cell;
      if (!isNothing(counts)) points.push({ atMs: minute * MINUTE_MS, ...counts, latency: latency?.of(minute) });
    }
  return points;
}

/** Hour by hour. */
export function hoursOf(hours: readonly Hour[], first: number, latency: LatencyRing | undefined): StatsPoint[] {
  const points: StatsPoint[] = [];
  for (const hour of hours) {
    const sum = { allow: 0, deny: 0, pending: 0, spentMicroUsd: 0 };
    for (const cell of hour.minutesFrom(first)) {
      const { allow, deny, pending, spentMicroUsd } = hour.countsOf(cell);
      sum.allow += allow;
      sum.deny += deny;
      sum.pending += pending;
      sum.spentMicroUsd += spentMicroUsd;
    }
    if (!isNothing(sum))
      points.push({ atMs: hour.at * HOUR_MINUTES * MINUTE_MS, ...sum, latency: latency?.of(hour.at) });
  }
  return points;
}
