import { STALLED_MS } from '../shared/limits.ts';

/** State shared by all exchanges of one HTTP listener. */
export class DoorState {
  readonly #maxBodyBytes: number;
  #bodyBytes = 0;
  /** Answers that have begun and not yet left, because they are long or their readers slow. */
  unwritten = 0;
  /** When a piece of an incomplete body came last. */
  lastPieceMs = -Infinity;
  /** Each answer asks its client to close the connection, because a further request on it could be cut off. */
  isDraining = false;

  /** `maxBodyBytes`: memory for all incomplete bodies together. */
  constructor(maxBodyBytes: number) {
    this.#maxBodyBytes = maxBodyBytes;
  }

  /** Whether some client is still sending its body, or has yet to read its answer. */
  get isBusy(): boolean {
    return this.unwritten > 0 || (this.#bodyBytes > 0 && performance.now() - this.lastPieceMs < STALLED_MS);
  }

  /** False if that would exceed the limit. */
  takeBodyBytes(bytes: number): boolean {
    if (this.#bodyBytes + bytes > this.#maxBodyBytes) return false;
    this.#bodyBytes += bytes;
    return true;
  }

  giveBackBodyBytes(bytes: number): void {
    this.#bodyBytes -= bytes;
  }
}
