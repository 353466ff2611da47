import type { AgentIdentity, OpId } from '../core/base/ids.ts';
import type { OpView, Signal } from '../core/views.ts';

/** What an operation is after an order, as far as others are concerned; undefined: it goes on. */
export const STATE_AFTER = { pause: 'paused', terminate: 'terminated', resume: undefined } as const;

type Ordered = {
  readonly opId: OpId;
  readonly signal: Signal;
  readonly atMs: number;
  readonly home: string;
};

/** Of an operation whose gateway cannot be asked, little more is known than what was ordered; `reason` says why. */
export const viewOfOrdered = (
  { opId, signal, atMs, home }: Ordered,
  agent: AgentIdentity,
  reason: string,
  nowMs: number,
): OpView => ({
  opId,
  state: STATE_AFTER[signal] ?? 'running',
  registeredAtMs: atMs,
  updatedAtMs: nowMs,
  agent,
  action: undefined,
  resource: undefined,
  policy: undefined,
  ruleId: undefined,
  reason,
  estimatedMicroUsd: 0,
  spentMicroUsd: 0,
  approvalId: undefined,
  error: undefined,
  ended: signal === 'terminate' ? 'terminated' : undefined,
  acknowledgedAtMs: undefined,
  home,
});
