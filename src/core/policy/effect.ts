/**
 * Effects of rules. In a file of their own: the API's description needs them at every start, and nothing else of
 * policies.
 */
export const RULE_EFFECTS = ['allow', 'require_approval', 'deny'] as const;
export type RuleEffect = (typeof RULE_EFFECTS)[number];
export const EFFECT_FORMS = 'allow, require_approval or deny';
