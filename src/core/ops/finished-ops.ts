import { CHUNK_BITS, type Chunk, NONE, SLOT_MASK } from './op-chunk.ts';

/** The slots of finished operations in the order in which they finished, until they are swept. */
export class FinishedOps {
  readonly #chunks: readonly Chunk[];
  #oldest = NONE;
  #newest = NONE;
  /** Operations that run again but are still in the queue. */
  readonly #revived = new Set<number>();

  constructor(chunks: readonly Chunk[]) {
    this.#chunks = chunks;
  }

  add(slot: number): void {
    if (this.#revived.size > 0 && this.#revived.delete(slot)) return;
    this.#setNext(slot, NONE);
    if (this.#newest === NONE) this.#oldest = slot;
    else this.#setNext(this.#newest, slot);
    this.#newest = slot;
  }

  /**
   * It runs again. The queue is singly linked, so the operation stays in it until the sweep comes by. If it finishes
   * again before that, it is swept from its old place, and those behind it wait until it is old enough.
   */
  revive(slot: number): void {
    this.#revived.add(slot);
  }

  /** It runs again, and leaves the registry. Walks the whole queue, which is rare. */
  forget(slot: number): void {
    if (!this.#revived.delete(slot)) return;
    let before = NONE;
    for (let at = this.#oldest; at !== slot; at = this.#nextOf(at)) before = at;
    if (before === NONE) this.#oldest = this.#nextOf(slot);
    else this.#setNext(before, this.#nextOf(slot));
    if (this.#newest === slot) this.#newest = before;
  }

  /** Takes the oldest out, if it finished at least `ttlMs` ago; else `NONE`. */
  take(nowMs: number, ttlMs: number): number {
    while (this.#oldest !== NONE) {
      const slot = this.#oldest;
      // An operation that runs again does not hold up those behind it, however often it moves.
      const isRevived = this.#revived.size > 0 && this.#revived.delete(slot);
      const finishedAtMs = this.#chunks[slot >> CHUNK_BITS]!.updatedAtMs[slot & SLOT_MASK]!;
      if (!isRevived && nowMs - finishedAtMs < ttlMs) return NONE;
      this.#oldest = this.#nextOf(slot);
      if (this.#oldest === NONE) this.#newest = NONE;
      if (!isRevived) return slot;
    }
    return NONE;
  }

  #nextOf(slot: number): number {
    return this.#chunks[slot >> CHUNK_BITS]!.next[slot & SLOT_MASK]!;
  }

  #setNext(slot: number, next: number): void {
    this.#chunks[slot >> CHUNK_BITS]!.next[slot & SLOT_MASK] = next;
  }
}
