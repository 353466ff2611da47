/** When money runs out, at the rate at which it has been spent in this period so far. Pure. */
import type { Budget } from '../../base/api-types.ts';

export type Period = Budget['daily'];

/** A shorter time allows no projection. */
const LEAST_MS = 5 * 60_000;

/** The share that is spent; null without a limit. */
export const usedOf = ({ spent_usd: spent, limit_usd: limit }: Period): number | null =>
  limit === null ? null : limit === 0 ? 1 : spent / limit;

/** The share of the cap that is the nearest to its end, with what is held back. */
export const nearestOf = ({ daily, monthly, reserved_usd: reserved }: Budget): number =>
  Math.max(
    ...[daily, monthly].map(({ spent_usd: spent, limit_usd: limit }) =>
      limit === null ? 0 : limit === 0 ? 1 : (spent + reserved) / limit,
    ),
  );

/** The nearest to its end first, then who has spent the most. */
export const byNearest = (budgets: readonly Budget[]): readonly Budget[] =>
  [...budgets].sort(
    (one, other) => nearestOf(other) - nearestOf(one) || other.monthly.spent_usd - one.monthly.spent_usd,
  );

export type Projection =
  | { readonly kind: 'unlimited' | 'over' | 'idle' | 'lasts' }
  | { readonly kind: 'ends'; readonly atMs: number };

export function projectionOf(
  { spent_usd: spent, limit_usd: limit, period_start, reset }: Period,
  nowMs: number,
): Projection {
  if (limit === null) return { kind: 'unlimited' };
  if (spent >= limit) return { kind: 'over' };
  const elapsedMs = nowMs - Date.parse(period_start);
  if (spent === 0 || elapsedMs < LEAST_MS) return { kind: 'idle' };
  const endMs = nowMs + ((limit - spent) / spent) * elapsedMs;
  return endMs < Date.parse(reset) ? { kind: 'ends', atMs: endMs } : { kind: 'lasts' };
}
