/** The policies of the gateway, compiled once and asked on every check (docs/spec.md, Policy). */

import type { DocumentProblem } from '../base/mapping.ts';
import { assert, fail, ok, type Result } from '../base/result.ts';
import { finish, type Steps } from '../base/steps.ts';
import { withScoped } from '../budget/caps.ts';
import { type BudgetConfig, parseBudgetConfig, parseScopedLimits, type ScopedLimits, TIERS } from '../budget/config.ts';
import type { Obligation } from '../check/obligations.ts';
import { type CheckSubject, ConditionVariables } from '../condition/condition.ts';
import { type CompiledLimit, compileLimits } from '../limits/compiled.ts';
import type { ApprovalTerms } from './approval-terms.ts';
import type { PolicyDocument } from './document.ts';
import type { RuleEffect } from './effect.ts';
import { type Explanation, explainingCheck } from './explain.ts';
import { ScopeIndex } from './index.ts';
import {
  type CompiledDocument,
  type CompiledRule,
  compileRule,
  covered,
  noPolicyAllows,
  type PolicyDecision,
  verdictOf,
} from './rule.ts';
import { formatPolicyScope, pathOf } from './scope.ts';

/** A fingerprint to tell contents apart: 16 hexadecimal digits (FNV-1a, 64 bits). Not safe against an adversary. */
function hashText(text: string): string {
  // 64 bits as four 16-bit limbs: the prime is 2^40 + 0x1b3, so a product is a few small ones and a shift.
  let [a, b, c, d] = [0x2325, 0x8422, 0x9ce4, 0xcbf2]; // the least significant first
  for (let i = 0; i < text.length; i += 1) {
    a ^= text.charCodeAt(i);
    const low = a * 0x1b3;
    const second = b * 0x1b3 + (low >>> 16);
    const third = c * 0x1b3 + (a << 8) + (second >>> 16);
    const fourth = d * 0x1b3 + (b << 8) + (third >>> 16);
    [a, b, c, d] = [low & 0xffff, second & 0xffff, third & 0xffff, fourth & 0xffff];
  }
  return [d, c, b, a].map((limb) => limb.toString(16).padStart(4, '0')).join('');
}

/** A mistake in a set of documents: which document, where in it, what. */
export type PolicyProblem = DocumentProblem & { readonly document: number };

export type DocumentSummary = {
  readonly name: string;
  readonly scope: string;
  readonly ruleCount: number;
  readonly source: string;
};

/** A rule as it was written, and its document. */
export type RuleSummary = {
  readonly policy: string;
  readonly scope: string;
  readonly source: string;
  readonly id: string;
  readonly effect: RuleEffect;
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  readonly when: string | undefined;
  readonly reason: string | undefined;
  readonly remedy: string | undefined;
  readonly approval: ApprovalTerms | undefined;
  readonly obligations: readonly Obligation[] | undefined;
};

/** `orgId`: as if the documents of all other orgs were not there. `policy`: only the document of that name. */
export type RuleFilter = { readonly orgId: string | undefined; readonly policy: string | undefined };

/** The answer of `GET /api/v1/policies`. */
export type PolicySummary = {
  /** Changes when and only when what the documents say changes; 16 hexadecimal digits. */
  readonly version: string;
  readonly documents: readonly DocumentSummary[];
};

/**
 * Answers checks. Every document whose scope reaches the agent is considered, and the order of documents and rules
 * never changes whether a check is allowed:
 * - a rule that denies, in any tier, decides; so does a rule whose condition fails to evaluate, because what it would
 * have
 *   said is unknown;
 * - else a rule that requires an approval, in any tier, decides; of several, the one that takes the most approvers, and
 *   of those the first in the order of the cascade, so that no narrower document weakens a broader one;
 * - else a rule that allows, in any tier, decides; of several, the one of the most specific tier is reported, and
 * within a
 *   tier the first as written;
 * - else the check is denied.
 *
 * The obligations of all matching rules that allow come with the decision, unless it is a deny.
 */
export class PolicySet {
  /** From the one global document that has a `budget:` section. */
  readonly budget: BudgetConfig | undefined;
  /** Limits of all documents, in the order of the cascade. */
  readonly limits: readonly CompiledLimit[];
  readonly version: string;
  /** In the order of the cascade. */
  readonly documents: readonly CompiledDocument[];
  readonly #index: ScopeIndex;
  readonly #variables = new ConditionVariables();

  /** Only `compilePolicies` calls this: it has checked the documents, and put them in the order of the cascade. */
  constructor(documents: readonly CompiledDocument[], index: ScopeIndex, budget: BudgetConfig | undefined) {
    this.budget = budget;
    this.limits = documents.flatMap(({ document }) => compileLimits(document));
    this.version = versionOf(documents);
    this.documents = documents;
    this.#index = index;
  }

  decide(subject: CheckSubject): PolicyDecision {
    const { action, resource } = subject;
    let filled = false;
    let asking: CompiledRule | undefined;
    let allowing: CompiledRule | undefined;
    let obliging: CompiledRule[] | undefined;
    for (const { rules, mayMatch } of this.#index.reaching(subject.agent)) {
      const places = mayMatch?.(action, resource);
      // An index, and no iterator: this is most of what a check does here.
      for (let nth = 0; nth < (places ?? rules).length; nth += 1) {
        const compiled = rules[places === undefined ? nth : places[nth]!];
        assert(compiled !== undefined, 'each place has a rule');
        if (!covered(compiled.actions, action) || !covered(compiled.resources, resource)) continue;
        if (compiled.rule.when !== undefined && !filled) {
          this.#variables.fill(subject);
          filled = true;
        }
        const verdict = verdictOf(compiled, this.#variables);
        if (verdict === undefined) continue;
        if (verdict.kind === 'deny') return verdict;
        if (verdict.kind === 'require_approval') {
          if (asking === undefined || minOf(compiled) > minOf(asking)) asking = compiled;
          continue;
        }
        if (compiled.document.scope.tier !== allowing?.document.scope.tier) allowing = compiled;
        if (compiled.rule.obligations !== undefined) obliging = [...(obliging ?? []), compiled];
      }
    }
    const decision = (asking ?? allowing)?.decision ?? noPolicyAllows(subject);
    return obliging === undefined ? decision : withObligations(decision, obligationsOf(obliging));
  }

  /**
   * The decision with every document and rule that was looked at, and why each did or did not decide. Slower than
   * {@link decide}.
   */
  explain(subject: CheckSubject): Explanation {
    return finish(this.explaining(subject));
  }

  /** The same, one rule per step. Other checks may be decided in between. */
  explaining(subject: CheckSubject): Steps<Explanation> {
    return explainingCheck(this.documents, subject, this.decide(subject));
  }

  /** With `orgId`, as if the documents of all other orgs were not there. */
  summary(orgId?: string): PolicySummary {
    const documents = this.#seenBy(orgId);
    return {
      version: orgId === undefined ? this.version : versionOf(documents),
      documents: documents.map(({ document: { name, scope, rules, source } }) => ({
        name,
        scope: formatPolicyScope(scope),
        ruleCount: rules.length,
        source,
      })),
    };
  }

  /** In the order in which a check goes through them, from the `from`th on, at most `most`. */
  rules({ orgId, policy }: RuleFilter, from: number, most: number): readonly RuleSummary[] {
    const found: RuleSummary[] = [];
    let before = from;
    for (const {
      document: { name, scope, rules, source },
    } of this.#seenBy(orgId)) {
      if (policy !== undefined && name !== policy) continue;
      for (const { id, effect, actions, resources, when, reason, remedy, approval, obligations } of rules.slice(
        before,
        before + most - found.length,
      )) {
        found.push({
          policy: name,
          scope: formatPolicyScope(scope),
          source,
          id,
          effect,
          actions,
          resources,
          when: when?.source,
          reason,
          remedy,
          approval,
          obligations,
        });
      }
      before = Math.max(0, before - rules.length);
      if (found.length === most) break;
    }
    return found;
  }

  #seenBy(orgId: string | undefined): readonly CompiledDocument[] {
    return orgId === undefined
      ? this.documents
      : this.documents.filter(({ document: { scope } }) => scope.tier === 'global' || scope.orgId === orgId);
  }
}

/** Field by field: of a spread, Node.js 20 would make an object with a hidden class of its own (docs/style.md, 3). */
const withObligations = (
  { kind, reason, policy, ruleId, cause, remedy, approval }: PolicyDecision,
  obligations: readonly Obligation[],
): PolicyDecision => ({ kind, reason, policy, ruleId, cause, remedy, approval, obligations });

/**
 * If two obligations have the same id, the one of the narrower scope wins, in its own place; within a scope the first
 * as written.
 */
function obligationsOf(rules: readonly CompiledRule[]): readonly Obligation[] {
  const [first, ...others] = rules;
  assert(first?.rule.obligations !== undefined, 'a rule that obliges has obligations');
  // The very list, which a batch of answers then has once.
  if (others.length === 0) return first.rule.obligations;
  const byId = new Map<string, { readonly obligation: Obligation; readonly tier: string }>();
  for (const { rule, document } of rules) {
    const { tier } = document.scope;
    for (const obligation of rule.obligations ?? []) {
      if (byId.get(obligation.id)?.tier === tier) continue;
      byId.delete(obligation.id);
      byId.set(obligation.id, { obligation, tier });
    }
  }
  return [...byId.values()].map(({ obligation }) => obligation);
}

const minOf = ({ rule }: CompiledRule): number => rule.approval?.min ?? 0;

const versionOf = (documents: readonly CompiledDocument[]): string =>
  hashText(documents.map(({ version }) => version).join(' '));

/** Global documents first, then those of orgs, teams and agents; as given within a tier. */
const inCascadeOrder = (documents: readonly PolicyDocument[]): readonly PolicyDocument[] =>
  TIERS.flatMap((tier) => documents.filter(({ scope }) => scope.tier === tier));

/** Takes documents in which `parsePolicyDocument` found no problem. An empty set is valid, and denies everything. */
export const compilePolicies = (documents: readonly PolicyDocument[]): Result<PolicySet, readonly PolicyProblem[]> =>
  finish(compilingPolicies(documents));

/** The same, one rule per step. */
export function* compilingPolicies(
  documents: readonly PolicyDocument[],
): Steps<Result<PolicySet, readonly PolicyProblem[]>> {
  const problems = checkTogether(documents);
  if (problems.length > 0) return fail(problems);
  const compiled: CompiledDocument[] = [];
  for (const document of inCascadeOrder(documents)) compiled.push(yield* compilingDocument(document));
  return ok(new PolicySet(compiled, yield* ScopeIndex.building(compiled), budgetOf(documents)));
}

/** Hashes rule by rule, too: thousands of rules as one text would be one long step. */
function* compilingDocument(document: PolicyDocument): Steps<CompiledDocument> {
  const rules: CompiledRule[] = [];
  const hashes: string[] = [];
  for (const rule of document.rules) {
    rules.push(compileRule(rule, document));
    hashes.push(hashText(JSON.stringify(rule)));
    yield;
  }
  const { name, scope, limits } = document;
  // Without limits the text, and so the version, is that of releases that had none.
  const says = { name, scope, budget: budgetOf([document]), hashes, ...(limits.length > 0 && { limits }) };
  return { document, rules, version: hashText(JSON.stringify(says)) };
}

function budgetOf(documents: readonly PolicyDocument[]): BudgetConfig | undefined {
  let global: BudgetConfig | undefined;
  const scoped: ScopedLimits[] = [];
  for (const { scope, budget } of documents) {
    if (budget === undefined) continue;
    if (scope.tier === 'global') global = checked(parseBudgetConfig(budget));
    else scoped.push(checked(parseScopedLimits(budget, scope.tier, pathOf(scope))));
  }
  return withScoped(global, scoped);
}

function checked<T>(parsed: Result<T, unknown>): T {
  assert(parsed.ok, 'budgets were checked above');
  return parsed.value;
}

/** Mistakes across documents: duplicate names, and misplaced budgets. */
export function checkTogether(documents: readonly (PolicyDocument | undefined)[]): readonly PolicyProblem[] {
  const problems: PolicyProblem[] = [];
  const named = new Map<string, PolicyDocument>();
  const budgeted = new Map<string, PolicyDocument>();
  documents.forEach((policy, document) => {
    if (policy === undefined) return;
    const namesake = named.get(policy.name);
    if (namesake === undefined) named.set(policy.name, policy);
    else
      problems.push({
        document,
        path: ['name'],
        problem: `${policy.name} is also the name of a policy in ${namesake.source}; names must be unique`,
      });
    if (policy.budget === undefined) return;
    const scope = formatPolicyScope(policy.scope);
    problems.push(...checkBudget(policy, budgeted.get(scope)).map((problem) => ({ ...problem, document })));
    if (!budgeted.has(scope)) budgeted.set(scope, policy);
  });
  return problems;
}

function checkBudget({ scope, budget }: PolicyDocument, other: PolicyDocument | undefined): readonly DocumentProblem[] {
  if (other !== undefined)
    return [
      {
        path: ['budget'],
        onKey: true,
        problem: `policy ${other.name} in ${other.source} already has a budget; only one is allowed for scope ${formatPolicyScope(scope)} in all documents together`,
      },
    ];
  const parsed =
    scope.tier === 'global' ? parseBudgetConfig(budget) : parseScopedLimits(budget, scope.tier, pathOf(scope));
  return parsed.ok ? [] : parsed.fault.map((fault) => ({ ...fault, path: ['budget', ...fault.path] }));
}
