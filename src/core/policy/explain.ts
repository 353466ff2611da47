import type { Steps } from '../base/steps.ts';
import { type CheckSubject, ConditionVariables } from '../condition/condition.ts';
import { termsText } from './approval-terms.ts';
import type { RuleEffect } from './effect.ts';
import { type CompiledDocument, type CompiledRule, covered, type PolicyDecision, type RuleOutcome } from './rule.ts';
import { covers, formatPolicyScope } from './scope.ts';

/** Why a rule did or did not take part. */
export type RuleTrace = {
  readonly id: string;
  readonly effect: RuleEffect;
  readonly outcome: RuleOutcome;
  /** The outcome in words: `action does not match`, `condition failed: No such key: size`, `matched: allow`. */
  readonly detail: string;
  /** True for the one rule that the decision names. */
  readonly decided: boolean;
};

export type DocumentTrace = {
  readonly name: string;
  readonly scope: string;
  readonly source: string;
  /** False: its scope does not reach the agent, so its rules were not looked at. */
  readonly applies: boolean;
  readonly rules: readonly RuleTrace[];
};

/** A decision that overrules the policies. */
export type Overruling = { readonly cause: 'halt' | 'limit' | 'budget'; readonly reason: string };

/** Plain data, in the order of the cascade. */
export type Explanation = { readonly decision: PolicyDecision; readonly documents: readonly DocumentTrace[] };

/** Explains one rule per step. */
export function* explainingCheck(
  compiled: readonly CompiledDocument[],
  subject: CheckSubject,
  decision: PolicyDecision,
): Steps<Explanation> {
  const variables = new ConditionVariables().fill(subject);
  const documents: DocumentTrace[] = [];
  for (const {
    document: { name, source, scope },
    rules,
  } of compiled) {
    const applies = covers(scope, subject.agent);
    const traces: RuleTrace[] = [];
    for (const rule of applies ? rules : []) {
      traces.push(traceOf(rule, subject, variables, decision));
      yield;
    }
    documents.push({ name, scope: formatPolicyScope(scope), source, applies, rules: traces });
    yield;
  }
  return { decision, documents };
}

function traceOf(
  compiled: CompiledRule,
  subject: CheckSubject,
  variables: ConditionVariables,
  decision: PolicyDecision,
): RuleTrace {
  const { rule, document } = compiled;
  const decided = decision.policy === document.name && decision.ruleId === rule.id;
  return { id: rule.id, effect: rule.effect, ...outcomeOf(compiled, subject, variables), decided };
}

function outcomeOf(
  compiled: CompiledRule,
  subject: CheckSubject,
  variables: ConditionVariables,
): Pick<RuleTrace, 'outcome' | 'detail'> {
  if (!covered(compiled.actions, subject.action)) return { outcome: 'action-differs', detail: 'action does not match' };
  if (!covered(compiled.resources, subject.resource))
    return { outcome: 'resource-differs', detail: 'resource does not match' };
  const held = compiled.rule.when?.evaluate(variables) ?? true;
  if (held === false) return { outcome: 'condition-false', detail: 'condition is false' };
  if (held !== true) return { outcome: 'condition-failed', detail: `condition failed: ${held.error}` };
  const { effect, obligations, approval } = compiled.rule;
  const obliging =
    obligations === undefined ? '' : ` with ${obligations.map(({ id, type }) => `${type} ${id}`).join(', ')}`;
  const terms = approval === undefined ? '' : ` ${termsText(approval)}`;
  return { outcome: 'matched', detail: `matched: ${effect}${terms}${obliging}` };
}
