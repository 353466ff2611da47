/**
 * Makes a log fit into its limit, and takes the room from those who have filled it: whoever has more than an equal
 * share loses the oldest of its own entries, and nobody else loses any (docs/audit-log.md, Retention). A piece at a
 * time, because entries are written meanwhile.
 */
import type { KeyObject } from 'node:crypto';
import { rmSync, statSync, unlinkSync } from 'node:fs';
import { type Anchor, type KeptFile, pruneCheckpoints, readAnchor, writeAnchor } from './checkpoint.ts';
import { deleteKept, keepLines, keptIn, keptPath, thinned } from './kept.ts';
import type { LineFrame } from './line.ts';
import { firstFrame, type RetentionReport } from './retention.ts';
import { indexPath } from './segment-indexes.ts';
import { listSegments, type Segment } from './segments.ts';
import { type Pace, STRANGERS, shareOf, Tallies, type Tally } from './shares.ts';
import type { StrangersShare } from './strangers-share.ts';

export type ShrinkOptions = {
  readonly directory: string;
  readonly maxBytes: number;
  /** Files of what is kept are as large as segments. */
  readonly segmentBytes: number;
  /** Whose bytes do not count towards `maxBytes`, up to what is their own. */
  readonly strangers?: Pick<StrangersShare, 'of' | 'uncountedBytes' | 'drop'> | undefined;
  readonly key: KeyObject;
  readonly nowMs: () => number;
  readonly pace: Pace;
  readonly isStopped?: () => boolean;
};

/** A file whose entries may go, and whose they are. */
type Part = { readonly path: string; readonly size: number; readonly tally: Tally };
type Survey = {
  readonly anchor: Anchor | undefined;
  readonly kept: readonly (Part & { readonly file: KeptFile })[];
  /** Segments that are followed by another one with an entry: the newest holds the head of the chain. */
  readonly sealed: readonly (Part & { readonly segment: Segment })[];
  readonly next: Segment | undefined;
  /** The parties that have more than their share. */
  readonly over: ReadonlySet<string>;
};

/**
 * To be called by the thread that writes the log, one call at a time. Rejects with what the file system says; calling
 * it again finishes the work.
 */
export async function shrinkLog(options: ShrinkOptions): Promise<RetentionReport> {
  const { directory, pace, isStopped = () => false } = options;
  const deletedSegments: string[] = [];
  let deletedBytes = 0;
  let tallies: Tallies | undefined;
  dropLeftovers(directory);
  while (!isStopped()) {
    if (excessOf(options) <= 0) break;
    tallies ??= new Tallies(directory);
    const survey = await surveyOf(options, tallies);
    if (isStopped()) break;
    const done = (await thinKept(options, survey)) ?? (await dropOldest(options, survey, isStopped));
    if (done === undefined) break;
    if (done.name !== undefined) deletedSegments.push(done.name);
    deletedBytes += done.bytes;
    await pace();
  }
  if (!isStopped())
    tallies?.save([...listSegments(directory), ...keptIn(readAnchor(directory))].map(({ name }) => name));
  return { deletedSegments, deletedBytes, isCut: false };
}

/**
 * A crash came between an anchor and what it says was deleted: it must not be kept twice. An anchor of another backup
 * than the segments is about none of them, and nothing is deleted for it.
 */
function dropLeftovers(directory: string): void {
  const anchor = readAnchor(directory);
  if (anchor === undefined || anchor === 'damaged') return;
  const segments = listSegments(directory);
  const begin = segments.findIndex(({ firstId }) => firstId === anchor.first_id);
  for (const segment of segments.slice(0, Math.max(0, begin))) drop(segment);
}

function drop(segment: Segment): void {
  unlinkSync(segment.path);
  rmSync(indexPath(segment), { force: true });
}

const excessOf = ({ directory, maxBytes, strangers }: ShrinkOptions): number =>
  sizeOfLog(directory) - (strangers?.uncountedBytes ?? 0) - maxBytes;

/** Returns the size of the log, kept entries of deleted segments included. */
export function sizeOfLog(directory: string): number {
  const sizes = listSegments(directory).map(({ path }) => statSync(path).size);
  return sizes.reduce((sum, size) => sum + size, bytesOf(keptIn(readAnchor(directory))));
}

async function surveyOf(options: ShrinkOptions, tallies: Tallies): Promise<Survey> {
  const { directory, maxBytes, strangers, pace } = options;
  const anchor = readAnchor(directory);
  // A new one would vouch for a log that has lost what this one says was kept.
  if (anchor === 'damaged') throw new Error('anchor.json is damaged; restore it from a backup');
  const segments = listSegments(directory);
  const sizes = segments.map(({ path }) => statSync(path).size);
  let count = 0;
  while ((sizes[count + 1] ?? 0) > 0) count += 1;
  const sealed: (Part & { segment: Segment })[] = [];
  for (const [n, segment] of segments.slice(0, count).entries()) {
    const { name, path } = segment;
    const size = sizes[n]!;
    sealed.push({ segment, path, size, tally: await tallies.of(name, path, size, pace) });
  }
  const kept: (Part & { file: KeptFile })[] = [];
  for (const file of keptIn(anchor)) {
    const path = keptPath(directory, file.name);
    kept.push({ file, path, size: file.bytes, tally: await tallies.of(file.name, path, file.bytes, pace) });
  }
  const newest = segments.slice(count).map(({ name }, n) => (sizes[count + n] ?? 0) - (strangers?.of(name) ?? 0));
  const usage = usageOf([...kept, ...sealed]);
  // Not less than half of the limit, however large the newest is: it may have been begun under another limit.
  const budget = Math.max(maxBytes - newest.reduce((sum, size) => sum + size, 0), maxBytes / 2);
  const share = shareOf(usage, budget);
  const over = new Set([...usage].filter(([, bytes]) => bytes > share).map(([party]) => party));
  return { anchor, kept, sealed, next: segments[1], over };
}

function usageOf(parts: readonly Part[]): Tally {
  const usage = new Map<string, number>();
  for (const { tally } of parts)
    for (const [party, bytes] of tally) if (party !== STRANGERS) usage.set(party, (usage.get(party) ?? 0) + bytes);
  return usage;
}

/** `name` is that of a segment which was deleted. */
type Done = { readonly name?: string; readonly bytes: number };

/** Kept entries are older than all segments, so the oldest entries of parties over their share are there. */
async function thinKept(options: ShrinkOptions, { anchor, kept, over }: Survey): Promise<Done | undefined> {
  const { directory, key, nowMs, pace } = options;
  const part = kept.find(({ tally }) => [...over].some((party) => tally.has(party)));
  if (part === undefined || anchor === undefined) return undefined;
  const rest = await thinned(directory, part.file, (party) => !over.has(party), pace);
  const files = keptIn(anchor).flatMap((file) => (file.name === part.file.name ? (rest ?? []) : file));
  const { first_id: firstId, prev_hash: prevHash } = anchor;
  writeAnchor({ directory, firstId, prevHash, kept: files, key, nowMs: nowMs() });
  deleteKept(directory, part.file.name);
  return { bytes: part.size - (rest?.bytes ?? 0) };
}

/** The oldest segment, less what others than those who have too much did: that is kept. */
async function dropOldest(
  options: ShrinkOptions,
  { anchor, sealed: [part], next, over }: Survey,
  isStopped: () => boolean,
): Promise<Done | undefined> {
  const { directory, segmentBytes, strangers, key, nowMs, pace } = options;
  // A segment whose first line is damaged cannot be anchored: verification names it.
  const frame: LineFrame | undefined = part && next && firstFrame(next);
  if (part === undefined || frame === undefined) return undefined;
  const isKept = (party: string): boolean => party !== STRANGERS && !over.has(party);
  const before = keptIn(anchor);
  const kept = [...part.tally.keys()].some(isKept)
    ? await keepLines(
        directory,
        before,
        { from: part.path, size: part.size, isKept },
        { fullBytes: segmentBytes, pace },
      )
    : before;
  if (isStopped()) return undefined;
  // The anchor comes first: after a crash in between, what is before it is only deleted later.
  writeAnchor({ directory, firstId: frame.id, prevHash: frame.prevHash, kept, key, nowMs: nowMs() });
  drop(part.segment);
  pruneCheckpoints(directory, frame.id);
  strangers?.drop([part.segment.name]);
  const grown = bytesOf(kept) - bytesOf(before);
  return { name: part.segment.name, bytes: part.size - grown };
}

const bytesOf = (files: readonly KeptFile[]): number => files.reduce((sum, { bytes }) => sum + bytes, 0);
