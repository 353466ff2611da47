/** A check, and a limit that leaves no room for it. */
import type { Limit } from './limit.ts';
import type { LimitTable } from './table.ts';

/** A limit that leaves no room for a check. Amounts are in the unit of the limit. */
export type Reached = {
  readonly limit: Limit;
  readonly policy: string;
  /** As the state is kept: see `shownKey`. */
  readonly key: string;
  readonly used: number;
  readonly reserved: number;
  readonly max: number;
  /** When there is room again, as far as time alone makes some. */
  readonly resetsAtMs: number | undefined;
  /**
   * `full`: the key is unseen, and there are too many. `denied`: a person has said no. `unconfirmed`: the ledger of a
   * cluster could not be asked for more.
   */
  readonly why: 'reached' | 'full' | 'denied' | 'unconfirmed';
};

/** Raised once per level, by what reached it. */
export type LimitAlert = Omit<Reached, 'why' | 'resetsAtMs' | 'reserved'> & { readonly percent: 80 | 100 };

/** A check asks a limit for so much more. */
export type Asked = {
  readonly policy: string;
  readonly table: LimitTable;
  readonly key: string;
  /** -1: nothing is counted yet. */
  readonly row: number;
  readonly added: number;
};

/** Returns how much would count with so much more. */
export function totalOf({ table, row, added }: Asked): number {
  const used = row === -1 ? 0 : table.usedOf(row);
  if (added === 0) return used + 1;
  return row === -1 || table.limit.unit !== 'usd' ? used + added : used + table.reservedOf(row) + added;
}

/** Undefined: there is room, as far as this gateway has counted. */
export function reachedBy(asked: Asked, nowMs: number): Reached | undefined {
  const { table, key } = asked;
  const total = totalOf(asked);
  if (total <= table.limit.max || total <= table.maxOf(key, nowMs)) return undefined;
  return reachedOf(asked, nowMs);
}

export function reachedOf({ policy, table, key, row, added }: Asked, nowMs: number): Reached {
  const { limit } = table;
  return {
    limit,
    policy,
    key,
    used: row === -1 ? 0 : table.usedByAll(row),
    reserved: row === -1 || limit.unit !== 'usd' ? 0 : table.reservedOf(row),
    max: table.maxOf(key, nowMs),
    resetsAtMs: row === -1 ? undefined : table.hasRoomAtMs(key, row, Math.max(added, 1), nowMs),
    why: table.isDenied(key, nowMs) ? 'denied' : 'reached',
  };
}
