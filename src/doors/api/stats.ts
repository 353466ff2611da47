/** Statistics of the last minutes to the last month (docs/spec.md, Statistics). */
import { microToUsd } from '../../core/base/money.ts';
import { ok } from '../../core/base/result.ts';
import { rfc3339 } from '../../core/base/time.ts';
import type { AgentTally, OrgStats, RuleTally, StatsPoint, StatsView } from '../../core/stats/view.ts';
import { DEFAULT_WINDOW, WINDOWS } from '../../core/stats/windows.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import { type Authorized, type HttpReply, QUERY, type Route } from '../engine/route.ts';
import { readNames, readWord } from './body.ts';
import { statsAnswer } from './stats-shapes.ts';

const checksView = ({ allow, deny, pending }: StatsView['sum']) => ({ allow, deny, pending });

const agentCount = ({ agent, count }: StatsView['agents'][number]) => ({
  org_id: agent?.orgId ?? null,
  team_id: agent?.teamId ?? null,
  agent_id: agent?.agentId ?? null,
  count,
});

const ruleCount = ({ policy, ruleId, count }: StatsView['rules'][number]) => ({
  policy: policy ?? null,
  rule_id: ruleId ?? null,
  count,
});

const orgView = ({ orgId, ...counts }: OrgStats) => ({
  org_id: orgId,
  ...checksView(counts),
  spend_usd: microToUsd(counts.spentMicroUsd),
});

const pointView = ({ atMs, latency, ...counts }: StatsPoint) => ({
  at: rfc3339(atMs),
  ...checksView(counts),
  spend_usd: microToUsd(counts.spentMicroUsd),
  latency_ms: latency ?? null,
});

const ruleTally = ({ policy, ruleId, ...counts }: RuleTally) => ({ policy, rule_id: ruleId, ...counts });

const namesOf = ({ agent: { orgId, teamId, agentId } }: AgentTally) => ({
  org_id: orgId,
  team_id: teamId,
  agent_id: agentId,
});

const topView = ({ rules, agents, spenders }: StatsView['top']) => ({
  rules: rules.map(ruleTally),
  agents: agents.map((tally) => ({ ...namesOf(tally), checks: tally.checks, denies: tally.denies })),
  spenders: spenders.map((tally) => ({ ...namesOf(tally), spend_usd: microToUsd(tally.spentMicroUsd) })),
});

const statsView = ({ fromMs, toMs, sum, causes, rules, agents, orgs, latency, isIncomplete, ...rest }: StatsView) => ({
  window: rest.window,
  from: rfc3339(fromMs),
  to: rfc3339(toMs),
  checks: checksView(sum),
  denies: {
    by_cause: causes,
    by_rule: rules.map(ruleCount),
    by_agent: agents.map(agentCount),
    by_org: orgs.flatMap(({ orgId, deny }) => (deny === 0 ? [] : [{ org_id: orgId, count: deny }])),
  },
  orgs: orgs.map(orgView),
  spend_usd: microToUsd(sum.spentMicroUsd),
  latency_ms: latency ?? null,
  top: topView(rest.top),
  [WINDOWS[rest.window].points]: rest.points.map(pointView),
  incomplete: isIncomplete,
});

async function read({ principal, query }: Authorized, link: Link): Promise<HttpReply> {
  const names = readNames(query, ['org_id']);
  if (!names.ok) return names;
  const window = readWord(query, 'window', QUERY.window.options);
  if (!window.ok) return window;
  const asked = { principal, orgId: names.value.org_id, window: window.value ?? DEFAULT_WINDOW };
  const stats = await link.call('readStats', asked);
  return stats.ok ? ok({ status: 200, body: statsView(stats.value) }) : stats;
}

export const statsRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/api/v1/stats',
    access: { scope: 'read' },
    isQueued: true,
    summary: 'Counts checks, denies and spend over the last 15 minutes to the last 30 days',
    answers: { 200: statsAnswer },
    query: ['window', 'org_id'],
    handle: read,
  },
];
