/** Audit entries before they have a place in the chain (docs/spec.md, Audit). */
import type { OpId } from '../base/ids.ts';
import type { DecisionCause } from '../check/cause.ts';

export const AUDIT_EVENTS = [
  'ActionAllowed',
  'ActionDenied',
  'A2ACallIntercepted',
  'A2AImpersonationAttempted',
  'BudgetLimitExceeded',
  'OpRegistered',
  'OpPaused',
  'OpResumed',
  'OpTerminated',
  'OpCompleted',
  'AgentRegistered',
  'AgentDeregistered',
  'ApiKeyCreated',
  'ApiKeyRevoked',
  'TokenIssued',
  'AccountRegistered',
  'LoginSucceeded',
  'LoginFailed',
  'AccountLocked',
  'InviteCreated',
  'InviteAccepted',
  'InviteRevoked',
  'PasswordResetRequested',
  'PasswordResetCompleted',
  'SessionRevoked',
  'AccountRoleChanged',
  'AccountDisabled',
  'AccountEnabled',
  'AccountUnlocked',
  'PolicyReloaded',
  'HaltCreated',
  'HaltReleased',
  'GatewayForgotten',
  'ApprovalRequested',
  'ApprovalApproved',
  'ApprovalDenied',
  'ApprovalExpired',
  'ApprovalCancelled',
  'ApprovalUsed',
  'WebhookCreated',
  'WebhookDeleted',
  'WebhookTakenOver',
  'CheckpointWitnessed',
  'SettingsChanged',
  'PolicyShadowStarted',
  'PolicyShadowEnded',
] as const;
export type AuditEvent = (typeof AUDIT_EVENTS)[number];

/** Whom an entry is about. All null for an entry about no agent and no org, such as a policy reload. */
export type Lineage = {
  readonly orgId: string | null;
  readonly teamId: string | null;
  readonly agentId: string | null;
};

export const NO_LINEAGE: Lineage = { orgId: null, teamId: null, agentId: null };

/** The lineage of an entry about an org, or something bound to it, rather than an agent. */
export const lineageOfOrg = (orgId: string | null): Lineage => ({ ...NO_LINEAGE, orgId });

/** An entry before the audit writer gives it its id, its predecessor's hash and its own. */
export type AuditDraft = {
  readonly eventType: AuditEvent;
  readonly lineage: Lineage;
  /** Who caused it: `agent:<org>/<team>/<agent>`, `key:<id>`, `account:<id>`, `anonymous` or `gateway`. */
  readonly actor: string;
  readonly opId?: OpId | undefined;
  readonly decision?: 'allow' | 'deny' | undefined;
  readonly reason?: string | undefined;
  readonly policy?: string | undefined;
  readonly ruleId?: string | undefined;
  /** Only with a deny. */
  readonly cause?: DecisionCause | undefined;
  /** Plain JSON; already free of secrets. */
  readonly payload?: Readonly<Record<string, unknown>> | undefined;
};

/** An entry as it is in the log and in answers (docs/spec.md, Audit). */
export type AuditEntry = {
  /** Counts from 1, without a gap. */
  readonly id: number;
  /** RFC 3339, UTC, with milliseconds. */
  readonly timestamp: string;
  readonly event_type: AuditEvent;
  readonly lineage: {
    readonly org_id: string | null;
    readonly team_id: string | null;
    readonly agent_id: string | null;
  };
  readonly op_id: string | null;
  readonly decision: 'allow' | 'deny' | null;
  readonly reason: string | null;
  readonly policy: string | null;
  readonly rule_id: string | null;
  /** Absent in entries of versions before 0.2. */
  readonly cause?: DecisionCause | null;
  readonly actor: string;
  readonly payload: Readonly<Record<string, unknown>>;
  /** Only where several gateways act as one: which of them has decided. */
  readonly gateway?: string;
  readonly prev_hash: string;
  readonly hash: string;
};

/** Every condition that is there must hold. An entry without an org, team, agent … matches no filter on it. */
export type AuditFilter = {
  readonly orgId?: string | undefined;
  readonly teamId?: string | undefined;
  readonly agentId?: string | undefined;
  /** Any of them. */
  readonly eventTypes?: readonly AuditEvent[] | undefined;
  readonly decision?: 'allow' | 'deny' | undefined;
  readonly policy?: string | undefined;
  readonly ruleId?: string | undefined;
  readonly cause?: DecisionCause | undefined;
  /** Only checks that the shadow of the policies decides otherwise. */
  readonly shadow?: 'differs' | undefined;
  /** Patterns, as in rules. */
  readonly action?: string | undefined;
  readonly resource?: string | undefined;
  readonly opId?: string | undefined;
  readonly actor?: string | undefined;
  /** Inclusive. */
  readonly sinceMs?: number | undefined;
  /** Exclusive. */
  readonly untilMs?: number | undefined;
};
