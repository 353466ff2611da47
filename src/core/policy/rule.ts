import { cutText } from '../base/text.ts';
import type { DecisionCause } from '../check/cause.ts';
import type { Obligation } from '../check/obligations.ts';
import type { CheckSubject, ConditionVariables } from '../condition/condition.ts';
import type { ApprovalTerms } from './approval-terms.ts';
import type { PolicyDocument, Rule } from './document.ts';
import type { RuleEffect } from './effect.ts';
import { compileGlob, type Glob, isLiteral } from './glob.ts';

/** Outcomes of a rule in a check. Here, and not beside the explanation, which loads the CEL library. */
export const RULE_OUTCOMES = [
  'action-differs',
  'resource-differs',
  'condition-false',
  'condition-failed',
  'matched',
] as const;
export type RuleOutcome = (typeof RULE_OUTCOMES)[number];

/** The answer to a check. A deny that no rule made has neither policy nor rule. */
export type PolicyDecision = {
  readonly kind: RuleEffect;
  /** A sentence for the agent's author. Names the rule, if one decided. */
  readonly reason: string;
  readonly policy: string | undefined;
  readonly ruleId: string | undefined;
  /** Undefined unless denied. */
  readonly cause: DecisionCause | undefined;
  /** An alternative to the denied action. */
  readonly remedy?: string | undefined;
  /** There if, and only if, an approval is required. */
  readonly approval?: ApprovalTerms | undefined;
  /** Obligations of all matching rules that allow, in the order of scopes. */
  readonly obligations?: readonly Obligation[] | undefined;
};

/** A rule as it runs. Its decision is made once, so that a check allocates nothing. */
export type CompiledRule = {
  readonly rule: Rule;
  readonly document: PolicyDocument;
  readonly actions: Patterns;
  readonly resources: Patterns;
  readonly decision: PolicyDecision;
};

/** A document as it runs. */
export type CompiledDocument = {
  readonly document: PolicyDocument;
  readonly rules: readonly CompiledRule[];
  /** Changes when and only when what the document says changes. */
  readonly version: string;
};

/**
 * A list of patterns, sorted into those that can be looked up and those that must be tried. To compare a text with the
 * usual `only` one takes less than to look it up.
 */
export type Patterns = {
  readonly only: string | undefined;
  readonly exact: ReadonlySet<string> | undefined;
  readonly globs: readonly Glob[];
};

export function compileRule(rule: Rule, document: PolicyDocument): CompiledRule {
  return {
    rule,
    document,
    actions: compilePatterns(rule.actions),
    resources: compilePatterns(rule.resources),
    decision: {
      kind: rule.effect,
      reason: reasonOf(rule, document),
      policy: document.name,
      ruleId: rule.id,
      cause: rule.effect === 'deny' ? 'rule' : undefined,
      remedy: rule.remedy,
      approval: rule.approval,
    },
  };
}

export function compilePatterns(patterns: readonly string[]): Patterns {
  const exact = new Set(patterns.filter(isLiteral));
  const [only] = exact;
  return {
    only: exact.size === 1 ? only : undefined,
    exact: exact.size > 1 ? exact : undefined,
    globs: patterns.filter((pattern) => !isLiteral(pattern)).map(compileGlob),
  };
}

/** A loop rather than `some`, because this runs for every candidate rule of every check. */
export function covered({ only, exact, globs }: Patterns, text: string): boolean {
  if (text === only || exact?.has(text) === true) return true;
  for (let i = 0; i < globs.length; i += 1) if (globs[i]?.matches(text)) return true;
  return false;
}

const nameOf = (rule: Rule, document: PolicyDocument): string => `rule ${rule.id} of policy ${document.name}`;

const VERB = {
  allow: 'allowed',
  require_approval: 'needs an approval, required',
  deny: 'denied',
} as const satisfies Record<RuleEffect, string>;

function reasonOf(rule: Rule, document: PolicyDocument): string {
  return rule.reason === undefined
    ? `${VERB[rule.effect]} by ${nameOf(rule, document)}`
    : `${rule.reason} (${nameOf(rule, document)})`;
}

/** The decision of a rule whose action and resource match; undefined when its condition does not hold. */
export function verdictOf(compiled: CompiledRule, variables: ConditionVariables): PolicyDecision | undefined {
  const outcome = compiled.rule.when === undefined ? true : compiled.rule.when.evaluate(variables);
  if (outcome === true) return compiled.decision;
  return outcome === false ? undefined : failedDecision(compiled, outcome.error);
}

/** The rule's result is unknown, so the check is denied. */
function failedDecision({ rule, document }: CompiledRule, error: string): PolicyDecision {
  return {
    kind: 'deny',
    reason: `the condition of ${nameOf(rule, document)} failed: ${error}`,
    policy: document.name,
    ruleId: rule.id,
    cause: 'condition_error',
    remedy: rule.remedy,
    approval: undefined,
  };
}

const MAX_SHOWN_LENGTH = 200;
const shown = (text: string): string =>
  text.length <= MAX_SHOWN_LENGTH ? text : `${cutText(text, MAX_SHOWN_LENGTH)}…`;

/** Deny by default (docs/spec.md, Purpose). */
export function noPolicyAllows({
  agent,
  action,
  resource,
}: Pick<CheckSubject, 'agent' | 'action' | 'resource'>): PolicyDecision {
  const who =
    agent.orgId === '' ? `${agent.teamId}/${agent.agentId}` : `${agent.orgId}/${agent.teamId}/${agent.agentId}`;
  return {
    kind: 'deny',
    reason: `no policy allows ${shown(action)}${resource === '' ? '' : ` on ${shown(resource)}`} for ${who}`,
    policy: undefined,
    ruleId: undefined,
    cause: 'no_rule',
    remedy: undefined,
    approval: undefined,
  };
}
