import type { Logger } from './adapters/log.ts';
import type { StoreUnwritable } from './gateway/store-unwritable.ts';

const PROBE_EVERY_MS = 2_000;

/**
 * A time in which the embedded store takes nothing. What it keeps from being done is logged once for each kind, because there may
 * be thousands of requests, and then that it is over.
 */
export class StoreOutage {
  readonly #log: Logger;
  readonly #probe: () => Promise<void>;
  readonly #said = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(probe: () => Promise<void>, log: Logger) {
    this.#probe = probe;
    this.#log = log;
  }

  get isOn(): boolean { return this.#timer !== undefined; }

  /** Whether this failure is news. */
  isNews(error: StoreUnwritable, doing: string): boolean {
    if (typeof error.code !== 'number') return true; // of another file: only the embedded store gives the number of the system
    this.#timer ??= setInterval(() => void this.#look(), PROBE_EVERY_MS).unref();
    const isNew = !this.#said.has(doing);
    this.#said.add(doing);
    return isNew;
  }

  stop(): void { clearInterval(this.#timer); }

  async #look(): Promise<void> {
    try {
      await this.#probe();
    } catch {
      return; // still so, as was said
    }
    if (!this.isOn) return; // an earlier look took longer than the time between two
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#said.clear();
    this.#log.warn('the embedded store is written again');
  }
}
