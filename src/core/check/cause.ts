/** Why a check was denied, in one word for programs (docs/grpc.md, Causes), in the order of their wire numbers. */
export const DECISION_CAUSES = [
  'rule',
  'no_rule',
  'condition_error',
  'budget',
  'credential',
  'operation_state',
  'halt',
  'approval',
  'obligation',
  'unrecorded',
  'limit',
] as const;
export type DecisionCause = (typeof DECISION_CAUSES)[number];
