import type { OpRecord, OpView } from '../views.ts';

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
