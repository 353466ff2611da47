/**
 * What may become of a rule in a check. Apart from policy-explain.ts, so that these words can be had without loading
 * the CEL library.
 */
export const RULE_OUTCOMES = [
  'action-differs',
  'resource-differs',
  'condition-false',
  'condition-failed',
  'matched',
] as const;
export type RuleOutcome = (typeof RULE_OUTCOMES)[number];
