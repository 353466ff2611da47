/** The answer that a decision becomes, with its audit entry. */
import type { Speaker } from '../agents/identify.ts';
import type { Changed } from '../approvals/changes.ts';
import type { AuditDraft } from '../audit/audit.ts';
import { fail, ok } from '../base/result.ts';
import type { CheckAnswer, CheckCommand, Replies } from '../commands.ts';
import type { Effect } from '../effects.ts';
import type { OpState } from '../ops/op-state.ts';
import type { Outcome } from '../outcome.ts';
import type { PolicyDecision } from '../policy/rule.ts';
import type { Undo } from '../rollback.ts';
import type { DecisionCause } from './cause.ts';
import type { CheckEntries } from './entry.ts';
import { obligationsPayload } from './obligations.ts';

/** The outcome of a check. Its effects are still open: events for those who watch may be added. */
export type Answered = { readonly reply: Replies['check']; readonly effects: Effect[]; undo?: Undo } & Pick<
  Outcome<'check'>,
  'short' | 'turn'
>;

/** Its effect is its audit entry. */
export function answer(
  entries: CheckEntries,
  command: CheckCommand,
  { entry, actor }: Speaker,
  { kind, reason, policy, ruleId, cause, remedy, obligations }: PolicyDecision,
  opState: OpState | undefined,
  approvalId?: string,
): Answered {
  const decision = kind === 'allow' ? 'allow' : 'deny';
  const payload = entries.payloadOf(command);
  if (obligations !== undefined) Object.assign(payload, obligationsPayload(obligations));
  if (remedy !== undefined) payload.remedy = remedy;
  if (approvalId !== undefined) payload.approval_id = approvalId;
  const draft: AuditDraft = {
    eventType:
      decision === 'deny' ? 'ActionDenied' : command.caller === undefined ? 'ActionAllowed' : 'A2ACallIntercepted',
    lineage: entry.identity,
    actor,
    opId: command.opId,
    decision,
    reason: ruleId === undefined ? entries.reasonOf(command, reason, cause) : reason,
    policy,
    ruleId,
    cause,
    payload,
  };
  return {
    reply: ok({
      decision,
      reason,
      policy,
      ruleId,
      cause,
      exceeded: undefined,
      opState,
      approvalId,
      obligations,
      remedy,
    }),
    effects: [{ kind: 'audit', draft }],
  };
}

/** A deny that no policy made. */
export const denied = (
  cause: DecisionCause,
  reason: string,
  opState: OpState | undefined,
  exceeded?: CheckAnswer['exceeded'],
  { policy, remedy }: { readonly policy?: string; readonly remedy?: string | undefined } = {},
): Replies['check'] => ok({ decision: 'deny', reason, policy, ruleId: undefined, cause, exceeded, opState, remedy });

/** The answer if nobody takes checks that have to wait for the database of a cluster. */
export const NOT_ASKED = fail({ kind: 'overloaded', retryAfterSecs: 1, what: 'the database of the cluster' } as const);

/** Its entry is the one of the request that it waits for; a dry run, which asks nobody, has none. */
export const pending = (
  { reason, policy, ruleId }: PolicyDecision,
  opState: OpState | undefined,
  approvalId: string | undefined,
): Answered => ({
  reply: ok({
    decision: 'pending',
    reason,
    policy,
    ruleId,
    cause: undefined,
    exceeded: undefined,
    opState,
    approvalId,
  }),
  effects: [],
});

export const isAllowed = ({ reply }: Pick<Answered, 'reply'>): boolean => reply.ok && reply.value.decision === 'allow';

/** The answer's own entry stays the first. */
export const withChanges = ({ reply, effects, undo }: Answered, changes: readonly Changed[]): Answered => ({
  reply,
  effects: [...effects, ...changes.flatMap((change) => change.effects)],
  undo: changes.reduce<Undo | undefined>((all, change) => withUndo(all, change.undo), undo)!,
});

export const withUndo = (undo: Undo | undefined, last: Undo): Undo =>
  undo === undefined ? last : { kind: 'several', undos: [undo, last] };
