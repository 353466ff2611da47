/**
 * How far an export has come, on one line of standard error that is drawn over, for the person who waits at a terminal.
 */
import { pipeline, type Readable, Transform } from 'node:stream';
import { clipped } from './printable.ts';
import { brief } from './words.ts';

const REDRAW_MS = 200;
const LINE_FEED = 10;
const QUOTE = 34;
const CLEARED = '\r\u001b[K';

type ExportFormat = 'ndjson' | 'csv';

/** The same bytes; an error of either is one of both. Nothing is drawn where standard error is no terminal. */
export function shownProgress(source: Readable, format: ExportFormat): Readable {
  const { stderr } = process;
  if (stderr.isTTY !== true || process.env.TERM === 'dumb') return source;
  const startedAtMs = Date.now();
  const entries = entryCounter(format);
  let bytes = 0;
  const draw = (text: string): void => void stderr.write(`${CLEARED}${clipped(text, (stderr.columns || 80) - 1)}`);
  const soFar = (): string =>
    `${entries.count().toLocaleString('en-US')} ${entries.count() === 1 ? 'entry' : 'entries'}, ${sizeText(bytes)}, ${brief(Date.now() - startedAtMs)}`;
  draw('Exporting …');
  const timer = setInterval(() => draw(`Exporting: ${soFar()}`), REDRAW_MS);
  const progress = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      bytes += chunk.length;
      entries.add(chunk);
      done(null, chunk);
    },
    flush: (done) => {
      draw(soFar()); // the file is not in its place yet: to call it exported is not for this line
      stderr.write('\n');
      done();
    },
    destroy: (error, done) => {
      clearInterval(timer);
      if (error !== null) stderr.write(CLEARED);
      done(error);
    },
  });
  return pipeline(source, progress, () => undefined); // whoever reads the result is told of the error
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
