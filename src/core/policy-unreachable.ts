/** Rules that certainly have no effect, for a warning to their author. */
import { NARROWS, type PolicyDocument, type Rule } from './policy-document.ts';
import { compileGlob, type Glob } from './policy-glob.ts';
import { covers, type PolicyScope } from './policy-scope.ts';

/** An allow that no check ever gets, because a rule without a condition denies all that it matches, to everybody it reaches. */
export type UnreachableAllow = {
  /** Which of the documents, and which of its rules. */
  readonly document: number;
  readonly rule: number;
  readonly deniedBy: { readonly rule: Rule; readonly policy: string };
};

const NARROWING = (Object.keys(NARROWS) as (keyof Rule)[]).filter((key) => NARROWS[key]);

const deniesAllItMatches = (rule: Rule): boolean => rule.effect === 'deny' && NARROWING.every((key) => rule[key] === undefined);

export function unreachableAllows(documents: readonly PolicyDocument[]): readonly UnreachableAllow[] {
  const denials = new Denials(documents);
  return documents.flatMap(({ scope, rules }, document) => rules.flatMap((rule, index) => {
    const deniedBy = rule.effect === 'allow' ? denials.takingAll(rule, scope) : undefined;
    return deniedBy === undefined ? [] : [{ document, rule: index, deniedBy }];
  }));
}

type Denial = { readonly place: number; readonly rule: Rule; readonly policy: string; readonly scope: PolicyScope; readonly actions: readonly Glob[]; readonly resources: readonly Glob[] };

/** Denials by how their patterns begin. Comparing each allow with each deny among ten thousand rules would take seconds of a start. */
class Denials {
  readonly #byAction = new ByHead<ByHead<Denial[]>>();

  constructor(documents: readonly PolicyDocument[]) {
    let place = 0;
    for (const { name, scope, rules } of documents) {
      for (const rule of rules) {
        if (!deniesAllItMatches(rule)) continue;
        this.#add({ place: place++, rule, policy: name, scope, actions: rule.actions.map(compileGlob), resources: rule.resources.map(compileGlob) });
      }
    }
  }

  /** The first rule that denies all that this rule, in a document of this scope, matches. */
  takingAll({ actions, resources }: Rule, scope: PolicyScope): Denial | undefined {
    const reached = narrowestOf(scope);
    const takesAll = (denial: Denial): boolean => covers(denial.scope, reached) && coverAll(denial.actions, actions) && coverAll(denial.resources, resources);
    return this.#byAction.headsOf(actions[0] ?? '')
      .flatMap((byResource) => byResource.headsOf(resources[0] ?? ''))
      .flatMap((denials) => denials.find(takesAll) ?? [])
      .reduce<Denial | undefined>((first, denial) => (first !== undefined && first.place < denial.place ? first : denial), undefined);
  }

  #add(denial: Denial): void {
    const { actions, resources } = denial.rule;
    const head = resources.map(headOf).reduce(sharedHead);
    for (const action of new Set(actions.map(headOf))) this.#byAction.at(action, () => new ByHead()).at(head, () => []).push(denial);
  }
}

/** Values by the text with which something begins. */
class ByHead<T> {
  readonly #values = new Map<string, T>();
  readonly #lengths = new Set<number>();

  at(head: string, make: () => T): T {
    const known = this.#values.get(head);
    if (known !== undefined) return known;
    const made = make();
    this.#values.set(head, made);
    this.#lengths.add(head.length);
    return made;
  }

  /** The values of all heads that this text begins with. */
  headsOf(text: string): readonly T[] {
    const found: T[] = [];
    for (const length of this.#lengths) {
      const value = length > text.length ? undefined : this.#values.get(text.slice(0, length));
      if (value !== undefined) found.push(value);
    }
    return found;
  }
}

/** The text that everything the pattern matches begins with. */
const headOf = (pattern: string): string => pattern.split(/[*?]/, 1)[0] ?? '';

function sharedHead(one: string, other: string): string {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return one.slice(0, length);
}

/** Stands for every agent of the scope: as nothing is named '', a scope that reaches this one reaches all of them. */
const narrowestOf = (scope: PolicyScope) => ({ orgId: '', teamId: '', agentId: '', ...scope });

const coverAll = (globs: readonly Glob[], patterns: readonly string[]): boolean =>
  patterns.every((pattern) => globs.some((glob) => coversPattern(glob, pattern)));

/**
 * True only if the glob matches all that the pattern matches. It does if it matches the pattern itself, read as text: then each
 * wildcard of the pattern lies under one of the glob. The exception is a `?` over a `*`, which stands for any number of characters.
 */
const coversPattern = (glob: Glob, pattern: string): boolean =>
  glob.source === pattern || (glob.matches(pattern) && !(glob.source.includes('?') && pattern.includes('*')));
