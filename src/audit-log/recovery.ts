/** Finds where a log ended, even after a crash, and what it lost, by reading only the ends of its segments. */
import { existsSync, fstatSync, ftruncateSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { GENESIS_HASH } from '../core/audit/audit-line.ts';
import { codeOf } from '../core/base/text.ts';
import { withOpenFile } from '../system/files.ts';
import { type Checkpoint, latestCheckpoint, readAnchor } from './checkpoint.ts';
import { type ChainHead, frameOf, hashOfLine, type LineFrame } from './line.ts';
import { listSegments, readFully, type Segment } from './segments.ts';

/** Damage that was found and repaired when the log was opened. Each is one line in the log of the process. */
export type RecoveryNotice =
  | {
      readonly kind: 'torn-tail';
      readonly segment: string;
      readonly bytes: number;
      readonly keptAs: string | undefined;
    }
  | { readonly kind: 'unreadable-segment'; readonly segment: string; readonly bytes: number; readonly keptAs: string }
  | { readonly kind: 'hash-mismatch'; readonly segment: string; readonly id: number }
  /** Entries that no segment holds, before the one that is named. */
  | { readonly kind: 'missing'; readonly firstId: number; readonly lastId: number; readonly segment: string }
  /** The log ends at entry `id`, and a checkpoint covers a later one. */
  | { readonly kind: 'cut'; readonly id: number; readonly checkpoint: Checkpoint };

export function explainNotice(notice: RecoveryNotice): string {
  switch (notice.kind) {
    case 'torn-tail':
      return `audit log: removed ${notice.bytes} bytes of an unfinished write from the end of ${notice.segment}${
        notice.keptAs === undefined ? '; could not keep them' : `; kept as ${notice.keptAs}`
      }`;
    case 'unreadable-segment':
      return `audit log: ${notice.segment} has no complete entry (${notice.bytes} bytes); set aside as ${notice.keptAs}`;
    case 'hash-mismatch':
      return `audit log: entry ${notice.id}, the last in ${notice.segment}, does not match its hash; the log was TAMPERED with. Run \`svc audit verify\``;
    case 'missing':
      return `audit log: entries ${notice.firstId} to ${notice.lastId} are MISSING before ${notice.segment}; stop the gateway and restore the file that contained them, or continue without it, which \`svc audit verify\` will report`;
    case 'cut':
      return `audit log: it ends at entry ${notice.id}, but the checkpoint from ${notice.checkpoint.timestamp} covers entry ${
        notice.checkpoint.id
      }: the entries in between are MISSING; stop the gateway and restore them, or continue without them, which \`svc audit verify\` will report`;
  }
}

export type RecoveredLog = {
  readonly head: ChainHead;
  /** The segment to go on with; undefined when the log holds no entry. */
  readonly active: { readonly segment: Segment; readonly sizeBytes: number; readonly startedMs: number } | undefined;
  readonly notices: readonly RecoveryNotice[];
};

/** Never refuses a damaged log: whatever follows its last whole line is set aside and reported. */
export function recoverLog(directory: string): RecoveredLog {
  const { head, active, notices } = recoverEnd(directory);
  const checkpoint = latestCheckpoint(directory);
  const isCut = checkpoint !== undefined && checkpoint.id > head.id;
  return {
    head,
    active,
    notices: [
      ...notices,
      ...missingEntries(directory),
      ...(isCut ? [{ kind: 'cut', id: head.id, checkpoint } as const] : []),
    ],
  };
}

/**
 * Finds gaps between the last whole entry of one segment and the name of the next. Other damage is for verification to
 * name.
 */
function missingEntries(directory: string): readonly RecoveryNotice[] {
  const missing: RecoveryNotice[] = [];
  const anchor = readAnchor(directory);
  const beginId = anchor === 'damaged' ? undefined : (anchor?.first_id ?? 1);
  // Before the beginning, retention may have left any part of the log, and so may a copy made meanwhile.
  const segments = listSegments(directory).filter(({ firstId }) => beginId === undefined || firstId >= beginId);
  let nextId = beginId;
  for (const { firstId, name, path } of segments) {
    if (nextId !== undefined && nextId < firstId)
      missing.push({ kind: 'missing', firstId: nextId, lastId: firstId - 1, segment: name });
    const lastId = lastIdOf(path);
    nextId = lastId === undefined ? undefined : lastId + 1;
  }
  return missing;
}

/** Undefined also where the file cannot be read: the gateway can do without it. */
function lastIdOf(path: string): number | undefined {
  try {
    return readTail(path).last?.frame.id;
  } catch {
    return undefined;
  }
}

/** When the first and the last entry were made; undefined for a log without entries, or one whose ends have no time. */
export function spanOf(directory: string): { readonly fromMs: number; readonly toMs: number } | undefined {
  const segments = listSegments(directory);
  const [oldest, newest] = [segments[0], segments.at(-1)];
  if (oldest === undefined || newest === undefined) return undefined;
  const fromMs = startedMsOf(oldest.path);
  const toMs = Date.parse(readTail(newest.path).last?.timestamp ?? '');
  return fromMs === 0 || Number.isNaN(toMs) ? undefined : { fromMs, toMs };
}

function recoverEnd(directory: string): RecoveredLog {
  const notices: RecoveryNotice[] = [];
  for (const segment of listSegments(directory).reverse()) {
    const tail = readTail(segment.path);
    if (tail.last === undefined) {
      if (tail.sizeBytes === 0) unlinkSync(segment.path);
      else notices.push(quarantineSegment(segment, tail.sizeBytes));
      continue;
    }
    const { frame, matches, endsAt } = tail.last;
    if (endsAt < tail.sizeBytes) notices.push(cutTail(segment, endsAt));
    if (!matches) notices.push({ kind: 'hash-mismatch', segment: segment.name, id: frame.id });
    const active = { segment, sizeBytes: endsAt, startedMs: startedMsOf(segment.path) };
    return { head: { id: frame.id, hash: frame.hash }, active, notices };
  }
  return { head: { id: 0, hash: GENESIS_HASH }, active: undefined, notices };
}

type Tail = {
  readonly sizeBytes: number;
  readonly last:
    | { readonly frame: LineFrame; readonly timestamp: string; readonly matches: boolean; readonly endsAt: number }
    | undefined;
};

const FIRST_WINDOW_BYTES = 64 * 1024;

/** The last whole line of a file, found from its end. */
export function readTail(path: string): Tail {
  return withOpenFile(path, 'r', (fd) => {
    const sizeBytes = fstatSync(fd).size;
    for (let window = FIRST_WINDOW_BYTES; ; window *= 2) {
      const from = Math.max(0, sizeBytes - window);
      const bytes = Buffer.alloc(sizeBytes - from);
      const filled = readFully(fd, bytes, from);
      const last = lastLineIn(bytes.subarray(0, filled), from);
      if (last !== undefined || from === 0) return { sizeBytes, last };
    }
  });
}

const LINE_FEED = 10;

function lastLineIn(bytes: Buffer, offset: number): Tail['last'] {
  let end = bytes.lastIndexOf(LINE_FEED);
  while (end > 0) {
    const before = bytes.lastIndexOf(LINE_FEED, end - 1);
    // A line that starts before the window is checked when the window is larger.
    if (before === -1 && offset > 0) return undefined;
    const line = bytes.subarray(before + 1, end);
    const frame = frameOf(line);
    if (frame !== undefined)
      return {
        frame,
        timestamp: timestampOf(line),
        matches: hashOfLine(line) === frame.hash,
        endsAt: offset + end + 1,
      };
    end = before;
  }
  return undefined;
}

function cutTail(segment: Segment, endsAt: number): RecoveryNotice {
  return withOpenFile(segment.path, 'r+', (fd) => {
    const torn = Buffer.alloc(fstatSync(fd).size - endsAt);
    readFully(fd, torn, endsAt);
    const keptAs = keepCopy(`${segment.path}.torn`, torn) ? `${segment.name}.torn` : undefined;
    ftruncateSync(fd, endsAt);
    return { kind: 'torn-tail', segment: segment.name, bytes: torn.length, keptAs };
  });
}

// Evidence is kept if there is room for it. A full disk must not prevent the gateway from starting.
function keepCopy(path: string, bytes: Buffer): boolean {
  try {
    writeFileSync(path, bytes, { flag: 'a', mode: 0o600 });
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOSPC' || codeOf(error) === 'EDQUOT') return false;
    throw error;
  }
}

function quarantineSegment(segment: Segment, bytes: number): RecoveryNotice {
  let suffix = '.torn';
  // Another one of this name may have been set aside before.
  for (let nth = 2; existsSync(segment.path + suffix); nth += 1) suffix = `.torn${nth}`;
  renameSync(segment.path, segment.path + suffix);
  return { kind: 'unreadable-segment', segment: segment.name, bytes, keptAs: segment.name + suffix };
}

const TIMESTAMP = /^\{"id":\d+,"timestamp":"([^"]+)"/;
const TIMESTAMP_WITHIN_BYTES = 128;

/** Empty when the line has none. */
const timestampOf = (line: Buffer): string =>
  TIMESTAMP.exec(line.toString('latin1', 0, TIMESTAMP_WITHIN_BYTES))?.[1] ?? '';

/** When the segment's first entry was made; 0 when its first line does not say, which makes it due for rotation. */
function startedMsOf(path: string): number {
  return withOpenFile(path, 'r', (fd) => {
    const start = Buffer.alloc(TIMESTAMP_WITHIN_BYTES);
    return Date.parse(timestampOf(start.subarray(0, readFully(fd, start, 0)))) || 0;
  });
}
