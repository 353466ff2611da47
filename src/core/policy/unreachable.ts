/** Rules that certainly have no effect, for a warning to their author. */
import { NARROWS, type PolicyDocument, type Rule } from './document.ts';
import { compileGlob, type Glob } from './glob.ts';
import { covers, type PolicyScope } from './scope.ts';

/**
 * An allow, or a requirement of an approval, that no check ever gets, because a rule without a condition denies all
 * that it matches, to everybody it reaches.
 */
export type UnreachableAllow = {
  /** Which of the documents, and which of its rules. */
  readonly document: number;
  readonly rule: number;
  readonly deniedBy: { readonly rule: Rule; readonly policy: string };
};

const NARROWING = (Object.keys(NARROWS) as (keyof Rule)[]).filter((key) => NARROWS[key]);

const deniesAllItMatches = (rule: Rule): boolean =>
  rule.effect === 'deny' && NARROWING.every((key) => rule[key] === undefined);

export function unreachableAllows(documents: readonly PolicyDocument[]): readonly UnreachableAllow[] {
  const denials = new Denials(documents);
  return documents.flatMap(({ scope, rules }, document) =>
    rules.flatMap((rule, index) => {
      const deniedBy = rule.effect !== 'deny' ? denials.takingAll(rule, scope) : undefined;
      return deniedBy === undefined ? [] : [{ document, rule: index, deniedBy }];
    }),
  );
}

type Denial = {
  readonly place: number;
  readonly rule: Rule;
  readonly policy: string;
  readonly scope: PolicyScope;
  readonly actions: readonly Glob[];
  readonly resources: readonly Glob[];
};

/**
 * Denials by how their patterns begin and end. Comparing each allow with each deny among ten thousand rules would take
 * seconds of a start.
 */
class Denials {
  readonly #byAction = new ByEnds<ByEnds<Denial[]>>();

  constructor(documents: readonly PolicyDocument[]) {
    let place = 0;
    for (const { name, scope, rules } of documents) {
      for (const rule of rules) {
        if (!deniesAllItMatches(rule)) continue;
        this.#add({
          place: place++,
          rule,
          policy: name,
          scope,
          actions: rule.actions.map(compileGlob),
          resources: rule.resources.map(compileGlob),
        });
      }
    }
  }

  /** The first rule that denies all that this rule, in a document of this scope, matches. */
  takingAll({ actions, resources }: Rule, scope: PolicyScope): Denial | undefined {
    const reached = narrowestOf(scope);
    const takesAll = (denial: Denial): boolean =>
      covers(denial.scope, reached) && coverAll(denial.actions, actions) && coverAll(denial.resources, resources);
    return this.#byAction
      .around(actions[0] ?? '')
      .flatMap((byResource) => byResource.around(resources[0] ?? ''))
      .flatMap((denials) => denials.find(takesAll) ?? [])
      .reduce<Denial | undefined>(
        (first, denial) => (first !== undefined && first.place < denial.place ? first : denial),
        undefined,
      );
  }

  #add(denial: Denial): void {
    const { actions, resources } = denial.rule;
    const ends = resources.map(endsOf).reduce(sharedEnds);
    for (const action of distinct(actions.map(endsOf)))
      this.#byAction
        .at(action, () => new ByEnds())
        .at(ends, () => [])
        .push(denial);
  }
}

/** The texts that everything which a pattern matches begins and ends with. */
type Ends = { readonly head: string; readonly tail: string };

/** Values by the texts with which something begins and ends. */
class ByEnds<T> {
  readonly #values = new Map<string, T>();
  readonly #lengths = new Map<string, readonly [head: number, tail: number]>();

  at({ head, tail }: Ends, make: () => T): T {
    const key = keyOf(head, tail);
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    const made = make();
    this.#values.set(key, made);
    this.#lengths.set(`${head.length} ${tail.length}`, [head.length, tail.length]);
    return made;
  }

  /** The values of all ends that this text begins and ends with. */
  around(text: string): readonly T[] {
    const found: T[] = [];
    for (const [head, tail] of this.#lengths.values()) {
      const value =
        Math.max(head, tail) > text.length
          ? undefined
          : this.#values.get(keyOf(text.slice(0, head), text.slice(text.length - tail)));
      if (value !== undefined) found.push(value);
    }
    return found;
  }
}

/** No two pairs have the same key: the length of the first says where it ends. */
const keyOf = (head: string, tail: string): string => `${head.length} ${head}${tail}`;

const distinct = (ends: readonly Ends[]): Iterable<Ends> =>
  new Map(ends.map((each) => [keyOf(each.head, each.tail), each])).values();

function endsOf(pattern: string): Ends {
  const literals = pattern.split(/[*?]/);
  return { head: literals[0] ?? '', tail: literals.at(-1) ?? '' };
}

const sharedEnds = (one: Ends, other: Ends): Ends => ({
  head: one.head.slice(
    0,
    sharedLength(one.head.length, (at) => one.head[at] === other.head[at]),
  ),
  tail: one.tail.slice(
    one.tail.length - sharedLength(one.tail.length, (at) => one.tail.at(-1 - at) === other.tail.at(-1 - at)),
  ),
});

function sharedLength(most: number, isSame: (at: number) => boolean): number {
  let length = 0;
  while (length < most && isSame(length)) length += 1;
  return length;
}

/** Stands for every agent of the scope: as nothing is named '', a scope that reaches this one reaches all of them. */
const narrowestOf = (scope: PolicyScope) => ({ orgId: '', teamId: '', agentId: '', ...scope });

const coverAll = (globs: readonly Glob[], patterns: readonly string[]): boolean =>
  patterns.every((pattern) => globs.some((glob) => coversPattern(glob, pattern)));

/**
 * True only if the glob matches all that the pattern matches. It does if it matches the pattern itself, read as text:
 * then each wildcard of the pattern lies under one of the glob. The exception is a `?` over a `*`, which stands for any
 * number of characters.
 */
const coversPattern = (glob: Glob, pattern: string): boolean =>
  glob.source === pattern || (glob.matches(pattern) && !(glob.source.includes('?') && pattern.includes('*')));
