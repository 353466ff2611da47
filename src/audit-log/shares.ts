/**
 * Whose entries fill the log: how many bytes of each file are of which org, and how much an org may have where the log
 * has a limit.
 */
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFileSync, textIfThereSync } from '../system/files.ts';
import { FIELD, LineScanner } from './scan.ts';
import { readFully } from './segments.ts';

/** By party: the org as written in the line, `null` for entries of the gateway and its operators. */
export type Tally = ReadonlyMap<string, number>;

/** The party of callers that are not identified. No org is written without quotes. */
export const STRANGERS = 'strangers';
const STRANGERS_ACTOR = '"anonymous"';
const NO_ORG = 'null';

/** Awaited after each piece of work, which takes about a millisecond: checks go on in between. */
export type Pace = () => Promise<void>;

const SLICE_BYTES = 256 * 1024;

/** With its line feed, read as latin1. */
type PartyLine = { readonly text: string; readonly party: string };

/** The whole lines in the first `size` bytes of a file. */
export async function eachLine(path: string, size: number, pace: Pace, use: (line: PartyLine) => void): Promise<void> {
  const scanner = new LineScanner();
  const fd = openSync(path, 'r');
  try {
    let rest = '';
    for (let position = 0; position < size; ) {
      const block = Buffer.allocUnsafe(Math.min(SLICE_BYTES, size - position));
      const filled = readFully(fd, block, position);
      if (filled === 0) return;
      position += filled;
      const text = rest + block.toString('latin1', 0, filled);
      let start = 0;
      for (let feed = text.indexOf('\n'); feed !== -1; feed = text.indexOf('\n', start)) {
        use({ text: text.slice(start, feed + 1), party: partyOf(scanner, text, start) });
        start = feed + 1;
      }
      rest = text.slice(start);
      await pace();
    }
  } finally {
    closeSync(fd);
  }
}

/** Damaged lines have no owner, and are kept as the gateway's own are. */
function partyOf(scanner: LineScanner, text: string, start: number): string {
  if (!scanner.read(text, start)) return NO_ORG;
  return scanner.is(FIELD.actor, STRANGERS_ACTOR) ? STRANGERS : scanner.token(FIELD.orgId);
}

/**
 * The most that each party may have so that all fit: who has less keeps all of it, and the others share the rest
 * equally. A single party has everything. Infinity where all fit as they are.
 */
export function shareOf(usage: Tally, budget: number): number {
  const sizes = [...usage.values()].sort((one, other) => one - other);
  let left = budget;
  for (const [n, size] of sizes.entries()) {
    const share = left / (sizes.length - n);
    if (size > share) return share;
    left -= size;
  }
  return Infinity;
}

const FILE = 'shares.json';
/** With more parties, a file is counted again after a restart. */
const MAX_NOTED = 1_000;

type Noted = { readonly size: number; readonly bytes: Readonly<Record<string, number>> };

/** Counts each file once, also across restarts. */
export class Tallies {
  readonly #path: string;
  readonly #known = new Map<string, { readonly size: number; readonly tally: Tally }>();

  constructor(directory: string) {
    this.#path = join(directory, FILE);
    for (const [name, { size, bytes }] of notedIn(this.#path))
      this.#known.set(name, { size, tally: new Map(Object.entries(bytes)) });
  }

  async of(name: string, path: string, size: number, pace: Pace): Promise<Tally> {
    const known = this.#known.get(name);
    if (known?.size === size) return known.tally;
    const tally = new Map<string, number>();
    await eachLine(path, size, pace, ({ text, party }) => tally.set(party, (tally.get(party) ?? 0) + text.length));
    this.#known.set(name, { size, tally });
    return tally;
  }

  /** Notes the tallies of these files, and forgets all others. Throws what the file system says. */
  save(names: readonly string[]): void {
    for (const name of [...this.#known.keys()]) if (!names.includes(name)) this.#known.delete(name);
    const noted = [...this.#known]
      .filter(([, { tally }]) => tally.size <= MAX_NOTED)
      .map(([name, { size, tally }]): [string, Noted] => [name, { size, bytes: Object.fromEntries(tally) }]);
    replaceFileSync(this.#path, `${JSON.stringify(Object.fromEntries(noted))}\n`);
  }
}

function notedIn(path: string): readonly [string, Noted][] {
  try {
    const noted = JSON.parse(textIfThereSync(path) ?? '{}') as Readonly<Record<string, Noted>>;
    return Object.entries(noted).filter(([, { size, bytes }]) =>
      [size, ...Object.values(bytes)].every(Number.isSafeInteger),
    );
  } catch {
    return []; // damaged: counted again
  }
}
