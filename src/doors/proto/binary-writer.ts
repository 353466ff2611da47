/**
 * Writes the protobuf wire format into one growing buffer per thread; `finish` hands out a copy of exactly the message.
 */
const FIRST_SIZE = 16 * 1024;

/** Strings up to this length are copied by hand: a native call costs more than their few characters. */
const SHORT = 48;

export class BinaryWriter {
  #bytes: Buffer = Buffer.allocUnsafeSlow(FIRST_SIZE);
  #position = 0;

  /** A tag, a length, a bool or an enum. */
  uint32(value: number): void {
    this.#reserve(5);
    let rest = value >>> 0;
    while (rest > 0x7f) {
      this.#bytes[this.#position++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[this.#position++] = rest;
  }

  /** `value` is a whole number from 0 to 2^53 - 1. */
  uint64(value: number): void {
    this.#reserve(8);
    let rest = value;
    while (rest > 0x7f) {
      this.#bytes[this.#position++] = (rest % 128) | 0x80;
      rest = Math.floor(rest / 128);
    }
    this.#bytes[this.#position++] = rest;
  }

  double(value: number): void {
    this.#reserve(8);
    this.#position = this.#bytes.writeDoubleLE(value, this.#position);
  }

  string(text: string): void {
    const { length } = text;
    if (length > SHORT || !this.#writeAscii(text, length)) this.#writeUtf8(text);
  }

  /** Begins a nested message; the length is filled in by `close`. */
  open(): number {
    // A length of one byte fits most messages; close makes room for longer ones.
    this.#reserve(1);
    return ++this.#position;
  }

  close(start: number): void {
    const length = this.#position - start;
    if (length < 0x80) {
      this.#bytes[start - 1] = length;
      return;
    }
    const extra = Math.floor(Math.log2(length) / 7);
    this.#reserve(extra);
    this.#bytes.copyWithin(start + extra, start, this.#position);
    this.#position = start - 1;
    this.uint32(length);
    this.#position += length;
  }

  finish(): Buffer {
    const message = Buffer.allocUnsafe(this.#position);
    this.#bytes.copy(message, 0, 0, this.#position);
    this.reset();
    return message;
  }

  /** Discards what was written, and a buffer that one huge message has grown. */
  reset(): void {
    this.#position = 0;
    if (this.#bytes.length > 64 * FIRST_SIZE) this.#bytes = Buffer.allocUnsafeSlow(FIRST_SIZE);
  }

  #writeAscii(text: string, length: number): boolean {
    this.#reserve(length + 1);
    const bytes = this.#bytes;
    const start = this.#position;
    let position = start;
    bytes[position++] = length;
    for (let index = 0; index < length; index++) {
      const code = text.charCodeAt(index);
      if (code > 0x7f) return false;
      bytes[position++] = code;
    }
    this.#position = position;
    return true;
  }

  #writeUtf8(text: string): void {
    const length = Buffer.byteLength(text);
    this.uint32(length);
    this.#reserve(length);
    this.#position += this.#bytes.write(text, this.#position, length, 'utf8');
  }

  #reserve(count: number): void {
    if (this.#position + count <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, this.#position + count));
    this.#bytes.copy(larger, 0, 0, this.#position);
    this.#bytes = larger;
  }
}
