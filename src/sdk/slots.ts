/** Limits how many may go at once. The others wait in their order. */
import { onAbort } from './abort.ts';

export class Slots {
  readonly #waiting = new Set<(isTaken: boolean) => void>();
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  tryTake(): boolean {
    if (this.#free === 0) return false;
    this.#free -= 1;
    return true;
  }

  /** Where `tryTake` finds none: resolves with whether one was free in time, and before the signal, which is not aborted yet, was. */
  take(timeoutMs: number, signal?: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (isTaken: boolean): void => {
        clearTimeout(timer);
        this.#waiting.delete(settle);
        rollBack();
        resolve(isTaken);
      };
      const timer = setTimeout(() => settle(false), timeoutMs);
      this.#waiting.add(settle);
      const rollBack = onAbort(signal, () => settle(false));
    });
  }

  give(): void {
    for (const next of this.#waiting) return next(true);
    this.#free += 1;
  }

  /** Ends all waiting. */
  turnAway(): void {
    for (const next of this.#waiting) next(false);
  }
}
