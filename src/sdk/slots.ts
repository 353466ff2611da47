/** Limits how many run at once. The others wait in order. */
import { Waiters } from './waiters.ts';

export class Slots {
  readonly #waiters = new Waiters();
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  tryTake(): boolean {
    if (this.#free === 0) return false;
    this.#free -= 1;
    return true;
  }

  /**
   * For when `tryTake` finds none: resolves with whether a slot became free in time and before the signal was aborted.
   */
  take(timeoutMs: number, signal?: AbortSignal): Promise<boolean> {
    return this.#waiters.wait(timeoutMs, signal);
  }

  give(): void {
    if (!this.#waiters.tellFirst()) this.#free += 1;
  }

  /** Ends all waiting. */
  turnAway(): void {
    this.#waiters.tellAll(false);
  }
}
