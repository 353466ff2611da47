/** Budgets: what was spent, and what is left of it (docs/spec.md, HTTP). */
import { z } from 'zod';
import { parseOpId } from '../../core/base/ids.ts';
import { microToUsd } from '../../core/base/money.ts';
import { ok } from '../../core/base/result.ts';
import { rfc3339 } from '../../core/base/time.ts';
import type { BudgetStatusRow, PeriodStatus } from '../../core/budget/status.ts';
import { invalid } from '../../core/fault.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Authorized, HttpReply, Route } from '../engine/route.ts';
import { optional } from '../shared/input.ts';
import { isUsageId, OP_ID_RULE, USAGE_ID_RULE } from '../shared/limits.ts';
import { priced, readSpent } from '../shared/usage.ts';
import { agentIdentity, type Listing, ruled, withBody, withListing } from './body.ts';
import { budgetPage, usageStatus } from './shapes.ts';
import { costView, spentFields, spentOf } from './spent.ts';
import { pageView } from './views.ts';

const USAGE_ID_MEANING =
  'Idempotency key, 1 to 256 bytes: for a day, records sent again with the same key count once. Without one, do not retry a request that was answered with 503, or not at all: it may have been counted already.';

const usage = z.strictObject({
  agent: agentIdentity,
  ...spentFields,
  op_id: optional(ruled((text) => parseOpId(text) !== undefined, OP_ID_RULE)),
  usage_id: optional(ruled(isUsageId, USAGE_ID_RULE).meta({ description: USAGE_ID_MEANING })),
});

async function record({ principal, body }: Authorized<typeof usage>, link: Link): Promise<HttpReply> {
  const { agent, op_id, usage_id } = body;
  const read = readSpent(spentOf(body));
  if (!read.ok) return read;
  if (read.value === undefined) return invalid('cost_usd', 'is required, or model with its tokens');
  const spent = await priced(link, read.value);
  if (!spent.ok) return spent;
  const { reply } = await link.ask({
    type: 'record-usage',
    principal,
    credential: undefined,
    agent,
    ...spent.value,
    opId: op_id === undefined ? undefined : parseOpId(op_id),
    usageId: usage_id,
  });
  return reply.ok ? ok({ status: 200, body: { ...reply.value, ...costView(spent.value) } }) : reply;
}

async function list(listing: Listing, link: Link): Promise<HttpReply> {
  const { reply } = await link.ask({ type: 'list-budgets', ...listing });
  return reply.ok ? ok({ status: 200, body: pageView('budgets', reply.value, budgetView) }) : reply;
}

const budgetView = ({ tier, orgId, teamId, agentId, daily, monthly, reservedMicroUsd }: BudgetStatusRow) => ({
  tier,
  org_id: orgId,
  team_id: teamId,
  agent_id: agentId,
  daily: periodView(daily),
  monthly: periodView(monthly),
  reserved_usd: microToUsd(reservedMicroUsd),
});

const periodView = ({ spentMicroUsd, limitMicroUsd, periodStartMs, resetMs }: PeriodStatus) => ({
  spent_usd: microToUsd(spentMicroUsd),
  limit_usd: limitMicroUsd === undefined ? null : microToUsd(limitMicroUsd),
  period_start: rfc3339(periodStartMs),
  reset: rfc3339(resetMs),
});

export const budgetRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/api/v1/usage',
    access: { scope: 'write' },
    summary: 'Records the spending of an agent',
    answers: { 200: usageStatus },
    ...withBody(usage, record),
  },
  {
    method: 'get',
    path: '/api/v1/budgets',
    access: { scope: 'read' },
    isQueued: true,
    summary: 'Shows spend, reservations and caps, widest tier first',
    answers: { 200: budgetPage },
    ...withListing([], list),
  },
];
