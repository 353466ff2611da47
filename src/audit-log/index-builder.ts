/** Builds a segment's index from its lines, chunk by chunk; goes on where it stopped when the segment has grown. */
import { readSync } from 'node:fs';
import { HASH_LENGTH } from '../core/audit/audit-line.ts';
import { assert } from '../core/base/result.ts';
import { lowerBound } from '../core/base/sorted.ts';
import { decisionBit, eventBit, INDEXED_FIELDS } from './filter.ts';
import { FIELD, LineScanner } from './scan.ts';
import { CHUNK_ENTRIES, ROW, type SegmentIndex } from './segment-index.ts';

const READ_BYTES = 256 * 1024;
/** A chunk ends early when its lines are long: a query reads a chunk whole. */
const MAX_CHUNK_BYTES = 1024 * 1024;
const SEAL_BYTES = HASH_LENGTH + 1;

export class IndexBuilder implements SegmentIndex {
  readonly rows: number[] = [];
  /** For each chunk and indexed field, the hashes in it, ascending and distinct. */
  readonly hashes: (readonly Uint32Array[])[] = [];
  endOffset = 0;
  readonly #scanner = new LineScanner();
  /** The end of the last line indexed: its hash, which stands for everything before it. */
  #lastSeal = '';

  get chunkCount(): number {
    return this.hashes.length;
  }

  *find(place: number, hash: number): Iterable<number> {
    for (const [chunk, fields] of this.hashes.entries()) if (includes(fields[place]!, hash)) yield chunk;
  }

  /**
   * False when the writer took back what was indexed: an append that failed half-way may have been visible for a
   * moment.
   */
  isStillTrue(fd: number): boolean {
    return textBefore(fd, this.endOffset, this.#lastSeal.length) === this.#lastSeal;
  }

  /**
   * Indexes the next stretch up to `size`, as far as whole chunks reach; with `toTheEnd`, also the chunk that is not
   * full. Returns false when there was nothing more to index. Call it until it does; each call is short.
   */
  extend(fd: number, size: number, toTheEnd: boolean): boolean {
    const text = readStretch(fd, this.endOffset, size);
    const isLast = this.endOffset + text.length >= size;
    let end = 0;
    for (;;) {
      const chunkEnd = endOfChunk(text, end);
      if (chunkEnd.isFull || (toTheEnd && isLast && chunkEnd.offset > end)) {
        this.#add(text, end, chunkEnd.offset);
        end = chunkEnd.offset;
      } else {
        break;
      }
    }
    if (end === 0) return false;
    this.endOffset += end;
    // The seal comes from the indexed bytes, not from those that may have taken their place by now.
    this.#lastSeal = text.slice(Math.max(0, end - SEAL_BYTES), end);
    return true;
  }

  #add(text: string, from: number, to: number): void {
    const scanner = this.#scanner;
    const found = INDEXED_FIELDS.map(() => new Set<number>());
    let firstId = 0;
    let [minStamp, maxStamp] = ['~', ''];
    let [events, decisions] = [0, 0];
    for (let start = from; start < to; start = text.indexOf('\n', start) + 1) {
      if (!scanner.read(text, start)) continue; // `svc audit verify` names such a line; a query cannot show it.
      if (!(firstId > 0)) firstId = scanner.id(); // that of a damaged line may be no number
      const stamp = scanner.token(FIELD.timestamp);
      if (stamp < minStamp) minStamp = stamp;
      if (stamp > maxStamp) maxStamp = stamp;
      events |= eventBit(scanner.token(FIELD.eventType));
      decisions |= decisionBit(scanner.token(FIELD.decision));
      INDEXED_FIELDS.forEach((field, place) => {
        if (!scanner.isNull(field)) found[place]?.add(scanner.hash(field));
      });
    }
    const [minMs, maxMs] = [msOf(minStamp, -Infinity), msOf(maxStamp, Infinity)];
    this.rows.push(this.endOffset + from, firstId, minMs, maxMs, events >>> 0, decisions);
    assert(this.rows.length === (this.hashes.length + 1) * ROW.length, 'a chunk is one row');
    this.hashes.push(found.map((set) => Uint32Array.from(set).sort()));
  }
}

function msOf(stampToken: string, otherwise: number): number {
  const ms = Date.parse(stampToken.slice(1, -1));
  return Number.isNaN(ms) ? otherwise : ms;
}

/** A whole chunk where there is one, however long its lines; otherwise what is there. */
function readStretch(fd: number, from: number, size: number): string {
  for (let length = READ_BYTES; ; length *= 4) {
    const bytes = Buffer.allocUnsafe(Math.max(0, Math.min(length, size - from)));
    const text = bytes.toString('latin1', 0, readSync(fd, bytes, 0, bytes.length, from));
    if (text.length < length || endOfChunk(text, 0).isFull) return text;
  }
}

function endOfChunk(text: string, from: number): { readonly offset: number; readonly isFull: boolean } {
  let offset = from;
  for (let entries = 0; entries < CHUNK_ENTRIES && offset - from < MAX_CHUNK_BYTES; entries += 1) {
    const feed = text.indexOf('\n', offset);
    if (feed === -1) return { offset, isFull: false };
    offset = feed + 1;
  }
  return { offset, isFull: true };
}

function textBefore(fd: number, offset: number, length: number): string {
  const bytes = Buffer.alloc(length);
  return bytes.toString('latin1', 0, readSync(fd, bytes, 0, length, offset - length));
}

function includes(sorted: Uint32Array, hash: number): boolean {
  return sorted[lowerBound(sorted.length, (at) => sorted[at]! < hash)] === hash;
}
