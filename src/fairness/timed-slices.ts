/** A clock for short times, such as `performance`: its value means nothing, only the difference of two. */
export type Stopwatch = { now(): number };

export type SliceBounds = {
  /** How long a slice should take. */
  readonly aimMs: number;
  /** How many items the first slice may have, and any slice at least and at most. */
  readonly first: number;
  readonly least: number;
  readonly most: number;
};

/**
 * Cuts long work into slices that take about the same time, whatever its items cost and however fast the machine is:
 * each slice is as large as the one before it says. Synchronous work only.
 */
export class TimedSlices {
  readonly #bounds: SliceBounds;
  readonly #stopwatch: Stopwatch;
  #most: number;

  constructor(bounds: SliceBounds, stopwatch: Stopwatch) {
    this.#bounds = bounds;
    this.#stopwatch = stopwatch;
    this.#most = bounds.first;
  }

  /** Does one slice: `work` is given how many items it may take. */
  run<T>(work: (most: number) => T): T {
    const { aimMs, least, most } = this.#bounds;
    const startedMs = this.#stopwatch.now();
    const done = work(this.#most);
    const tookMs = this.#stopwatch.now() - startedMs;
    // At most twice as large: the next items may be dearer than the last.
    const fitting = Math.min((this.#most * aimMs) / tookMs, this.#most * 2);
    this.#most = Math.max(least, Math.min(most, Math.floor(fitting)));
    return done;
  }
}
