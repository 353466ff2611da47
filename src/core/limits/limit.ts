/** How much may happen before the gateway asks or denies (docs/spec.md, Limits of use). */
import { durationText } from '../base/duration.ts';
import { microToUsd } from '../base/money.ts';

/** Whose use is counted together. */
export const LIMIT_PERS = ['session', 'lineage', 'agent', 'team', 'org'] as const;
/** The counted units. Each is also the key that holds the maximum. */
export const LIMIT_UNITS = ['calls', 'usd', 'tokens'] as const;
export const ON_EXCEED = ['deny', 'ask'] as const;
export type LimitPer = (typeof LIMIT_PERS)[number];
export type LimitUnit = (typeof LIMIT_UNITS)[number];
export type OnExceed = (typeof ON_EXCEED)[number];

/** Plain data. Its JSON is part of the version of the policies. */
export type Limit = {
  readonly id: string;
  readonly per: LimitPer;
  readonly unit: LimitUnit;
  /** Money is in whole micro-dollars. */
  readonly max: number;
  /** Undefined: for as long as the session or the lineage lives. */
  readonly everyMs: number | undefined;
  /** Globs over the action; `['*']` when left out. */
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  readonly onExceed: OnExceed;
  /** By how much an approval raises the maximum; in the unit of `max`. */
  readonly step: number;
};

/** Scopes that need no span: they end. */
export const ENDING_PERS: ReadonlySet<LimitPer> = new Set(['session', 'lineage']);

/** An amount as people write it: dollars, calls or tokens. */
export const shownAmount = (unit: LimitUnit, amount: number): number => (unit === 'usd' ? microToUsd(amount) : amount);

/** As an author writes it. */
export const writtenLimit = (limit: Limit): Readonly<Record<string, unknown>> => ({
  id: limit.id,
  per: limit.per,
  [limit.unit]: shownAmount(limit.unit, limit.max),
  ...(limit.everyMs !== undefined && { every: durationText(limit.everyMs) }),
  actions: limit.actions,
  resources: limit.resources,
  on_exceed: limit.onExceed,
  ...(limit.onExceed === 'ask' && { step: shownAmount(limit.unit, limit.step) }),
});

/** `5 calls`, `2.5 USD` */
const amountText = (unit: LimitUnit, amount: number): string =>
  unit === 'usd' ? `${microToUsd(amount)} USD` : `${amount} ${amount === 1 ? unit.slice(0, -1) : unit}`;

/** `5 calls per session`, `100 calls per org every 10m` */
export const limitText = ({ unit, per, everyMs }: Limit, max: number): string =>
  `${amountText(unit, max)} per ${per}${everyMs === undefined ? '' : ` every ${durationText(everyMs)}`}`;

/** A limit, and one of those whose use it counts, as answers, entries and approvals name them. */
export type LimitNote = {
  readonly policy: string;
  readonly id: string;
  readonly per: LimitPer;
  /** `<trace_id>`, `<org>/<team>/<agent>`, `<org>/<team>` or `<org>`. */
  readonly key: string;
  /** As people write them: see `shownAmount`. */
  readonly used: number;
  readonly max: number;
};
