/** Reads the statistics of a window, also from a gateway that knows the last 24 hours only. */
import type { AgentName, Stats } from '../../base/api-types.ts';
import { Problem, queryOf } from '../../base/request.ts';
import { call } from '../../session/session.ts';
import { type Series, SPAN_MS, seriesOf, type Window } from '../../ui/series.ts';

export type RuleCount = {
  readonly policy: string | null;
  readonly rule_id: string | null;
  readonly allow?: number;
  readonly deny: number;
  readonly pending?: number;
};
export type AgentCount = AgentName & { readonly checks?: number; readonly denies: number };
export type Spender = AgentName & { readonly spend_usd: number };

export type Top = {
  readonly spenders: readonly Spender[];
  readonly agents: readonly AgentCount[];
  readonly rules: readonly RuleCount[];
};

/** What a gateway answers that keeps statistics; an older one leaves out the optional parts. */
type Answer = Stats & { readonly window?: string; readonly top?: Top; readonly hours?: Stats['minutes'] };

export type WindowStats = {
  readonly stats: Stats;
  readonly top: Top;
  readonly series: Series;
  /** Since when there are figures, where that is later than the window begins. */
  readonly since: string | undefined;
};

async function ask(window: Window, orgId: string): Promise<Answer> {
  try {
    return await call('GET', `/api/v1/stats${queryOf({ window, org_id: orgId })}`);
  } catch (problem) {
    if (!(problem instanceof Problem) || problem.status !== 400) throw problem;
    return call('GET', `/api/v1/stats${queryOf({ org_id: orgId })}`);
  }
}

/** Without rankings in the answer, those that are denied most. */
const topOf = ({ top, denies }: Answer): Top =>
  top ?? {
    spenders: [],
    rules: denies.by_rule.map(({ count, ...rule }) => ({ ...rule, deny: count })),
    agents: denies.by_agent.flatMap(({ count, org_id, team_id, agent_id }) =>
      agent_id === null ? [] : [{ org_id, team_id: team_id ?? '', agent_id, denies: count }],
    ),
  };

export async function readStats(window: Window, orgId: string): Promise<WindowStats> {
  const stats = await ask(window, orgId);
  const endMs = Date.parse(stats.to);
  const begins = endMs - SPAN_MS[window];
  return {
    stats,
    top: topOf(stats),
    series: seriesOf(stats.hours ?? stats.minutes, window, endMs, Date.parse(stats.from)),
    since: Date.parse(stats.from) > begins + 120_000 ? stats.from : undefined,
  };
}
