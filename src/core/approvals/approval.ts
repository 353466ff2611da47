/** An approval: a person's answer to a check that a rule leaves to people (docs/spec.md, Approvals). */
import { type AgentIdentity, type AgentKey, agentKeyOf, type OpId } from '../base/ids.ts';
import { assert } from '../base/result.ts';
import type { LimitNote, LimitUnit } from '../limits/limit.ts';
import type { ApprovalTerms } from '../policy/approval-terms.ts';

export const APPROVAL_STATES = ['pending', 'approved', 'denied', 'expired', 'cancelled', 'used'] as const;
export const APPROVAL_TRIGGERS = ['approve', 'deny', 'expire', 'cancel', 'use'] as const;
export type ApprovalState = (typeof APPROVAL_STATES)[number];
export type ApprovalTrigger = (typeof APPROVAL_TRIGGERS)[number];

const NEXT: Readonly<Record<ApprovalState, Readonly<Partial<Record<ApprovalTrigger, ApprovalState>>>>> = {
  pending: { approve: 'approved', deny: 'denied', expire: 'expired', cancel: 'cancelled' },
  approved: { use: 'used', expire: 'expired', cancel: 'cancelled' },
  denied: {},
  expired: {},
  cancelled: {},
  used: { use: 'used' }, // Again only if it is valid for a duration: see canBeUsed.
};

/** The state that the trigger leads to, or undefined where the table has no such row. */
export const nextApprovalState = (from: ApprovalState, trigger: ApprovalTrigger): ApprovalState | undefined =>
  NEXT[from][trigger];

export type ApprovalDecision = {
  readonly kind: 'approve' | 'deny';
  /** `key:<id>` or `account:<id>`. */
  readonly by: string;
  readonly reason: string;
  readonly atMs: number;
};

/** A limit that is to be raised for a key; its amounts are as people write them. */
export type LimitQuestion = LimitNote & {
  readonly unit: LimitUnit;
  /** By how much. */
  readonly step: number;
  /** The agents of operations that wait and are not those of the agent that asked first. */
  readonly others: Readonly<Record<OpId, AgentIdentity>>;
};

/** Plain data, as it is stored. Times are milliseconds since the Unix epoch. */
export type Approval = {
  readonly id: string;
  readonly state: ApprovalState;
  /** Identifies the arguments it is bound to: see `digestOf`. */
  readonly digest: string;
  readonly agent: AgentIdentity;
  /** The operations that wait for it, the first of which asked for it; at most `MAX_WAITING_OPS`. */
  readonly opIds: readonly OpId[];
  /** The subjects of the credentials that asked for it. */
  readonly requesters: readonly string[];
  readonly action: string;
  readonly resource: string;
  /** Without secrets, as the audit log has them. */
  readonly attributes: unknown;
  readonly estimatedCostMicroUsd: number;
  readonly policy: string;
  readonly ruleId: string;
  /** Why the rule asks. */
  readonly ruleReason: string;
  /** Undefined: it is about an action. */
  readonly limit?: LimitQuestion | undefined;
  readonly terms: ApprovalTerms;
  readonly requestedAtMs: number;
  /** Until when it can be decided or, once approved, used. While it is frozen, its clock stops. */
  readonly expiresAtMs: number;
  /** Since when a halt freezes it. */
  readonly frozenAtMs: number | undefined;
  readonly decisions: readonly ApprovalDecision[];
  /** When it got its state. */
  readonly changedAtMs: number;
  /** Why it was cancelled. */
  readonly cancelReason: string | undefined;
  /** The operations that used it, latest last; at most `MAX_REMEMBERED_USES`. */
  readonly usedBy: readonly OpId[];
};

export const MAX_WAITING_OPS = 256;
const MAX_REMEMBERED_USES = 256;
export const MAX_DECISION_REASON = 1_000;

/** Whether its time is over; a frozen one's is not. */
export const isDue = ({ state, expiresAtMs, frozenAtMs }: Approval, nowMs: number): boolean =>
  (state === 'pending' || state === 'approved') && frozenAtMs === undefined && expiresAtMs <= nowMs;

/** The state as of now, also where the timer has not come by yet. */
export const stateAt = (approval: Approval, nowMs: number): ApprovalState =>
  isDue(approval, nowMs) ? 'expired' : approval.state;

/** Whether a check with the same digest is answered Allow because of it. */
export function canBeUsed(approval: Approval, nowMs: number): boolean {
  if (approval.frozenAtMs !== undefined) return false;
  if (approval.state === 'approved') return approval.expiresAtMs > nowMs;
  return approval.state === 'used' && approval.terms.validMs !== undefined && approval.expiresAtMs > nowMs;
}

/** Whether a check with the same digest still has to do with it: it waits, or can be used. */
export const isOpen = (approval: Approval, nowMs: number): boolean =>
  (approval.state === 'pending' && !isDue(approval, nowMs)) || canBeUsed(approval, nowMs);

/** With one more decision. It takes several approvals if the rule says so; one deny decides. */
export function decided(approval: Approval, decision: ApprovalDecision): Approval {
  assert(approval.state === 'pending', 'only a pending approval is decided');
  const decisions = [...approval.decisions, decision];
  if (decision.kind === 'deny') return moved({ ...approval, decisions }, 'deny', decision.atMs);
  if (decisions.length < approval.terms.min) return { ...approval, decisions };
  const { validMs, expiresMs } = approval.terms;
  const expiresAtMs = decision.atMs + (validMs ?? expiresMs);
  return moved({ ...approval, decisions, expiresAtMs }, 'approve', decision.atMs);
}

export const expired = (approval: Approval, nowMs: number): Approval => moved(approval, 'expire', nowMs);

export const cancelled = (approval: Approval, cancelReason: string, nowMs: number): Approval =>
  moved({ ...approval, cancelReason }, 'cancel', nowMs);

export function used(approval: Approval, opId: OpId, nowMs: number): Approval {
  const usedBy = approval.usedBy.includes(opId)
    ? approval.usedBy
    : [...approval.usedBy.slice(1 - MAX_REMEMBERED_USES), opId];
  return moved({ ...approval, usedBy }, 'use', nowMs);
}

/** With one more operation that waits for it, asked for with the credential of this subject. */
export const joined = (approval: Approval, opId: OpId, requester: string): Approval => ({
  ...approval,
  opIds: approval.opIds.includes(opId) ? approval.opIds : [...approval.opIds, opId],
  requesters: approval.requesters.includes(requester) ? approval.requesters : [...approval.requesters, requester],
});

/** The agent whose operation waits. */
export const agentOf = ({ agent, limit }: Approval, opId: OpId): AgentIdentity => limit?.others[opId] ?? agent;

/** Whether the agent may wait for it. */
export const isAskedBy = ({ agent, limit }: Approval, key: AgentKey): boolean =>
  agentKeyOf(agent) === key || Object.values(limit?.others ?? {}).some((other) => agentKeyOf(other) === key);

export const frozen = (approval: Approval, nowMs: number): Approval => ({ ...approval, frozenAtMs: nowMs });

/** Its clock goes on; what was left of its time is left. */
export function thawed(approval: Approval, nowMs: number): Approval {
  const { frozenAtMs, expiresAtMs } = approval;
  if (frozenAtMs === undefined) return approval;
  return { ...approval, frozenAtMs: undefined, expiresAtMs: expiresAtMs + (nowMs - frozenAtMs) };
}

/** The clock was set back, by as much as the approval is ahead of it. */
export function setBackTo(approval: Approval, nowMs: number): Approval {
  const { requestedAtMs, changedAtMs, expiresAtMs, frozenAtMs, decisions } = approval;
  const latestMs = Math.max(requestedAtMs, changedAtMs, frozenAtMs ?? 0, ...decisions.map(({ atMs }) => atMs));
  const aheadMs = latestMs - nowMs;
  if (aheadMs <= 0) return approval;
  return {
    ...approval,
    requestedAtMs: Math.min(requestedAtMs, nowMs),
    changedAtMs: Math.min(changedAtMs, nowMs),
    expiresAtMs: expiresAtMs - aheadMs,
    frozenAtMs: frozenAtMs && Math.min(frozenAtMs, nowMs),
  };
}

function moved(approval: Approval, trigger: ApprovalTrigger, nowMs: number): Approval {
  const state = nextApprovalState(approval.state, trigger);
  assert(state !== undefined, `an approval that is ${approval.state} does not ${trigger}`);
  return { ...approval, state, changedAtMs: nowMs };
}
