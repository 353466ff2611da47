/** Waiting between attempts. */
import { onAbort } from './abort.ts';

export type Backoff = { readonly baseMs: number; readonly maxMs: number };

/** Exponential with full jitter: clients that lost the gateway at the same moment do not all return at the same moment. */
export function backoffMs(attempt: number, { baseMs, maxMs }: Backoff): number {
  return Math.random() * Math.min(maxMs, baseMs * 2 ** Math.min(attempt, 30));
}

/** Sleeps that all end at once when there is nothing left to wait for. */
export class Sleeper {
  readonly #wake = new Set<() => void>();
  #isOver = false;

  /** Resolves after the time, or earlier when woken or when the signal is aborted; at once after `end`. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (this.#isOver || signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#wake.delete(wake);
        rollBack();
        resolve();
      };
      const timer = setTimeout(wake, ms);
      this.#wake.add(wake);
      const rollBack = onAbort(signal, wake);
    });
  }

  wakeAll(): void {
    for (const wake of this.#wake) wake();
  }

  end(): void {
    this.#isOver = true;
    this.wakeAll();
  }
}
