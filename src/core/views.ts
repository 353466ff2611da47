import type { AgentIdentity, AgentKey, OpId, SecretDigest } from './base/ids.ts';
import type { Principal } from './identity/roles.ts';
import type { OpEnd, OpState } from './ops/op-state.ts';

/**
 * The credential of a request about an agent: by the agent's own credential token, or by a bearer whose principal has
 * the write scope (docs/spec.md, Checks). With both, the token decides. With neither, a check is denied.
 */
export type Voucher = {
  readonly credential: SecretDigest | undefined;
  readonly principal: Principal | undefined;
};

export type ControlTrigger = 'pause' | 'resume' | 'terminate' | 'complete';

export type AgentView = {
  readonly identity: AgentIdentity;
  readonly parent: AgentKey | undefined;
  readonly registeredAtMs: number;
  readonly lastSeenMs: number | undefined;
  readonly activeOps: number;
};

/** An operation, and when its agent acknowledged the operator's last signal. */
export type OpView = OpRecord & {
  readonly acknowledgedAtMs: number | undefined;
  /** Which gateway of a cluster has it; undefined: this one. */
  readonly home?: string | undefined;
};

export type Signal = 'pause' | 'resume' | 'terminate';

export type SignalMessage = { readonly opId: OpId; readonly signal: Signal; readonly sequence: number };

/** An operation as others see it (docs/spec.md, Operations). Milliseconds here; RFC 3339 exists only in doors/. */
export type OpRecord = {
  readonly opId: OpId;
  readonly state: OpState;
  readonly registeredAtMs: number;
  readonly updatedAtMs: number;
  readonly agent: AgentIdentity;
  /** The first check's action, without secrets; undefined if it was registered without a check. */
  readonly action: string | undefined;
  readonly resource: string | undefined;
  /** The rule that decided that check. */
  readonly policy: string | undefined;
  readonly ruleId: string | undefined;
  readonly reason: string | undefined;
  readonly estimatedMicroUsd: number;
  readonly spentMicroUsd: number;
  readonly approvalId: string | undefined;
  /** The error that its agent reported. */
  readonly error: string | undefined;
  /** Undefined while it runs or waits. */
  readonly ended: OpEnd | undefined;
};
