/** Reads the audit log while a writer appends to it, or a copy of it (docs/spec.md, Audit). */

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AuditEntry, AuditFilter } from '../core/audit/audit.ts';
import { jsonIn } from '../core/base/mapping.ts';
import type { Page } from '../core/base/page.ts';
import { assert, ok, type Result } from '../core/base/result.ts';
import { type Fault, invalid } from '../core/fault.ts';
import { CSV, CSV_OF_CLUSTER, type Csv } from './csv.ts';
import { type CompiledFilter, compileFilter } from './filter.ts';
import { keptSegments } from './kept.ts';
import { idOf } from './line.ts';
import { LineScanner } from './scan.ts';
import { type ChunkRange, candidates } from './segment-index.ts';
import { type IndexedSegment, SegmentIndexes, withSegment } from './segment-indexes.ts';
import { listSegments, readFully, type Segment } from './segments.ts';

/** Redacts entries for a credential that is bound to their org (docs/spec.md, Tokens and scopes). */

/** As far as it can be relied on: the line may have been changed since it was written. */
type Shown = { readonly payload?: Readonly<Record<string, unknown>> | null };

/**
 * Spending and reservations of the global caps would reveal the other orgs' spending. Without them, the hash of the
 * line cannot be checked.
 */
export function lineForOrg(line: string): string {
  if (!line.includes('"event_type":"BudgetLimitExceeded"')) return line;
  const entry = JSON.parse(line) as Shown;
  if (entry.payload?.tier !== 'global') return line;
  const { spent_usd: _spent, reserved_usd: _reserved, limit_usd: _limit, ...payload } = entry.payload;
  return JSON.stringify({ ...entry, payload });
}

export type AuditPageRequest = { readonly perPage: number; readonly cursor?: string | undefined };

/** A page looks at this many chunks or segments at most, about a third of a second. */
const MAX_STEPS_PER_PAGE = 2000;
/** And for this long, where disks are slow, lines are long, or indexes are yet to be built. */
const MAX_MS_PER_PAGE = 400;
/** About 2 ms of work between two turns of the event loop. */
const CHUNKS_PER_TURN = 16;
const EXPORT_PIECE_CHARACTERS = 64 * 1024;
const LINE_FEED = 10;
const NO_CURSOR = Number.MAX_SAFE_INTEGER;

type Match = { readonly id: number; readonly line: string };
/** Everything from `reached` on has been looked at, of which `entries` are new. */
type Step = {
  readonly matches: readonly Match[];
  readonly cost: number;
  readonly reached: number;
  readonly entries: number;
};
type Plan = { readonly chunks: readonly ChunkRange[]; readonly cost: number };

/** Reads the log; each thread has its own. Keeps indexes in memory, and no file open between two calls. */
export class AuditReader {
  readonly #directory: string;
  readonly #maxStepsPerPage: number;
  readonly #maxMsPerPage: number;
  readonly #nowMs: () => number;
  readonly #indexes = new SegmentIndexes();
  /** Segments with a smaller first id are sealed and have an index. */
  #refreshedBefore = 0;

  constructor(
    directory: string,
    { maxStepsPerPage = MAX_STEPS_PER_PAGE, maxMsPerPage = MAX_MS_PER_PAGE, nowMs = () => performance.now() } = {},
  ) {
    this.#directory = directory;
    this.#maxStepsPerPage = maxStepsPerPage;
    this.#maxMsPerPage = maxMsPerPage;
    this.#nowMs = nowMs;
  }

  /**
   * Matching entries as JSON text, newest first. The next page begins where this one ends, whatever was appended
   * meanwhile. A page may be short, even empty, and still have a `next`: the search was cut to stay quick. A line that
   * is no longer JSON is left to `svc audit verify`.
   */
  async query(filter: AuditFilter, { perPage, cursor }: AuditPageRequest): Promise<Result<Page<string>, Fault>> {
    assert(Number.isSafeInteger(perPage) && perPage > 0, 'a page holds at least one entry');
    const before = cursor === undefined ? NO_CURSOR : parseCursor(cursor);
    if (before === undefined) return invalid('cursor', 'is not valid; start from the first page');
    const matches: Match[] = [];
    const untilMs = this.#nowMs() + this.#maxMsPerPage;
    let steps = 0;
    let stoppedAt: number | undefined;
    for await (const step of this.#walk(compileFilter(filter), before)) {
      matches.push(...step.matches.filter(({ line }) => entryOf(line) !== undefined));
      // An extra entry shows that there is a next page.
      if (matches.length > perPage) break;
      steps += step.cost;
      // Not before anything was looked at: the next page would begin where this one did.
      if ((steps >= this.#maxStepsPerPage || this.#nowMs() >= untilMs) && step.reached < before) {
        stoppedAt = step.reached;
        break;
      }
    }
    const shown = matches.slice(0, perPage);
    const goOnBefore = matches.length > perPage ? shown.at(-1)?.id : stoppedAt;
    return ok({
      items: shown.map(({ line }) => utf8Of(line)),
      next: goOnBefore === undefined ? undefined : cursorOf(goOnBefore),
    });
  }

  /**
   * Everything that matches and was in the log when the export began, newest first, in pieces of some 64 KB, as fast as
   * they are taken. NDJSON gives the lines as they are, so that their hashes can be checked.
   */
  async *export(filter: AuditFilter, format: 'ndjson' | 'csv'): AsyncGenerator<string> {
    const csv = format === 'csv' ? await this.#csv() : undefined;
    const render = (line: string): string => (csv === undefined ? `${utf8Of(line)}\n` : csvLineOf(csv, line));
    let piece = csv?.header ?? '';
    for await (const { matches } of this.#walk(compileFilter(filter), NO_CURSOR)) {
      for (const { line } of matches) piece += render(line);
      if (piece.length < EXPORT_PIECE_CHARACTERS) continue;
      yield piece;
      piece = '';
    }
    if (piece !== '') yield piece;
  }

  /**
   * The same, parsed, chunk by chunk; `read` is how many entries were looked at for it. Lines that are no longer JSON
   * are left out.
   */
  async *entries(
    filter: AuditFilter,
  ): AsyncGenerator<{ readonly matches: readonly AuditEntry[]; readonly read: number }> {
    for await (const { matches, entries } of this.#walk(compileFilter(filter), NO_CURSOR))
      yield { matches: matches.flatMap(({ line }) => entryOf(line) ?? []), read: entries };
  }

  /** About how many entries `entries` looks at. */
  async extent(filter: AuditFilter): Promise<number> {
    const compiled = compileFilter(filter);
    const segments = listSegments(this.#directory);
    let total = 0;
    for (const segment of inOrder(this.#directory, segments)) {
      const plan = await this.#plan(segment, segment === segments.at(-1), compiled, NO_CURSOR);
      for (const { entries } of plan?.chunks ?? []) total += entries;
    }
    return total;
  }

  /** With the column for gateways if the newest entry names one. */
  async #csv(): Promise<Csv> {
    for await (const { matches } of this.#walk(compileFilter({}), NO_CURSOR))
      for (const { line } of matches) return entryOf(line)?.gateway === undefined ? CSV : CSV_OF_CLUSTER;
    return CSV;
  }

  /**
   * Brings the indexes up to date, at most one whole segment per call, so that the next query need not; true when there
   * is more to do.
   */
  async refresh(): Promise<boolean> {
    const segments = listSegments(this.#directory);
    const newest = segments.at(-1);
    for (const segment of segments) {
      if (segment.firstId < this.#refreshedBefore) continue;
      const known = await withSegment(segment, (fd) => this.#indexes.of(segment, fd, segment === newest));
      if (segment === newest) return false;
      this.#refreshedBefore = segment.firstId + 1;
      if (known?.wasBuilt === true) return true;
    }
    return false;
  }

  /**
   * The matches of one chunk after the other, from the newest on, and an empty step for every segment planned. `before`
   * is exclusive, as a cursor is.
   */
  async *#walk(filter: CompiledFilter, until: number): AsyncGenerator<Step> {
    const segments = listSegments(this.#directory);
    const newest = segments.at(-1);
    let before = until;
    let reached = before;
    let read = 0;
    for (const segment of inOrder(this.#directory, segments)) {
      // Entries kept from a segment that was read before its deletion have been seen.
      before = Math.min(before, reached);
      if (segment.firstId >= before) continue;
      const plan = await this.#plan(segment, segment === newest, filter, before);
      if (plan === undefined) continue;
      yield { matches: [], cost: plan.cost, reached, entries: 0 };
      for (const chunk of plan.chunks) {
        read += 1;
        if (read % CHUNKS_PER_TURN === 0) await nextTurn();
        const matches = await withSegment(segment, async (fd) => matchesIn(fd, chunk, filter, before));
        if (matches === undefined) break;
        reached = chunk.firstId;
        yield { matches, cost: 1, reached, entries: chunk.entries };
      }
      reached = segment.firstId;
    }
  }

  #plan(segment: Segment, isNewest: boolean, filter: CompiledFilter, before: number): Promise<Plan | undefined> {
    return withSegment(segment, async (fd) =>
      planOf(fd, await this.#indexes.of(segment, fd, isNewest), filter, before),
    );
  }
}

/** Kept entries of deleted segments are looked up last: a segment may be deleted while later ones are read. */
function* inOrder(directory: string, segments: readonly Segment[]): Generator<Segment> {
  yield* segments.toReversed();
  yield* keptSegments(directory).reverse();
}

function planOf(fd: number, { index, size, wasBuilt }: IndexedSegment, filter: CompiledFilter, before: number): Plan {
  const chunks = [...candidates(index, filter), ...tailOf(fd, index.endOffset, size)].filter(
    ({ firstId }) => firstId < before,
  );
  return { chunks: chunks.reverse(), cost: wasBuilt ? index.chunkCount : 1 };
}

/** The lines after the last indexed chunk, which are always looked at. */
function tailOf(fd: number, from: number, to: number): ChunkRange[] {
  if (from >= to) return [];
  const bytes = Buffer.allocUnsafe(to - from);
  const lines = bytes.subarray(0, readFully(fd, bytes, from));
  let start = 0;
  do {
    const firstId = idOf(lines.subarray(start));
    if (firstId !== undefined) return [{ from, to, firstId, entries: linesIn(lines) }];
    start = lines.indexOf(LINE_FEED, start) + 1; // that line is damaged, not those behind it
  } while (start > 0);
  return [];
}

function linesIn(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(LINE_FEED); at !== -1; at = bytes.indexOf(LINE_FEED, at + 1)) lines += 1;
  return lines;
}

/** The newest first. A line that is not complete yet is left for later. */
function matchesIn(fd: number, { from, to }: ChunkRange, filter: CompiledFilter, before: number): Match[] {
  const bytes = Buffer.allocUnsafe(to - from);
  const text = bytes.toString('latin1', 0, readFully(fd, bytes, from));
  const scanner = new LineScanner();
  const matches: Match[] = [];
  for (let start = 0, feed = text.indexOf('\n'); feed !== -1; start = feed + 1, feed = text.indexOf('\n', start)) {
    if (!scanner.read(text, start) || !filter.matches(scanner)) continue;
    const id = scanner.id();
    if (id < before) matches.push({ id, line: text.slice(start, feed) });
  }
  return matches.reverse();
}

const BEYOND_ASCII = /[\x80-\xff]/;
const utf8Of = (line: string): string =>
  BEYOND_ASCII.test(line) ? Buffer.from(line, 'latin1').toString('utf8') : line;

/** Undefined for one that was changed since it was written. */
const entryOf = (line: string): AuditEntry | undefined => jsonIn(utf8Of(line)) as AuditEntry | undefined;

function csvLineOf(csv: Csv, line: string): string {
  const entry = entryOf(line);
  return entry === undefined ? csv.damaged(utf8Of(line)) : csv.row(entry);
}

const CURSOR = /^before:([1-9]\d{0,15})$/;
export const cursorOf = (id: number): string => Buffer.from(`before:${id}`).toString('base64url');

export function parseCursor(cursor: string): number | undefined {
  const digits = CURSOR.exec(Buffer.from(cursor, 'base64url').toString('latin1'))?.[1];
  return digits === undefined ? undefined : Number(digits);
}
