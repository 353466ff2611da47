/**
 * Messages of other people's protocols, of which only a few fields matter: read and written without a schema. Anybody
 * may send them, so only the fields that are asked for are noted, and of each no more than an honest sender has.
 */
import { BinaryReader, WIRE_BYTES, WIRE_VARINT } from './binary-reader.ts';
import { Malformed } from './schema.ts';

/** How often a field may come in one message. */
const MAX_TIMES = 200;

/** The fields of a message that are messages, texts or bytes, by their numbers: where they lie, and nothing built. */
export type BytesFields = ReadonlyMap<number, readonly Buffer[]>;

/** The fields that have one of the `numbers`. Throws `Malformed`. */
export function fieldsOf(bytes: Buffer, ...numbers: readonly number[]): BytesFields {
  const reader = new BinaryReader(bytes);
  const fields = new Map<number, Buffer[]>();
  while (reader.position < reader.end) {
    const tag = reader.tag();
    const number = tag >>> 3;
    if ((tag & 7) !== WIRE_BYTES || !numbers.includes(number)) {
      reader.skip(tag);
      continue;
    }
    const { from, to } = reader.span();
    const known = fields.get(number);
    if (known === undefined) fields.set(number, [bytes.subarray(from, to)]);
    else if (known.push(bytes.subarray(from, to)) > MAX_TIMES)
      throw new Malformed('message', `has field ${number} more than ${MAX_TIMES} times`);
  }
  return fields;
}

/** Throws `Malformed` where the fields have more bytes together. */
export function limitSize(fields: BytesFields, maxBytes: number): void {
  let bytes = 0;
  for (const contents of fields.values()) for (const content of contents) bytes += content.length;
  if (bytes > maxBytes) throw new Malformed('message', `has more than ${maxBytes} bytes besides its content`);
}

/** The last one counts, as protobuf has it. */
export const textOf = (fields: BytesFields, number: number): string => String(fields.get(number)?.at(-1) ?? '');

const NOTHING: BytesFields = new Map();

/** The message in a field, with the fields that have one of the `numbers`; an empty one where it is absent. */
export function messageIn(fields: BytesFields, number: number, ...numbers: readonly number[]): BytesFields {
  const bytes = fields.get(number)?.at(-1);
  return bytes === undefined ? NOTHING : fieldsOf(bytes, ...numbers);
}

/** The entries of a `map<string, string>`, or of any list of messages with a name in field 1 and a value in field 2. */
export const pairsIn = (fields: BytesFields, number: number): readonly (readonly [name: string, value: string])[] =>
  (fields.get(number) ?? []).map((bytes) => {
    const pair = fieldsOf(bytes, 1, 2);
    return [textOf(pair, 1), textOf(pair, 2)];
  });

/** A field that is a message, a text or bytes. */
export function field(number: number, content: Buffer | string): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([varint((number << 3) | WIRE_BYTES), varint(bytes.length), bytes]);
}

/** A field that is a whole number or an enum. */
export const numberField = (number: number, value: number): Buffer =>
  Buffer.concat([varint((number << 3) | WIRE_VARINT), varint(value)]);

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    bytes.push(rest > 0x7f ? (rest & 0x7f) | 0x80 : rest);
    if (rest <= 0x7f) return Buffer.from(bytes);
  }
}
