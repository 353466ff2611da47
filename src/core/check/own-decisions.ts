/** The decisions that the gateway itself makes about a check, before policy or in place of its answer. */
import type { Approval, ApprovalState } from '../approvals/approval.ts';
import { endedReason } from '../approvals/asking.ts';
import type { CheckCommand } from '../commands.ts';
import type { Halt } from '../halts/halt.ts';
import type { OpState } from '../ops/op-state.ts';
import type { PolicyDecision } from '../policy/rule.ts';
import type { DecisionCause } from './cause.ts';

export const deny = (cause: DecisionCause, reason: string): PolicyDecision => ({
  kind: 'deny',
  reason,
  policy: undefined,
  ruleId: undefined,
  cause,
});

const NOT_YOURS = 'the operation belongs to another agent; use your own trace_id and span_id';
export const OTHER_AGENTS_OP = deny('operation_state', NOT_YOURS);

export type ClosedState = 'paused' | 'terminated';
/** Operations in these states take no further checks (docs/spec.md, Checks 3). */
export const CLOSED: Readonly<Partial<Record<OpState, PolicyDecision>>> = {
  paused: deny('operation_state', 'the operation is paused; wait until an operator resumes it'),
  completing: deny('operation_state', 'the operation is completing; start a new one'),
  terminated: deny('operation_state', 'the operation is terminated; start a new one'),
};

export const haltedReason = ({ id, reason, scope }: Halt): string => `halt ${id} of ${scope} is in force: ${reason}`;

type Ended = { readonly approval: Approval; readonly state: ApprovalState };
export const endedBy = ({ approval, state }: Ended): PolicyDecision => ({
  ...deny(approval.limit === undefined ? 'approval' : 'limit', endedReason(approval, state)),
  policy: approval.policy,
  ruleId: approval.limit === undefined ? approval.ruleId : undefined,
});

export const TOO_MANY_WAIT = deny('approval', 'too many operations wait for this approval');

export const approvedBy = (
  { id, policy, ruleId, decisions }: Approval,
  { obligations }: PolicyDecision,
): PolicyDecision => ({
  kind: 'allow',
  reason: `approved by ${decisions.map(({ by }) => by).join(' and ')} (approval ${id})`,
  policy,
  ruleId,
  cause: undefined,
  obligations,
});

/** An allow becomes a deny if the caller lacks an obligation (docs/spec.md, Obligations). */
export function fulfilled(decision: PolicyDecision, { supportedObligations }: CheckCommand): PolicyDecision {
  const { kind, policy, ruleId, obligations } = decision;
  if (obligations === undefined || kind !== 'allow') return decision;
  const unmet = obligations.find(({ type }) => supportedObligations?.includes(type) !== true);
  if (unmet === undefined) return decision;
  const { id, type } = unmet;
  const reason = `allowed only with obligation ${id}, of type ${type}, which is not among the supported_obligations`;
  return { ...deny('obligation', reason), policy, ruleId };
}
