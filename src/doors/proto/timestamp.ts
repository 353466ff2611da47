/**
 * google.protobuf.Timestamp as milliseconds since 1970, which is all that the gateway has to say: of a foreign one,
 * what is finer is cut off, and one before 1970 is refused.
 */
import type { BinaryReader } from './binary-reader.ts';
import type { BinaryWriter } from './binary-writer.ts';
import { Malformed } from './schema.ts';

/** The last millisecond of the year 9999, the end of the format. */
const MAX_MS = 253_402_300_799_999;

const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/;
const PROBLEM = 'must be a time from 1970 to 9999';

// The numbers are tags: the number of a field times 8, plus its wire type.

/** Reads the content of a Timestamp up to the end of the reader. */
export function readTimestamp(reader: BinaryReader, field: string): number {
  let seconds = 0;
  let nanos = 0;
  while (reader.position < reader.end) {
    const tag = reader.tag();
    if (tag === 8) seconds = reader.uint64(field);
    else if (tag === 16) nanos = reader.uint64(field);
    else reader.skip(tag);
  }
  const ms = seconds * 1000 + Math.floor(nanos / 1e6);
  if (nanos > 999_999_999 || ms > MAX_MS) throw new Malformed(field, PROBLEM);
  return ms;
}

/** Writes the content of a Timestamp. */
export function writeTimestamp(writer: BinaryWriter, ms: number): void {
  const seconds = Math.floor(ms / 1000);
  const nanos = (ms - seconds * 1000) * 1e6;
  if (seconds > 0) {
    writer.uint32(8);
    writer.uint64(seconds);
  }
  if (nanos > 0) {
    writer.uint32(16);
    writer.uint32(nanos);
  }
}

export function readTimestampJson(value: unknown, path: string, name: string): number {
  const ms = typeof value === 'string' && RFC_3339.test(value) ? Date.parse(value.toUpperCase()) : NaN;
  if (ms >= 0 && ms <= MAX_MS) return ms;
  throw new Malformed(path + name, `${PROBLEM}, as in RFC 3339`);
}

/** RFC 3339. */
export const timestampText = (ms: number): string => new Date(ms).toISOString();
