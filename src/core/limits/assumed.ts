/** Limits in tests of policies, where what was used so far is assumed. */
import { usdToMicro } from '../base/money.ts';
import type { CheckSubject } from '../condition/condition.ts';
import { covered, type PolicyDecision } from '../policy/rule.ts';
import { covers } from '../policy/scope.ts';
import type { CompiledLimit } from './compiled.ts';
import { limitText } from './limit.ts';

/** By the id of a limit, how much of it is used: calls, US dollars or tokens. */
export type AssumedUse = Readonly<Record<string, number>>;

/** Returns the denial of the first limit without room for the check; undefined: there is room in all. */
export function limitOver(
  limits: readonly CompiledLimit[],
  { agent, action, resource, estimatedCostMicroUsd = 0 }: CheckSubject,
  use: AssumedUse,
): PolicyDecision | undefined {
  for (const { limit, policy, scope, actions, resources } of limits) {
    if (!covers(scope, agent) || !covered(actions, action) || !covered(resources, resource)) continue;
    const given = use[limit.id] ?? 0;
    const used = limit.unit === 'usd' ? (usdToMicro(given) ?? Infinity) : given;
    const added = limit.unit === 'calls' ? 1 : limit.unit === 'usd' ? estimatedCostMicroUsd : 0;
    if (added > 0 ? used + added <= limit.max : used < limit.max) continue;
    const isAsking = limit.onExceed === 'ask';
    return {
      kind: isAsking ? 'require_approval' : 'deny',
      reason: `the limit of ${limitText(limit, limit.max)} is reached (limit ${limit.id} of policy ${policy})`,
      policy,
      ruleId: undefined,
      cause: isAsking ? undefined : 'limit',
    };
  }
  return undefined;
}
