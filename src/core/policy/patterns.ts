/**
 * Finds the patterns that may match a text without trying each: by the literal text that everything they match begins
 * with, ends with, or contains. The candidates are still to be tried.
 */
import type { Steps } from '../base/steps.ts';
import {
  type FindLiterals,
  FoundKeys,
  findingBeginnings,
  findingContained,
  findingEndings,
  type Literal,
} from './literals.ts';

/** Texts longer than this are looked for by so many of their characters: fewer would be enough in nearly all cases. */
const MAX_LITERAL_LENGTH = 64;
/** The key of patterns without any literal text, such as `*`. */
export const ANY = 0;

/** The place of a pattern's literal text in what it matches. `whole`: the pattern has no wildcard. */
type Where = 'whole' | 'beginning' | 'ending' | 'within';
type Anchor = { readonly where: Where; readonly text: string; readonly id: string };

const anchor = (where: Where, text: string): Anchor => ({ where, text, id: `${where} ${text}` });

/** The literal texts by which a pattern can be found, any one of them. */
function anchorsOf(pattern: string): readonly Anchor[] {
  const parts = pattern.split(WILDCARDS);
  if (parts.length === 1) return [anchor('whole', pattern)];
  const last = parts.length - 1;
  const anchors: Anchor[] = [];
  for (const [at, part] of parts.entries()) {
    if (part === '') continue;
    if (at === last) anchors.push(anchor('ending', part.slice(-MAX_LITERAL_LENGTH)));
    else anchors.push(anchor(at === 0 ? 'beginning' : 'within', part.slice(0, MAX_LITERAL_LENGTH)));
  }
  return anchors;
}

const WILDCARDS = /[*?]+/;

/** The patterns of many rules; each pattern has a key, which others may share. */
export class PatternTable {
  readonly #keys: ReadonlyMap<string, number>;
  readonly #whole: ReadonlyMap<string, number>;
  readonly #finders: readonly FindLiterals[];
  readonly #found = new FoundKeys();

  private constructor(
    keys: ReadonlyMap<string, number>,
    whole: ReadonlyMap<string, number>,
    finders: readonly FindLiterals[],
  ) {
    this.#keys = keys;
    this.#whole = whole;
    this.#finders = finders;
  }

  /** Builds a table of all these patterns, one list per step. */
  static *building(lists: readonly (readonly string[])[]): Steps<PatternTable> {
    const { anchors, uses } = yield* surveying(lists);
    const keys = new Map<string, number>();
    const keyOfAnchor = new Map<string, number>();
    const literals: Record<Where, Literal[]> = { whole: [], beginning: [], ending: [], within: [] };
    for (const [pattern, choice] of anchors) {
      const rarest = rarestOf(choice, uses);
      const known = rarest === undefined ? ANY : keyOfAnchor.get(rarest.id);
      const key = known ?? keyOfAnchor.size + 1;
      keys.set(pattern, key);
      if (rarest !== undefined && known === undefined) {
        keyOfAnchor.set(rarest.id, key);
        literals[rarest.where].push({ text: rarest.text, key });
      }
      yield;
    }
    const whole = new Map(literals.whole.map(({ text, key }) => [text, key]));
    const finders = [
      yield* findingBeginnings(literals.beginning),
      yield* findingEndings(literals.ending),
      yield* findingContained(literals.within),
    ];
    return new PatternTable(
      keys,
      whole,
      finders.filter((finder) => finder !== undefined),
    );
  }

  /** The keys of the patterns, each once. */
  keysOf(patterns: readonly string[]): readonly number[] {
    return [...new Set(patterns.map((pattern) => this.#keys.get(pattern)!))];
  }

  /** The keys of all patterns that may match the text, each once. They are only valid until the next call. */
  find(text: string): Readonly<FoundKeys> {
    const found = this.#found;
    found.count = 0;
    found.add(ANY);
    // To look in a map takes the hash of the text first.
    const whole = this.#whole.size === 0 ? undefined : this.#whole.get(text);
    if (whole !== undefined) found.add(whole);
    for (const find of this.#finders) find(text, found);
    return found;
  }
}

type Survey = {
  /** The anchors of each pattern. */
  readonly anchors: ReadonlyMap<string, readonly Anchor[]>;
  /** How many patterns have an anchor, by its id. */
  readonly uses: ReadonlyMap<string, number>;
};

function* surveying(lists: readonly (readonly string[])[]): Steps<Survey> {
  const anchors = new Map<string, readonly Anchor[]>();
  const uses = new Map<string, number>();
  for (const patterns of lists) {
    for (const pattern of patterns) {
      if (anchors.has(pattern)) continue;
      const found = anchorsOf(pattern);
      anchors.set(pattern, found);
      for (const { id } of found) uses.set(id, (uses.get(id) ?? 0) + 1);
    }
    yield;
  }
  return { anchors, uses };
}

/** The one that the fewest patterns have; of several, the longest: that of most effect. */
function rarestOf(choice: readonly Anchor[], uses: Survey['uses']): Anchor | undefined {
  let best = choice[0];
  let fewest = Infinity;
  for (const each of choice) {
    const count = uses.get(each.id) ?? 0;
    if (count > fewest || (count === fewest && each.text.length <= best!.text.length)) continue;
    best = each;
    fewest = count;
  }
  return best;
}
