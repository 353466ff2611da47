/** A change of an approval: put in force, saved and recorded, or else undone (docs/spec.md, Approvals). */
import type { AuditEvent } from '../audit/audit.ts';
import { redactText } from '../audit/redact-text.ts';
import type { OpId } from '../base/ids.ts';
import type { Effect } from '../effects.ts';
import type { Approval } from './approval.ts';
import type { ApprovalRegistry } from './approvals.ts';

/** The approval as it was before one command; undefined: there was none. */
export type ApprovalUndo = { readonly kind: 'approval'; readonly id: string; readonly before: Approval | undefined };

export type Changed = {
  readonly approval: Approval;
  readonly effects: readonly Effect[];
  readonly undo: ApprovalUndo;
};

/** The audit entry of a change; undefined for changes that decide nothing. */
type Entry = {
  readonly eventType: Extract<AuditEvent, `Approval${string}`>;
  readonly actor: string;
  readonly opId: OpId | undefined;
  readonly reason: string | undefined;
  /** Further causes of a request's decision. */
  readonly asked?: Readonly<Record<string, unknown>>;
};

export function changeApproval(
  approvals: ApprovalRegistry,
  after: Approval,
  entry: Entry | undefined,
  nowMs: number,
): Changed {
  const before = approvals.get(after.id);
  approvals.put(after);
  const effects: Effect[] = [{ kind: 'state-saved', table: 'approvals', id: after.id, row: after }];
  for (const id of [...approvals.excess(nowMs)]) {
    approvals.remove(id);
    effects.push({ kind: 'state-removed', table: 'approvals', id });
  }
  if (entry !== undefined) effects.push(auditOf(after, entry), { kind: 'approval-changed', approval: after });
  return { approval: after, effects, undo: { kind: 'approval', id: after.id, before } };
}

/** The store follows: it may have the change already, which the log could not take. */
export function rollBackApproval(approvals: ApprovalRegistry, { id, before }: ApprovalUndo): readonly Effect[] {
  if (before === undefined) {
    approvals.remove(id);
    return [{ kind: 'state-removed', table: 'approvals', id }];
  }
  approvals.put(before);
  return [
    { kind: 'state-saved', table: 'approvals', id, row: before },
    { kind: 'approval-changed', approval: before },
  ];
}

function auditOf(approval: Approval, { eventType, actor, opId, reason, asked }: Entry): Effect {
  const { agent, policy, ruleId } = approval;
  return {
    kind: 'audit',
    draft: {
      eventType,
      lineage: agent,
      actor,
      opId,
      reason: reason === undefined ? undefined : redactText(reason),
      policy,
      ruleId,
      payload: {
        approval_id: approval.id,
        digest: approval.digest,
        action: redactText(approval.action),
        resource: redactText(approval.resource),
        ...asked,
      },
    },
  };
}
