/**
 * Messages as gRPC puts them on a stream of HTTP/2: each behind a flag that says whether it is compressed, and its
 * length.
 */

/** The flag and the length. */
export const PREFIX_BYTES = 5;

/** Overhead of one piece of a message, in bytes: each is an object of its own. */
const PIECE_BYTES = 256;
/**
 * A client may send its bytes one by one. Pieces that are shorter than this are copied into one of this size: kept as
 * they are, they would take a hundredfold, and the buffers of the network that they were cut out of.
 */
const ROOM_BYTES = 4 * 1024;
/** Bytes are copied one by one below this: to call the native copy costs more. */
const SHORT_BYTES = 16;
const NO_ROOM = Buffer.alloc(0);

/** The messages one after the other, uncompressed. */
export function joinMessages(messages: readonly Buffer[]): Buffer {
  let length = messages.length * PREFIX_BYTES;
  for (const message of messages) length += message.length;
  const joined = Buffer.allocUnsafe(length);
  let at = 0;
  for (const message of messages) {
    joined[at] = 0;
    joined.writeUInt32BE(message.length, at + 1);
    message.copy(joined, at + PREFIX_BYTES);
    at += PREFIX_BYTES + message.length;
  }
  return joined;
}

/** Splits a stream, whose pieces begin and end anywhere, into messages. */
export class MessageReader {
  /** Not read yet, the first of them longer than the prefix if any longer ones have come. */
  readonly #pieces: Buffer[] = [];
  #bytes = 0;
  /** The last piece lies at its beginning, if short ones were copied into it. */
  #room = NO_ROOM;

  add(piece: Buffer): void {
    if (piece.length === 0) return;
    if (this.#pieces.length > 0 && piece.length < ROOM_BYTES) this.#gather(piece);
    else this.#pieces.push(piece);
    this.#bytes += piece.length;
  }

  #gather(piece: Buffer): void {
    const last = this.#pieces.at(-1)!;
    const filled = last.buffer === this.#room.buffer ? last.byteOffset + last.length : this.#room.length;
    if (filled + piece.length > this.#room.length) {
      this.#room = Buffer.allocUnsafeSlow(ROOM_BYTES);
      piece.copy(this.#room);
      this.#pieces.push(this.#room.subarray(0, piece.length));
      return;
    }
    if (piece.length < SHORT_BYTES) for (let at = 0; at < piece.length; at += 1) this.#room[filled + at] = piece[at]!;
    else piece.copy(this.#room, filled);
    this.#pieces[this.#pieces.length - 1] = this.#room.subarray(last.byteOffset, filled + piece.length);
  }

  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  /** In bytes, with what the pieces take beside them. */
  get heldBytes(): number {
    return this.#bytes + this.#pieces.length * PIECE_BYTES;
  }

  /** In bytes, of the message that is coming; undefined until its prefix is there. */
  get nextLength(): number | undefined {
    return this.#bytes < PREFIX_BYTES ? undefined : this.#first(PREFIX_BYTES).readUInt32BE(1);
  }

  /** Tells whether the next message, whose prefix has come, is compressed. */
  get isNextCompressed(): boolean {
    return this.#pieces[0]![0] !== 0;
  }

  /** The message that is next, without its prefix; undefined until all of it is there. */
  next(): Buffer | undefined {
    const length = this.nextLength;
    if (length === undefined || this.#bytes < PREFIX_BYTES + length) return undefined;
    const first = this.#first(PREFIX_BYTES + length);
    this.#bytes -= PREFIX_BYTES + length;
    if (first.length === PREFIX_BYTES + length) this.#pieces.shift();
    else this.#pieces[0] = first.subarray(PREFIX_BYTES + length);
    return first.subarray(PREFIX_BYTES, PREFIX_BYTES + length);
  }

  clear(): void {
    this.#pieces.length = 0;
    this.#bytes = 0;
    this.#room = NO_ROOM;
  }

  /** The first piece, made so long that it has at least so many bytes, which are there. */
  #first(bytes: number): Buffer {
    if (this.#pieces[0]!.length >= bytes) return this.#pieces[0]!;
    let end = 0;
    for (let there = 0; there < bytes; end += 1) there += this.#pieces[end]!.length;
    this.#pieces.splice(0, end, Buffer.concat(this.#pieces.slice(0, end)));
    return this.#pieces[0]!;
  }
}
