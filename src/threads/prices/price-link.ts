import { Worker } from 'node:worker_threads';
import type { Rates } from '../../core/prices/price.ts';
import type { Clock } from '../../ports/ports.ts';
import { workerFile } from '../../system/worker-file.ts';
import type { PriceTable } from '../../use-cases/prices.ts';
import type { TablePrice } from './price-table.ts';
import type { PriceQuestion, PriceReply, PriceRequest } from './price-thread.ts';

type Waiting = { readonly resolve: (answer: PriceReply['answer']) => void; readonly reject: (error: Error) => void };

/**
 * The main thread's link to the thread that has the table of prices. It starts with the first question, so a gateway to
 * which nobody reports tokens has none; the next question starts a thread that died again.
 */
export class PriceLink implements PriceTable {
  readonly #clock: Clock;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #lastNumber = 0;
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  find(model: string, provider: string | undefined): Promise<TablePrice | undefined> {
    return this.#ask({ model, provider, nowMs: this.#clock.nowMs() });
  }

  highest(): Promise<Rates> {
    return this.#ask({ highestAtMs: this.#clock.nowMs() });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }

  #ask<T extends PriceReply['answer']>(question: PriceQuestion): Promise<T> {
    if (this.#isClosed) return Promise.reject(new Error('the thread of prices is closed'));
    this.#worker ??= this.#start();
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    this.#worker.postMessage({ number, question } satisfies PriceRequest);
    return new Promise<PriceReply['answer']>((resolve, reject) =>
      this.#waiting.set(number, { resolve, reject }),
    ) as Promise<T>;
  }

  #start(): Worker {
    const worker = new Worker(workerFile('prices'), { name: 'prices' });
    let reason = 'the thread of prices has ended';
    worker.on('message', ({ number, answer, defect }: PriceReply) => {
      const waiting = this.#waiting.get(number);
      this.#waiting.delete(number);
      if (defect === undefined) waiting?.resolve(answer);
      else waiting?.reject(new Error(defect));
    });
    worker.on('error', (error) => {
      reason = `the thread of prices failed: ${error.message}`;
    });
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined;
      for (const { reject } of this.#waiting.values()) reject(new Error(reason));
      this.#waiting.clear();
    });
    worker.unref();
    return worker;
  }
}
