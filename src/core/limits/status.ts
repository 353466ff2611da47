/** Counts of limits, the fullest first (docs/spec.md, HTTP). */
import { jsonIn } from '../base/mapping.ts';
import type { Page } from '../base/page.ts';
import type { Steps } from '../base/steps.ts';
import { orgOfKey, shownKey } from './keys.ts';
import { type LimitPer, type LimitUnit, shownAmount } from './limit.ts';
import type { Counted } from './limits.ts';

/** Amounts are as people write them. */
export type LimitStatus = {
  readonly policy: string;
  readonly id: string;
  readonly per: LimitPer;
  readonly key: string;
  readonly orgId: string;
  readonly unit: LimitUnit;
  readonly used: number;
  readonly reserved: number;
  readonly max: number;
  readonly raised: number;
  /** When some of it leaves the span; undefined: nothing will. */
  readonly resetsAtMs: number | undefined;
};

export type LimitFilter = {
  readonly orgId: string | undefined;
  readonly per: LimitPer | undefined;
  readonly policy: string | undefined;
  /** Its id. */
  readonly limit: string | undefined;
};

/** The position of a row among all: by its fullness, and then by its names. */
type Place = readonly [fullness: number, name: string];

const ROWS_PER_STEP = 64;

/** Lists a page, by steps: there may be a million rows to look at. `after` is the cursor of the page before. */
export function* listingLimits(
  counted: readonly Counted[],
  filter: LimitFilter,
  { perPage, after }: { readonly perPage: number; readonly after: string | undefined },
  nowMs: number,
): Steps<Page<LimitStatus> | undefined> {
  const from = after === undefined ? undefined : placeIn(after);
  if (after !== undefined && from === undefined) return undefined;
  let best: { readonly place: Place; readonly status: LimitStatus }[] = [];
  let looked = 0;
  for (const limit of counted.filter((each) => isWanted(each, filter)))
    for (const [key] of limit.table.entries()) {
      looked += 1;
      if (looked % ROWS_PER_STEP === 0) yield;
      if (filter.orgId !== undefined && orgOfKey(key) !== filter.orgId) continue;
      const place = placeOf(limit, key, nowMs);
      if (from !== undefined && compare(place, from) <= 0) continue;
      const last = best.at(-1);
      if (best.length > perPage && last !== undefined && compare(place, last.place) >= 0) continue;
      best.push({ place, status: statusOf(limit, key, nowMs) });
      if (best.length > 2 * perPage + 2 || best.length <= perPage + 1) best = firstOf(best, perPage + 1);
    }
  best = firstOf(best, perPage + 1);
  const shown = best.slice(0, perPage);
  const next = best.length > perPage ? JSON.stringify(shown.at(-1)?.place) : undefined;
  return { items: shown.map(({ status }) => status), next };
}

const firstOf = <T extends { readonly place: Place }>(rows: T[], most: number): T[] =>
  rows.sort((one, other) => compare(one.place, other.place)).slice(0, most);

const isWanted = ({ policy, limit }: Counted, wanted: LimitFilter): boolean =>
  (wanted.policy === undefined || wanted.policy === policy) &&
  (wanted.limit === undefined || wanted.limit === limit.id) &&
  (wanted.per === undefined || wanted.per === limit.per);

const compare = ([fullness, name]: Place, [otherFullness, otherName]: Place): number =>
  otherFullness - fullness || (name < otherName ? -1 : name > otherName ? 1 : 0);

function placeOf({ limit, policy, table }: Counted, key: string, nowMs: number): Place {
  const row = table.find(key, nowMs);
  const taken = table.usedByAll(row) + table.reservedOf(row);
  return [taken / table.maxOf(key, nowMs), JSON.stringify([policy, limit.id, key])];
}

/** Undefined for a cursor that somebody made up. */
function placeIn(cursor: string): Place | undefined {
  const place = jsonIn(cursor);
  return Array.isArray(place) && typeof place[0] === 'number' && typeof place[1] === 'string'
    ? [place[0], place[1]]
    : undefined;
}

function statusOf({ limit, policy, table }: Counted, key: string, nowMs: number): LimitStatus {
  const row = table.find(key, nowMs);
  const used = table.usedByAll(row);
  return {
    policy,
    id: limit.id,
    per: limit.per,
    key: shownKey(limit.per, key),
    orgId: orgOfKey(key),
    unit: limit.unit,
    used: shownAmount(limit.unit, used),
    reserved: shownAmount(limit.unit, limit.unit === 'usd' ? table.reservedOf(row) : 0),
    max: shownAmount(limit.unit, table.maxOf(key, nowMs)),
    raised: shownAmount(limit.unit, table.raisedOf(key, nowMs)),
    resetsAtMs: used === 0 ? undefined : table.hasRoomAtMs(key, row, 1, nowMs),
  };
}
