import type { Delivery } from '../../webhooks/delivery.ts';
import { ThreadLink } from '../thread-link.ts';
import type { TimedCall, WebhookThreadOptions } from './webhook-thread.ts';

/** The main thread's link to the thread that makes the calls of webhooks. */
export class WebhookLink {
  readonly #thread: ThreadLink<TimedCall, Delivery>;

  constructor(workerData: WebhookThreadOptions, onDefect: (message: string) => void) {
    this.#thread = new ThreadLink({ entry: 'webhooks', workerData }, { onDefect });
  }

  send(call: TimedCall): Promise<Delivery> {
    return this.#thread.ask(call).catch(() => CUT_OFF);
  }

  close(): Promise<void> {
    return this.#thread.close();
  }
}

const CUT_OFF: Delivery = { isDelivered: false, reason: 'the call was cut off' };
