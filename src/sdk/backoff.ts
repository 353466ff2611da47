/** Waiting between attempts. */
import { Waiters } from './waiters.ts';

export type Backoff = { readonly baseMs: number; readonly maxMs: number };

/**
 * Exponential with full jitter: clients that lost the gateway at the same moment do not all return at the same moment.
 */
export function backoffMs(attempt: number, { baseMs, maxMs }: Backoff): number {
  return Math.random() * Math.min(maxMs, baseMs * 2 ** Math.min(attempt, 30));
}

/** Sleeps that all end at once when there is nothing left to wait for. */
export class Sleeper {
  readonly #asleep = new Waiters();
  #isOver = false;

  /** Resolves after the time, or earlier when woken or when the signal is aborted; at once after `end`. */
  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (!this.#isOver) await this.#asleep.wait(ms, signal);
  }

  wakeAll(): void {
    this.#asleep.tellAll(true);
  }

  end(): void {
    this.#isOver = true;
    this.wakeAll();
  }
}
