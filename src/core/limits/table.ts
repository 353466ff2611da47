/** Counts of one limit, by key: in columns of numbers, since there may be a million keys. */
import { assert } from '../base/result.ts';
import type { Raised } from '../budget/escrow.ts';
import { RESERVATION_TTL_MS } from '../budget/reservations.ts';
import { LimitAccount, type LimitGrants } from './grants.ts';
import type { Limit } from './limit.ts';

/**
 * A span is counted in tenths, and a tenth counts until all of it has left the span. So the maximum holds in any span,
 * and what has left it counts for at most a tenth of it longer.
 */
const TENTHS = 10;
const TENTHS_COUNTED = TENTHS + 1;
/** Tenths are numbered from here, so that their numbers are small. */
const FIRST_MS = Date.UTC(2025, 0);

/** In the cells of a row, behind what is counted. */
const RESERVED = 0;
/** The latest tenth; without a span: when the key was last used. */
const SEEN = 1;
/** The sum of what is counted. */
const TOTAL = 2;
const OTHERS = 3;
const ROWS_PER_BLOCK = 128;
const BLOCK_BITS = 7;

const DIRTY = 1;
const ALERTED = 0b110; // the level of the last alert, shifted by one

type Block = { readonly cells: Float64Array; readonly flags: Uint8Array };

/** People's decisions about a key. */
export type Said = {
  /** The amount that approvals have added to the maximum. */
  readonly raised: number;
  /** When they last did; 0: never. */
  readonly raisedAtMs: number;
  /** When an approval was last denied; 0: never. */
  readonly deniedAtMs: number;
  /** The last approval that had an effect. */
  readonly approvalId: string;
};

const UNSAID: Said = { raised: 0, raisedAtMs: 0, deniedAtMs: 0, approvalId: '' };

/** The state of a key, as it is stored. Times are milliseconds since the Unix epoch. */
export type LimitState = {
  /** When the oldest of the tenths begins, or the key was last used. */
  readonly atMs: number;
  /** By tenth, without zeros at the end; without a span a single number. */
  readonly counted: readonly number[];
  readonly said?: Said | undefined;
};

export type TableOptions = {
  /** After how long a key without a span is forgotten. */
  readonly ttlMs: number;
  /** In a cluster: what its ledger grants. */
  readonly grants?: LimitGrants | undefined;
};

export class LimitTable {
  /** Under which its counts are stored. */
  readonly identity: string;
  /** The latest one: its maximum may change, and its span may not. */
  limit: Limit;
  /** By row; none where no ledger grants anything. */
  readonly accounts: (LimitAccount | undefined)[] = [];
  readonly #grants: LimitGrants | undefined;
  readonly #tenthMs: number;
  readonly #counted: number;
  readonly #stride: number;
  readonly #ttlMs: number;
  readonly #rows = new Map<string, number>();
  readonly #blocks: Block[] = [];
  readonly #free: number[] = [];
  #used = 0;
  readonly #said = new Map<string, Said>();
  #dirtyRows: number[] = [];
  #dirtyKeys: string[] = [];
  /** Most questions are about the same time as the one before. */
  #lastMs = Number.NaN;
  #lastTenth = 0;
  /** The place at which the next sweep continues. */
  #sweeping: Iterator<readonly [string, number]> | undefined;

  constructor(identity: string, limit: Limit, { ttlMs, grants }: TableOptions) {
    this.identity = identity;
    this.limit = limit;
    this.#grants = grants;
    this.#tenthMs = limit.everyMs === undefined ? 0 : limit.everyMs / TENTHS;
    this.#counted = limit.everyMs === undefined ? 1 : TENTHS_COUNTED;
    this.#stride = this.#counted + OTHERS;
    this.#ttlMs = ttlMs;
  }

  get size(): number {
    return this.#rows.size;
  }

  /** The row of the key as of now; -1: it has none. */
  find(key: string, nowMs: number): number {
    const row = this.#rows.get(key);
    if (row === undefined) return -1;
    this.roll(row, key, nowMs);
    return row;
  }

  /** Whatever time has made of it since. */
  rowOf(key: string): number | undefined {
    return this.#rows.get(key);
  }

  create(key: string, nowMs: number): number {
    const row = this.#free.pop() ?? this.#grow();
    this.#rows.set(key, row);
    const { cells } = this.#blocks[row >> BLOCK_BITS]!;
    cells[this.#at(row) + this.#counted + SEEN] = this.#tenthMs === 0 ? nowMs : this.#tenthOf(nowMs);
    if (this.#grants !== undefined) this.accounts[row] = this.#grants.open(new LimitAccount(this, key, row));
    return row;
  }

  usedOf(row: number): number {
    return this.#blocks[row >> BLOCK_BITS]!.cells[this.#at(row) + this.#counted + TOTAL]!;
  }

  reservedOf(row: number): number {
    return this.#blocks[row >> BLOCK_BITS]!.cells[this.#at(row) + this.#counted + RESERVED]!;
  }

  /** In a cluster with what the other gateways have used, as far as it is known. */
  usedByAll(row: number): number {
    return this.usedOf(row) + (this.accounts[row]?.spentByOthersMicroUsd ?? 0);
  }

  /** For how long a gateway that has died may have used something that still counts. */
  get lastsMs(): number {
    if (this.limit.everyMs === undefined) return this.#ttlMs;
    return TENTHS_COUNTED * this.#tenthMs + (this.limit.unit === 'usd' ? RESERVATION_TTL_MS : 0);
  }

  /** When the key was last used, where it has no span. */
  usedAtMs(row: number): number {
    return this.#blocks[row >> BLOCK_BITS]!.cells[this.#at(row) + this.#counted + SEEN]!;
  }

  /** The maximum in force for the key. */
  maxOf(key: string, nowMs: number): number {
    return this.#said.size === 0 ? this.limit.max : this.limit.max + this.raisedOf(key, nowMs);
  }

  raisedOf(key: string, nowMs: number): number {
    const said = this.#said.get(key);
    return said !== undefined && this.#holds(said.raisedAtMs, nowMs) ? said.raised : 0;
  }

  /** Whether a person has denied that the key goes beyond its maximum. */
  isDenied(key: string, nowMs: number): boolean {
    return this.#said.size > 0 && this.#holds(this.#said.get(key)?.deniedAtMs ?? 0, nowMs);
  }

  saidOf(key: string): Said | undefined {
    return this.#said.get(key);
  }

  /** A decision applies for one span, or until the key is forgotten. */
  #holds(sinceMs: number, nowMs: number): boolean {
    return sinceMs > 0 && (this.limit.everyMs === undefined || nowMs < sinceMs + this.limit.everyMs);
  }

  raise(key: string, row: number, approvalId: string, nowMs: number): void {
    const raised = this.raisedOf(key, nowMs) + this.limit.step;
    this.#said.set(key, { ...(this.#said.get(key) ?? UNSAID), raised, raisedAtMs: nowMs, deniedAtMs: 0, approvalId });
    this.touch(key, row, nowMs);
  }

  deny(key: string, row: number, approvalId: string, nowMs: number): void {
    this.#said.set(key, { ...(this.#said.get(key) ?? UNSAID), deniedAtMs: nowMs, approvalId });
    this.touch(key, row, nowMs);
  }

  /** As it was before. */
  unsay(key: string, row: number, before: Said | undefined): void {
    if (before === undefined) this.#said.delete(key);
    else this.#said.set(key, before);
    this.#markDirty(key, row);
  }

  /** Others know of a later decision, or of more. */
  hear(key: string, row: number, { amount, atMs }: Raised): void {
    const said = this.#said.get(key) ?? UNSAID;
    if (atMs < said.raisedAtMs || (atMs === said.raisedAtMs && amount <= said.raised)) return;
    this.#said.set(key, { ...said, raised: amount, raisedAtMs: atMs });
    this.#markDirty(key, row);
  }

  /** Its session has ended for all gateways: what they had counted until then counts no more. */
  restart(key: string, row: number, counted: number): void {
    const { cells } = this.#blocks[row >> BLOCK_BITS]!;
    const at = this.#at(row);
    cells[at] = Math.max(0, cells[at]! - counted);
    cells[at + this.#counted + TOTAL] = cells[at]!;
    this.#said.delete(key);
    this.#markDirty(key, row);
  }

  /** The row is as of now: see `find`. */
  add(key: string, row: number, amount: number, nowMs: number): void {
    const { cells } = this.#blocks[row >> BLOCK_BITS]!;
    const at = this.#at(row);
    const seen = at + this.#counted + SEEN;
    if (this.#tenthMs === 0) {
      cells[at]! += amount;
      cells[seen] = nowMs;
    } else cells[at + placeOf(cells[seen]!)]! += amount;
    cells[at + this.#counted + TOTAL]! += amount;
    this.#markDirty(key, row);
  }

  /** Takes back what was added at that time, as far as it still counts. */
  takeBack(key: string, row: number, amount: number, addedAtMs: number): void {
    const { cells } = this.#blocks[row >> BLOCK_BITS]!;
    const at = this.#at(row);
    const tenth = this.#tenthMs === 0 ? 0 : this.#tenthOf(addedAtMs);
    if (this.#tenthMs > 0 && tenth <= cells[at + this.#counted + SEEN]! - TENTHS_COUNTED) return;
    const cell = at + placeOf(tenth);
    const taken = Math.min(amount, cells[cell]!);
    cells[cell]! -= taken;
    cells[at + this.#counted + TOTAL]! -= taken;
    this.#markDirty(key, row);
  }

  hold(row: number, amount: number): void {
    this.#blocks[row >> BLOCK_BITS]!.cells[this.#at(row) + this.#counted + RESERVED]! += amount;
  }

  /** The key was used: what has no span lives on. */
  touch(key: string, row: number, nowMs: number): void {
    if (this.#tenthMs === 0) this.#blocks[row >> BLOCK_BITS]!.cells[this.#at(row) + this.#counted + SEEN] = nowMs;
    this.#markDirty(key, row);
  }

  /** When so much has left the span that there is room for this amount; undefined: without a span, never. */
  hasRoomAtMs(key: string, row: number, amount: number, nowMs: number): number | undefined {
    if (this.#tenthMs === 0) return undefined;
    const { cells } = this.#blocks[row >> BLOCK_BITS]!;
    const at = this.#at(row);
    const latest = cells[at + this.#counted + SEEN]!;
    const room = this.maxOf(key, nowMs) - amount - (this.usedByAll(row) - this.usedOf(row));
    let left = this.usedOf(row) + this.reservedOf(row);
    for (let tenth = latest - TENTHS; tenth <= latest; tenth += 1) {
      const counted = tenth < 0 ? 0 : cells[at + placeOf(tenth)]!;
      left -= counted;
      if (counted > 0 && left <= room) return FIRST_MS + (tenth + TENTHS_COUNTED) * this.#tenthMs;
    }
    return FIRST_MS + (latest + TENTHS_COUNTED) * this.#tenthMs;
  }

  /** The level of the last alert: 0, 80 or 100. */
  alertedOf(row: number): number {
    return ALERT_LEVELS[(this.#blocks[row >> BLOCK_BITS]!.flags[row & (ROWS_PER_BLOCK - 1)]! & ALERTED) >> 1]!;
  }

  setAlerted(row: number, level: 0 | 80 | 100): void {
    const { flags } = this.#blocks[row >> BLOCK_BITS]!;
    const at = row & (ROWS_PER_BLOCK - 1);
    flags[at] = (flags[at]! & ~ALERTED) | (ALERT_LEVELS.indexOf(level) << 1);
  }

  entries(): Iterable<readonly [string, number]> {
    return this.#rows.entries();
  }

  /** Forgets keys that count nothing any more, looking at so many at most. Each is passed to `onForgotten`. */
  sweep(most: number, nowMs: number, onForgotten: (key: string) => void): number {
    let looked = 0;
    while (looked < most) {
      this.#sweeping ??= this.#rows.entries();
      const next = this.#sweeping.next();
      if (next.done === true) {
        this.#sweeping = undefined;
        break;
      }
      looked += 1;
      const [key, row] = next.value;
      if (!this.#isOver(key, row, nowMs)) continue;
      this.#forget(key, row);
      onForgotten(key);
    }
    return looked;
  }

  /** Calls with what has changed since the last call. */
  drain(onChanged: (key: string, state: LimitState) => void): void {
    if (this.#dirtyKeys.length === 0) return;
    const [rows, keys] = [this.#dirtyRows, this.#dirtyKeys];
    [this.#dirtyRows, this.#dirtyKeys] = [[], []];
    for (const [nth, key] of keys.entries()) {
      const row = rows[nth]!;
      if (this.#rows.get(key) !== row) continue;
      this.#blocks[row >> BLOCK_BITS]!.flags[row & (ROWS_PER_BLOCK - 1)]! &= ~DIRTY;
      onChanged(key, this.#stateOf(key, row));
    }
  }

  /** Puts back a drained change that could not be written. */
  requeue(key: string): void {
    const row = this.#rows.get(key);
    if (row !== undefined) this.#markDirty(key, row);
  }

  /** Takes back what was stored. */
  restore(key: string, { atMs, counted, said }: LimitState): void {
    const row = this.create(key, atMs);
    const { cells } = this.#blocks[row >> BLOCK_BITS]!;
    const at = this.#at(row);
    if (this.#tenthMs === 0) {
      cells[at] = counted[0] ?? 0;
      cells[at + this.#counted + TOTAL] = cells[at]!;
    } else {
      const first = this.#tenthOf(atMs);
      counted.forEach((amount, nth) => {
        cells[at + placeOf(first + nth)] = amount;
        cells[at + this.#counted + TOTAL]! += amount;
      });
      cells[at + this.#counted + SEEN] = first + counted.length - 1;
    }
    if (said !== undefined) this.#said.set(key, said);
  }

  #stateOf(key: string, row: number): LimitState {
    const { cells } = this.#blocks[row >> BLOCK_BITS]!;
    const at = this.#at(row);
    const seen = cells[at + this.#counted + SEEN]!;
    const said = this.#said.get(key);
    if (this.#tenthMs === 0) return { atMs: seen, counted: [cells[at]!], said };
    const first = Math.max(0, seen - TENTHS);
    const counted = Array.from({ length: seen - first + 1 }, (_, nth) => cells[at + placeOf(first + nth)]!);
    return { atMs: FIRST_MS + first * this.#tenthMs, counted, said };
  }

  /** Lets go of tenths that have left the span, and of keys without a span that were not used for too long. */
  roll(row: number, key: string, nowMs: number): void {
    const { cells } = this.#blocks[row >> BLOCK_BITS]!;
    const at = this.#at(row);
    const seen = cells[at + this.#counted + SEEN]!;
    if (this.#tenthMs === 0) {
      // In a cluster others may have used it since: see `restart`.
      if (this.#grants !== undefined || nowMs - seen < this.#ttlMs || cells[at + this.#counted + RESERVED]! > 0) return;
      cells[at] = 0;
      cells[at + this.#counted + TOTAL] = 0;
      this.#said.delete(key);
      this.setAlerted(row, 0);
      return;
    }
    const now = this.#tenthOf(nowMs);
    if (now === seen) return;
    if (now < seen - TENTHS_COUNTED) {
      // The clock was far ahead, and was set back: all that counts does so in the span that begins now.
      const used = this.usedOf(row);
      cells.fill(0, at, at + TENTHS_COUNTED);
      cells[at + placeOf(now)] = used;
    }
    // Behind by less, time stands still.
    if (now < seen && now >= seen - TENTHS_COUNTED) return;
    for (let tenth = Math.max(seen + 1, now - TENTHS); tenth <= now; tenth += 1) {
      const cell = at + placeOf(tenth);
      cells[at + this.#counted + TOTAL]! -= cells[cell]!;
      cells[cell] = 0;
    }
    cells[at + this.#counted + SEEN] = now;
  }

  #isOver(key: string, row: number, nowMs: number): boolean {
    const { cells, flags } = this.#blocks[row >> BLOCK_BITS]!;
    const at = this.#at(row);
    if (cells[at + this.#counted + RESERVED]! > 0 || (flags[row & (ROWS_PER_BLOCK - 1)]! & DIRTY) !== 0) return false;
    if (this.#grants !== undefined && !this.#isKnownEmpty(row)) return false;
    const seen = cells[at + this.#counted + SEEN]!;
    if (this.#tenthMs === 0) return nowMs - seen >= this.#ttlMs;
    if (this.#tenthOf(nowMs) < seen + TENTHS_COUNTED) return false;
    const said = this.#said.get(key);
    return said === undefined || !(this.#holds(said.raisedAtMs, nowMs) || this.#holds(said.deniedAtMs, nowMs));
  }

  /** Whether the ledger, too, has nothing of it. */
  #isKnownEmpty(row: number): boolean {
    return this.accounts[row]?.isEmpty === true && (this.#tenthMs > 0 || this.usedOf(row) === 0);
  }

  #forget(key: string, row: number): void {
    const { cells, flags } = this.#blocks[row >> BLOCK_BITS]!;
    const account = this.accounts[row];
    if (account !== undefined) {
      this.#grants?.forget(account);
      this.accounts[row] = undefined;
    }
    const at = this.#at(row);
    cells.fill(0, at, at + this.#stride);
    flags[row & (ROWS_PER_BLOCK - 1)] = 0;
    this.#rows.delete(key);
    this.#said.delete(key);
    this.#free.push(row);
  }

  #markDirty(key: string, row: number): void {
    const { flags } = this.#blocks[row >> BLOCK_BITS]!;
    const at = row & (ROWS_PER_BLOCK - 1);
    if ((flags[at]! & DIRTY) !== 0) return;
    flags[at]! |= DIRTY;
    this.#dirtyRows.push(row);
    this.#dirtyKeys.push(key);
  }

  #grow(): number {
    const row = this.#used;
    if (row >> BLOCK_BITS === this.#blocks.length)
      this.#blocks.push({
        cells: new Float64Array(ROWS_PER_BLOCK * this.#stride),
        flags: new Uint8Array(ROWS_PER_BLOCK),
      });
    this.#used += 1;
    assert(this.#used < 2 ** 30, 'rows have small numbers');
    return row;
  }

  #at(row: number): number {
    return (row & (ROWS_PER_BLOCK - 1)) * this.#stride;
  }

  #tenthOf(ms: number): number {
    if (ms === this.#lastMs) return this.#lastTenth;
    this.#lastMs = ms;
    this.#lastTenth = Math.max(0, Math.floor((ms - FIRST_MS) / this.#tenthMs));
    return this.#lastTenth;
  }
}

/** The place of a tenth in its row. A whole number of 32 bits is divided faster. */
const placeOf = (tenth: number): number => (tenth | 0) % TENTHS_COUNTED;

const ALERT_LEVELS = [0, 80, 100] as const;
