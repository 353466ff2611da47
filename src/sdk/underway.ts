/** What `close` waits for, whether or not its caller still does. */
export class Underway {
  readonly #whenIdle = new Set<() => void>();
  #count = 0;

  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#count += 1;
    try {
      return await work();
    } finally {
      this.#count -= 1;
      if (this.#count === 0) for (const idle of this.#whenIdle) idle();
    }
  }

  /** Resolves when nothing is under way, or else after the time. */
  idleWithin(ms: number): Promise<void> {
    if (this.#count === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const settle = (): void => {
        clearTimeout(timer);
        this.#whenIdle.delete(settle);
        resolve();
      };
      const timer = setTimeout(settle, ms);
      this.#whenIdle.add(settle);
    });
  }
}
