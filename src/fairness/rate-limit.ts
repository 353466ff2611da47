import { dropFirst } from '../core/base/lists.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { Clock } from '../ports/ports.ts';

const PAUSE_MS = 60_000;

/**
 * Throttles a log line that anybody can cause as often as they like: it is written at once, and then not again for a
 * minute. The next line says how many were left out, as `more`.
 */
export function throttle(clock: Clock, write: (fields: object) => void): (fields?: object) => void {
  let writtenAtMs = -Infinity;
  let more = 0;
  return (fields = {}) => {
    const nowMs = clock.nowMs();
    if (nowMs >= writtenAtMs && nowMs - writtenAtMs < PAUSE_MS) {
      more += 1;
      return;
    }
    write(more === 0 ? fields : { ...fields, more });
    writtenAtMs = nowMs;
    more = 0;
  };
}

type Bucket = { tokens: number; filledAtMs: number };

/** Callers kept at once. Beyond this, the longest idle are dropped: their buckets are full again anyway. */
const MAX_BUCKETS = 100_000;
const WINDOW_MS = 60_000;

/**
 * A token bucket for each caller: a minute's worth may come at once, then as many as trickle in (docs/spec.md, Rate
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
      bucket.tokens + (Math.max(0, nowMs - bucket.filledAtMs) * this.#perMinute) / WINDOW_MS,
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
    return this.#refuse(bucket.tokens);
  }

  /** Takes back one call that was counted. */
  giveBack(caller: string): void {
    const bucket = this.#buckets.get(caller);
    if (bucket !== undefined) bucket.tokens = Math.min(this.#perMinute, bucket.tokens + 1);
  }

  #refuse(tokens: number): Result<never, Fault> {
    this.#refused += 1;
    const retryAfterSecs = Math.ceil(((1 - tokens) * WINDOW_MS) / this.#perMinute / 1000);
    return fail({ kind: 'rate_limited', retryAfterSecs, limit: this.#perMinute });
  }
}
