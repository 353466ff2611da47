/** Grants of limits to this gateway, by the ledger of a cluster (docs/cluster.md, Limits). */
import {
  type AccountName,
  type AccountRow,
  Escrow,
  EscrowAccount,
  type Exhausted,
  type Raised,
} from '../budget/escrow.ts';
import { keyOfRow } from './keys.ts';
import type { Limit } from './limit.ts';

/** There may be a million accounts, and nobody waits for what they give back: who needs it recalls it. */
const LOOKED_AT_ONCE = 2_000;
/** A session that was not used for this part of its time is asked about: others may use it. */
const ASKED_EACH_PART = 4;

/** The counts of a limit, as far as an account looks at them: see `LimitTable`. */
export interface CountTable {
  readonly identity: string;
  readonly limit: Limit;
  readonly lastsMs: number;
  roll(row: number, key: string, nowMs: number): void;
  usedOf(row: number): number;
  reservedOf(row: number): number;
  usedAtMs(row: number): number;
  maxOf(key: string, nowMs: number): number;
  raisedOf(key: string, nowMs: number): number;
  saidOf(key: string): { readonly raisedAtMs: number } | undefined;
  hear(key: string, row: number, raised: Raised): void;
  restart(key: string, row: number, counted: number): void;
}

/** An amount that a waiting check lacks of a limit. */
export type LimitShortage = { readonly limited: LimitAccount; readonly lacksMicroUsd: number };

/**
 * The account of a key: this gateway counts its own use of it, and may use what it was granted. In a span, what it has
 * used falls as time passes; the use of a session or lineage only grows, until none of the gateways uses it any more.
 */
export class LimitAccount extends EscrowAccount<number> {
  readonly owner: string;
  readonly period: 'span' | 'life';
  readonly table: CountTable;
  readonly key: string;
  readonly row: number;
  readonly isGone = false;
  granted = 0;
  /** The maximum under which that was granted. */
  grantedUnder = 0;

  constructor(table: CountTable, key: string, row: number) {
    super();
    this.owner = keyOfRow(table.identity, key);
    this.period = table.limit.everyMs === undefined ? 'life' : 'span';
    this.table = table;
    this.key = key;
    this.row = row;
  }

  get reserved(): number {
    return this.table.reservedOf(this.row);
  }

  spent(nowMs: number): number {
    this.table.roll(this.row, this.key, nowMs);
    this.#clamp(nowMs);
    return this.table.usedOf(this.row);
  }

  /** Returns how much this gateway may use in all. The row is as of now. */
  room(nowMs: number): number {
    this.#clamp(nowMs);
    return this.granted;
  }

  /** Under a lower maximum, everything but what is used has to be granted anew. */
  #clamp(nowMs: number): void {
    const max = this.table.maxOf(this.key, nowMs);
    if (max < this.grantedUnder)
      this.granted = Math.min(this.granted, this.table.usedOf(this.row) + this.table.reservedOf(this.row));
    this.grantedUnder = max;
  }

  cap(nowMs: number): number {
    return this.table.maxOf(this.key, nowMs);
  }

  span(nowMs: number): { readonly fromMs: number; readonly toMs: number } {
    const fromMs = this.period === 'span' ? nowMs : this.table.usedAtMs(this.row);
    return { fromMs, toMs: fromMs + this.table.lastsMs };
  }

  /** A session in use lives on for all gateways. One that is not is forgotten once it is nowhere. */
  override isStale(nowMs: number): boolean {
    if (this.period === 'span') return false;
    const usedAtMs = this.table.usedAtMs(this.row);
    if (usedAtMs > this.exchangedAtMs) return true;
    const { lastsMs } = this.table;
    return nowMs - usedAtMs >= lastsMs && nowMs - this.exchangedAtMs >= lastsMs / ASKED_EACH_PART && !this.isEmpty;
  }

  override raised(nowMs: number): Raised | undefined {
    const amount = this.table.raisedOf(this.key, nowMs);
    return amount === 0 ? undefined : { amount, atMs: this.table.saidOf(this.key)!.raisedAtMs };
  }

  /** Its session has ended: what it had counted until that report counts no more. */
  restart(countedMicroUsd: number): void {
    this.table.restart(this.key, this.row, countedMicroUsd);
    this.granted = 0;
    this.reportedMicroUsd = 0;
    this.spentByOthersMicroUsd = 0;
  }

  /** Whether the ledger has nothing of it from this gateway. */
  get isEmpty(): boolean {
    return this.reportedMicroUsd === 0 && this.granted === 0 && this.neededMicroUsd === 0;
  }

  /** Whether the ledger has just answered that there is no room for as much. */
  exhaustedFor(lacks: number, nowMs: number): Exhausted | undefined {
    const { exhausted } = this;
    return exhausted !== undefined && nowMs < exhausted.untilMs && lacks >= exhausted.fromMicroUsd
      ? exhausted
      : undefined;
  }
}

/** Whether it is an account of a limit, and not of a budget. */
export const isOfLimits = ({ period }: AccountName): boolean => period === 'span' || period === 'life';

/** The accounts of all keys. */
export class LimitGrants extends Escrow<number, LimitAccount> {
  #latestMs = -Infinity;

  /** `sliceMs`: for how long a grant is to last. */
  constructor(sliceMs: number) {
    super(sliceMs, LOOKED_AT_ONCE);
  }

  override due(most: number, all: boolean, nowMs: number): readonly AccountRow[] {
    if (nowMs < this.#latestMs) this.setBack(nowMs);
    this.#latestMs = nowMs;
    return super.due(most, all, nowMs, nowMs);
  }

  /** Maxima may be lower now: the ledger has back what is not in use of those before the others act by them. */
  escrowLower(): void {
    this.giveBack((account) => account.table.limit.max < account.grantedUnder);
  }
}
