/** The ledger of a cluster hears of all that was spent in a period, though the period is over. */
import { describe, expect, test } from 'vitest';
import { BudgetTracker } from '../../../src/core/budget/budget.ts';
import type { AccountRow } from '../../../src/core/budget/escrow.ts';
import { BudgetGrants } from '../../../src/core/budget/grants.ts';
import { ada, budgetConfig, HOUR_MS, USD } from '../../support/budgets.ts';

const MIDNIGHT = Date.parse('2026-12-01T00:00:00Z');

function open() {
  const config = budgetConfig({ daily_limit_usd: 10 });
  const budget = new BudgetTracker(config, MIDNIGHT - HOUR_MS);
  budget.useLedger(new BudgetGrants(5_000), config, MIDNIGHT - HOUR_MS);
  const answer = (rows: readonly AccountRow[], nowMs: number) =>
    budget.holdings.takeGrants(
      rows,
      rows.map(({ owner, period, spentMicroUsd }) => ({
        ...{ owner, period, grantedMicroUsd: spentMicroUsd, spentByAllMicroUsd: spentMicroUsd },
        ...{ heldByAllMicroUsd: 0, alertPercent: undefined },
      })),
      nowMs,
    );
  return { budget, answer };
}

const globalOf = (rows: readonly AccountRow[]) =>
  rows.flatMap(({ owner, period, spentMicroUsd, keptMicroUsd, neededMicroUsd, wantedMicroUsd }) =>
    owner === 'global' ? [[period, spentMicroUsd, keptMicroUsd, neededMicroUsd, wantedMicroUsd]] : [],
  );

describe('spend at the end of a period', () => {
  test('is told until the ledger has heard it', () => {
    const { budget, answer } = open();
    budget.record(ada, 2 * USD, {}, MIDNIGHT - 20_000);
    answer(budget.holdings.dueRows(100, true, MIDNIGHT - 20_000), MIDNIGHT - 20_000);
    budget.record(ada, 3 * USD, {}, MIDNIGHT - 1);
    const ended = [
      ['d:2026-11-30', 5_000_000, 5_000_000, 0, 0],
      ['m:2026-11', 5_000_000, 5_000_000, 0, 0],
    ];
    expect(globalOf(budget.holdings.dueRows(100, true, MIDNIGHT + 1)).toSorted()).toEqual(ended);
    const again = budget.holdings.dueRows(100, true, MIDNIGHT + 2);
    expect(globalOf(again).toSorted()).toEqual(ended);
    answer(again, MIDNIGHT + 3);
    expect(globalOf(budget.holdings.dueRows(100, true, MIDNIGHT + 4))).toEqual([]);
  });

  test('is told once where the clock shows that period again', () => {
    const { budget } = open();
    budget.record(ada, 3 * USD, {}, MIDNIGHT - HOUR_MS);
    budget.record(ada, 1 * USD, {}, MIDNIGHT + 3 * HOUR_MS);
    const rows = globalOf(budget.holdings.dueRows(100, true, MIDNIGHT - HOUR_MS + 20_000));
    expect(rows.toSorted()).toEqual([
      ['d:2026-11-30', 4_000_000, 0, 0, 4_000_000],
      ['m:2026-11', 4_000_000, 0, 0, 4_000_000],
    ]);
  });

  test('is told by a gateway that stops, and not once the ledger has forgotten it', () => {
    const { budget } = open();
    budget.record(ada, 3 * USD, {}, MIDNIGHT - 1);
    expect(globalOf(budget.holdings.closingRows(MIDNIGHT + 1))).toContainEqual([
      'd:2026-11-30',
      3_000_000,
      3_000_000,
      0,
      0,
    ]);
    expect(globalOf(budget.holdings.dueRows(100, true, MIDNIGHT + 50 * HOUR_MS))).toEqual([]);
  });
});
