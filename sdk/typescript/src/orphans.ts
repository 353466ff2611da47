/** Abandoned operations that the gateway may still count as running: completed as soon as it can be reached. */

import { isOfProxy, isVerdict } from './credential.ts';
import { GatewayError } from './errors.ts';
import { Events } from './events.ts';
import type { OpState } from './types.ts';
import { type Backoff, backoffMs, Sleeper, type Underway } from './waiters.ts';

/** With more than this, the oldest are forgotten: an outage must not fill the memory of the agent. */
const MAX_ORPHANS = 10_000;
const BACKOFF: Backoff = { baseMs: 250, maxMs: 10_000 };

/** An operation that is paused cannot be completed: it waits for the operator's next signal. */
type Orphan = 'due' | 'paused';

/** `due`: there is one to complete. `retry`: the connection is back, so all are due, and at once. */
type OrphansEvent = 'due' | 'retry';

/** The list, for all who come upon one. An `OrphanSettler` works it off. */
export class Orphans extends Events<OrphansEvent> {
  readonly #orphans = new Map<string, Orphan>();
  readonly #onWarning: (error: Error) => void;

  constructor(onWarning: (error: Error) => void) {
    super();
    this.#onWarning = onWarning;
  }

  add(opId: string): void {
    this.markDue(opId);
    this.emit('due');
    if (this.#orphans.size <= MAX_ORPHANS) return;
    for (const oldest of this.#orphans.keys()) {
      this.#orphans.delete(oldest);
      return this.#onWarning(
        new Error(`operation ${oldest} may stay open at the gateway: too many are waiting until it can be reached`),
      );
    }
  }

  /** Call it when the connection is back. A gateway that has restarted has forgotten what was paused, too. */
  retry(): void {
    for (const opId of this.#orphans.keys()) this.markDue(opId);
    this.emit('retry');
  }

  /** An operator has sent a signal to this operation. False when it is none of these. */
  signalled(opId: string): boolean {
    if (!this.#orphans.has(opId)) return false;
    this.markDue(opId);
    this.emit('due');
    return true;
  }

  /** Yields due operations in the order in which they came; also those that come meanwhile. */
  *due(): Generator<string> {
    for (const [opId, orphan] of this.#orphans) if (orphan === 'due') yield opId;
  }

  markDue(opId: string): void {
    this.#orphans.set(opId, 'due');
  }

  markPaused(opId: string): void {
    this.#orphans.set(opId, 'paused');
  }

  drop(opId: string): void {
    this.#orphans.delete(opId);
  }
}

export type OrphanSettlerOptions = {
  readonly orphans: Orphans;
  readonly complete: (opId: string) => Promise<void>;
  /** The state of an operation of one's own at the gateway; undefined when it is not known. */
  readonly stateOf: (opId: string) => Promise<OpState | undefined>;
  /** Whether it makes sense to ask the gateway now. */
  readonly isReachable: () => boolean;
  /** Until none is due or the gateway is lost, so that `close` waits for that. */
  readonly underway: Underway;
  readonly onWarning: (error: Error) => void;
};

export class OrphanSettler {
  readonly #options: OrphanSettlerOptions;
  readonly #sleeper = new Sleeper();
  /** Consecutive passes that did not settle everything that was due. */
  #attempts = 0;
  #isBusy = false;

  constructor(options: OrphanSettlerOptions) {
    this.#options = options;
    options.orphans.on('due', () => void this.#settle());
    options.orphans.on('retry', () => this.retryNow());
  }

  /** Tries those that are due now, and again soon. */
  retryNow(): void {
    this.#attempts = 0;
    this.#sleeper.wakeAll();
    void this.#settle();
  }

  /** Nothing is tried any more. */
  close(): void {
    this.#sleeper.end();
  }

  /** Completes those that are due, until none is or the gateway is lost. */
  async #settle(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    await this.#options.underway.during(async () => {
      for (this.#attempts = 0; this.#isAnyDue() && this.#options.isReachable(); this.#attempts += 1) {
        if (this.#attempts > 0) await this.#sleeper.sleep(backoffMs(this.#attempts, BACKOFF));
        await this.#settleEach();
      }
      this.#isBusy = false;
    });
  }

  async #settleEach(): Promise<void> {
    for (const opId of this.#options.orphans.due()) if (!(await this.#isSettled(opId))) return;
  }

  #isAnyDue(): boolean {
    return this.#options.orphans.due().next().done !== true;
  }

  /** False when the gateway could not be asked. */
  async #isSettled(opId: string): Promise<boolean> {
    try {
      await this.#options.complete(opId);
    } catch (error) {
      if (!(error instanceof GatewayError)) return false;
      if (error.code === 'failed_precondition') return this.#isOverOrPaused(opId);
      if (error.code === 'unauthenticated' || isOfProxy(error) || !isVerdict(error)) return false;
      if (error.code !== 'not_found')
        this.#options.onWarning(new Error(`could not report operation ${opId} as complete`, { cause: error }));
    }
    this.#options.orphans.drop(opId);
    return true;
  }

  /** The gateway does not hold the operation as a running one. */
  async #isOverOrPaused(opId: string): Promise<boolean> {
    // Before it is asked: a signal that comes meanwhile makes it due again.
    this.#options.orphans.markPaused(opId);
    const state = await this.#options.stateOf(opId);
    if (state === 'paused') return true;
    if (state === 'running' || state === undefined) {
      this.#options.orphans.markDue(opId);
      return false;
    }
    this.#options.orphans.drop(opId);
    return true;
  }
}
