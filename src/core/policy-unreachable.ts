/** Rules that can be seen to do nothing, for a warning to their author. Only what is certain is told. */
import type { PolicyDocument, Rule } from './policy-document.ts';
import { compileGlob, type Glob } from './policy-glob.ts';
import { covers, type PolicyScope } from './policy-scope.ts';

/** An allow that no check ever gets, because a rule without a condition denies all that it matches, to everybody it reaches. */
export type UnreachableAllow = {
  /** Which of the documents, and which of its rules. */
  readonly document: number;
  readonly rule: number;
  readonly deniedBy: { readonly rule: Rule; readonly policy: string };
};

type Denial = { readonly rule: Rule; readonly policy: string; readonly scope: PolicyScope; readonly actions: readonly Glob[]; readonly resources: readonly Glob[] };

export function unreachableAllows(documents: readonly PolicyDocument[]): readonly UnreachableAllow[] {
  const denials = documents.flatMap(({ name, scope, rules }) => rules.filter(({ effect, when }) => effect === 'deny' && when === undefined)
    .map((rule): Denial => ({ rule, policy: name, scope, actions: rule.actions.map(compileGlob), resources: rule.resources.map(compileGlob) })));
  return documents.flatMap(({ scope, rules }, document) => {
    const reaching = denials.filter((denial) => covers(denial.scope, narrowestOf(scope)));
    return rules.flatMap((rule, index) => {
      if (rule.effect !== 'allow') return [];
      const deniedBy = reaching.find(({ actions, resources }) => coverAll(actions, rule.actions) && coverAll(resources, rule.resources));
      return deniedBy === undefined ? [] : [{ document, rule: index, deniedBy }];
    });
  });
}

/** Somebody whom a scope reaches only if it reaches everybody that this one does. No tier has the name ''. */
const narrowestOf = (scope: PolicyScope) => ({ orgId: '', teamId: '', agentId: '', ...scope });

const coverAll = (globs: readonly Glob[], patterns: readonly string[]): boolean =>
  patterns.every((pattern) => globs.some((glob) => coversPattern(glob, pattern)));

/**
 * True only if the glob matches all that the pattern does. It does when it matches the pattern as a text: what stands for
 * other characters there was taken in by a wildcard here. Only `?` may not take in a `*`, which is any number of them.
 */
const coversPattern = (glob: Glob, pattern: string): boolean =>
  glob.source === pattern || (glob.matches(pattern) && !(glob.source.includes('?') && pattern.includes('*')));
