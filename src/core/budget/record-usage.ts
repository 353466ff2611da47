/** Money that was spent, counted and recorded (docs/spec.md, Budgets). */

import type { Speaker } from '../agents/identify.ts';
import { redactText } from '../audit/redact-text.ts';
import { usageIdOfCompletion } from '../base/ids.ts';
import { microToUsd } from '../base/money.ts';
import { ok } from '../base/result.ts';
import type { CommandOf, Replies } from '../commands.ts';
import type { Effect } from '../effects.ts';
import type { LimitTracker } from '../limits/limits.ts';
import type { OpSlot, OpsRegistry } from '../ops/ops.ts';
import { type Outcome, unchanged } from '../outcome.ts';
import { tokensPayload } from '../prices/payload.ts';
import type { BudgetTracker } from './budget.ts';
import type { Exceeded } from './envelope.ts';
import { exceededPayload, exceededReason } from './exceeded.ts';

type Registries = { readonly budgets: BudgetTracker; readonly limits: LimitTracker; readonly ops: OpsRegistry };

/** `op`: the operation of the agent for which it was spent, if it is still known. */
export function recordUsage(
  { budgets, limits, ops }: Registries,
  { entry, actor }: Speaker,
  op: OpSlot | undefined,
  { claim, costMicroUsd, tokens, opId, usageId }: CommandOf<'record-usage'>,
  nowMs: number,
): Outcome<'record-usage'> {
  const entryOf = (exceeded: Exceeded): Effect => ({
    kind: 'audit',
    draft: {
      eventType: 'BudgetLimitExceeded',
      lineage: entry.identity,
      actor,
      opId,
      decision: 'deny',
      reason: exceededReason(exceeded),
      cause: 'budget',
      payload: {
        cost_usd: microToUsd(costMicroUsd),
        ...(tokens && tokensPayload(tokens)),
        usage_id: usageId === undefined ? null : redactText(usageId),
        ...exceededPayload(exceeded, budgets.resetsAtMs(exceeded.period)),
      },
    },
  });
  // Once an operation is forgotten, an agent may reuse its id: the later operation's completion is then a different
  // record.
  const isOfCompletion = op !== undefined && opId !== undefined && usageId === usageIdOfCompletion(opId);
  const usageSinceMs = isOfCompletion ? ops.registeredAtMs(op) : undefined;
  // An operation lives at one gateway, and so does the record of its completion.
  const isShared =
    budgets.isShared && usageId !== undefined && (opId === undefined || usageId !== usageIdOfCompletion(opId));
  if (isShared && claim === undefined)
    return { ...unchanged(ok({ status: 'ok' } as const)), claims: { agent: entry.key, usageId } };
  if (isShared && claim === 'counted')
    return unchanged(answerTo(budgets.wouldExceed(entry.budget ?? entry.identity, 0, nowMs)));
  if (claim === 'judged') {
    const exceeded = budgets.wouldExceed(entry.budget ?? entry.identity, 0, nowMs);
    return { reply: answerTo(exceeded), effects: exceeded === undefined ? [] : [entryOf(exceeded)] };
  }
  if (entry.credential !== undefined) entry.budget ??= budgets.handleOf(entry.identity, true);
  const { exceeded, alerts, duplicate } = budgets.record(
    entry.budget ?? entry.identity,
    costMicroUsd,
    { usageId, usageSinceMs, op },
    nowMs,
  );
  const reply = answerTo(exceeded);
  // A retry may overtake the first record on its way to the disk; it must not be answered earlier.
  if (duplicate) return { reply, effects: [{ kind: 'spend-recorded' }] };
  if (op !== undefined) ops.addSpend(op, costMicroUsd);
  const by = { agent: entry.identity, key: entry.key, opId };
  const usage = { costMicroUsd, tokens: tokens === undefined ? 0 : tokens.inputTokens + tokens.outputTokens };
  const limitAlerts = limits.isAny ? limits.record(by, op, usage, nowMs) : [];
  const effects: Effect[] = [
    { kind: 'spend-recorded', spent: { agent: entry.identity, microUsd: costMicroUsd } },
    ...alerts.map((alert): Effect => ({ kind: 'budget-alert', alert })),
    ...limitAlerts.map((alert): Effect => ({ kind: 'limit-alert', alert })),
  ];
  if ((limits.isAny && limits.exceedsGrants) || budgets.exceedsGrants(entry.budget ?? entry.identity))
    return { reply, effects, exceedsGrants: true };
  if (exceeded !== undefined) effects.push(entryOf(exceeded));
  return { reply, effects };
}

const answerTo = (exceeded: Exceeded | undefined): Replies['record-usage'] =>
  ok(
    exceeded === undefined
      ? { status: 'ok' }
      : { status: 'limit_exceeded', tier: exceeded.tier, period: exceeded.period },
  );
