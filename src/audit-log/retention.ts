/**
 * Deletes the oldest segments of a log and records where it begins now, so that the rest of the chain stays verifiable.
 */
import type { KeyObject } from 'node:crypto';
import { rmSync, statSync, unlinkSync } from 'node:fs';
import { withOpenFile } from '../system/files.ts';
import { pruneCheckpoints, writeAnchor } from './checkpoint.ts';
import { frameOf, type LineFrame } from './line.ts';
import { readTail } from './recovery.ts';
import { indexPath } from './segment-indexes.ts';
import { listSegments, readFully, type Segment } from './segments.ts';
import type { StrangersShare } from './strangers-share.ts';

export type RetentionOptions = {
  readonly directory: string;
  /** A segment is deleted when its last entry is older than this. */
  readonly maxAgeMs?: number | undefined;
  /** The oldest segments are deleted until the others fit; the newest stays, however large. */
  readonly maxBytes?: number | undefined;
  /** Whose bytes do not count towards `maxBytes`, up to what is their own. */
  readonly strangers?: Pick<StrangersShare, 'of' | 'uncountedBytes'> | undefined;
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
  maxBytes,
  maxSegments = Infinity,
  strangers,
  key,
  nowMs,
}: RetentionOptions): RetentionReport {
  const segments = listSegments(directory);
  const sizes = segments.map(({ path }) => statSync(path).size);
  const count = countToDelete(segments, sizes, { maxAgeMs, maxBytes, maxSegments, strangers, nowMs });
  // A segment whose first line is damaged cannot be anchored: it stays, with what is before it, for verification to
  // name.
  const firstKept = segments[count];
  const frame = count === 0 || firstKept === undefined ? undefined : firstFrame(firstKept);
  if (firstKept === undefined || frame === undefined) return { deletedSegments: [], deletedBytes: 0, isCut: false };
  // The anchor comes first: after a crash in between, what is before it is only deleted later.
  writeAnchor({ directory, firstId: frame.id, prevHash: frame.prevHash, key, nowMs });
  const deleted = segments.slice(0, count);
  for (const segment of deleted) {
    unlinkSync(segment.path);
    rmSync(indexPath(segment), { force: true });
  }
  pruneCheckpoints(directory, frame.id);
  return {
    deletedSegments: deleted.map(({ name }) => name),
    deletedBytes: sizes.slice(0, count).reduce((sum, size) => sum + size, 0),
    isCut: count === maxSegments,
  };
}

/** How many of the oldest segments to delete. */
function countToDelete(
  segments: readonly Segment[],
  sizes: readonly number[],
  limits: Pick<RetentionOptions, 'maxAgeMs' | 'maxBytes' | 'strangers' | 'nowMs'> & { readonly maxSegments: number },
): number {
  const { maxAgeMs = Infinity, maxBytes = Infinity, maxSegments, strangers, nowMs } = limits;
  let bytes = sizes.reduce((sum, size) => sum + size, 0) - (strangers?.uncountedBytes ?? 0);
  let count = 0;
  // The newest non-empty segment holds the head of the chain.
  while (count < maxSegments && (sizes[count + 1] ?? 0) > 0) {
    const isOld = maxAgeMs !== Infinity && nowMs - lastEntryMs(segments, count, nowMs) > maxAgeMs;
    if (!isOld && bytes <= maxBytes) break;
    bytes -= (sizes[count] ?? 0) - (strangers?.of(segments[count]!.name) ?? 0);
    count += 1;
  }
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

function firstFrame({ path }: Segment): LineFrame | undefined {
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
