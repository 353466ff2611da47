/** Writes a file atomically: it is either complete or unchanged. */
import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { link, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline as piped, type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { codeOf } from '../../core/base/text.ts';
import { ifThere } from '../../system/files.ts';
import { progressLine } from '../terminal/progress.ts';
import { interruptible } from '../terminal/prompt.ts';
import { brief } from '../terminal/words.ts';

// How far an export has come, for the person who waits at a terminal.

const REDRAW_MS = 200;
const LINE_FEED = 10;
const QUOTE = 34;

type ExportFormat = 'ndjson' | 'csv';

/** The same bytes; an error of either is one of both. Nothing is drawn where standard error is no terminal. */
export function shownProgress(source: Readable, format: ExportFormat): Readable {
  const line = progressLine();
  if (line === undefined) return source;
  const startedAtMs = Date.now();
  const entries = entryCounter(format);
  let bytes = 0;
  const soFar = (): string =>
    `${entries.count().toLocaleString('en-US')} ${entries.count() === 1 ? 'entry' : 'entries'}, ${sizeText(bytes)}, ${brief(Date.now() - startedAtMs)}`;
  line.draw('Exporting …');
  const timer = setInterval(() => line.draw(`Exporting: ${soFar()}`), REDRAW_MS);
  const progress = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      bytes += chunk.length;
      entries.add(chunk);
      done(null, chunk);
    },
    flush: (done) => {
      clearInterval(timer); // the reader may need longer yet: nothing is drawn below the last line
      line.draw(soFar()); // the file is not in its place yet: to call it exported is not for this line
      line.leave();
      done();
    },
    destroy: (error, done) => {
      clearInterval(timer);
      if (error !== null) line.clear();
      done(error);
    },
  });
  return piped(source, progress, () => undefined); // the reader of the result gets the error
}

/** A line is an entry. In CSV the first line is the heading, and a cell in quotes may hold line breaks. */
function entryCounter(format: ExportFormat) {
  let lines = 0;
  let isQuoted = false;
  return {
    add(chunk: Uint8Array): void {
      for (const byte of chunk) {
        if (byte === QUOTE) isQuoted = format === 'csv' && !isQuoted;
        else if (byte === LINE_FEED && !isQuoted) lines += 1;
      }
    },
    count: (): number => Math.max(0, format === 'csv' ? lines - 1 : lines),
  };
}

/** `812 B`, `4.2 MB`: in thousands, as disks are sold. */
function sizeText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const at = bytes < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  return `${at === 0 ? bytes : (bytes / 1000 ** at).toFixed(1)} ${units[at]}`;
}

/**
 * Writes the content from `open`, readable by its owner only. Rejects with the error of the system or of the source:
 * EEXIST when the file is there and may not be replaced, which is found out before anything is opened, ABORT_ERR when
 * it is interrupted.
 */
export async function writeWhole(path: string, mayReplace: boolean, open: () => Promise<Readable>): Promise<void> {
  const present = await ifThere(stat(path));
  if (present !== undefined && !mayReplace)
    throw Object.assign(new Error(`${path} already exists`), { code: 'EEXIST' });
  // A device or a pipe is written to: nothing may come in its place.
  if (present?.isFile() === false) return pipeline(await open(), createWriteStream(path));
  const target = present === undefined ? path : await realpath(path);
  await writeBeside(target, await open(), (partial) =>
    mayReplace ? rename(partial, target) : linkOrRename(partial, target),
  );
}

/** Writes under a passing name in the same folder, which is gone afterwards, whatever happens. */
async function writeBeside(
  target: string,
  source: Readable,
  publish: (partial: string) => Promise<void>,
): Promise<void> {
  const partial = join(dirname(target), `.svc-${randomBytes(6).toString('hex')}.partial`);
  await interruptible(async (signal) => {
    try {
      await pipeline(source, createWriteStream(partial, { mode: 0o600, flags: 'wx', flush: true }), { signal });
      await publish(partial);
    } finally {
      await rm(partial, { force: true });
    }
  });
}

/** A link replaces nothing that has come meanwhile. Some file systems, as that of a memory stick, have none. */
async function linkOrRename(partial: string, target: string): Promise<void> {
  try {
    await link(partial, target);
  } catch (error) {
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(codeOf(error) ?? '')) throw error;
    await rename(partial, target);
  }
}
