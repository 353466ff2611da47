import type { AgentRegistry } from './agents/agents.ts';
import type { BudgetTracker } from './budget/budget.ts';
import { exceededReason } from './budget/exceeded.ts';
import { haltedReason } from './check.ts';
import type { CheckSubject } from './condition/condition.ts';
import type { HaltRegistry } from './halts/halts.ts';
import type { Overruling } from './policy/explain.ts';
import type { PolicyDecision } from './policy/rule.ts';

type Registries = { readonly agents: AgentRegistry; readonly halts: HaltRegistry; readonly budgets: BudgetTracker };

/**
 * Returns the halt or the exhausted cap that denies a check although the policies allow it; undefined: none. Changes
 * nothing.
 */
export function overruling(
  { agents, halts, budgets }: Registries,
  subject: CheckSubject,
  decision: PolicyDecision,
  nowMs: number,
): Overruling | undefined {
  const halt = halts.covering(agents.lookUp(subject.agent), subject.action);
  if (halt !== undefined) return { cause: 'halt', reason: haltedReason(halt) };
  if (decision.kind !== 'allow') return undefined;
  const exceeded = budgets.wouldExceed(subject.agent, subject.estimatedCostMicroUsd, nowMs);
  return exceeded === undefined ? undefined : { cause: 'budget', reason: exceededReason(exceeded) };
}
