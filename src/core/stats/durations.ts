/** How long things took, counted for a histogram. */

/**
 * In seconds: from half a millisecond, where an idle gateway is, to the ten seconds after which most callers have gone.
 */
export const BUCKET_SECS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

/** `counts`: how many took at most each of BUCKET_SECS and more than the one before; last, how many took longer. */
export type DurationCounts = { readonly counts: readonly number[]; readonly sumMs: number };

const BUCKET_MS = BUCKET_SECS.map((secs) => secs * 1000);

export class Durations {
  readonly #counts = new Array<number>(BUCKET_MS.length + 1).fill(0);
  #sumMs = 0;

  add(ms: number): void {
    let bucket = 0;
    while (bucket < BUCKET_MS.length && ms > BUCKET_MS[bucket]!) bucket += 1;
    this.#counts[bucket]! += 1;
    this.#sumMs += ms;
  }

  get totals(): DurationCounts {
    return { counts: this.#counts, sumMs: this.#sumMs };
  }
}

/** `counts` may be empty: nothing was counted. */
export const sumOfDurations = (all: readonly DurationCounts[]): DurationCounts => ({
  counts: Array.from({ length: BUCKET_MS.length + 1 }, (_, bucket) =>
    all.reduce((sum, { counts }) => sum + (counts[bucket] ?? 0), 0),
  ),
  sumMs: all.reduce((sum, { sumMs }) => sum + sumMs, 0),
});
