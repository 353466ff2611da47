/** The time that a stop has for what was promised. */
class Grace {
  readonly #endMs: number;

  constructor(graceMs: number) {
    this.#endMs = performance.now() + graceMs;
  }

  /** Returns the rest of it, in milliseconds, but at least `leastMs`. */
  leftMs(leastMs = 0): number {
    return Math.max(leastMs, this.#endMs - performance.now());
  }
}

type Close = (grace: Grace) => unknown;

/**
 * Closes what a start has opened, the last first: nothing is closed before what uses it. The same order serves a start
 * that failed and the stop of a gateway that runs.
 */
export class Closers {
  readonly #open: { readonly name: string; readonly close: Close }[] = [];

  /** `name`: what a stop waits for meanwhile, in the words of its log. */
  add(name: string, close: Close): void {
    this.#open.push({ name, close });
  }

  /** Rejects with the first error, but only once it has tried to close everything. */
  async closeAll(graceMs: number, onStep: (name: string) => void = () => undefined): Promise<void> {
    const grace = new Grace(graceMs);
    const errors: unknown[] = [];
    for (let next = this.#open.pop(); next !== undefined; next = this.#open.pop()) {
      onStep(next.name);
      try {
        await next.close(grace);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}
