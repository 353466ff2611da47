import type { MessagePort, Worker } from 'node:worker_threads';
import { codeOf, messageOf } from '../../core/base/text.ts';
import { StoreUnwritable } from '../../ports/ports.ts';
import { startThread } from '../../system/thread.ts';
import { type Change, StoreDatabase } from './database.ts';

/** Changes to write; undefined: close the file. */
type Order = readonly Change[] | undefined;
/** Undefined: it is written. */
type Outcome = { readonly code: string; readonly message: string } | undefined;

/** The writing thread: a commit waits for the disk, which may take long, and nothing else may wait with it. */
export function runStoreWriter(port: MessagePort, path: string): void {
  let database: StoreDatabase | undefined;
  port.on('message', (order: Order) => {
    if (order === undefined) {
      database?.close();
      port.close();
      return;
    }
    try {
      database ??= new StoreDatabase(path);
      database.commit(order);
      port.postMessage(undefined satisfies Outcome);
    } catch (error) {
      port.postMessage({ code: codeOf(error) ?? 'EIO', message: messageOf(error) } satisfies Outcome);
    }
  });
}

/**
 * The main thread's end of the writing thread. It starts with the first commit, because most starts write nothing; the
 * next commit starts a thread that died again.
 */
export class StoreWriter {
  readonly #path: string;
  #worker: Worker | undefined;
  #settle: ((outcome: Outcome) => void) | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** Call it again only when the last has settled. Rejects with `StoreUnwritable`; then nothing of it is written. */
  async commit(changes: readonly Change[]): Promise<void> {
    this.#worker ??= this.#start();
    const worker = this.#worker;
    worker.ref(); // a process does not end before what it writes is written
    worker.postMessage(changes satisfies Order);
    const outcome = await new Promise<Outcome>((resolve) => {
      this.#settle = resolve;
    });
    worker.unref();
    if (outcome !== undefined)
      throw new StoreUnwritable(Object.assign(new Error(outcome.message), { code: outcome.code, path: this.#path }));
  }

  /** Call it when the last commit has settled. */
  async close(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    worker.ref();
    await new Promise<void>((resolve) => {
      worker.once('exit', () => resolve());
      worker.postMessage(undefined satisfies Order);
    });
  }

  #start(): Worker {
    const worker = startThread<Outcome>(
      { entry: 'store', workerData: this.#path },
      (outcome) => this.#settle?.(outcome),
      ({ message }) => {
        if (this.#worker === worker) this.#worker = undefined;
        this.#settle?.({ code: 'EIO', message });
      },
    );
    return worker;
  }
}
