import type { MessagePort } from 'node:worker_threads';

/** A batch this large is sent before the turn ends: the other thread can begin while this one goes on. */
const MAX_BATCH = 64;

/**
 * Sends messages over a port in batches: everything sent within one turn of the event loop crosses as one buffer, whose
 * memory is handed over rather than copied. Waking another thread costs far more than what a message holds.
 */
export class Batcher<M> {
  readonly #port: Pick<MessagePort, 'postMessage'>;
  readonly #encode: (messages: readonly M[]) => Uint8Array<ArrayBuffer>;
  readonly #flush = (): void => this.flush();
  #waiting: M[] = [];
  #isScheduled = false;

  constructor(port: Pick<MessagePort, 'postMessage'>, encode: (messages: readonly M[]) => Uint8Array<ArrayBuffer>) {
    this.#port = port;
    this.#encode = encode;
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
    if (this.#waiting.length >= MAX_BATCH) return this.#post();
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
    const bytes = this.#encode(this.#waiting);
    this.#waiting = [];
    this.#port.postMessage(bytes, [bytes.buffer]);
  }
}
