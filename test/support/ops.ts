import type { OpRecord } from '../../src/core/ops/op-view.ts';

/** The registry's view of an operation that was registered without a check. */
export const UNCHECKED = {
  action: undefined,
  resource: undefined,
  policy: undefined,
  ruleId: undefined,
  reason: undefined,
  estimatedMicroUsd: 0,
  spentMicroUsd: 0,
  approvalId: undefined,
  error: undefined,
  ended: undefined,
} as const satisfies Partial<OpRecord>;
