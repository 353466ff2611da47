/** Callers that wait for something to happen, each until its timeout or until its signal is aborted. */
import { onAbort } from './abort.ts';

export class Waiters {
  /** Those who have waited longest first. */
  readonly #waiting = new Set<(hasHappened: boolean) => void>();

  /** Resolves with whether it happened in time. */
  wait(ms: number, signal?: AbortSignal): Promise<boolean> {
    if (signal?.aborted === true) return Promise.resolve(false);
    return new Promise((resolve) => {
      const settle = (hasHappened: boolean): void => {
        clearTimeout(timer);
        this.#waiting.delete(settle);
        stopListening();
        resolve(hasHappened);
      };
      const timer = setTimeout(() => settle(false), ms);
      this.#waiting.add(settle);
      const stopListening = onAbort(signal, () => settle(false));
    });
  }

  /** It has happened, and is for one of them alone. False when nobody waits. */
  tellFirst(): boolean {
    for (const settle of this.#waiting) {
      settle(true);
      return true;
    }
    return false;
  }

  /** Ends all waits. */
  tellAll(hasHappened: boolean): void {
    for (const settle of this.#waiting) settle(hasHappened);
  }
}
