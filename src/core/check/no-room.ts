/** A check for which a limit or a budget leaves no room (docs/spec.md, Limits of use). */
import type { AgentEntry } from '../agents/agent-entry.ts';
import type { Speaker } from '../agents/identify.ts';
import type { Exceeded } from '../budget/envelope.ts';
import { exceededPayload, exceededReason } from '../budget/exceeded.ts';
import type { CheckCommand, Replies } from '../commands.ts';
import type { Effect } from '../effects.ts';
import type { LimitedCheck } from '../limits/limits.ts';
import type { Reached } from '../limits/reached.ts';
import { limitPayload, limitReason, remedyOfLimit } from '../limits/said.ts';
import type { OpState } from '../ops/op-state.ts';
import type { PolicyDecision } from '../policy/rule.ts';
import { denied } from './answer.ts';
import type { CheckEntries } from './entry.ts';
import { remedyOfBudget } from './remedy.ts';

type Denied = { readonly reply: Replies['check']; readonly effects: Effect[] };

/** `said`: in place of the reason that the limit has. */
export function denyReached(
  entries: CheckEntries,
  command: CheckCommand,
  { entry, actor }: Speaker,
  reached: Reached,
  opState: OpState | undefined,
  said?: string,
): Denied {
  const { policy, resetsAtMs } = reached;
  const reason = said ?? limitReason(reached);
  const exceeded = resetsAtMs === undefined ? undefined : { resetsAtMs };
  return {
    reply: denied('limit', reason, opState, exceeded, { remedy: remedyOfLimit(reached), policy }),
    effects: [
      {
        kind: 'audit',
        draft: {
          eventType: 'ActionDenied',
          lineage: entry.identity,
          actor,
          opId: command.opId,
          decision: 'deny',
          reason,
          policy,
          cause: 'limit',
          payload: Object.assign(entries.payloadOf(command), limitPayload(reached)),
        },
      },
    ],
  };
}

export function denyExceeded(
  entries: CheckEntries,
  command: CheckCommand,
  { entry, actor }: Speaker,
  exceeded: Exceeded,
  resetsAtMs: number,
  opState: OpState | undefined,
): Denied {
  const { tier, period } = exceeded;
  const reason = exceededReason(exceeded);
  const remedy = remedyOfBudget(exceeded, resetsAtMs);
  const payload = Object.assign(entries.payloadOf(command), exceededPayload(exceeded, resetsAtMs));
  if (remedy !== undefined) payload.remedy = remedy;
  return {
    reply: denied('budget', reason, opState, { tier, period, resetsAtMs }, { remedy }),
    effects: [
      {
        kind: 'audit',
        draft: {
          eventType: 'BudgetLimitExceeded',
          lineage: entry.identity,
          actor,
          opId: command.opId,
          decision: 'deny',
          reason,
          cause: 'budget',
          payload,
        },
      },
    ],
  };
}

/** Whether people are asked for more. */
export const asks = ({ limit, why }: Reached): boolean => limit.onExceed === 'ask' && why === 'reached';

export const byLimit = (kind: 'deny' | 'require_approval', reached: Reached, said?: string): PolicyDecision => ({
  kind,
  reason: said ?? limitReason(reached),
  policy: reached.policy,
  ruleId: undefined,
  cause: kind === 'deny' ? 'limit' : undefined,
});

/** Returns the part of a check that limits look at. */
export const limitedOf = (command: CheckCommand, entry: AgentEntry): LimitedCheck => ({
  agent: command.agent,
  key: entry.key,
  keeper: entry,
  opId: command.opId,
  action: command.action,
  resource: command.resource,
  costMicroUsd: command.estimatedCostMicroUsd,
});
