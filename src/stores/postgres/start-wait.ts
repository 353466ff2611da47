import { setTimeout as sleep } from 'node:timers/promises';
import type { Result } from '../../core/base/result.ts';
import { explain, type Fault } from '../../core/fault.ts';
import type { Logger } from '../../system/log.ts';
import { StartError } from '../../system/start-error.ts';

/**
 * A database that cannot be used for this long in all of a start is taken for a mistake in SVC_DATABASE_URL: it, its
 * user and its password may be made at the same time, and it may restart or fail over.
 */
const WAIT_MS = 30_000;
const ASK_AGAIN_MS = 1_000;
/** Tells observers what the start is waiting for. */
const NOTICE_AFTER_MS = 1_000;

const CLOCK = {
  steadyMs: (): number => performance.now(),
  pause: (ms: number, signal: AbortSignal): Promise<unknown> => sleep(ms, undefined, { signal }),
};

/** The time that a start has for its database to be away. Everything that asks the database takes from the same. */
export class StartWait {
  readonly #log: Pick<Logger, 'info'>;
  readonly #signal: AbortSignal;
  readonly #clock: typeof CLOCK;
  #leftMs = WAIT_MS;
  #isNoticed = false;

  constructor(log: Pick<Logger, 'info'>, signal: AbortSignal, clock: typeof CLOCK = CLOCK) {
    this.#log = log;
    this.#signal = signal;
    this.#clock = clock;
  }

  /**
   * Asks until the database answers, so it must do no harm to ask again what was done without its answer. `trouble` is
   * what the database said last, if there is one. Rejects with a `StartError` for any other fault and at the end of the
   * time, and with the reason of the signal when the start is aborted.
   */
  async value<T>(ask: () => Promise<Result<T, Fault>>, trouble: () => string | undefined): Promise<T> {
    for (;;) {
      this.#signal.throwIfAborted();
      const askedAtMs = this.#clock.steadyMs();
      const answer = await this.#unlessAborted(ask());
      if (answer.ok) return answer.value;
      if (answer.fault.kind !== 'store_unreachable' || trouble() === undefined)
        throw new StartError(explain(answer.fault));
      this.#leftMs -= this.#clock.steadyMs() - askedAtMs;
      if (this.#leftMs <= 0) throw this.#late(trouble());
      this.#notice();
      const pauseMs = Math.min(ASK_AGAIN_MS, this.#leftMs);
      this.#leftMs -= pauseMs;
      await this.#clock.pause(pauseMs, this.#signal);
    }
  }

  /** For work that waits for the database by itself, for as long as it takes. Rejects likewise. */
  async until(work: Promise<void>, trouble: () => string | undefined): Promise<void> {
    this.#signal.throwIfAborted();
    const beganAtMs = this.#clock.steadyMs();
    const ended = new AbortController();
    const { signal } = ended;
    void this.#clock.pause(NOTICE_AFTER_MS, signal).then(
      () => this.#notice(),
      () => undefined,
    );
    const late = this.#clock.pause(this.#leftMs, signal).then(() => {
      throw this.#late(trouble());
    });
    await this.#unlessAborted(Promise.race([work, late])).finally(() => ended.abort());
    this.#leftMs -= this.#clock.steadyMs() - beganAtMs;
  }

  async #unlessAborted<T>(work: Promise<T>): Promise<T> {
    let onAbort: (() => void) | undefined;
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => reject(this.#signal.reason as Error);
      this.#signal.addEventListener('abort', onAbort, { once: true });
    });
    return Promise.race([work, aborted]).finally(() => this.#signal.removeEventListener('abort', onAbort!));
  }

  #notice(): void {
    if (this.#isNoticed) return;
    this.#isNoticed = true;
    this.#log.info('waiting for the database in SVC_DATABASE_URL', { upToSecs: WAIT_MS / 1000 });
  }

  #late(trouble = 'it accepted the connection, but has not responded since'): StartError {
    return new StartError(`cannot use the database in SVC_DATABASE_URL: after ${WAIT_MS / 1000} s: ${trouble}`);
  }
}
