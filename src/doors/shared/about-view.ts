import { microToUsd } from '../../core/base/money.ts';
import type { OpView } from '../../core/ops/op-view.ts';

/** The subject and the outcome of an operation; unknown fields are null. */
export const aboutView = (op: Omit<OpView, 'agent' | 'acknowledgedAtMs'>) => ({
  action: op.action ?? null,
  resource: op.resource ?? null,
  policy: op.policy ?? null,
  rule_id: op.ruleId ?? null,
  reason: op.reason ?? null,
  estimated_cost_usd: microToUsd(op.estimatedMicroUsd),
  spent_usd: microToUsd(op.spentMicroUsd),
  approval_id: op.approvalId ?? null,
  error: op.error ?? null,
  ended: op.ended ?? null,
});
