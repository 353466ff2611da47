import type { MessagePort } from 'node:worker_threads';

/** A batch this large is sent before the turn ends: the other thread can begin while this one goes on. */
const MAX_BATCH = 64;

/** Takes batches. */
export type Outlet<M> = {
  readonly post: (messages: readonly M[]) => void;
  /** A batch this large is not kept until the end of the turn. */
  readonly maxBatch: number;
};

export const toThread = <M>(
  port: Pick<MessagePort, 'postMessage'>,
  encode: (messages: readonly M[]) => Uint8Array<ArrayBuffer>,
): Outlet<M> => ({
  post: (messages) => {
    const bytes = encode(messages);
    port.postMessage(bytes, [bytes.buffer]);
  },
  maxBatch: MAX_BATCH,
});

/**
 * The receiver is in this thread. No batch is posted before the end of the turn, that is, from within the handler of
 * another request: the HTTP library corks one socket at a time, so that each piece of an answer would be a packet.
 */
export const withinThread = <M>(receive: (messages: readonly M[]) => void): Outlet<M> => ({
  post: receive,
  maxBatch: Number.POSITIVE_INFINITY,
});

/**
 * Sends messages in batches: everything sent within one turn of the event loop leaves at once. To another thread it
 * crosses as one buffer, whose memory is handed over rather than copied: waking another thread costs far more than what
 * a message holds.
 */
export class Batcher<M> {
  readonly #outlet: Outlet<M>;
  readonly #flush = (): void => this.flush();
  #waiting: M[] = [];
  #isScheduled = false;

  constructor(outlet: Outlet<M>) {
    this.#outlet = outlet;
  }

  /** The last message that waits to be sent; undefined when all were sent. */
  get last(): M | undefined {
    return this.#waiting.at(-1);
  }

  /** Whether nothing waits to be sent. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  send(message: M): void {
    this.#waiting.push(message);
    if (this.#waiting.length >= this.#outlet.maxBatch) return this.#post();
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#flush);
  }

  /** Sends what waits now, for a caller that knows nothing more will come this turn. */
  flush(): void {
    this.#isScheduled = false;
    if (this.#waiting.length > 0) this.#post();
  }

  #post(): void {
    const messages = this.#waiting;
    this.#waiting = [];
    this.#outlet.post(messages);
  }
}
