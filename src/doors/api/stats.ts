/** Statistics of the last 24 hours (docs/spec.md, Statistics). */
import { microToUsd } from '../../core/base/money.ts';
import { ok } from '../../core/base/result.ts';
import { rfc3339 } from '../../core/base/time.ts';
import type { OrgStats, StatsMinute, StatsView } from '../../core/stats/stats.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Authorized, HttpReply, Route } from '../engine/route.ts';
import { readNames } from './body.ts';
import { statsAnswer } from './shapes.ts';

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

const minuteView = ({ atMs, latency, ...counts }: StatsMinute) => ({
  at: rfc3339(atMs),
  ...checksView(counts),
  spend_usd: microToUsd(counts.spentMicroUsd),
  latency_ms: latency ?? null,
});

const statsView = ({ fromMs, toMs, sum, causes, rules, agents, orgs, latency, minutes, isIncomplete }: StatsView) => ({
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
  minutes: minutes.map(minuteView),
  incomplete: isIncomplete,
});

async function read({ principal, query }: Authorized, link: Link): Promise<HttpReply> {
  const names = readNames(query, ['org_id']);
  if (!names.ok) return names;
  const stats = await link.call('readStats', { principal, orgId: names.value.org_id });
  return stats.ok ? ok({ status: 200, body: statsView(stats.value) }) : stats;
}

export const statsRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/api/v1/stats',
    access: { scope: 'read' },
    isQueued: true,
    summary: 'Counts checks, denies and spend of the last 24 hours, minute by minute',
    answers: { 200: statsAnswer },
    query: ['org_id'],
    handle: read,
  },
];
