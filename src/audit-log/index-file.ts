/**
 * The index of a sealed segment as a file beside it, `<first id>.idx`:
 *
 *   prelude   8 numbers: magic, version, CRC of the fixed part behind it, event kinds, bytes of the segment, chunks, 0,
 * 0
 *   rows      6 numbers per chunk (segment-index.ts)
 *   fields    for each indexed field 257 starts of buckets, counted in postings, and 256 CRCs of buckets
 *   postings  bucket by bucket: the hashes (4 bytes each), then the chunk of each (2 bytes), both ascending
 *
 * Numbers of prelude and rows are 64-bit floats, the others unsigned integers, all in little-endian order. A bucket
 * holds the hashes with the same upper 8 bits. Only prelude, rows and fields stay in memory; a search reads one bucket.
 */
import { fstatSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { AUDIT_EVENTS } from '../core/audit/audit.ts';
import { lowerBound } from '../core/base/sorted.ts';
import { withOpenFile } from '../system/files.ts';
import { INDEXED_FIELDS } from './filter.ts';
import type { IndexBuilder } from './index-builder.ts';
import { ROW, type SegmentIndex } from './segment-index.ts';
import { readFully } from './segments.ts';

const MAGIC = 0x53564149;
const VERSION = 1;
/** The bits of the rows stand for the event kinds in their order, so an index is as old as that order. */
const EVENT_KINDS = crc32(AUDIT_EVENTS.join());
const PRELUDE = { magic: 0, version: 1, crc: 2, eventKinds: 3, segmentBytes: 4, chunks: 5, length: 8 } as const;
const BUCKETS = 256;
const BUCKET_SHIFT = 24;
const POSTING_BYTES = 6;
const HASH_BYTES = 4;
/** Starts and CRCs. */
const FIELD_NUMBERS = BUCKETS + 1 + BUCKETS;
/** Three times as many chunks as a segment of the largest size has. A file that says more is not believed. */
const CHUNK_RANGE = 0x10000;

const fixedBytes = (chunks: number): number =>
  (PRELUDE.length + chunks * ROW.length) * 8 + INDEXED_FIELDS.length * FIELD_NUMBERS * 4;

/** Writes beside and renames, so that a reader finds a whole index or none. */
export function writeIndexFile(path: string, builder: IndexBuilder): void {
  const aside = `${path}.${process.pid}.tmp`;
  try {
    writeFileSync(aside, encodeIndex(builder), { mode: 0o600 });
    renameSync(aside, path);
  } catch (error) {
    rmSync(aside, { force: true });
    throw error;
  }
}

function encodeIndex(builder: IndexBuilder): Buffer {
  const { chunkCount } = builder;
  const postings = INDEXED_FIELDS.map((_, place) => postingsOf(builder, place));
  const fixed = Buffer.alloc(fixedBytes(chunkCount));
  const numbers = new Float64Array(fixed.buffer, fixed.byteOffset, PRELUDE.length + chunkCount * ROW.length);
  numbers.set([MAGIC, VERSION, 0, EVENT_KINDS, builder.endOffset, chunkCount]);
  numbers.set(builder.rows, PRELUDE.length);
  const parts: Buffer[] = [fixed];
  let start = 0;
  postings.forEach((keys, place) => {
    const table = fieldTable(fixed, chunkCount, place);
    let at = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket += 1) {
      const from = at;
      while (at < keys.length && Math.floor(keys[at]! / CHUNK_RANGE) >>> BUCKET_SHIFT === bucket) at += 1;
      const bytes = encodeBucket(keys.subarray(from, at));
      table[bucket] = start + from;
      table[BUCKETS + 1 + bucket] = crc32(bytes);
      parts.push(bytes);
    }
    start += keys.length;
    table[BUCKETS] = start;
  });
  numbers[PRELUDE.crc] = crc32(fixed.subarray(PRELUDE.length * 8));
  return Buffer.concat(parts);
}

/** Hash and chunk as one number each, so that one native sort orders them. */
function postingsOf(builder: IndexBuilder, place: number): Float64Array {
  const length = builder.hashes.reduce((sum, fields) => sum + fields[place]!.length, 0);
  const keys = new Float64Array(length);
  let at = 0;
  for (const [chunk, fields] of builder.hashes.entries()) {
    for (const hash of fields[place]!) {
      keys[at] = hash * CHUNK_RANGE + chunk;
      at += 1;
    }
  }
  return keys.sort();
}

function encodeBucket(keys: Float64Array): Buffer {
  const bytes = Buffer.allocUnsafe(keys.length * POSTING_BYTES);
  keys.forEach((key, nth) => {
    bytes.writeUInt32LE(Math.floor(key / CHUNK_RANGE), nth * HASH_BYTES);
    bytes.writeUInt16LE(key % CHUNK_RANGE, keys.length * HASH_BYTES + nth * 2);
  });
  return bytes;
}

const fieldTable = (fixed: Buffer, chunks: number, place: number): Uint32Array =>
  new Uint32Array(
    fixed.buffer,
    fixed.byteOffset + (PRELUDE.length + chunks * ROW.length) * 8 + place * FIELD_NUMBERS * 4,
    FIELD_NUMBERS,
  );

/**
 * The index of a segment of `segmentBytes`; undefined when it is missing, damaged, not to be read, or of another
 * version of the segment.
 */
export function loadIndexFile(path: string, segmentBytes: number): SegmentIndex | undefined {
  return withFile(path, (fd) => {
    const prelude = new Float64Array(PRELUDE.length);
    if (readFully(fd, new Uint8Array(prelude.buffer), 0) < PRELUDE.length * 8) return undefined;
    const chunkCount = prelude[PRELUDE.chunks]!;
    const isOurs =
      prelude[PRELUDE.magic] === MAGIC &&
      prelude[PRELUDE.version] === VERSION &&
      prelude[PRELUDE.eventKinds] === EVENT_KINDS &&
      prelude[PRELUDE.segmentBytes] === segmentBytes;
    if (!isOurs || !Number.isInteger(chunkCount) || chunkCount < 0 || chunkCount > CHUNK_RANGE) return undefined;
    const fixed = Buffer.from(new ArrayBuffer(fixedBytes(chunkCount)));
    if (readFully(fd, fixed, 0) < fixed.length || crc32(fixed.subarray(PRELUDE.length * 8)) !== prelude[PRELUDE.crc])
      return undefined;
    const tables = INDEXED_FIELDS.map((_, place) => fieldTable(fixed, chunkCount, place));
    const postings = tables.at(-1)?.[BUCKETS] ?? 0;
    if (fstatSync(fd).size !== fixed.length + postings * POSTING_BYTES) return undefined;
    return {
      chunkCount,
      rows: new Float64Array(fixed.buffer, fixed.byteOffset + PRELUDE.length * 8, chunkCount * ROW.length),
      endOffset: segmentBytes,
      find: (place, hash) => findInFile(path, fixed.length, tables[place]!, hash) ?? everyChunk(chunkCount),
    };
  });
}

const everyChunk = (chunks: number): Iterable<number> => Array.from({ length: chunks }, (_, chunk) => chunk);

/** Undefined when the bucket cannot be trusted. Every chunk must be read then, which is slow but correct. */
function findInFile(path: string, base: number, table: Uint32Array, hash: number): number[] | undefined {
  const bucket = hash >>> BUCKET_SHIFT;
  const start = table[bucket]!;
  const count = table[bucket + 1]! - start;
  if (count === 0) return [];
  return withFile(path, (fd) => {
    const bytes = Buffer.allocUnsafe(count * POSTING_BYTES);
    const filled = readFully(fd, bytes, base + start * POSTING_BYTES);
    if (filled < bytes.length || crc32(bytes) !== table[BUCKETS + 1 + bucket]) return undefined;
    const found: number[] = [];
    const hashAt = (nth: number): number => bytes.readUInt32LE(nth * HASH_BYTES);
    for (let nth = lowerBound(count, (at) => hashAt(at) < hash); nth < count && hashAt(nth) === hash; nth += 1) {
      found.push(bytes.readUInt16LE(count * HASH_BYTES + nth * 2));
    }
    return found;
  });
}

/** Undefined if it cannot be read, for whatever reason: an index can always be rebuilt. */
function withFile<T>(path: string, use: (fd: number) => T): T | undefined {
  try {
    return withOpenFile(path, 'r', use);
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) return undefined;
    throw error;
  }
}
