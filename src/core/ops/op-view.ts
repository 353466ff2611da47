import type { AgentIdentity, OpId } from '../base/ids.ts';
import type { OpEnd, OpState } from './op-state.ts';

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

/** An operation, and when its agent acknowledged the operator's last signal. */
export type OpView = OpRecord & {
  readonly acknowledgedAtMs: number | undefined;
  /** Which gateway of a cluster has it; undefined: this one. */
  readonly home?: string | undefined;
};

export type Signal = 'pause' | 'resume' | 'terminate';

export type SignalMessage = { readonly opId: OpId; readonly signal: Signal; readonly sequence: number };

/** Field by field: of a spread, Node.js 20 would make an object with a hidden class of its own (docs/style.md, 3). */
export const viewOfOp = (op: OpRecord, acknowledgedAtMs: number | undefined): OpView => ({
  opId: op.opId,
  state: op.state,
  registeredAtMs: op.registeredAtMs,
  updatedAtMs: op.updatedAtMs,
  agent: op.agent,
  action: op.action,
  resource: op.resource,
  policy: op.policy,
  ruleId: op.ruleId,
  reason: op.reason,
  estimatedMicroUsd: op.estimatedMicroUsd,
  spentMicroUsd: op.spentMicroUsd,
  approvalId: op.approvalId,
  error: op.error,
  ended: op.ended,
  acknowledgedAtMs,
});
