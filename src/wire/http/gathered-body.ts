import type { DoorState } from './door-state.ts';

/** `timeoutMs`: how long a client may take over a body that did not come in one piece. */
export type BodyLimits = { readonly maxBytes: number; readonly timeoutMs: number };

/** The first buffer of a body; doubled as needed. */
const FIRST_ROOM_BYTES = 16 * 1024;
const NO_ROOM = Buffer.alloc(0);

/**
 * A body that comes in pieces, copied into one buffer: kept as they are, pieces of a byte each would take a
 * hundredfold.
 */
export class GatheredBody {
  readonly #door: DoorState;
  readonly #maxBytes: number;
  readonly #timer: NodeJS.Timeout;
  #room = NO_ROOM;
  #size = 0;

  constructor(door: DoorState, { maxBytes, timeoutMs }: BodyLimits, onLate: () => void) {
    this.#door = door;
    this.#maxBytes = maxBytes;
    this.#timer = setTimeout(onLate, timeoutMs);
  }

  get size(): number {
    return this.#size;
  }
  get bytes(): Buffer {
    return this.#room.subarray(0, this.#size);
  }

  /** The piece must fit `maxBytes`. False where the bodies of all clients have no room left for it. */
  add(piece: ArrayBuffer): boolean {
    const size = this.#size + piece.byteLength;
    if (size > this.#room.length && !this.#grow(size)) return false;
    this.#door.lastPieceMs = performance.now();
    this.#room.set(new Uint8Array(piece), this.#size);
    this.#size = size;
    return true;
  }

  /** Call it when the body is whole, or its client has gone. */
  letGo(): void {
    clearTimeout(this.#timer);
    this.#door.giveBackBodyBytes(this.#room.length);
    this.#room = NO_ROOM;
  }

  #grow(size: number): boolean {
    const length = Math.min(Math.max(2 * this.#room.length, size, FIRST_ROOM_BYTES), this.#maxBytes);
    if (!this.#door.takeBodyBytes(length - this.#room.length)) return false;
    const larger = Buffer.allocUnsafeSlow(length);
    this.#room.copy(larger);
    this.#room = larger;
    return true;
  }
}
