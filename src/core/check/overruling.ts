import type { AgentRegistry } from '../agents/agents.ts';
import { agentKeyOf, opIdOf } from '../base/ids.ts';
import type { BudgetTracker } from '../budget/budget.ts';
import { exceededReason } from '../budget/exceeded.ts';
import type { CheckSubject } from '../condition/condition.ts';
import type { HaltRegistry } from '../halts/halts.ts';
import type { LimitTracker } from '../limits/limits.ts';
import { limitReason } from '../limits/said.ts';
import type { Overruling } from '../policy/explain.ts';
import type { PolicyDecision } from '../policy/rule.ts';
import { haltedReason } from './own-decisions.ts';

type Registries = {
  readonly agents: AgentRegistry;
  readonly halts: HaltRegistry;
  readonly limits: LimitTracker;
  readonly budgets: BudgetTracker;
};

/**
 * Returns the halt, the limit or the exhausted cap that denies a check although the policies allow it; undefined: none.
 * `traceId`: the session whose limits count; undefined: those of none. Changes nothing.
 */
export function overruling(
  { agents, halts, limits, budgets }: Registries,
  subject: CheckSubject,
  traceId: string | undefined,
  decision: PolicyDecision,
  nowMs: number,
): Overruling | undefined {
  const halt = halts.covering(agents.lookUp(subject.agent), subject.action);
  if (halt !== undefined) return { cause: 'halt', reason: haltedReason(halt) };
  if (decision.kind !== 'allow') return undefined;
  const { agent, action, resource, estimatedCostMicroUsd: costMicroUsd } = subject;
  // Limits know a session by the trace of an operation.
  const opId = traceId === undefined ? undefined : opIdOf(traceId, 'explained');
  const limited = { agent, action, resource, costMicroUsd, key: agentKeyOf(agent), opId };
  const reached = limits.firstReached(limited, nowMs);
  if (reached !== undefined) return { cause: 'limit', reason: limitReason(reached) };
  const exceeded = budgets.wouldExceed(subject.agent, subject.estimatedCostMicroUsd, nowMs);
  return exceeded === undefined ? undefined : { cause: 'budget', reason: exceededReason(exceeded) };
}
