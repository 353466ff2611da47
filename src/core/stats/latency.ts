/** How long checks took, in a ring of spans of one length: made of the histogram that grows since the start. */

/** In milliseconds, at most; null: nothing was measured. */
export type Percentiles = { readonly p50: number | null; readonly p95: number | null; readonly p99: number | null };

export class LatencyRing {
  /** The upper bounds of the buckets, in milliseconds; one more bucket has what takes longer. */
  readonly #bounds: readonly number[];
  readonly #width: number;
  readonly #counts: Uint32Array;
  /** The number since the epoch of the span that each place of the ring is about. */
  readonly #spans: Float64Array;

  constructor(bounds: readonly number[], places: number) {
    this.#bounds = bounds;
    this.#width = bounds.length + 1;
    this.#counts = new Uint32Array(places * this.#width);
    this.#spans = new Float64Array(places).fill(-1);
  }

  /** Adds these counts, by bucket, to this span. */
  add(counts: readonly number[], span: number): void {
    const place = span % this.#spans.length;
    if (this.#spans[place] !== span) {
      this.#spans[place] = span;
      this.#counts.fill(0, place * this.#width, (place + 1) * this.#width);
    }
    for (const [bucket, count] of counts.entries())
      if (bucket < this.#width) this.#counts[place * this.#width + bucket]! += count;
  }

  /** The counts of one span, by bucket; empty where nothing was measured. */
  bucketsOf(span: number): readonly number[] {
    const place = span % this.#spans.length;
    return this.#spans[place] === span
      ? [...this.#counts.subarray(place * this.#width, (place + 1) * this.#width)]
      : [];
  }

  /** Percentiles of one span. */
  of(span: number): Percentiles {
    return this.#percentiles(this.bucketsOf(span));
  }

  /** Percentiles of this span and all after it. */
  from(first: number): Percentiles {
    const sum = new Array<number>(this.#width).fill(0);
    for (const span of this.#spans)
      if (span >= first) for (const [bucket, count] of this.bucketsOf(span).entries()) sum[bucket]! += count;
    return this.#percentiles(sum);
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
