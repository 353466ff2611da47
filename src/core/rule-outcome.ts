/** What may become of a rule in a check. */
export const RULE_OUTCOMES = ['action-differs', 'resource-differs', 'condition-false', 'condition-failed', 'matched'] as const;
export type RuleOutcome = (typeof RULE_OUTCOMES)[number];
