import { BUCKET_SECS, type DurationCounts } from './protocol.ts';

const BUCKET_MS = BUCKET_SECS.map((secs) => secs * 1000);

/** Counts how long things took, for a histogram. */
export class Durations {
  readonly #counts = new Array<number>(BUCKET_MS.length + 1).fill(0);
  #sumMs = 0;

  add(ms: number): void {
    let bucket = 0;
    while (bucket < BUCKET_MS.length && ms > BUCKET_MS[bucket]!) bucket += 1;
    this.#counts[bucket]! += 1;
    this.#sumMs += ms;
  }

  get totals(): DurationCounts { return { counts: this.#counts, sumMs: this.#sumMs }; }
}

/** `counts` may be empty: nothing was counted. */
export const sumOfDurations = (all: readonly DurationCounts[]): DurationCounts => ({
  counts: Array.from({ length: BUCKET_MS.length + 1 }, (_, bucket) => all.reduce((sum, { counts }) => sum + (counts[bucket] ?? 0), 0)),
  sumMs: all.reduce((sum, { sumMs }) => sum + sumMs, 0),
});
