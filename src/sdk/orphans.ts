/** Operations that the gateway may hold as running although nobody acts on them any more, to be completed when it can be reached. */
import { GatewayError } from './errors.ts';

/** Beyond this the oldest are forgotten: an outage must not fill the memory of the agent. */
const MAX_ORPHANS = 10_000;

export class Orphans {
  readonly #opIds = new Set<string>();
  readonly #complete: (opId: string) => Promise<void>;
  readonly #onWarning: (error: Error) => void;
  #isBusy = false;

  constructor(complete: (opId: string) => Promise<void>, onWarning: (error: Error) => void) {
    this.#complete = complete;
    this.#onWarning = onWarning;
  }

  add(opId: string): void {
    this.#opIds.add(opId);
    if (this.#opIds.size <= MAX_ORPHANS) return;
    for (const oldest of this.#opIds) {
      this.#opIds.delete(oldest);
      return this.#onWarning(new Error(`operation ${oldest} may stay open at the gateway: too many wait for it to be reached`));
    }
  }

  /** Completes them, until there is none left or the gateway cannot be reached. */
  async settle(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      for (const opId of this.#opIds) {
        try {
          await this.#complete(opId);
        } catch (error) {
          // A verdict is the end of it: the gateway does not hold the operation, or not as a running one.
          const isHeld = error instanceof GatewayError && (error.code === 'not_found' || error.code === 'failed_precondition');
          if (!isHeld) return;
        }
        this.#opIds.delete(opId);
      }
    } finally {
      this.#isBusy = false;
    }
  }
}
