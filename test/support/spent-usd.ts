import { microToUsd } from '../../src/core/base/money.ts';
import type { BudgetTracker } from '../../src/core/budget/budget.ts';
import type { Period } from '../../src/core/budget/config.ts';

/** Dollars that an org has spent in the running month and day. */
export function spentUsd(budget: BudgetTracker, orgId: string, nowMs: number): Readonly<Record<Period, number>> {
  const org = budget.status({ orgId }, nowMs).items.find(({ tier }) => tier === 'org');
  const spentIn = (period: Period): number => microToUsd(org?.[period].spentMicroUsd ?? 0);
  return { monthly: spentIn('monthly'), daily: spentIn('daily') };
}
