import type { Close, Closing } from '../ports/closing.ts';

/**
 * Closes what a start has opened, the last first: nothing is closed before what uses it. The same order serves a start
 * that failed and the stop of a gateway that runs.
 */
export class Closers implements Closing {
  readonly #open: { readonly name: string; readonly close: Close }[] = [];

  add(name: string, close: Close): void {
    this.#open.push({ name, close });
  }

  /** Rejects with the first error, but only once it has tried to close everything. */
  async closeAll(graceMs: number, onStep: (name: string) => void = () => undefined): Promise<void> {
    const endMs = performance.now() + graceMs;
    const grace = { leftMs: (leastMs = 0): number => Math.max(leastMs, endMs - performance.now()) };
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
