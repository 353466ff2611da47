/**
 * Indexes a segment chunk by chunk, so that a query reads only chunks that may answer it. Built by readers from the
 * lines; the writer knows nothing of it, and a lost or stale index costs only the time to build it again.
 */
import type { CompiledFilter } from './filter.ts';

/** Small enough to search in a tenth of a millisecond, large enough that its row weighs little. */
export const CHUNK_ENTRIES = 128;

/** The numbers of a chunk's row; the end of a chunk is the start of the next. */
export const ROW = { offset: 0, firstId: 1, minMs: 2, maxMs: 3, events: 4, decisions: 5, length: 6 } as const;

export type SegmentIndex = {
  readonly chunkCount: number;
  /** Rows of ROW.length numbers, one after the other. */
  readonly rows: ArrayLike<number>;
  /** Bytes of the segment the chunks cover. */
  readonly endOffset: number;
  /** The chunks that may hold `hash` in the field at `place` of INDEXED_FIELDS. May name too many, never too few. */
  find(place: number, hash: number): Iterable<number>;
};

/** `entries`: about how many it holds. */
export type ChunkRange = {
  readonly from: number;
  readonly to: number;
  readonly firstId: number;
  readonly entries: number;
};

/** The chunks that may hold a match, in ascending order. */
export function candidates(index: SegmentIndex, filter: CompiledFilter): ChunkRange[] {
  const { chunkCount, rows, endOffset } = index;
  const votes = new Uint8Array(chunkCount);
  for (const { place, hash } of filter.indexed)
    for (const chunk of index.find(place, hash)) votes[chunk] = (votes[chunk] ?? 0) + 1;
  const ranges: ChunkRange[] = [];
  for (let chunk = 0; chunk < chunkCount; chunk += 1) {
    if (votes[chunk] !== filter.indexed.length) continue;
    const row = chunk * ROW.length;
    const cell = (column: number): number => rows[row + column]!;
    if (cell(ROW.maxMs) < filter.sinceMs || cell(ROW.minMs) >= filter.untilMs) continue;
    if ((cell(ROW.events) & filter.events) === 0 || (cell(ROW.decisions) & filter.decisions) === 0) continue;
    const isLast = chunk + 1 === chunkCount;
    const to = isLast ? endOffset : rows[row + ROW.length + ROW.offset]!;
    const firstId = cell(ROW.firstId);
    // Ids count up, but for entries that are damaged or were left out of a chunk that is kept.
    const between = isLast ? CHUNK_ENTRIES : rows[row + ROW.length + ROW.firstId]! - firstId;
    ranges.push({ from: cell(ROW.offset), to, firstId, entries: Math.min(CHUNK_ENTRIES, Math.max(1, between)) });
  }
  return ranges;
}
