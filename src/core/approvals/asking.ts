/** A check that a rule leaves to people: what they have said already, and asking them (docs/spec.md, Approvals). */
import { addAsked } from '../audit/asked.ts';
import type { AgentIdentity, OpId } from '../base/ids.ts';
import type { CheckSubject } from '../condition/condition.ts';
import { type ApprovalTerms, DEFAULT_TERMS } from '../policy/approval-terms.ts';
import type { PolicyDecision } from '../policy/rule.ts';
import {
  type Approval,
  type ApprovalState,
  canBeUsed,
  cancelled,
  joined,
  MAX_WAITING_OPS,
  stateAt,
  used,
} from './approval.ts';
import { type ApprovalRegistry, type ApprovalTurns, MAX_PENDING, MAX_PENDING_OF_ORG } from './approvals.ts';
import { type Changed, changeApproval } from './changes.ts';
import { canonicalCheck, type Sha256Hex } from './digest.ts';

export type AskingContext = {
  readonly approvals: ApprovalRegistry;
  /** Undefined where nobody shares them. */
  turns: ApprovalTurns | undefined;
  readonly newApprovalId: () => string;
  readonly sha256: Sha256Hex;
  /** Takes out of the attributes what must not be kept. */
  readonly redact: (attributes: Readonly<Record<string, unknown>>) => unknown;
};

/** A check, and the credential behind it. */
export type Question = {
  readonly subject: CheckSubject;
  readonly opId: OpId;
  /** `agent:<key>`, or the subject of the bearer. */
  readonly actor: string;
  /** Whether the operation runs: then it may be checked again under the approval that it used. */
  readonly isRunning: boolean;
};

export type Standing =
  /** Approved: the check may be answered Allow. `isUsed`: by this operation, so that nothing changes. */
  | { readonly kind: 'usable'; readonly approval: Approval; readonly isUsed: boolean }
  | { readonly kind: 'waiting'; readonly approval: Approval }
  /** It ended for this operation without an approval. */
  | { readonly kind: 'over'; readonly approval: Approval; readonly state: ApprovalState }
  /** People are to be asked. `outdated` asked the same under other terms: its rule has changed since. */
  | { readonly kind: 'new'; readonly digest: string; readonly outdated: Approval | undefined };

/** Returns the current state of this question. Changes nothing. */
export function standingOf(
  { approvals, sha256 }: AskingContext,
  { subject, opId, isRunning }: Question,
  decision: PolicyDecision,
  nowMs: number,
): Standing {
  const digest = sha256(canonicalCheck(subject));
  const own = [...approvals.ofOp(subject.agent.orgId, opId)].filter((each) => each.digest === digest).at(-1);
  if (own !== undefined) {
    if (isRunning && own.usedBy.includes(opId)) return { kind: 'usable', approval: own, isUsed: true };
    const state = stateAt(own, nowMs);
    if (ENDED.has(state) && own.opIds.includes(opId)) return { kind: 'over', approval: own, state };
  }
  const open = approvals.openFor(digest, nowMs);
  if (open === undefined) return { kind: 'new', digest, outdated: undefined };
  if (!isOf(open, decision)) return { kind: 'new', digest, outdated: open };
  return canBeUsed(open, nowMs)
    ? { kind: 'usable', approval: open, isUsed: false }
    : { kind: 'waiting', approval: open };
}

/**
 * The digest whose turn it has to be before the check is decided; undefined: it may be decided now, as one that the
 * operation runs under already may be.
 */
export function turnOf({ turns }: AskingContext, standing: Standing): string | undefined {
  if (turns === undefined || standing.kind === 'over') return undefined;
  const digest = standing.kind === 'new' ? standing.digest : standing.approval.digest;
  if (digest === turns.current) return undefined;
  return standing.kind === 'usable' && standing.isUsed && !turns.isBusy(digest) ? undefined : digest;
}

/** Without an approval, an operation that ended this way does not begin. */
export const ENDED: ReadonlySet<ApprovalState> = new Set(['denied', 'expired', 'cancelled']);

/** The approval that ended this operation without a yes, if one did. */
export function endedFor(
  approvals: ApprovalRegistry,
  orgId: string,
  opId: OpId,
  nowMs: number,
): { readonly approval: Approval; readonly state: ApprovalState } | undefined {
  if (!approvals.hasOp(orgId, opId)) return undefined;
  const last = [...approvals.ofOp(orgId, opId)].at(-1);
  if (last === undefined || !last.opIds.includes(opId)) return undefined;
  const state = stateAt(last, nowMs);
  return ENDED.has(state) ? { approval: last, state } : undefined;
}

/** Explains the end to the agent's author, and to its operators, in one sentence. */
export function endedReason({ id, decisions, cancelReason }: Approval, state: ApprovalState): string {
  switch (state) {
    case 'denied':
      return `denied by ${decisions.at(-1)?.by ?? 'a person'}: ${decisions.at(-1)?.reason ?? ''} (approval ${id})`;
    case 'expired':
      return decisions.length === 0
        ? `approval ${id} expired before anybody decided`
        : `approval ${id} expired before it was complete and used`;
    default:
      return `approval ${id} was cancelled: ${cancelReason ?? ''}`;
  }
}

/** Asks people. `outdated` is cancelled, and what waited for it waits for the new one. */
export function askPeople(
  context: AskingContext,
  question: Question,
  { decision, digest, outdated }: { decision: PolicyDecision; digest: string; outdated: Approval | undefined },
  nowMs: number,
): { readonly approval: Approval; readonly changes: readonly Changed[] } {
  const { approvals, newApprovalId, redact } = context;
  const { subject, opId, actor } = question;
  const terms = decision.approval ?? DEFAULT_TERMS;
  const { agent, action, resource, attributes, estimatedCostMicroUsd } = subject;
  const approval: Approval = {
    id: newApprovalId(),
    state: 'pending',
    digest,
    agent,
    opIds: [],
    requesters: outdated?.requesters ?? [],
    action,
    resource,
    attributes: attributes === undefined ? {} : redact(attributes),
    estimatedCostMicroUsd,
    policy: decision.policy ?? '',
    ruleId: decision.ruleId ?? '',
    ruleReason: decision.reason,
    terms,
    requestedAtMs: nowMs,
    expiresAtMs: nowMs + terms.expiresMs,
    frozenAtMs: undefined,
    decisions: [],
    changedAtMs: nowMs,
    cancelReason: undefined,
    usedBy: [],
  };
  const waiting = outdated?.state === 'pending' ? outdated.opIds : [];
  const others = waiting.filter((each) => each !== opId).slice(0, MAX_WAITING_OPS - 1);
  const asked = joined({ ...approval, opIds: [opId, ...others] }, opId, actor);
  const replaced =
    outdated === undefined || outdated.state === 'used'
      ? []
      : [
          changeApproval(
            approvals,
            cancelled(outdated, 'its rule has changed', nowMs),
            { eventType: 'ApprovalCancelled', actor: 'gateway', opId, reason: 'its rule has changed' },
            nowMs,
          ),
        ];
  const entry = requested(context, question, decision.reason);
  return { approval: asked, changes: [changeApproval(approvals, asked, entry, nowMs), ...replaced] };
}

/** Adds an operation that waits. Saved again even if it waits already: the first save may still be on its way. */
export function joinWaiting(context: AskingContext, approval: Approval, question: Question, nowMs: number): Changed {
  const { opId, actor } = question;
  const isNew = !approval.opIds.includes(opId);
  const entry = isNew ? requested(context, question, approval.ruleReason) : undefined;
  return changeApproval(context.approvals, joined(approval, opId, actor), entry, nowMs);
}

/** The entry of a check that waits. Its `attributes` are always there, unlike in the logs of older releases. */
function requested({ redact }: AskingContext, { subject, actor, opId }: Question, reason: string) {
  const asked: Record<string, unknown> = { attributes: {} };
  addAsked(asked, subject, redact);
  return { eventType: 'ApprovalRequested', actor, opId, reason, asked } as const;
}

/** The check was answered Allow because of it. Saved before the answer, so that no restart gives it a second use. */
export function useApproval(
  { approvals, turns }: AskingContext,
  approval: Approval,
  { opId, actor, isRunning }: Question,
  nowMs: number,
): Changed | undefined {
  const isUsed = isRunning && approval.usedBy.includes(opId);
  if (isUsed && turns !== undefined) return undefined; // committed already
  if (isUsed) return changeApproval(approvals, approval, undefined, nowMs);
  const entry = { eventType: 'ApprovalUsed', actor, opId, reason: undefined } as const;
  return changeApproval(approvals, used(approval, opId, nowMs), entry, nowMs);
}

/** Names the exhausted limit, if nobody can be asked. */
export function fullFor(approvals: ApprovalRegistry, { orgId }: AgentIdentity): string | undefined {
  if (approvals.pendingCount >= MAX_PENDING) return 'the number of pending approvals';
  return approvals.pendingOfOrg(orgId) >= MAX_PENDING_OF_ORG
    ? 'the number of pending approvals of this org'
    : undefined;
}

export const hasRoomFor = ({ opIds }: Approval, opId: OpId): boolean =>
  opIds.includes(opId) || opIds.length < MAX_WAITING_OPS;

/** Whether the approval is of the rule that decides now, under the terms that hold now. */
const isOf = (approval: Approval, decision: PolicyDecision): boolean =>
  approval.policy === decision.policy &&
  approval.ruleId === decision.ruleId &&
  areSame(approval.terms, decision.approval ?? DEFAULT_TERMS);

const areSame = (one: ApprovalTerms, other: ApprovalTerms): boolean =>
  one.min === other.min &&
  one.expiresMs === other.expiresMs &&
  one.validMs === other.validMs &&
  one.approvers.join('\n') === other.approvers.join('\n');
