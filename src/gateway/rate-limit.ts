import { dropFirst } from '../core/drop-first.ts';
import type { Fault } from '../core/fault.ts';
import { fail, ok, type Result } from '../core/result.ts';

type Bucket = { tokens: number; filledAtMs: number };

/**
 * Callers remembered at once. Beyond this, those idle for longest are forgotten: their buckets have filled up again
 * anyway.
 */
const MAX_BUCKETS = 100_000;
const WINDOW_MS = 60_000;

/**
 * A token bucket for each caller: a minute's worth may come at once, then as many as trickle in (contract: Rate
 * limits).
 */
export class RateLimiter {
  readonly #perMinute: number;
  #refused = 0;
  readonly #buckets = new Map<string, Bucket>();

  /** `perMinute` 0 limits nothing. */
  constructor(perMinute: number) {
    this.#perMinute = perMinute;
  }

  /** How many calls it has refused. */
  get refused(): number {
    return this.#refused;
  }

  /** Counts one call. Fault: `rate_limited`, with the seconds until the next call is accepted. */
  take(caller: string, nowMs: number): Result<void, Fault> {
    if (this.#perMinute === 0) return ok(undefined);
    const bucket = this.#buckets.get(caller) ?? { tokens: this.#perMinute, filledAtMs: nowMs };
    bucket.tokens = Math.min(
      this.#perMinute,
      bucket.tokens + ((nowMs - bucket.filledAtMs) * this.#perMinute) / WINDOW_MS,
    );
    bucket.filledAtMs = nowMs;
    // Moved to the end, so that the first in the map is the one that was idle longest.
    this.#buckets.delete(caller);
    this.#buckets.set(caller, bucket);
    if (this.#buckets.size > MAX_BUCKETS) dropFirst(this.#buckets);
    if (bucket.tokens >= 1) {
      bucket.tokens -= 1;
      return ok(undefined);
    }
    this.#refused += 1;
    const retryAfterSecs = Math.ceil(((1 - bucket.tokens) * WINDOW_MS) / this.#perMinute / 1000);
    return fail({ kind: 'rate_limited', retryAfterSecs, limit: this.#perMinute });
  }
}
