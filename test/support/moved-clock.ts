/** Time that passes when a test says so, and the timers that wait for it. */
import { setImmediate } from 'node:timers/promises';

type Timer = { readonly atMs: number; readonly call: () => void };

export class MovedClock {
  nowMs = 1_000_000;
  readonly #timers = new Set<Timer>();

  /** Calls once so much time has passed, unless what it returns was called before. */
  after(ms: number, call: () => void): () => void {
    const timer = { atMs: this.nowMs + ms, call };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** Resolves when all that waits for nothing but its turn has had it. */
  async settled(): Promise<void> {
    for (let turn = 0; turn < 10; turn += 1) await setImmediate();
  }

  /** Lets the time pass, timer by timer. */
  async pass(ms: number): Promise<void> {
    const endMs = this.nowMs + ms;
    for (;;) {
      await this.settled();
      const [next] = [...this.#timers].sort((one, other) => one.atMs - other.atMs);
      if (next === undefined || next.atMs > endMs) break;
      this.nowMs = Math.max(this.nowMs, next.atMs);
      this.#timers.delete(next);
      next.call();
    }
    this.nowMs = endMs;
  }
}
