/** Money is whole micro-dollars inside; dollars exist only at the edges (docs/spec.md, Budgets). */

const MICRO_USD_PER_USD = 1_000_000;

/** No single cost is larger than this; a larger one is a mistake of the sender. */
export const MAX_COST_USD = 1_000_000;

/**
 * Whole micro-dollars of a cost, or undefined when it is negative, not finite or over MAX_COST_USD.
 * A fraction of a micro-dollar counts as a whole one: a cost that rounded to nothing could be spent forever.
 */
export function usdToMicro(usd: number): number | undefined {
  return usd >= 0 && usd <= MAX_COST_USD ? wholeMicroUsd(usd, Math.ceil) : undefined;
}

/**
 * Whole micro-dollars of a cap; `undefined` as in usdToMicro, with `maxUsd` in place of the limit of a cost. Rounds
 * down.
 */
export function capToMicro(usd: number, maxUsd: number): number | undefined {
  return usd >= 0 && usd <= maxUsd ? wholeMicroUsd(usd, Math.floor) : undefined;
}

export const microToUsd = (microUsd: number): number => microUsd / MICRO_USD_PER_USD;

// 4.35 is no binary fraction, so its product misses the whole number by some units in the last place: that is no
// remainder.
function wholeMicroUsd(usd: number, roundRemainder: (microUsd: number) => number): number {
  const microUsd = usd * MICRO_USD_PER_USD;
  const nearest = Math.round(microUsd);
  return Math.abs(microUsd - nearest) <= microUsd * 2 * Number.EPSILON ? nearest : roundRemainder(microUsd);
}
