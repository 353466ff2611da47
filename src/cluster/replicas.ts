import { ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { Topic } from '../ports/cluster.ts';

/**
 * Reads what other gateways have written about a topic, and acts by it in all threads. `detail`: what a message says is
 * new; undefined: everything since the last time. What it answers goes to the gateway that has passed the barrier.
 * Faults: those of the database.
 */
export type Refresh = (detail: unknown) => Promise<Result<unknown, Fault>>;

/** How each of the copies that this gateway keeps is read again. */
export type Refreshes = Readonly<Partial<Record<Topic, Refresh>>>;

const POLL_EVERY_MS = 2_000;

/**
 * The copies that this gateway keeps of what all share. They are read again when a message says so, when messages may
 * have been missed, when the lease was over, and every 2 s in any case.
 */
export class Replicas {
  readonly #refreshes = new Map<Topic, Refresh>();
  readonly #onError: (error: unknown, doing: string) => void;
  #timer: NodeJS.Timeout | undefined;
  #polling: Promise<Result<void, Fault>> | undefined;
  #hasPolled = false;

  constructor(onError: (error: unknown, doing: string) => void) {
    this.#onError = onError;
  }

  keep(topic: Topic, refresh: Refresh): void {
    this.#refreshes.set(topic, refresh);
  }

  start(): void {
    this.#timer = setInterval(() => void this.refreshAll(), POLL_EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Reads a topic again. An unknown topic has no copies here that could be wrong. Never rejects. */
  async refresh(topic: Topic, detail?: unknown): Promise<Result<unknown, Fault>> {
    try {
      return (await this.#refreshes.get(topic)?.(detail)) ?? ok(undefined);
    } catch (error) {
      this.#onError(error, `reading ${topic} of the cluster`);
      return { ok: false, fault: { kind: 'internal' } };
    }
  }

  /** Resolves when a reading that began after the call has ended. */
  async refreshAll(): Promise<Result<void, Fault>> {
    if (this.#polling !== undefined) await this.#polling;
    this.#polling ??= this.#poll().finally(() => {
      this.#polling = undefined;
    });
    return this.#polling;
  }

  /** Whether everything was read since the last call. */
  takePolled(): boolean {
    const hasPolled = this.#hasPolled;
    this.#hasPolled = false;
    return hasPolled;
  }

  async #poll(): Promise<Result<void, Fault>> {
    const read = await Promise.all(Array.from(this.#refreshes.keys(), (topic) => this.refresh(topic)));
    const failed = read.find(({ ok: isRead }) => !isRead);
    if (failed === undefined) this.#hasPolled = true;
    return failed?.ok === false ? failed : ok(undefined);
  }
}
