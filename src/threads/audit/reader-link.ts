import { Worker } from 'node:worker_threads';
import { fail, type Result } from '../../core/base/result.ts';
import { stackOf } from '../../core/base/text.ts';
import type { Fault } from '../../core/fault.ts';
import { FairQueue } from '../../fairness/fair-queue.ts';
import { within } from '../../system/clock.ts';
import { workerFile } from '../../system/worker-file.ts';
import type { AuditReads, LogRequest, LogText } from '../../use-cases/logs.ts';
import { decode, encode } from '../codec.ts';
import type { AuditReaderOptions, ReadMessage, ReadReply } from './reader-thread.ts';

type Settle = (reply: Result<LogText, Fault>) => void;

/**
 * Searches at once, including those that wait for their turn; half of them for one org. Beyond that, only exports that
 * have begun go on.
 */
const MAX_READS = 64;

/** A page is cut short long before this. Only a disk that does not answer takes this long. */
const READ_DEADLINE_MS = 15_000;

/** The main thread's link to the thread that reads the audit log. The next read starts a thread that died again. */
export class AuditReaderLink implements AuditReads {
  readonly #options: AuditReaderOptions;
  readonly #onDefect: (message: string) => void;
  readonly #deadlineMs: number;
  readonly #waiting = new Map<number, Settle>();
  readonly #queue = new FairQueue({ atOnce: 2, places: MAX_READS });
  #worker: Worker | undefined;
  #lastId = 0;
  #isClosed = false;

  constructor(options: AuditReaderOptions, onDefect: (message: string) => void, deadlineMs = READ_DEADLINE_MS) {
    this.#options = options;
    this.#onDefect = onDefect;
    this.#deadlineMs = deadlineMs;
  }

  async read(request: LogRequest, orgId: string | null): Promise<Result<LogText, Fault>> {
    const untilMs = performance.now() + this.#deadlineMs;
    const search = (): Promise<Result<LogText, Fault>> =>
      this.#isClosed || performance.now() >= untilMs ? Promise.resolve(OVERLOADED) : this.#ask(request, orgId);
    const read = isFurtherPiece(request) ? this.#queue.runFurther(orgId, search) : this.#queue.run(orgId, search);
    if (read === undefined) return OVERLOADED;
    // A caller that timed out keeps its place: the thread is still working on its search.
    return (await within(this.#deadlineMs, read)) ?? OVERLOADED;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }

  #ask(request: LogRequest, orgId: string | null): Promise<Result<LogText, Fault>> {
    this.#worker ??= this.#start();
    this.#lastId += 1;
    const id = this.#lastId;
    const bytes = encode({ id, request, orgId } satisfies ReadMessage);
    this.#worker.postMessage(bytes, [bytes.buffer]);
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }

  #start(): Worker {
    const worker = new Worker(workerFile('audit-reader'), { workerData: this.#options, name: 'audit-reader' });
    worker.on('message', (bytes: Uint8Array) => {
      const { id, reply, defect } = decode(bytes) as ReadReply;
      if (defect !== undefined) this.#onDefect(defect);
      this.#settle(id, reply);
    });
    worker.on('error', (error) => this.#onDefect(stackOf(error)));
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined;
      for (const id of [...this.#waiting.keys()]) this.#settle(id, fail({ kind: 'internal' }));
    });
    worker.unref();
    return worker;
  }

  #settle(id: number, reply: Result<LogText, Fault>): void {
    const settle = this.#waiting.get(id);
    this.#waiting.delete(id);
    settle?.(reply);
  }
}

/**
 * A later chunk of an export. Half an export is useless, so it is refused at its start or never. It requests one chunk
 * at a time.
 */
const isFurtherPiece = ({ format, cursor }: LogRequest): boolean =>
  (format === 'ndjson' || format === 'csv') && cursor !== undefined;

const OVERLOADED = fail({ kind: 'overloaded', retryAfterSecs: 1, what: 'the audit log reader' } as const);
