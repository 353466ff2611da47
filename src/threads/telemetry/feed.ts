import { randomUUID } from 'node:crypto';
import { BroadcastChannel } from 'node:worker_threads';
import type { Batch, Items, OnChannel, Signal } from './messages.ts';

const FLUSH_EVERY_MS = 200;
const MAX_BATCH = 512;
/** Limits the waiting records; beyond it, the newest is dropped and counted. */
const MAX_WAITING = 2_048;
/** Batches that the thread of telemetry has not taken yet: a thread that is stuck must not fill the memory. */
const MAX_UNTAKEN = 4;
/** Then it has died, and its successor knows nothing of them. */
const FORGOTTEN_MS = 5_000;

type Item<S extends Signal> = Items[S][number];

/** Passes one signal from this thread to the thread of telemetry, in batches. Adding to it never waits. */
export class Feed<S extends Signal> {
  readonly #signal: S;
  readonly #id = randomUUID();
  readonly #channel: BroadcastChannel;
  readonly #untaken = new Map<number, number>();
  #items: Item<S>[] = [];
  #dropped = 0;
  #number = 0;
  #takenMs = performance.now();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(channel: string, signal: S) {
    this.#signal = signal;
    this.#channel = new BroadcastChannel(channel);
    this.#channel.unref();
    this.#channel.onmessage = (event) => {
      const message = (event as { readonly data: OnChannel }).data;
      if (message.kind !== 'taken' || message.feed !== this.#id) return;
      this.#untaken.delete(message.number);
      this.#takenMs = performance.now();
    };
  }

  add(item: Item<S>): void {
    if (this.#isClosed) return;
    if (this.#items.length >= MAX_WAITING) this.#dropped += 1;
    else this.#items.push(item);
    this.#timer ??= setTimeout(() => this.#flush(), FLUSH_EVERY_MS).unref();
  }

  /** Sends what is there, and ends. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    while (this.#items.length > 0 && this.#hasRoom()) this.#send();
    this.#channel.close();
  }

  #flush(): void {
    this.#timer = undefined;
    while (this.#items.length > 0 && this.#hasRoom()) this.#send();
    if (this.#items.length > 0 || this.#dropped > 0)
      this.#timer = setTimeout(() => this.#flush(), FLUSH_EVERY_MS).unref();
  }

  #hasRoom(): boolean {
    if (this.#untaken.size < MAX_UNTAKEN) return true;
    if (performance.now() - this.#takenMs < FORGOTTEN_MS) return false;
    for (const count of this.#untaken.values()) this.#dropped += count;
    this.#untaken.clear();
    this.#takenMs = performance.now();
    return true;
  }

  #send(): void {
    const items = this.#items.slice(0, MAX_BATCH);
    this.#items = this.#items.slice(MAX_BATCH);
    if (this.#untaken.size === 0) this.#takenMs = performance.now();
    this.#number += 1;
    this.#untaken.set(this.#number, items.length);
    const batch = {
      kind: 'batch',
      signal: this.#signal,
      feed: this.#id,
      number: this.#number,
      items,
      dropped: this.#dropped,
    } as unknown as Batch;
    this.#dropped = 0;
    this.#channel.postMessage(batch);
  }
}
