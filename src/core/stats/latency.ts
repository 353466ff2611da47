/** How long checks took, minute by minute, for a day: made of the histogram that grows since the start. */

const MINUTES = 1_440;

/** In milliseconds, at most; null: nothing was measured. */
export type Percentiles = { readonly p50: number | null; readonly p95: number | null; readonly p99: number | null };

export class LatencyDay {
  /** The upper bounds of the buckets, in milliseconds; one more bucket has what takes longer. */
  readonly #bounds: readonly number[];
  readonly #counts: Uint32Array;
  /** The minute that each place of the ring is about. */
  readonly #minutes = new Float64Array(MINUTES).fill(-1);
  #known: readonly number[] = [];

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Uint32Array(MINUTES * (bounds.length + 1));
  }

  /** Takes what has been counted since the start, by bucket. What is new belongs to this minute. */
  note(counts: readonly number[], minute: number): void {
    const place = minute % MINUTES;
    const width = this.#bounds.length + 1;
    if (this.#minutes[place] !== minute) {
      this.#minutes[place] = minute;
      this.#counts.fill(0, place * width, (place + 1) * width);
    }
    counts.forEach((count, bucket) => {
      this.#counts[place * width + bucket]! += Math.max(0, count - (this.#known[bucket] ?? 0));
    });
    this.#known = [...counts];
  }

  /** Of one minute. */
  ofMinute(minute: number): Percentiles {
    return this.#percentiles(this.#minutes[minute % MINUTES] === minute ? this.#bucketsOf(minute % MINUTES) : []);
  }

  /** Of all minutes after this one. */
  since(minute: number): Percentiles {
    const sum = new Array<number>(this.#bounds.length + 1).fill(0);
    this.#minutes.forEach((of, place) => {
      if (of > minute) this.#bucketsOf(place).forEach((count, bucket) => (sum[bucket]! += count));
    });
    return this.#percentiles(sum);
  }

  #bucketsOf(place: number): readonly number[] {
    const width = this.#bounds.length + 1;
    return [...this.#counts.subarray(place * width, (place + 1) * width)];
  }

  /** The bound of the bucket that the percentile is in; of the last bucket, the greatest bound. */
  #percentiles(buckets: readonly number[]): Percentiles {
    const all = buckets.reduce((sum, count) => sum + count, 0);
    const at = (part: number): number | null => {
      if (all === 0) return null;
      let seen = 0;
      const bucket = buckets.findIndex((count) => (seen += count) >= part * all);
      return this.#bounds[bucket] ?? this.#bounds.at(-1) ?? null;
    };
    return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
  }
}
