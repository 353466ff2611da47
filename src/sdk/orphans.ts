/** Abandoned operations that the gateway may still count as running: completed as soon as it can be reached. */
import { backoffMs, type Backoff, type Sleeper } from './backoff.ts';
import { GatewayError } from './errors.ts';
import type { OpState } from './types.ts';
import type { Underway } from './underway.ts';

/** With more than this, the oldest are forgotten: an outage must not fill the memory of the agent. */
const MAX_ORPHANS = 10_000;
const BACKOFF: Backoff = { baseMs: 250, maxMs: 10_000 };

export type OrphansOptions = {
  readonly complete: (opId: string) => Promise<void>;
  /** The state of an operation of one's own at the gateway; undefined when it is not known. */
  readonly stateOf: (opId: string) => Promise<OpState | undefined>;
  readonly isConnected: () => boolean;
  readonly sleeper: Sleeper;
  readonly underway: Underway;
  readonly onWarning: (error: Error) => void;
};

/** An operation that is paused cannot be completed: it waits for the operator's next signal. */
type Orphan = 'due' | 'paused';

export class Orphans {
  readonly #orphans = new Map<string, Orphan>();
  readonly #options: OrphansOptions;
  #isBusy = false;

  constructor(options: OrphansOptions) {
    this.#options = options;
  }

  add(opId: string): void {
    this.#orphans.set(opId, 'due');
    void this.#settle();
    if (this.#orphans.size <= MAX_ORPHANS) return;
    for (const oldest of this.#orphans.keys()) {
      this.#orphans.delete(oldest);
      return this.#options.onWarning(new Error(`operation ${oldest} may stay open at the gateway: too many wait for it to be reached`));
    }
  }

  /** Call it when the connection is back. A gateway that has restarted has forgotten what was paused, too. */
  retry(): void {
    for (const opId of this.#orphans.keys()) this.#orphans.set(opId, 'due');
    void this.#settle();
  }

  /** An operator has sent a signal to this operation. False when it is none of these. */
  signalled(opId: string): boolean {
    if (!this.#orphans.has(opId)) return false;
    this.#orphans.set(opId, 'due');
    void this.#settle();
    return true;
  }

  /** Completes those that are due, until none is or the connection is lost. */
  async #settle(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    for (let attempt = 0; this.#isAnyDue() && this.#options.isConnected(); attempt += 1) {
      if (attempt > 0) await this.#options.sleeper.sleep(backoffMs(attempt, BACKOFF));
      await this.#options.underway.during(() => this.#settleEach());
    }
    this.#isBusy = false;
  }

  async #settleEach(): Promise<void> {
    for (const [opId, orphan] of this.#orphans) if (orphan === 'due' && !(await this.#isSettled(opId))) return;
  }

  #isAnyDue(): boolean {
    for (const orphan of this.#orphans.values()) if (orphan === 'due') return true;
    return false;
  }

  /** False when the gateway could not be asked. */
  async #isSettled(opId: string): Promise<boolean> {
    try {
      await this.#options.complete(opId);
    } catch (error) {
      if (!(error instanceof GatewayError)) return false;
      if (error.code === 'failed_precondition') return this.#isOverOrPaused(opId);
      if (error.code !== 'not_found') return false;
    }
    this.#orphans.delete(opId);
    return true;
  }

  /** The gateway does not hold the operation as a running one. */
  async #isOverOrPaused(opId: string): Promise<boolean> {
    // Before it is asked: a signal that comes meanwhile makes it due again.
    this.#orphans.set(opId, 'paused');
    const state = await this.#options.stateOf(opId);
    if (state === 'paused') return true;
    if (state === 'running' || state === undefined) {
      this.#orphans.set(opId, 'due');
      return false;
    }
    this.#orphans.delete(opId);
    return true;
  }
}
