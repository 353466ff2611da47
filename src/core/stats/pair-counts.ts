/**
 * Counts by two names, such as a policy and a rule of it. A name of both would have to be made for each count. Those
 * that find no room are counted together.
 */
export class PairCounts {
  /** Boxed: counting on takes one look-up. */
  readonly #counts = new Map<string, Map<string, { count: number }>>();
  readonly #most: number;
  #size = 0;
  #others = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** How many pairs have a count of their own. */
  get size(): number {
    return this.#size;
  }

  get others(): number {
    return this.#others;
  }

  /** Whether the pair is new. */
  add(first: string, second: string, mayGrow: boolean): boolean {
    const ofFirst = this.#counts.get(first);
    const known = ofFirst?.get(second);
    if (known !== undefined) {
      known.count += 1;
      return false;
    }
    if (!mayGrow || this.#size >= this.#most) {
      this.#others += 1;
      return false;
    }
    this.#size += 1;
    if (ofFirst === undefined) this.#counts.set(first, new Map([[second, { count: 1 }]]));
    else ofFirst.set(second, { count: 1 });
    return true;
  }

  *entries(): Iterable<readonly [first: string, second: string, count: number]> {
    for (const [first, ofFirst] of this.#counts)
      for (const [second, { count }] of ofFirst) yield [first, second, count];
  }
}
