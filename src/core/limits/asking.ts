/** Asks people for more of a limit: one approval for all checks of its key (docs/spec.md, Limits of use). */
import { type Approval, agentOf, joined, MAX_WAITING_OPS, stateAt } from '../approvals/approval.ts';
import { type AskingContext, fullFor, hasRoomFor, type Question, useApproval } from '../approvals/asking.ts';
import { type Changed, changeApproval } from '../approvals/changes.ts';
import { canonicalJson } from '../approvals/digest.ts';
import { agentKeyOf } from '../base/ids.ts';
import { DEFAULT_TERMS } from '../policy/approval-terms.ts';
import { shownAmount } from './limit.ts';
import type { Reached } from './reached.ts';
import { limitReason, noteOf } from './said.ts';

export type Asked =
  | { readonly kind: 'waits'; readonly approval: Approval; readonly changes: readonly Changed[] }
  /** If gateways share approvals: the decision needs a turn of this digest. */
  | { readonly kind: 'turn'; readonly digest: string }
  | { readonly kind: 'denied'; readonly reason: string };

/** The digest that binds an approval to a limit and to the user that it counts. */
const digestOf = ({ sha256 }: Pick<AskingContext, 'sha256'>, orgId: string, { limit, policy, key }: Reached): string =>
  sha256(canonicalJson({ limit: { id: limit.id, key, org_id: orgId, per: limit.per, policy } }));

/** The approval that checks of this key wait for. */
export function waitedFor(
  context: AskingContext,
  orgId: string,
  reached: Reached,
  nowMs: number,
): Approval | undefined {
  const latest = context.approvals.latestFor(digestOf(context, orgId, reached));
  return latest !== undefined && stateAt(latest, nowMs) === 'pending' ? latest : undefined;
}

export function askAboutLimit(context: AskingContext, question: Question, reached: Reached, nowMs: number): Asked {
  const { approvals, turns } = context;
  const { subject, opId, actor } = question;
  const { orgId } = subject.agent;
  const digest = digestOf(context, orgId, reached);
  if (turns !== undefined && turns.current !== digest) return { kind: 'turn', digest };
  const reason = limitReason(reached);
  const known = waitedFor(context, orgId, reached, nowMs);
  const full = known === undefined ? fullFor(approvals, subject.agent) : undefined;
  if (full !== undefined) return { kind: 'denied', reason: `${reason}, and ${full} is at its limit` };
  if (known !== undefined && !hasRoomFor(known, opId))
    return { kind: 'denied', reason: `${reason}, and ${MAX_WAITING_OPS} operations wait for approval ${known.id}` };
  const isNew = known?.opIds.includes(opId) !== true;
  const approval = waiting(known ?? newApproval(context, question, { digest, reason, reached }, nowMs), question);
  const asked = { limit: noteOf(reached) };
  const entry = { eventType: 'ApprovalRequested', actor, opId, reason, asked } as const;
  return { kind: 'waits', approval, changes: [changeApproval(approvals, approval, isNew ? entry : undefined, nowMs)] };
}

/** With one more operation, which may be another agent's. */
function waiting(approval: Approval, { subject: { agent }, opId, actor }: Question): Approval {
  const after = joined(approval, opId, actor);
  if (after.limit === undefined || agentKeyOf(agentOf(after, opId)) === agentKeyOf(agent)) return after;
  return { ...after, limit: { ...after.limit, others: { ...after.limit.others, [opId]: agent } } };
}

function newApproval(
  { newApprovalId, redact }: AskingContext,
  { subject }: Question,
  { digest, reason, reached }: { readonly digest: string; readonly reason: string; readonly reached: Reached },
  nowMs: number,
): Approval {
  const { agent, action, resource, attributes, estimatedCostMicroUsd } = subject;
  const { unit, step } = reached.limit;
  return {
    id: newApprovalId(),
    state: 'pending',
    digest,
    agent,
    opIds: [],
    requesters: [],
    action,
    resource,
    attributes: attributes === undefined ? {} : redact(attributes),
    estimatedCostMicroUsd,
    policy: reached.policy,
    ruleId: '',
    ruleReason: reason,
    limit: { ...noteOf(reached), unit, step: shownAmount(unit, step), others: {} },
    terms: DEFAULT_TERMS,
    requestedAtMs: nowMs,
    expiresAtMs: nowMs + DEFAULT_TERMS.expiresMs,
    frozenAtMs: undefined,
    decisions: [],
    changedAtMs: nowMs,
    cancelReason: undefined,
    usedBy: [],
  };
}

/**
 * The operation waited for more of a limit, and begins: its approval is used. Gateways that share approvals change them
 * in turns only, and leave this one approved.
 */
export function useRaised(context: AskingContext, question: Question, nowMs: number): Changed | undefined {
  const { approvals, turns } = context;
  if (approvals.size === 0 || turns !== undefined) return undefined;
  const last = [...approvals.ofOp(question.subject.agent.orgId, question.opId)].at(-1);
  return last?.limit !== undefined && last.state === 'approved'
    ? useApproval(context, last, question, nowMs)
    : undefined;
}
