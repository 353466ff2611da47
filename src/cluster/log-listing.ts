import type { AuditFilter } from '../core/audit/audit.ts';
import { jsonIn } from '../core/base/mapping.ts';
import { BAD_CURSOR } from '../core/base/page.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { LogAsked, LogPiece } from '../ports/cluster.ts';

/** The audit log of one gateway. */
export type LogSource = {
  readonly name: string;
  read(asked: LogAsked): Promise<Result<LogPiece, Fault>>;
};

export type LogRead = {
  readonly filter: AuditFilter;
  readonly orgId: string | null;
  readonly most: number;
  readonly cursor: string | undefined;
};

/** Names of gateways whose entries are missing. */
type Incomplete = { readonly incomplete: readonly string[] };
export type LogPage = Incomplete & { readonly lines: readonly string[]; readonly next: string | undefined };
export type LogExport = Incomplete & { readonly text: string; readonly next: string | undefined };

/** The entries of one gateway that were read for a page, in the order of its chain. */
type Chain = {
  readonly name: string;
  readonly entries: readonly { readonly id: number; readonly timestamp: string; readonly line: string }[];
  /** The start of its next piece; undefined: there is none. */
  readonly before: number | undefined;
  /** How many of the entries are on the page. */
  taken: number;
};

/**
 * Limits another gateway's part of a page, which crosses the bus in pieces. A page that would need more is short, and
 * has a next one.
 */
const MOST_OF_ANOTHER = 250;
const MOST_OF_EXPORT = 100;
/** In a cursor, of a log that has been read to its end. */
const AT_END = 0;
const FROM_NEWEST = Number.MAX_SAFE_INTEGER;
const MAX_NAMES = 1_000;
const HEAD = /^\{"id":(\d{1,15}),"timestamp":"([^"]*)"/;

/**
 * A page of the logs of all gateways, newest first. Each log is read in its own order, and its place in the cursor is
 * its own, so no entry is left out or shown twice, however clocks differ. A gateway that does not answer is named, and
 * keeps its place: what it has comes with the page after it has answered again.
 */
export async function readLogPage(
  own: LogSource,
  others: readonly LogSource[],
  { cursor, most, ...asked }: LogRead,
): Promise<Result<LogPage, Fault>> {
  const places = cursor === undefined ? new Map<string, number>() : placesIn(cursor);
  if (places === undefined) return BAD_CURSOR;
  const sources = [own, ...others].filter(({ name }) => places.get(name) !== AT_END);
  const pieces = await Promise.all(
    sources.map((source) =>
      source.read({
        ...asked,
        form: 'lines',
        most: source === own ? most : Math.min(most, MOST_OF_ANOTHER),
        before: places.get(source.name),
      }),
    ),
  );
  const chains: Chain[] = [];
  const missing = new Set<string>();
  for (const [name, place] of places)
    if (place !== AT_END && !sources.some((source) => source.name === name)) missing.add(name);
  for (const [at, source] of sources.entries()) {
    const piece = pieces[at]!;
    if (piece.ok) chains.push(chainOf(source.name, piece.value));
    else if (source === own) return piece;
    else missing.add(source.name);
  }
  const lines = merge(chains, most);
  for (const chain of chains) places.set(chain.name, placeAfter(chain));
  const hasMore = chains.some(({ name }) => places.get(name) !== AT_END);
  return ok({ lines, next: hasMore ? cursorOf([...places]) : undefined, incomplete: [...missing].sort() });
}

function chainOf(name: string, { text, before }: LogPiece): Chain {
  let id = before ?? 1; // of a line that was changed since it was written
  const entries = (text === '' ? [] : text.split('\n')).map((line) => {
    const [, digits, timestamp = ''] = HEAD.exec(line) ?? [];
    if (digits !== undefined) id = Number(digits);
    return { id, timestamp, line };
  });
  return { name, entries, before, taken: 0 };
}

/** Ends early where a log may have newer entries than the others have left: they were not looked for yet. */
function merge(chains: readonly Chain[], most: number): readonly string[] {
  const lines: string[] = [];
  while (lines.length < most) {
    let newest: Chain | undefined;
    for (const chain of chains) {
      const timestamp = nextOf(chain)?.timestamp;
      if (timestamp === undefined && chain.before !== undefined) return lines;
      if (timestamp === undefined) continue;
      if (newest === undefined || timestamp > nextOf(newest)!.timestamp) newest = chain;
    }
    if (newest === undefined) return lines;
    lines.push(nextOf(newest)!.line);
    newest.taken += 1;
  }
  return lines;
}

const nextOf = ({ entries, taken }: Chain) => entries[taken];

function placeAfter(chain: Chain): number {
  const next = nextOf(chain);
  return next === undefined ? (chain.before ?? AT_END) : next.id + 1;
}

/**
 * A piece of the logs of all gateways, one log after the other, so that each chain can be verified. The first piece
 * names those that do not answer; one that falls silent later ends the export with a fault, since half of its log would
 * pass for all of it.
 */
export async function readLogExport(
  own: LogSource,
  others: readonly LogSource[],
  form: 'ndjson' | 'csv',
  { cursor, most, ...asked }: LogRead,
): Promise<Result<LogExport, Fault>> {
  if (cursor === undefined) return beginExport(own, others, form, { most, ...asked });
  const left = placesIn(cursor);
  const [first] = left ?? [];
  if (left === undefined || first === undefined) return BAD_CURSOR;
  const [name, before] = first;
  const source = [own, ...others].find((each) => each.name === name);
  if (source === undefined) return fail({ kind: 'unreachable_gateway', gateway: name, retryAfterSecs: 1 });
  const piece = await source.read({ ...asked, form, most: mostOf(source, own, most), before });
  if (!piece.ok) return piece;
  left.delete(name);
  const places: Place[] = piece.value.before === undefined ? [...left] : [[name, piece.value.before], ...left];
  return ok({ text: piece.value.text, next: places.length === 0 ? undefined : cursorOf(places), incomplete: [] });
}

/** Its own log first: only that piece has the head of a table. */
async function beginExport(
  own: LogSource,
  others: readonly LogSource[],
  form: 'ndjson' | 'csv',
  { most, ...asked }: Omit<LogRead, 'cursor'>,
): Promise<Result<LogExport, Fault>> {
  const probe = { ...asked, form: 'lines', most: 1, before: 1 } as const; // there is nothing before the first entry
  const [piece, ...answers] = await Promise.all([
    own.read({ ...asked, form, most, before: undefined }),
    ...others.map((other) => other.read(probe)),
  ]);
  if (!piece.ok) return piece;
  const places: Place[] = piece.value.before === undefined ? [] : [[own.name, piece.value.before]];
  const incomplete: string[] = [];
  for (const [at, { name }] of others.entries()) {
    if (answers[at]!.ok) places.push([name, FROM_NEWEST]);
    else incomplete.push(name);
  }
  const next = places.length === 0 ? undefined : cursorOf(places);
  return ok({ text: piece.value.text, next, incomplete: incomplete.sort() });
}

const mostOf = (source: LogSource, own: LogSource, most: number): number =>
  source === own ? most : Math.min(most, MOST_OF_EXPORT);

/** The name of a gateway, and the id before which its log goes on. */
type Place = readonly [name: string, before: number];

const cursorOf = (places: readonly Place[]): string => Buffer.from(JSON.stringify(places)).toString('base64url');

/** Undefined for a text that is no cursor. */
function placesIn(cursor: string): Map<string, number> | undefined {
  const places = jsonIn(Buffer.from(cursor, 'base64url').toString());
  if (!Array.isArray(places) || places.length > MAX_NAMES || !places.every(isPlace)) return undefined;
  return new Map(places);
}

const isPlace = (raw: unknown): raw is Place =>
  Array.isArray(raw) &&
  raw.length === 2 &&
  typeof raw[0] === 'string' &&
  Number.isSafeInteger(raw[1]) &&
  raw[1] >= AT_END;
