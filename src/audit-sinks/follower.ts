/** Reads the audit log forwards from any entry on, while a writer appends and retention takes away the beginning. */
import { closeSync, fstatSync, openSync } from 'node:fs';
import { keptSegments } from '../audit-log/kept.ts';
import { frameOf, idOf, type LineFrame } from '../audit-log/line.ts';
import { readTail } from '../audit-log/recovery.ts';
import { listSegments, readFully, type Segment } from '../audit-log/segments.ts';
import { ifThereSync } from '../system/files.ts';
import type { SinkEntry } from './sink.ts';

export type ReadLimits = { readonly entries: number; readonly bytes: number };

export type Piece = {
  /** In order; empty: nothing follows yet. */
  readonly entries: readonly SinkEntry[];
  /** The predecessor that the first entry names; undefined if there is no entry, or it is damaged. */
  readonly first: LineFrame | undefined;
};

/** The next line to look at. */
type Place = { readonly path: string; readonly offset: number; readonly afterId: number };

type Lines = {
  readonly entries: readonly SinkEntry[];
  readonly first: LineFrame | undefined;
  /** Behind the last line that was looked at. */
  readonly end: number;
};

const BLOCK_BYTES = 256 * 1024;
const LINE_FEED = 10;

export class LogFollower {
  readonly #directory: string;
  #place: Place | undefined;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** The id of the last entry; 0: there is none. */
  lastId(): number {
    for (const { path } of this.#files().toReversed()) {
      const last = ifThereSync(() => readTail(path))?.last;
      if (last !== undefined) return last.frame.id;
    }
    return 0;
  }

  /** The id of the oldest entry that is still there; undefined: there is none. */
  firstId(): number | undefined {
    return new LogFollower(this.#directory).read(0, { entries: 1, bytes: 1 }).entries[0]?.id;
  }

  /** Reads entries after this one, at least one if there is any. Looks at one file, or a part of it. */
  read(afterId: number, limits: ReadLimits): Piece {
    let place = this.#place?.afterId === afterId ? this.#place : this.#locate(afterId);
    while (place !== undefined) {
      // Listed before it is read: where another file follows, this one has got its last entry.
      const files = this.#files();
      const { path, offset } = place;
      const lines = ifThereSync(() => linesFrom(path, offset, afterId, limits));
      if (lines === undefined) {
        // Retention has deleted it, or an append that failed was cut off.
        this.#place = undefined;
        const again = this.#locate(afterId);
        if (again === undefined || again.path === path) return NOTHING;
        place = again;
        continue;
      }
      this.#place = { path, offset: lines.end, afterId: lines.entries.at(-1)?.id ?? afterId };
      if (lines.entries.length > 0) return lines;
      const next = files[files.findIndex((file) => file.path === path) + 1];
      if (next === undefined || next.path === path) return NOTHING;
      place = { path: next.path, offset: 0, afterId };
    }
    return NOTHING;
  }

  /** The file that has the entry after that one, or the oldest one behind it. */
  #locate(afterId: number): Place | undefined {
    const files = this.#files();
    const file = files.findLast(({ firstId }) => firstId <= afterId + 1) ?? files[0];
    return file && { path: file.path, offset: 0, afterId };
  }

  /** Kept entries of deleted segments are older than all others. */
  #files(): readonly Segment[] {
    return [...keptSegments(this.#directory), ...listSegments(this.#directory)];
  }
}

const NOTHING: Piece = { entries: [], first: undefined };

/** Lines of entries beyond `afterId`. Damaged ones are left to `svc audit verify`. Undefined: the file ends before. */
function linesFrom(path: string, from: number, afterId: number, limits: ReadLimits): Lines | undefined {
  const fd = openSync(path, 'r');
  try {
    const { size } = fstatSync(fd);
    if (size < from) return undefined;
    const entries: SinkEntry[] = [];
    let first: LineFrame | undefined;
    let bytes = 0;
    let at = from;
    let blockBytes = BLOCK_BYTES;
    while (at < size && entries.length < limits.entries && bytes < limits.bytes) {
      const block = Buffer.allocUnsafe(Math.min(blockBytes, size - at));
      const filled = block.subarray(0, readFully(fd, block, at));
      let start = 0;
      for (let feed = filled.indexOf(LINE_FEED); feed !== -1; feed = filled.indexOf(LINE_FEED, start)) {
        const line = filled.subarray(start, feed);
        const id = idOf(line);
        if (id !== undefined && id > afterId) {
          if (entries.length >= limits.entries || (entries.length > 0 && bytes + line.length > limits.bytes))
            return { entries, first, end: at + start };
          if (entries.length === 0) first = frameOf(line);
          entries.push({ id, line: line.toString('utf8') });
          bytes += line.length;
        }
        start = feed + 1;
      }
      at += start;
      if (start > 0) blockBytes = BLOCK_BYTES;
      else if (filled.length < block.length || at + filled.length >= size)
        break; // its last line is not complete yet
      else blockBytes *= 2; // a line that is longer than the block
    }
    return { entries, first, end: at };
  } finally {
    closeSync(fd);
  }
}
