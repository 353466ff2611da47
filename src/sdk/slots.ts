/** How many may go at once. The others wait in the order in which they came. */
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

  /** Resolves to whether a slot was had in time. */
  take(timeoutMs: number): Promise<boolean> {
    if (this.tryTake()) return Promise.resolve(true);
    return new Promise((resolve) => {
      const settle = (isTaken: boolean): void => {
        clearTimeout(timer);
        this.#waiting.delete(settle);
        resolve(isTaken);
      };
      const timer = setTimeout(() => settle(false), timeoutMs);
      this.#waiting.add(settle);
    });
  }

  give(): void {
    for (const next of this.#waiting) return next(true);
    this.#free += 1;
  }

  /** Nobody waits any longer. */
  turnAway(): void {
    for (const next of this.#waiting) next(false);
  }
}
