import type { Brand } from '../base/ids.ts';
import { type Period, TIERS, type Tier } from './config.ts';
import type { BudgetOwner, Envelope, Epoch } from './envelope.ts';
import type { BudgetGrants } from './grants.ts';
import type { PeriodWindow } from './period.ts';

/** A line of `GET /api/v1/budgets`. Reservations count against both periods. */
export type BudgetStatusRow = BudgetOwner &
  Readonly<Record<Period, PeriodStatus>> & { readonly reservedMicroUsd: number };

export type PeriodStatus = {
  readonly spentMicroUsd: number;
  /** Undefined: no cap. */
  readonly limitMicroUsd: number | undefined;
  readonly periodStartMs: number;
  readonly resetMs: number;
};

/** Names the last row of a page: `<tier>.<org>.<team>.<agent>`, each by its sequence number. */
export type BudgetCursor = Brand<string, 'BudgetCursor'>;

export type BudgetFilter = {
  /** Rows of this org, its teams and its agents only. */
  readonly orgId?: string | undefined;
  readonly after?: BudgetCursor | undefined;
  readonly limit?: number | undefined;
};

export function parseBudgetCursor(text: string): BudgetCursor | undefined {
  return /^[0-3](\.\d{1,15}){0,3}$/.test(text) ? (text as BudgetCursor) : undefined;
}

/** `grants`: in a cluster, where others spend too. */
export function statusRow(
  envelope: Envelope,
  window: PeriodWindow,
  epoch: Epoch,
  grants?: Pick<BudgetGrants, 'spentByOthers'>,
): BudgetStatusRow {
  const { monthlyStartMs, monthlyResetMs, dailyStartMs, dailyResetMs } = window;
  const statusOf = (period: Period, periodStartMs: number, resetMs: number): PeriodStatus => ({
    spentMicroUsd: envelope.spend(period, epoch).spentMicroUsd + (grants?.spentByOthers(envelope, period, window) ?? 0),
    limitMicroUsd: envelope.limitMicroUsd(period),
    periodStartMs,
    resetMs,
  });
  return {
    reservedMicroUsd: envelope.reservedMicroUsd,
    monthly: statusOf('monthly', monthlyStartMs, monthlyResetMs),
    daily: statusOf('daily', dailyStartMs, dailyResetMs),
    ...envelope.owner(),
  };
}

/** The envelopes to show: one tier after the other, and within a tier by org, team and time of creation. */
export function* envelopesAfter(root: Envelope, { orgId, after }: BudgetFilter): Generator<Envelope> {
  const [fromTier = 0, ...from] = after?.split('.').map(Number) ?? [];
  for (const [index, tier] of TIERS.entries()) {
    if (index < fromTier) continue;
    yield* below(root, tier, orgId, index === fromTier && after !== undefined ? from : undefined);
  }
}

/** Skips everything at or before the path of sequence numbers `from`, without looking into what it skips. */
function* below(
  envelope: Envelope,
  tier: Tier,
  orgId: string | undefined,
  from: readonly number[] | undefined,
): Generator<Envelope> {
  if (envelope.tier === tier) {
    const shown = !envelope.isPlaceholder && (orgId === undefined || tier !== 'global');
    if (shown && from === undefined) yield envelope;
    return;
  }
  const [first, ...rest] = from ?? [];
  for (const child of childrenOf(envelope, orgId)) {
    if (first !== undefined && child.sequence < first) continue;
    yield* below(child, tier, orgId, child.sequence === first ? rest : undefined);
  }
}

/**
 * An org is looked up rather than searched for: otherwise the time taken would tell it how many other orgs there are.
 */
function childrenOf({ tier, children }: Envelope, orgId: string | undefined): Iterable<Envelope> {
  if (children === undefined) return [];
  if (tier !== 'global' || orgId === undefined) return children.values();
  const org = children.get(orgId);
  return org === undefined ? [] : [org];
}

export function cursorOf(envelope: Envelope): BudgetCursor {
  const path: number[] = [];
  for (let each: Envelope | undefined = envelope; each?.parent !== undefined; each = each.parent)
    path.unshift(each.sequence);
  return [TIERS.indexOf(envelope.tier), ...path].join('.') as BudgetCursor;
}
