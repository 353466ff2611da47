/** Work that `close` waits for, whether or not its caller still does. */
import { Waiters } from './waiters.ts';

export class Underway {
  readonly #waiters = new Waiters();
  #count = 0;

  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#count += 1;
    try {
      return await work();
    } finally {
      this.#count -= 1;
      if (this.#count === 0) this.#waiters.tellAll(true);
    }
  }

  /** Resolves when nothing is under way, or else after the time. */
  async idleWithin(ms: number): Promise<void> {
    if (this.#count > 0) await this.#waiters.wait(ms);
  }
}
