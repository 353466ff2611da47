/**
 * A policy document as plain data, checked key by key. The adapter that parsed the YAML knows its lines and columns.
 */

import { type DocumentProblem, isMapping, MappingReader } from '../base/mapping.ts';
import { finish, type Steps } from '../base/steps.ts';
import type { Obligation } from '../check/obligations.ts';
import { type Condition, compileCondition } from '../condition/condition.ts';
import type { Limit } from '../limits/limit.ts';
import { readLimits } from '../limits/read.ts';
import { type ApprovalTerms, readApprovalTerms } from './approval-terms.ts';
import { EFFECT_FORMS, RULE_EFFECTS, type RuleEffect } from './effect.ts';
import { readObligations } from './obligation-terms.ts';
import { kindOf, readGlobs, readName, refuseTwins } from './readers.ts';
import { type PolicyScope, parsePolicyScope, SCOPE_FORMS } from './scope.ts';

/**
 * Its keys are those that an author writes. Its JSON is part of the version of the policies, so whatever a key says
 * must be in it.
 */
export type Rule = {
  readonly id: string;
  /** Globs over the action; `['*']` when left out. */
  readonly actions: readonly string[];
  /** Globs over the resource; `['*']` when left out. */
  readonly resources: readonly string[];
  /** Undefined: always. */
  readonly when: Condition | undefined;
  readonly effect: RuleEffect;
  readonly reason: string | undefined;
  /** An alternative for the agent. Only rules that deny have one. */
  readonly remedy: string | undefined;
  /** The terms of a rule that requires an approval, with its omissions filled in; else undefined. */
  readonly approval: ApprovalTerms | undefined;
  /** Obligations that come with an allow; undefined: none. */
  readonly obligations: readonly Obligation[] | undefined;
};

/** Whether a rule that has this key may leave out some of the checks that its patterns match. */
export const NARROWS = {
  id: false,
  actions: false,
  resources: false,
  when: true,
  effect: false,
  reason: false,
  remedy: false,
  approval: false,
  obligations: false,
} as const satisfies Record<keyof Rule, boolean>;

export type PolicyDocument = {
  readonly name: string;
  readonly scope: PolicyScope;
  readonly rules: readonly Rule[];
  /** The `budget:` section as written; undefined when there is none. */
  readonly budget: unknown;
  /** As written, in their order; none when left out. */
  readonly limits: readonly Limit[];
  /** Its origin, for people: a file name. */
  readonly source: string;
};

export const MAX_REASON_LENGTH = 512;
export const MAX_REMEDY_LENGTH = 256;
export const MAX_RULES = 10_000;

const DOCUMENT_KEYS = ['name', 'scope', 'rules', 'budget', 'limits'] as const;
const RULE_KEYS = Object.keys(NARROWS);

/**
 * `document` is there if its name and scope could be read; rules that could not be are left out. Use it only without
 * problems.
 */
export type ParsedDocument = {
  readonly document: PolicyDocument | undefined;
  readonly problems: readonly DocumentProblem[];
};

/** Reads a parsed YAML document. Reports every mistake, not only the first. */
export const parsePolicyDocument = (raw: unknown, source: string): ParsedDocument =>
  finish(parsingPolicyDocument(raw, source));

/** The same, one rule per step: compiling the conditions of thousands of rules takes longer than a check may wait. */
export function* parsingPolicyDocument(raw: unknown, source: string): Steps<ParsedDocument> {
  if (!isMapping(raw)) {
    return {
      document: undefined,
      problems: [
        { path: [], problem: `a policy document must be a mapping with the keys ${DOCUMENT_KEYS.join(', ')}` },
      ],
    };
  }
  const problems: DocumentProblem[] = [];
  const document = new MappingReader(raw, [], problems);
  document.refuseKeysExcept(DOCUMENT_KEYS);
  const name = readName(document, 'name');
  const scope = readScope(document);
  const rules = yield* readRules(document);
  const limits = readLimits(document);
  if (name === undefined || scope === undefined) return { document: undefined, problems };
  return { document: { name, scope, rules, budget: raw.budget, limits, source }, problems };
}

function readScope(document: MappingReader): PolicyScope | undefined {
  const { scope } = document.raw;
  if (scope === undefined) return document.missing('scope');
  return (
    (typeof scope === 'string' ? parsePolicyScope(scope) : undefined) ??
    document.refuse('scope', `must be ${SCOPE_FORMS}`)
  );
}

function* readRules(document: MappingReader): Steps<readonly Rule[]> {
  const raws = listOfRules(document);
  const rules: Rule[] = [];
  for (const [index, raw] of raws.entries()) {
    const rule = readRule(document, index, raw);
    if (rule !== undefined) rules.push(rule);
    yield;
  }
  refuseTwins(document, 'rules', raws);
  return rules;
}

/** Only a document with a budget or limits may have none. */
function listOfRules(document: MappingReader): readonly unknown[] {
  const { rules, budget, limits } = document.raw;
  if (rules === undefined) return budget === undefined && limits === undefined ? (document.missing('rules') ?? []) : [];
  if (!Array.isArray(rules)) return document.refuse('rules', `must be a list of rules; this is ${kindOf(rules)}`) ?? [];
  if (rules.length > MAX_RULES)
    return document.refuse('rules', `has ${rules.length} rules; the maximum per document is ${MAX_RULES}`) ?? [];
  return rules;
}

function readRule(document: MappingReader, index: number, raw: unknown): Rule | undefined {
  const path = ['rules', index];
  if (!isMapping(raw))
    return document.note({
      path,
      problem: `a rule must be a mapping with the keys ${RULE_KEYS.join(', ')}; this is ${kindOf(raw)}`,
    });
  const rule = document.within(path, raw);
  rule.refuseKeysExcept(RULE_KEYS);
  const id = readName(rule, 'id');
  const actions = readGlobs(rule, 'actions');
  const resources = readGlobs(rule, 'resources');
  const when = readCondition(rule);
  const effect = readEffect(rule);
  const reason = readText(rule, 'reason', {
    wanted: `a string of at most ${MAX_REASON_LENGTH} characters`,
    maxLength: MAX_REASON_LENGTH,
  });
  const remedy = readRemedy(rule, effect);
  const approval = readApproval(rule, effect);
  const obligations = readObligationsOf(rule, effect);
  if (id === undefined || effect === undefined) return undefined;
  return { id, actions, resources, when, effect, reason, remedy, approval, obligations };
}

function readCondition(rule: MappingReader): Condition | undefined {
  const text = readText(rule, 'when', { wanted: 'a CEL expression in quotes', maxLength: Infinity });
  if (text === undefined) return undefined;
  const compiled = compileCondition(text);
  if (compiled.ok) return compiled.value;
  for (const { offset, problem } of compiled.fault) rule.note({ path: ['when'], offset, problem });
  return undefined;
}

function readEffect(rule: MappingReader): RuleEffect | undefined {
  const { effect } = rule.raw;
  if (effect === undefined) return rule.missing('effect');
  return RULE_EFFECTS.find((known) => known === effect) ?? rule.refuse('effect', `must be ${EFFECT_FORMS}`);
}

function readRemedy(rule: MappingReader, effect: RuleEffect | undefined): string | undefined {
  const wanted = `a string of 1 to ${MAX_REMEDY_LENGTH} characters`;
  const remedy = readText(rule, 'remedy', { wanted, maxLength: MAX_REMEDY_LENGTH });
  if (rule.raw.remedy !== undefined && effect !== undefined && effect !== 'deny')
    rule.note({ path: ['remedy'], onKey: true, problem: 'is only for rules whose effect is deny' });
  return remedy;
}

function readApproval(rule: MappingReader, effect: RuleEffect | undefined): ApprovalTerms | undefined {
  if (effect === 'require_approval') return readApprovalTerms(rule);
  if (rule.raw.approval !== undefined && effect !== undefined)
    rule.note({ path: ['approval'], onKey: true, problem: 'is only for rules whose effect is require_approval' });
  return undefined;
}

function readObligationsOf(rule: MappingReader, effect: RuleEffect | undefined): readonly Obligation[] | undefined {
  if (effect === 'allow' || effect === undefined || rule.raw.obligations === undefined) return readObligations(rule);
  return rule.note({ path: ['obligations'], onKey: true, problem: 'are only for rules whose effect is allow' });
}

function readText(
  rule: MappingReader,
  key: 'when' | 'reason' | 'remedy',
  { wanted, maxLength }: { readonly wanted: string; readonly maxLength: number },
): string | undefined {
  const value = rule.raw[key];
  if (value === undefined) return undefined;
  if (typeof value === 'string' && value.trim() !== '' && value.length <= maxLength) return value;
  return rule.refuse(key, `must be ${wanted}; this is ${kindOf(value)}`);
}
