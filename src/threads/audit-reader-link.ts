import { Worker } from 'node:worker_threads';
import type { Fault } from '../core/fault.ts';
import { fail, type Result } from '../core/result.ts';
import type { AuditReads, LogRequest, LogText } from '../gateway/logs.ts';
import type { AuditReaderOptions, ReadMessage, ReadReply } from './audit-reader-thread.ts';
import { decode, encode } from './codec.ts';
import { workerFile } from './worker-file.ts';

type Settle = (reply: Result<LogText, Fault>) => void;

/** Searches at once; they take turns in one thread, so more would only make all of them slow. */
const MAX_READS = 64;

/** The main thread's end of the thread that reads the audit log. One that dies is started again by the next read. */
export class AuditReaderLink implements AuditReads {
  readonly #options: AuditReaderOptions;
  readonly #onDefect: (message: string) => void;
  readonly #waiting = new Map<number, Settle>();
  #worker: Worker | undefined;
  #lastId = 0;

  constructor(options: AuditReaderOptions, onDefect: (message: string) => void) {
    this.#options = options;
    this.#onDefect = onDefect;
  }

  read(request: LogRequest): Promise<Result<LogText, Fault>> {
    if (this.#waiting.size >= MAX_READS) return Promise.resolve(fail({ kind: 'overloaded', retryAfterSecs: 1, what: 'the reader of the audit log' }));
    this.#worker ??= this.#start();
    this.#lastId += 1;
    const id = this.#lastId;
    const bytes = encode({ id, request } satisfies ReadMessage);
    this.#worker.postMessage(bytes, [bytes.buffer]);
    return new Promise((resolve) => { this.#waiting.set(id, resolve); });
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }

  #start(): Worker {
    const worker = new Worker(workerFile('audit-reader'), { workerData: this.#options, name: 'audit-reader' });
    worker.on('message', (bytes: Uint8Array) => {
      const { id, reply, defect } = decode(bytes) as ReadReply;
      if (defect !== undefined) this.#onDefect(defect);
      this.#settle(id, reply);
    });
    worker.on('error', (error) => this.#onDefect(error.stack ?? error.message));
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
