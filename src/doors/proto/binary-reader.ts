/**
 * Reads the protobuf wire format: strict about lengths and UTF-8, and never past the end of what it was given. Whatever
 * is malformed is thrown as `Malformed`.
 */
import { Malformed } from './schema.ts';

export const WIRE_VARINT = 0;
export const WIRE_FIXED64 = 1;
export const WIRE_BYTES = 2;
const WIRE_GROUP = 3;
const WIRE_GROUP_END = 4;
const WIRE_FIXED32 = 5;

const MAX_GROUP_DEPTH = 32;
/**
 * Fields of a message and of all that is nested in it. Attributes at their limits have 24,000; a megabyte of nothing
 * but fields would have half a million, and take as long as a thousand checks.
 */
export const MAX_FIELDS = 32_768;
/** More than any message has bytes. */
export const NO_MAX_FIELDS = 2 ** 30 - 1;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const truncated = (): Malformed => new Malformed('message', 'is truncated or has a wrong length');

export class BinaryReader {
  position = 0;
  #bytes: Buffer;
  #end: number;
  #fieldsLeft: number;
  // A single native call decodes the whole message instead of each string: cutting a string out of another is far
  // cheaper. Only made if a string of the message is read.
  #latin1: string | undefined = undefined;

  constructor(bytes: Buffer, maxFields = MAX_FIELDS) {
    this.#bytes = bytes;
    this.#end = bytes.length;
    this.#fieldsLeft = maxFields;
  }

  /** The end of the message that `open` has entered, or of the whole input. */
  get end(): number {
    return this.#end;
  }

  /** Begins the next field. */
  tag(): number {
    if (this.#fieldsLeft-- === 0) throw new Malformed('message', `has more than ${MAX_FIELDS} fields`);
    return this.uint32();
  }

  /** A length, a bool or an enum: the low 32 bits of a varint. */
  uint32(): number {
    const bytes = this.#bytes;
    const first = bytes[this.position++];
    if (first !== undefined && first < 0x80) return first;
    if (first === undefined) throw truncated();
    let value = first & 0x7f;
    for (let shift = 7; shift < 70; shift += 7) {
      const byte = bytes[this.position++];
      if (byte === undefined) throw truncated();
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw new Malformed('message', 'has a number of more than 64 bits');
  }

  bool(): boolean {
    let value = 0;
    for (let count = 0; count < 10; count++) {
      const byte = this.#bytes[this.position++];
      if (byte === undefined) throw truncated();
      value |= byte & 0x7f;
      if (byte < 0x80) return value !== 0;
    }
    throw new Malformed('message', 'has a number of more than 64 bits');
  }

  uint64(field: string): number {
    let value = 0;
    for (let count = 0, factor = 1; count < 10; count++, factor *= 128) {
      const byte = this.#bytes[this.position++];
      if (byte === undefined) throw truncated();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) {
        if (!Number.isSafeInteger(value))
          throw new Malformed(field, `must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`);
        return value;
      }
    }
    throw new Malformed('message', 'has a number of more than 64 bits');
  }

  double(): number {
    const start = this.position;
    this.#advance(8);
    return this.#bytes.readDoubleLE(start);
  }

  string(field: string): string {
    const length = this.uint32();
    const start = this.position;
    this.#advance(length);
    const end = this.position;
    const bytes = this.#bytes;
    for (let index = start; index < end; index++) {
      if (bytes[index]! > 0x7f) return this.#decodeUtf8(start, end, field);
    }
    this.#latin1 ??= bytes.toString('latin1');
    return this.#latin1.slice(start, end);
  }

  /** Enters a nested message; answers what `close` needs to leave it. */
  open(): number {
    const length = this.uint32();
    const outer = this.#end;
    const end = this.position + length;
    if (end > outer) throw truncated();
    this.#end = end;
    return outer;
  }

  close(outer: number): void {
    if (this.position !== this.#end) throw truncated();
    this.#end = outer;
  }

  /** Passes over a nested message. Answers where it lies. */
  span(): { readonly from: number; readonly to: number } {
    const length = this.uint32();
    const from = this.position;
    this.#advance(length);
    return { from, to: this.position };
  }

  /** At the end of the outermost message: nothing was read past it. */
  finish(): void {
    if (this.position !== this.#end) throw truncated();
  }

  /** Passes over a field that this schema does not know. */
  skip(tag: number, depth = 0): void {
    // No schema may have it: these are zeros where a field should be.
    if (tag >>> 3 === 0) throw new Malformed('message', 'has a field with number 0');
    switch (tag & 7) {
      case WIRE_VARINT:
        this.bool();
        return;
      case WIRE_FIXED64:
        this.#advance(8);
        return;
      case WIRE_BYTES:
        this.#advance(this.uint32());
        return;
      case WIRE_FIXED32:
        this.#advance(4);
        return;
      case WIRE_GROUP:
        return this.#skipGroup(tag, depth);
      default:
        throw new Malformed('message', `has a field with unknown wire type ${tag & 7}`);
    }
  }

  #skipGroup(open: number, depth: number): void {
    if (depth === MAX_GROUP_DEPTH) throw new Malformed('message', 'has groups nested too deeply');
    for (;;) {
      if (this.position >= this.#end) throw truncated();
      const tag = this.tag();
      if ((tag & 7) !== WIRE_GROUP_END) this.skip(tag, depth + 1);
      else if (tag >>> 3 === open >>> 3) return;
      else throw new Malformed('message', 'has mismatched groups');
    }
  }

  #advance(length: number): void {
    const position = this.position + length;
    if (position > this.#end) throw truncated();
    this.position = position;
  }

  #decodeUtf8(start: number, end: number, field: string): string {
    try {
      return utf8.decode(this.#bytes.subarray(start, end));
    } catch {
      throw new Malformed(field, 'is not valid UTF-8');
    }
  }
}
