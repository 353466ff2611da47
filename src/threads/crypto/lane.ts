import type { Piscina } from 'piscina';
import { fail, ok, type Result } from '../../core/base/result.ts';
import { messageOf } from '../../core/base/text.ts';
import type { Fault } from '../../core/fault.ts';
import { workerFile } from '../../system/worker-file.ts';
import type { CryptoOutcome, CryptoReplies, CryptoTask, CryptoTaskOf, CryptoTaskType } from './tasks.ts';

export type LaneOptions = {
  /** Names the exhausted limit, for the `overloaded` fault. */
  readonly what: string;
  readonly threads: number;
  /** Tasks that may wait. A further one is answered with `overloaded` at once. */
  readonly maxQueue: number;
  /** Tasks handed to a thread in one message. */
  readonly maxBatch: number;
  /** From submission to answer, waiting included. */
  readonly timeoutMs: number;
  /**
   * Decides about a thread that is still busy when its task's time is up. argon2 must be waited for: a thread that ends
   * while a hash is being computed takes the whole process with it (its native code throws where nobody catches).
   */
  readonly whenLate: 'replace-thread' | 'wait-for-thread';
  readonly onError: (message: string, cause: string) => void;
  /** Another worker file, for tests of crashes. */
  readonly filename?: string | undefined;
};

/**
 * A pool of one thread, dropped when the thread dies: piscina starts another in its place, and tasks would wait for it
 * forever if that one cannot load.
 */
type CryptoThread = {
  readonly pool: Piscina<readonly CryptoTask[], CryptoOutcome[]>;
  ended: Promise<void> | undefined;
  isEnding: boolean;
};

type Waiting = {
  readonly task: CryptoTask;
  readonly deadlineMs: number;
  readonly settle: (outcome: Result<unknown, Fault>) => void;
};

/**
 * A first-in first-out queue with a bound in front of threads of piscina, each in a pool of its own that is given one
 * batch at a time. Its own queue is not used: tasks that can be aborted bypass its `maxQueue` and lose their order.
 */
export class CryptoLane {
  readonly #options: LaneOptions;
  readonly #queue: Waiting[] = [];
  /** Undefined: one that is not needed yet. Threads that have been started are at the end, and taken first. */
  readonly #idle: (CryptoThread | undefined)[];
  /** Batches that threads work on. */
  readonly #running = new Set<Promise<void>>();
  #runningTasks = 0;
  #closed = false;
  #restarts = 0;

  constructor(options: LaneOptions) {
    this.#options = options;
    this.#idle = Array.from({ length: options.threads }, () => undefined);
  }

  /** Tasks waiting or being worked on. */
  get pending(): number {
    return this.#queue.length + this.#runningTasks;
  }

  /** Threads started in place of others. */
  get restarts(): number {
    return this.#restarts;
  }

  run<T extends CryptoTaskType>(task: CryptoTaskOf<T>): Promise<Result<CryptoReplies[T], Fault>> {
    if (this.#closed || this.#queue.length >= this.#options.maxQueue) return Promise.resolve(fail(this.#overloaded()));
    return new Promise((resolve) => {
      this.#queue.push({
        task,
        deadlineMs: performance.now() + this.#options.timeoutMs,
        settle: resolve as (outcome: Result<unknown, Fault>) => void,
      });
      this.#dispatch();
    });
  }

  /** Refuses waiting tasks with `overloaded`, lets running ones finish, then ends the threads. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { settle } of this.#queue.splice(0)) settle(fail(this.#overloaded()));
    await Promise.all(this.#running);
    await Promise.all(this.#idle.map((thread) => thread && end(thread)));
  }

  /** With the first task: most gateways have none for long, and the library and a thread take a tenth of a start. */
  async #start(): Promise<CryptoThread> {
    const { Piscina } = await import('piscina');
    const pool = new Piscina<readonly CryptoTask[], CryptoOutcome[]>({
      filename: this.#options.filename ?? workerFile('crypto'),
      name: 'run',
      // piscina tries `require` before `import`, and Node.js ends the whole process (`v8::Module::IsGraphAsync`) when a
      // thread is terminated at the wrong moment of requiring an ES module. With this, `require` refuses before it
      // begins.
      execArgv: ['--no-experimental-require-module'],
      minThreads: 1,
      maxThreads: 1,
      maxQueue: 1,
    });
    const thread: CryptoThread = { pool, ended: undefined, isEnding: false };
    pool.on('error', (error: Error) => {
      // It died without a task. The thread that piscina starts in its place is given no tasks, and ends with its pool.
      if (!thread.isEnding) this.#options.onError('a crypto thread died', error.message);
    });
    pool.on('workerDestroy', () => void end(thread));
    return thread;
  }

  #dispatch(): void {
    while (this.#idle.length > 0 && this.#queue.length > 0 && !this.#closed) {
      const live = this.#inTime(this.#queue.splice(0, this.#options.maxBatch));
      if (live.length === 0) continue;
      const running = this.#perform(this.#idle.pop(), live).then((thread) => {
        this.#idle.push(thread);
        this.#running.delete(running);
        this.#runningTasks -= live.length;
        this.#dispatch();
      });
      this.#running.add(running);
      this.#runningTasks += live.length;
    }
  }

  #inTime(batch: readonly Waiting[]): Waiting[] {
    const nowMs = performance.now();
    return batch.filter(({ deadlineMs, settle }) => {
      const late = deadlineMs <= nowMs;
      if (late) settle(fail(this.#overloaded()));
      return !late;
    });
  }

  /**
   * Never rejects: whatever happens to the thread becomes the outcome of its tasks. Answers the thread that has done
   * them.
   */
  async #perform(idle: CryptoThread | undefined, batch: readonly Waiting[]): Promise<CryptoThread | undefined> {
    let thread = idle;
    const settleAll = (fault: Fault) => batch.forEach(({ settle }) => settle(fail(fault)));
    const abort = new AbortController();
    const timer = setTimeout(
      () => {
        this.#options.onError('a crypto task timed out', this.#options.what);
        settleAll(this.#overloaded());
        if (this.#options.whenLate === 'replace-thread') abort.abort();
      },
      Math.max(0, (batch[0]?.deadlineMs ?? 0) - performance.now()),
    );
    try {
      if (thread?.ended !== undefined) {
        await thread.ended;
        thread = undefined;
        this.#restarts += 1;
      }
      thread ??= await this.#start();
      const outcomes = await thread.pool.run(
        batch.map(({ task }) => task),
        { signal: abort.signal },
      );
      batch.forEach(({ settle }, at) => settle(this.#resultOf(outcomes[at])));
    } catch (error) {
      if (!abort.signal.aborted) this.#options.onError('a crypto thread died', messageOf(error));
      settleAll({ kind: 'internal' }); // after a time-out they are answered already; a second answer is ignored
      if (thread !== undefined) void end(thread);
    } finally {
      clearTimeout(timer);
    }
    return thread;
  }

  #resultOf(outcome: CryptoOutcome | undefined): Result<unknown, Fault> {
    if (outcome?.ok) return ok(outcome.value);
    this.#options.onError('a crypto task failed', outcome?.cause ?? 'no outcome');
    return fail({ kind: 'internal' });
  }

  #overloaded(): Fault {
    return { kind: 'overloaded', what: this.#options.what, retryAfterSecs: 1 };
  }
}

/** Only once, and after the pool has finished what it is doing. */
function end(thread: CryptoThread): Promise<void> {
  thread.ended ??= Promise.resolve().then(() => {
    thread.isEnding = true;
    return thread.pool.destroy();
  });
  return thread.ended;
}
