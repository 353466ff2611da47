/**
 * A few numbers for each pair of names, such as a policy and a rule of it. A name of both would have to be made for
 * each count. Pairs that find no room share one row of numbers.
 */
export class PairTallies {
  readonly #tallies = new Map<string, Map<string, number[]>>();
  readonly #most: number;
  readonly #width: number;
  #size = 0;
  /** The numbers of all pairs without a row of their own. */
  readonly others: number[];

  constructor(most: number, width: number) {
    this.#most = most;
    this.#width = width;
    this.others = new Array<number>(width).fill(0);
  }

  /** How many pairs have a row of their own. */
  get size(): number {
    return this.#size;
  }

  /** The numbers of this pair, to be counted on; a new pair has zeros, or no row of its own. */
  of(first: string, second: string, mayGrow: boolean): number[] {
    const ofFirst = this.#tallies.get(first);
    const known = ofFirst?.get(second);
    if (known !== undefined) return known;
    if (!mayGrow || this.#size >= this.#most) return this.others;
    this.#size += 1;
    const fresh = new Array<number>(this.#width).fill(0);
    if (ofFirst === undefined) this.#tallies.set(first, new Map([[second, fresh]]));
    else ofFirst.set(second, fresh);
    return fresh;
  }

  /** Adds what was tallied elsewhere. */
  add(from: PairTallies): void {
    addTo(this.others, from.others);
    for (const [first, second, numbers] of from.entries()) addTo(this.of(first, second, true), numbers);
  }

  *entries(): Iterable<readonly [first: string, second: string, numbers: readonly number[]]> {
    for (const [first, ofFirst] of this.#tallies)
      for (const [second, numbers] of ofFirst) yield [first, second, numbers];
  }
}

export function addTo(sum: number[], numbers: readonly number[]): void {
  for (const [at, number] of numbers.entries()) sum[at] = (sum[at] ?? 0) + number;
}
