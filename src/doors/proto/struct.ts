/**
 * google.protobuf.Struct as plain JSON. Its limits apply wherever attributes enter, by either codec, so that nobody can
 * hand the policy engine a value that is costly to walk: nested at most 32 deep, 1000 keys and 10,000 list items in
 * all.
 *
 * The numbers without a name in the code are tags: the number of a field times 8, plus its wire type.
 */
import { cutText } from '../../core/base/text.ts';
import type { BinaryReader } from './binary-reader.ts';
import type { BinaryWriter } from './binary-writer.ts';
import type { JsonObject } from './messages.ts';
import { Malformed } from './schema.ts';

/** How large a value may be. `isExact`: whether every whole number in it must be one that a double holds exactly. */
export type StructLimits = {
  readonly depth: number;
  readonly keys: number;
  readonly items: number;
  readonly isExact: boolean;
};
const ATTRIBUTES: StructLimits = { depth: 32, keys: 1000, items: 10_000, isExact: true };
/** Limits of obligations in an answer, which are the policy's: no approval is bound to them. */
export const PROPERTIES: StructLimits = { ...ATTRIBUTES, isExact: false };
/** Returns the limits for a field of the schema. */
export const limitsOf = (protoName: string): StructLimits => (protoName === 'properties' ? PROPERTIES : ATTRIBUTES);

/** In characters: a name is the caller's, so only its beginning is repeated. */
export const MAX_SHOWN_KEY = 64;

/** The remaining allowance of one value of attributes. */
export type Allowance = { field: string; keys: number; items: number; readonly limits: StructLimits };
export const allowanceFor = (field: string, limits = ATTRIBUTES): Allowance => ({
  field,
  keys: limits.keys,
  items: limits.items,
  limits,
});

/** This and the next three throw `Malformed` where that goes beyond a limit. */
export function enter({ field, limits }: Allowance, depth: number): void {
  if (depth > limits.depth) throw new Malformed(field, `is nested more than ${limits.depth} levels deep`);
}
export function takeKey(allowance: Allowance, key: string): void {
  if (allowance.keys-- === 0) throw new Malformed(allowance.field, `has more than ${allowance.limits.keys} keys`);
  // As a property it would replace the prototype of the object instead of being one of its keys.
  if (key === '__proto__') throw new Malformed(allowance.field, 'has a key named __proto__');
}
export function takeItem(allowance: Allowance): void {
  if (allowance.items-- === 0)
    throw new Malformed(allowance.field, `has more than ${allowance.limits.items} list items`);
}
/**
 * 1e999 is valid JSON and reads as infinity. Two whole numbers beyond 2^53 may read as one: an approval of one of them
 * would be used by the other.
 */
export function takeNumber(allowance: Allowance, value: number): number {
  if (allowance.limits.isExact && Number.isInteger(value) && !Number.isSafeInteger(value))
    throw new Malformed(allowance.field, 'has a whole number beyond 2^53-1, which is not exact; send it as a string');
  return finite(allowance, value);
}
function finite({ field }: Allowance, value: number): number {
  if (!Number.isFinite(value)) throw new Malformed(field, 'has a number that is not finite');
  return value;
}

/**
 * Reads the content of a Struct up to the end of the reader, into `known` where the field came before, with the same
 * allowance. It is not copied: a field of two bytes may come half a million times.
 */
export function readStruct(reader: BinaryReader, allowance: Allowance, depth = 1, known: JsonObject = {}): JsonObject {
  enter(allowance, depth);
  const struct = known as Record<string, unknown>;
  while (reader.position < reader.end) {
    const tag = reader.tag();
    if (tag !== 10)
      reader.skip(tag); // fields
    else readEntry(reader, struct, allowance, depth);
  }
  return struct;
}

function readEntry(reader: BinaryReader, struct: Record<string, unknown>, allowance: Allowance, depth: number): void {
  const outer = reader.open();
  let key = '';
  let value: unknown;
  while (reader.position < reader.end) {
    const tag = reader.tag();
    if (tag === 10)
      key = reader.string(allowance.field); // key
    else if (tag === 18)
      value = readValue(reader, allowance, depth); // value
    else reader.skip(tag);
  }
  reader.close(outer);
  takeKey(allowance, key);
  if (value === undefined) throw new Malformed(`${allowance.field}.${cutText(key, MAX_SHOWN_KEY)}`, 'has no value');
  struct[key] = value;
}

function readValue(reader: BinaryReader, allowance: Allowance, depth: number): unknown {
  const outer = reader.open();
  let value: unknown;
  while (reader.position < reader.end) {
    const tag = reader.tag();
    switch (tag) {
      case 8:
        reader.uint32();
        value = null;
        break; // null_value
      case 17:
        value = takeNumber(allowance, reader.double());
        break; // number_value
      case 26:
        value = reader.string(allowance.field);
        break; // string_value
      case 32:
        value = reader.bool();
        break; // bool_value
      case 42:
        value = readNested(reader, allowance, depth, readStruct);
        break; // struct_value
      case 50:
        value = readNested(reader, allowance, depth, readList);
        break; // list_value
      default:
        reader.skip(tag);
    }
  }
  reader.close(outer);
  return value;
}

function readNested<T>(
  reader: BinaryReader,
  allowance: Allowance,
  depth: number,
  read: (reader: BinaryReader, allowance: Allowance, depth: number) => T,
): T {
  const outer = reader.open();
  const value = read(reader, allowance, depth + 1);
  reader.close(outer);
  return value;
}

function readList(reader: BinaryReader, allowance: Allowance, depth: number): unknown[] {
  enter(allowance, depth);
  const list: unknown[] = [];
  while (reader.position < reader.end) {
    const tag = reader.tag();
    if (tag !== 10) {
      // values
      reader.skip(tag);
      continue;
    }
    takeItem(allowance);
    const value = readValue(reader, allowance, depth);
    if (value === undefined) throw new Malformed(`${allowance.field}[]`, 'has no value');
    list.push(value);
  }
  return list;
}

/** Writes the content of a Struct. `undefined` properties are left out, as JSON does. */
export function writeStruct(writer: BinaryWriter, struct: JsonObject, allowance: Allowance, depth = 1): void {
  enter(allowance, depth);
  for (const [key, value] of Object.entries(struct)) {
    if (value === undefined) continue;
    takeKey(allowance, key);
    writer.uint32(10);
    const entry = writer.open();
    writer.uint32(10);
    writer.string(key);
    writer.uint32(18);
    writeValue(writer, value, allowance, depth);
    writer.close(entry);
  }
}

function writeValue(writer: BinaryWriter, value: unknown, allowance: Allowance, depth: number): void {
  const start = writer.open();
  if (value === null) {
    writer.uint32(8); // null_value
    writer.uint32(0);
  } else if (typeof value === 'number') {
    writer.uint32(17); // number_value
    writer.double(finite(allowance, value));
  } else if (typeof value === 'string') {
    writer.uint32(26); // string_value
    writer.string(value);
  } else if (typeof value === 'boolean') {
    writer.uint32(32); // bool_value
    writer.uint32(value ? 1 : 0);
  } else if (Array.isArray(value)) {
    writer.uint32(50); // list_value
    const list = writer.open();
    writeList(writer, value, allowance, depth + 1);
    writer.close(list);
  } else if (typeof value === 'object') {
    writer.uint32(42); // struct_value
    const nested = writer.open();
    writeStruct(writer, value as JsonObject, allowance, depth + 1);
    writer.close(nested);
  } else {
    throw new Malformed(allowance.field, `has a ${typeof value}, which JSON cannot represent`);
  }
  writer.close(start);
}

function writeList(writer: BinaryWriter, list: readonly unknown[], allowance: Allowance, depth: number): void {
  enter(allowance, depth);
  for (const item of list) {
    takeItem(allowance);
    writer.uint32(10);
    writeValue(writer, item ?? null, allowance, depth);
  }
}
