import type { StoreUnwritable } from '../../ports/ports.ts';
import type { Logger } from '../../system/log.ts';
import type { EmbeddedStore } from './store.ts';

const PROBE_EVERY_MS = 2_000;

/**
 * An outage of the embedded store, during which it takes no writes. Each kind of work that fails is logged once,
 * because there may be thousands of requests, and so is the end of the outage.
 */
export class StoreOutage {
  readonly #log: Logger;
  readonly #store: Pick<EmbeddedStore, 'path' | 'probe'>;
  readonly #logged = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(store: Pick<EmbeddedStore, 'path' | 'probe'>, log: Logger) {
    this.#store = store;
    this.#log = log;
  }

  get isOn(): boolean {
    return this.#timer !== undefined;
  }

  /** Notes that `doing` has failed; true when that is to be logged. */
  noteFailure(error: StoreUnwritable, doing: string): boolean {
    if (error.path !== this.#store.path) return true; // of another file
    this.#timer ??= setInterval(() => void this.#look(), PROBE_EVERY_MS).unref();
    const isFirst = !this.#logged.has(doing);
    this.#logged.add(doing);
    return isFirst;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    try {
      await this.#store.probe();
    } catch {
      return; // not over yet
    }
    if (!this.isOn) return; // an earlier look took longer than the time between two
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#logged.clear();
    this.#log.warn('the embedded store can be written again');
  }
}
