/**
 * Keeps entries of segments that are deleted for the size of the log: those of parties that have not used up their
 * share of it. They are in files of their own, line by line as they were, and the signed anchor lists them.
 */
import { createHash } from 'node:crypto';
import { closeSync, fsyncSync, ftruncateSync, mkdirSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ifThereSync, syncDirectory } from '../system/files.ts';
import { type Anchor, type KeptFile, readAnchor } from './checkpoint.ts';
import { idOf } from './line.ts';
import type { Segment } from './segments.ts';
import { readFully, segmentAt } from './segments.ts';
import { eachLine, type Pace } from './shares.ts';

const FOLDER = 'kept';

/** Oldest first. */
export function keptIn(anchor: Anchor | 'damaged' | undefined): readonly KeptFile[] {
  return anchor === undefined || anchor === 'damaged' ? [] : (anchor.kept ?? []);
}

export const keptPath = (directory: string, name: string): string => join(directory, FOLDER, name);

/** As readers take them: they are as segments are, but for gaps between their ids. */
export const keptSegments = (directory: string): Segment[] =>
  keptIn(readAnchor(directory)).map(({ name }) => ({
    firstId: Number(name.slice(0, 16)),
    name: `${FOLDER}/${name}`,
    path: keptPath(directory, name),
  }));

export type Kept = { readonly from: string; readonly size: number; readonly isKept: (party: string) => boolean };

/**
 * Adds lines of a segment to the last file, or to a new one where that has `fullBytes`. The result is on the disk then,
 * and counts once an anchor names it.
 */
export async function keepLines(
  directory: string,
  files: readonly KeptFile[],
  { from, size, isKept }: Kept,
  { fullBytes, pace }: { readonly fullBytes: number; readonly pace: Pace },
): Promise<readonly KeptFile[]> {
  const last = files.at(-1);
  const isNew = last === undefined || last.bytes >= fullBytes;
  const name = isNew ? basename(segmentAt(directory, await firstKeptId(from, size, isKept, pace)).path) : last.name;
  const begun = isNew ? { entries: 0, bytes: 0 } : last;
  const file = await writeLines(keptPath(directory, name), begun, { from, size, isKept }, pace);
  return isNew ? [...files, file] : [...files.slice(0, -1), file];
}

/** The file without some of its lines, under another name; undefined where none is left. */
export async function thinned(
  directory: string,
  { name, bytes }: KeptFile,
  isKept: (party: string) => boolean,
  pace: Pace,
): Promise<KeptFile | undefined> {
  const [, id, nth = '1'] = /^(\d+)(?:-(\d+))?/.exec(name)!;
  const path = keptPath(directory, `${id}-${Number(nth) + 1}.ndjson`);
  const file = await writeLines(path, EMPTY, { from: keptPath(directory, name), size: bytes, isKept }, pace);
  if (file.entries > 0) return file;
  unlinkSync(path);
  return undefined;
}

export function deleteKept(directory: string, name: string): void {
  for (const path of [keptPath(directory, name), keptPath(directory, name.replace(/ndjson$/, 'idx'))])
    ifThereSync(() => unlinkSync(path));
}

const EMPTY = { entries: 0, bytes: 0 };

async function writeLines(
  path: string,
  begun: { readonly entries: number; readonly bytes: number },
  { from, size, isKept }: Kept,
  pace: Pace,
): Promise<KeptFile> {
  const folder = join(path, '..');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const fd = openSync(path, begun.bytes === 0 ? 'w+' : 'r+', 0o600);
  try {
    // Bytes behind the end, left by a crash, are cut off.
    ftruncateSync(fd, begun.bytes);
    let { entries, bytes } = begun;
    let lines: string[] = [];
    const write = (): void => {
      const piece = Buffer.from(lines.join(''), 'latin1');
      for (let at = 0; at < piece.length; ) at += writeSync(fd, piece, at, piece.length - at, bytes + at);
      bytes += piece.length;
      entries += lines.length;
      lines = [];
    };
    const paced = async (): Promise<void> => {
      write();
      await pace();
    };
    await eachLine(from, size, paced, ({ text, party }) => {
      if (isKept(party)) lines.push(text);
    });
    write();
    fsyncSync(fd);
    syncDirectory(folder);
    return { name: basename(path), entries, bytes, sha256: await sha256Of(fd, bytes, pace) };
  } finally {
    closeSync(fd);
  }
}

const READ_BYTES = 1024 * 1024;

async function sha256Of(fd: number, size: number, pace: Pace): Promise<string> {
  const hash = createHash('sha256');
  for (let position = 0; position < size; ) {
    const block = Buffer.allocUnsafe(Math.min(READ_BYTES, size - position));
    const filled = readFully(fd, block, position);
    if (filled === 0) break;
    hash.update(block.subarray(0, filled));
    position += filled;
    await pace();
  }
  return hash.digest('hex');
}

async function firstKeptId(from: string, size: number, isKept: Kept['isKept'], pace: Pace): Promise<number> {
  let first: number | undefined;
  await eachLine(from, size, pace, ({ text, party }) => {
    if (first === undefined && isKept(party)) first = idOf(Buffer.from(text, 'latin1'));
  });
  return first ?? Number(basename(from).slice(0, 16));
}
