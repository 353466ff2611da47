/**
 * Deletes old entries of a log and records where it begins now, so that the rest of the chain stays verifiable.
 * `shrink.ts` limits its size.
 */
import type { KeyObject } from 'node:crypto';
import { rmSync, statSync, unlinkSync } from 'node:fs';
import { assert } from '../core/base/result.ts';
import { ifThereSync, withOpenFile } from '../system/files.ts';
import { type Anchor, pruneCheckpoints, readAnchor, writeAnchor } from './checkpoint.ts';
import { deleteKept, keptIn, keptPath } from './kept.ts';
import { frameOf, type LineFrame } from './line.ts';
import { readTail } from './recovery.ts';
import { indexPath } from './segment-indexes.ts';
import { listSegments, readFully, type Segment } from './segments.ts';

export type RetentionOptions = {
  readonly directory: string;
  /** A segment is deleted when its last entry is older than this. */
  readonly maxAgeMs: number;
  /** The most to delete in one call: the file system takes about 15 ms for each, and entries wait meanwhile. */
  readonly maxSegments?: number | undefined;
  readonly key: KeyObject;
  readonly nowMs: number;
};

export type RetentionReport = {
  readonly deletedSegments: readonly string[];
  readonly deletedBytes: number;
  /** As many were deleted as one call may; another call may find more. */
  readonly isCut: boolean;
};

/**
 * To be called by the thread that writes the log. Throws what the file system says; calling it again finishes the work.
 */
export function applyRetention({
  directory,
  maxAgeMs,
  maxSegments = Infinity,
  key,
  nowMs,
}: RetentionOptions): RetentionReport {
  const segments = listSegments(directory);
  const sizes = segments.map(({ path }) => statSync(path).size);
  const count = countToDelete(segments, sizes, { maxAgeMs, maxSegments, nowMs });
  // A segment whose first line is damaged cannot be anchored: it stays, with what is before it, for verification to
  // name.
  const firstKept = segments[count];
  const frame = count === 0 || firstKept === undefined ? undefined : firstFrame(firstKept);
  const deleted = frame === undefined ? [] : segments.slice(0, count);
  const anchor = readAnchor(directory);
  const kept = keptIn(anchor);
  const old = kept.filter(({ name }) => nowMs - lastKeptMs(keptPath(directory, name)) > maxAgeMs);
  if (deleted.length === 0 && old.length === 0) return { deletedSegments: [], deletedBytes: 0, isCut: false };
  const { id: firstId, prevHash } = frame ?? beginningOf(anchor);
  // The anchor comes first: after a crash in between, what is before it is only deleted later.
  const left = kept.filter((file) => !old.includes(file));
  writeAnchor({ directory, firstId, prevHash, kept: left, key, nowMs });
  for (const segment of deleted) {
    unlinkSync(segment.path);
    rmSync(indexPath(segment), { force: true });
  }
  for (const { name } of old) deleteKept(directory, name);
  pruneCheckpoints(directory, firstId);
  return {
    deletedSegments: deleted.map(({ name }) => name),
    deletedBytes: [...sizes.slice(0, deleted.length), ...old.map(({ bytes }) => bytes)].reduce((a, b) => a + b, 0),
    isCut: deleted.length === maxSegments,
  };
}

/** Only an anchor says that something was kept. */
function beginningOf(anchor: Anchor | 'damaged' | undefined): Pick<LineFrame, 'id' | 'prevHash'> {
  assert(anchor !== undefined && anchor !== 'damaged', 'what was kept stands in an anchor');
  return { id: anchor.first_id, prevHash: anchor.prev_hash };
}

/** Infinity where it is not known. */
function lastKeptMs(path: string): number {
  const ms = Date.parse(ifThereSync(() => readTail(path))?.last?.timestamp ?? '');
  return Number.isNaN(ms) ? Infinity : ms;
}

/** How many of the oldest segments to delete. */
function countToDelete(
  segments: readonly Segment[],
  sizes: readonly number[],
  { maxAgeMs, maxSegments, nowMs }: Pick<RetentionOptions, 'maxAgeMs' | 'nowMs'> & { readonly maxSegments: number },
): number {
  let count = 0;
  // The newest non-empty segment holds the head of the chain.
  while (count < maxSegments && (sizes[count + 1] ?? 0) > 0 && nowMs - lastEntryMs(segments, count, nowMs) > maxAgeMs)
    count += 1;
  return count;
}

/**
 * When the segment's last entry was made; Infinity when it has no time, so that it is never deleted for its age. A time
 * in the future comes from a clock that was wrong, and would keep all later segments: then the time of the next segment
 * is used.
 */
function lastEntryMs(segments: readonly Segment[], nth: number, nowMs: number): number {
  const segment = segments[nth];
  const ms = Date.parse(segment === undefined ? '' : (readTail(segment.path).last?.timestamp ?? ''));
  if (Number.isNaN(ms)) return Infinity;
  return ms > nowMs ? lastEntryMs(segments, nth + 1, nowMs) : ms;
}

const FIRST_READ_BYTES = 64 * 1024;

export function firstFrame({ path }: Segment): LineFrame | undefined {
  return withOpenFile(path, 'r', (fd) => {
    for (let length = FIRST_READ_BYTES; ; length *= 4) {
      const bytes = Buffer.alloc(length);
      const filled = readFully(fd, bytes, 0);
      const feed = bytes.indexOf('\n');
      if (feed !== -1) return frameOf(bytes.subarray(0, feed));
      if (filled < length) return undefined;
    }
  });
}
