/** Messages of other people's protocols, of which only a few fields matter: read and written without a schema. */
import { BinaryReader, WIRE_BYTES, WIRE_VARINT } from './binary-reader.ts';

/** The fields of a message that are messages, texts or bytes, by their numbers. */
export type BytesFields = ReadonlyMap<number, readonly Buffer[]>;

/** Throws `Malformed`. */
export function fieldsOf(bytes: Buffer): BytesFields {
  const reader = new BinaryReader(bytes);
  const fields = new Map<number, Buffer[]>();
  while (reader.position < reader.end) {
    const tag = reader.uint32();
    if ((tag & 7) !== WIRE_BYTES) {
      reader.skip(tag);
      continue;
    }
    const { from, to } = reader.span();
    const known = fields.get(tag >>> 3);
    if (known === undefined) fields.set(tag >>> 3, [bytes.subarray(from, to)]);
    else known.push(bytes.subarray(from, to));
  }
  return fields;
}

/** The last one counts, as protobuf has it. */
export const textOf = (fields: BytesFields, number: number): string => String(fields.get(number)?.at(-1) ?? '');

const NOTHING: BytesFields = new Map();

/** The message in a field; an empty one where it is absent. */
export function messageIn(fields: BytesFields, number: number): BytesFields {
  const bytes = fields.get(number)?.at(-1);
  return bytes === undefined ? NOTHING : fieldsOf(bytes);
}

/** The entries of a `map<string, string>`, or of any list of messages with a name in field 1 and a value in field 2. */
export const pairsIn = (fields: BytesFields, number: number): readonly (readonly [name: string, value: string])[] =>
  (fields.get(number) ?? []).map((bytes) => {
    const pair = fieldsOf(bytes);
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
