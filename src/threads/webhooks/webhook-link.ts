import { Worker } from 'node:worker_threads';
import { stackOf } from '../../core/base/text.ts';
import { workerFile } from '../../system/worker-file.ts';
import type { Delivery } from '../../webhooks/delivery.ts';
import type { Call } from '../../webhooks/sender.ts';
import type { WebhookReply, WebhookRequest, WebhookThreadOptions } from './webhook-thread.ts';

/**
 * The main thread's link to the thread that makes the calls of webhooks. It starts with the first call, so a gateway
 * without webhooks has none; the next call starts a thread that died again.
 */
export class WebhookLink {
  readonly #options: WebhookThreadOptions;
  readonly #onDefect: (message: string) => void;
  readonly #waiting = new Map<number, (delivery: Delivery) => void>();
  #worker: Worker | undefined;
  #lastNumber = 0;
  #isClosed = false;

  constructor(options: WebhookThreadOptions, onDefect: (message: string) => void) {
    this.#options = options;
    this.#onDefect = onDefect;
  }

  send(call: Call): Promise<Delivery> {
    if (this.#isClosed) return Promise.resolve(CUT_OFF);
    this.#worker ??= this.#start();
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    this.#worker.postMessage({ number, call } satisfies WebhookRequest);
    return new Promise((resolve) => this.#waiting.set(number, resolve));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }

  #start(): Worker {
    const worker = new Worker(workerFile('webhooks'), { workerData: this.#options, name: 'webhooks' });
    worker.on('message', ({ number, delivery }: WebhookReply) => this.#settle(number, delivery));
    worker.on('error', (error) => this.#onDefect(stackOf(error)));
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined;
      for (const number of [...this.#waiting.keys()]) this.#settle(number, CUT_OFF);
    });
    worker.unref();
    return worker;
  }

  #settle(number: number, delivery: Delivery): void {
    const settle = this.#waiting.get(number);
    this.#waiting.delete(number);
    settle?.(delivery);
  }
}

const CUT_OFF: Delivery = { isDelivered: false, reason: 'the call was cut off' };
