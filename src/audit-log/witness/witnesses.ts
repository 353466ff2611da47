/**
 * Hands each checkpoint of the audit log to witnesses outside its disk. Nothing waits for them: of what a witness has
 * not taken, only the newest is kept, because the chain has all that came before it.
 */

import type { WitnessStatement } from '../../core/audit/witness.ts';
import { type Backoff, backoffMs } from '../../core/base/backoff.ts';
import { messageOf } from '../../core/base/text.ts';
import type { Target } from './target.ts';

export type WitnessesOptions = {
  readonly targets: readonly Target[];
  /** Called once when a witness stops taking statements, and once when it takes them again. */
  readonly note: (level: 'info' | 'warn', message: string, fields: object) => void;
  readonly timeoutMs?: number;
  /** The first wait before another attempt; it doubles up to a minute. */
  readonly retryMs?: number;
};

const TIMEOUT_MS = 10_000;
const RETRY: Backoff = { firstMs: 1_000, longestMs: 60_000 };

export type WitnessStatus = {
  readonly name: string;
  readonly isReachable: boolean;
  readonly failures: number;
  /** The last entry that it has vouched for; 0: none since the start. */
  readonly witnessedId: number;
};

export class Witnesses {
  readonly #witnesses: readonly Witness[];

  constructor(options: WitnessesOptions) {
    this.#witnesses = options.targets.map((target) => new Witness(target, options));
  }

  send(statement: WitnessStatement): void {
    for (const witness of this.#witnesses) witness.offer(statement);
  }

  get status(): readonly WitnessStatus[] {
    return this.#witnesses.map(({ status }) => status);
  }

  /** Whether one of them does not take statements. */
  get isAnyAway(): boolean {
    return this.#witnesses.some(({ status }) => !status.isReachable);
  }

  /** Resolves once all have what was sent, or the time is over. Nothing is sent after that. */
  async close(graceMs: number): Promise<void> {
    await Promise.all(this.#witnesses.map((witness) => witness.close(graceMs)));
  }
}

class Witness {
  readonly #target: Target;
  readonly #options: WitnessesOptions;
  #waiting: WitnessStatement | undefined;
  #isSending = false;
  #isReachable = true;
  #isClosed = false;
  #failures = 0;
  #failuresInARow = 0;
  #witnessedId = 0;
  #retry: NodeJS.Timeout | undefined;
  #onIdle: (() => void) | undefined;

  constructor(target: Target, options: WitnessesOptions) {
    this.#target = target;
    this.#options = options;
  }

  get status(): WitnessStatus {
    return {
      name: this.#target.name,
      isReachable: this.#isReachable,
      failures: this.#failures,
      witnessedId: this.#witnessedId,
    };
  }

  offer(statement: WitnessStatement): void {
    this.#waiting = statement;
    if (this.#retry === undefined) void this.#send();
  }

  async close(graceMs: number): Promise<void> {
    clearTimeout(this.#retry);
    this.#retry = undefined;
    if (this.#waiting !== undefined) void this.#send();
    if (this.#isSending) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, graceMs);
        this.#onIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#isClosed = true;
    clearTimeout(this.#retry);
  }

  async #send(): Promise<void> {
    if (this.#isSending || this.#isClosed) return;
    this.#isSending = true;
    for (let next = this.#waiting; next !== undefined && this.#retry === undefined; next = this.#waiting) {
      this.#waiting = undefined;
      await this.#attempt(next);
    }
    this.#isSending = false;
    this.#onIdle?.();
  }

  async #attempt(statement: WitnessStatement): Promise<void> {
    const { timeoutMs = TIMEOUT_MS } = this.#options;
    const ending = new AbortController();
    // A file system that hangs cannot be interrupted: it is said in time, and nothing more is sent meanwhile.
    const late = setTimeout(() => {
      const error = new Error(`it took more than ${timeoutMs} ms`);
      ending.abort(error);
      this.#fail(error);
    }, timeoutMs);
    try {
      await this.#target.send(statement, ending.signal);
      this.#succeed(statement);
    } catch (error) {
      if (!ending.signal.aborted) this.#fail(error);
      this.#waiting ??= statement;
      if (!this.#isClosed) this.#retryLater();
    } finally {
      clearTimeout(late);
    }
  }

  #retryLater(): void {
    const { retryMs: firstMs = RETRY.firstMs } = this.#options;
    const waitMs = backoffMs(this.#failuresInARow, { ...RETRY, firstMs });
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      void this.#send();
    }, waitMs).unref();
  }

  #succeed({ id }: WitnessStatement): void {
    this.#witnessedId = Math.max(id, this.#witnessedId);
    this.#failuresInARow = 0;
    if (this.#isReachable) return;
    this.#isReachable = true;
    this.#options.note('info', 'an audit witness takes checkpoints again', { witness: this.#target.name });
  }

  #fail(error: unknown): void {
    this.#failures += 1;
    this.#failuresInARow += 1;
    if (!this.#isReachable) return;
    this.#isReachable = false;
    this.#options.note('warn', 'an audit witness does not take checkpoints; they are sent again until it does', {
      witness: this.#target.name,
      reason: reasonOf(error),
    });
  }
}

/** fetch hides what the network said in the cause. */
const reasonOf = (error: unknown): string =>
  error instanceof Error && error.cause instanceof Error ? messageOf(error.cause) : messageOf(error);
