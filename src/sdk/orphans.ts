/** Abandoned operations that the gateway may still count as running: completed as soon as it can be reached. */
import { backoffMs, type Backoff, type Sleeper } from './backoff.ts';
import { GatewayError } from './errors.ts';

/** With more than this, the oldest are forgotten: an outage must not fill the memory of the agent. */
const MAX_ORPHANS = 10_000;
const BACKOFF: Backoff = { baseMs: 250, maxMs: 10_000 };

export type OrphansOptions = {
  readonly complete: (opId: string) => Promise<void>;
  readonly isConnected: () => boolean;
  readonly sleeper: Sleeper;
  readonly onWarning: (error: Error) => void;
};

export class Orphans {
  readonly #opIds = new Set<string>();
  readonly #options: OrphansOptions;
  #isBusy = false;

  constructor(options: OrphansOptions) {
    this.#options = options;
  }

  add(opId: string): void {
    this.#opIds.add(opId);
    if (this.#opIds.size <= MAX_ORPHANS) return;
    for (const oldest of this.#opIds) {
      this.#opIds.delete(oldest);
      return this.#options.onWarning(new Error(`operation ${oldest} may stay open at the gateway: too many wait for it to be reached`));
    }
  }

  /** Completes them, until none is left or the connection is lost; to be called again when it is back. */
  async settle(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    for (let attempt = 0; this.#opIds.size > 0 && this.#options.isConnected(); attempt += 1) {
      if (attempt > 0) await this.#options.sleeper.sleep(backoffMs(attempt, BACKOFF));
      for (const opId of this.#opIds) if (!(await this.#isSettled(opId))) break;
    }
    this.#isBusy = false;
  }

  async #isSettled(opId: string): Promise<boolean> {
    try {
      await this.#options.complete(opId);
    } catch (error) {
      // The gateway does not hold the operation, or not as a running one: that is the end of it, too.
      if (!(error instanceof GatewayError) || (error.code !== 'not_found' && error.code !== 'failed_precondition')) return false;
    }
    this.#opIds.delete(opId);
    return true;
  }
}
