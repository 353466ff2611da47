import { Worker } from 'node:worker_threads';
import type { AuditFilter } from '../../core/audit/audit.ts';
import { workerFile } from '../../system/worker-file.ts';
import type { ReplayEngine } from '../../use-cases/policy-replay.ts';
import type { ReplayMessage, ReplayQuestion, ReplayTask, ReplayTasks, ReplayThreadOptions } from './replay-thread.ts';

type Waiting = { readonly resolve: (answer: never) => void; readonly reject: (error: Error) => void };

/** The main thread's link to the thread of one replay, which is asked one thing at a time. */
export class ReplayLink implements ReplayEngine {
  readonly #worker: Worker;
  #waiting: Waiting | undefined;
  #onRead: (entries: number) => void = () => undefined;
  #ended: Error | undefined;

  constructor(auditFolder: string) {
    const workerData: ReplayThreadOptions = { replayed: { auditFolder } };
    this.#worker = new Worker(workerFile('policy-replay'), { workerData, name: 'policy-replay' });
    this.#worker.on('message', (message: ReplayMessage) => {
      if ('read' in message) return this.#onRead(message.read);
      const waiting = this.#waiting;
      this.#waiting = undefined;
      if ('defect' in message) waiting?.reject(new Error(message.defect));
      else waiting?.resolve(message.answer as never);
    });
    this.#worker.on('error', (error) => this.#fail(error));
    this.#worker.on('exit', () => this.#fail(new Error('the thread of the replay has ended')));
    this.#worker.unref();
  }

  open = (texts: ReplayTasks['open']['asked']) => this.#ask('open', texts);
  extent = (filter: AuditFilter) => this.#ask('extent', filter);
  add = (lines: string) => this.#ask('add', lines);
  result = () => this.#ask('result', undefined);

  read(filter: AuditFilter, onRead: (entries: number) => void): Promise<void> {
    this.#onRead = onRead;
    return this.#ask('read', filter);
  }

  async end(): Promise<void> {
    this.#fail(new Error('the replay was ended'));
    await this.#worker.terminate();
  }

  #ask<T extends ReplayTask>(task: T, asked: ReplayTasks[T]['asked']): Promise<ReplayTasks[T]['answer']> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    this.#worker.postMessage({ task, asked } as ReplayQuestion);
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve: resolve as Waiting['resolve'], reject };
    });
  }

  #fail(error: Error): void {
    this.#ended ??= error;
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }
}
