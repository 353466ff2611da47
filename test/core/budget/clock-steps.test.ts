/** Caps while the clock is set: what was counted once is not forgotten, whichever of the times was the wrong one. */
import { describe, expect, test } from 'vitest';
import { BudgetTracker } from '../../../src/core/budget/budget.ts';
import { BudgetGrants } from '../../../src/core/budget/grants.ts';
import { ada, budgetConfig, HOUR_MS, NOON, USD } from '../../support/budgets.ts';
import { spentUsd } from '../../support/spent-usd.ts';

const DAY_MS = 24 * HOUR_MS;
const MIDNIGHT = Date.parse('2026-11-05T00:00:00Z');

const tracker = (nowMs: number) => new BudgetTracker(budgetConfig({ daily_limit_usd: 10 }), nowMs);

describe('budget while the clock is set', () => {
  test('a day that is shown again has what counted in it, and what was spent meanwhile', () => {
    const budget = tracker(NOON);
    budget.record(ada, 8 * USD, {}, NOON);
    budget.record(ada, 1 * USD, {}, NOON + 26 * HOUR_MS);
    expect(spentUsd(budget, 'acme', NOON + 26 * HOUR_MS)).toEqual({ monthly: 9, daily: 1 });
    expect(spentUsd(budget, 'acme', NOON + 1)).toEqual({ monthly: 9, daily: 9 });
    expect(budget.wouldExceed(ada, 2 * USD, NOON + 1)).toMatchObject({ period: 'daily', spentMicroUsd: 9_000_000 });
  });

  test('the day goes on where it was after a clock was set back wrongly, and right again', () => {
    const budget = tracker(NOON - DAY_MS);
    budget.record(ada, 5 * USD, {}, NOON - DAY_MS);
    budget.record(ada, 8 * USD, {}, NOON);
    budget.record(ada, 1 * USD, {}, NOON - 26 * HOUR_MS);
    expect(spentUsd(budget, 'acme', NOON - 26 * HOUR_MS)).toEqual({ monthly: 14, daily: 14 });
    expect(spentUsd(budget, 'acme', NOON + 1)).toEqual({ monthly: 14, daily: 9 });
  });

  test('the same to a day that is not known, and over the end of a month', () => {
    const noon = Date.parse('2026-12-01T12:00:00Z');
    const budget = tracker(noon);
    budget.record(ada, 8 * USD, {}, noon);
    budget.record(ada, 1 * USD, {}, noon - 3 * DAY_MS);
    expect(spentUsd(budget, 'acme', noon - 3 * DAY_MS)).toEqual({ monthly: 9, daily: 9 });
    expect(spentUsd(budget, 'acme', noon + 1)).toEqual({ monthly: 9, daily: 9 });
  });

  test('a month that is shown again has what counted in it', () => {
    const evening = Date.parse('2026-11-30T20:00:00Z');
    const budget = tracker(evening);
    budget.record(ada, 8 * USD, {}, evening);
    budget.record(ada, 1 * USD, {}, evening + 26 * HOUR_MS);
    expect(spentUsd(budget, 'acme', evening + 26 * HOUR_MS)).toEqual({ monthly: 1, daily: 1 });
    expect(spentUsd(budget, 'acme', evening)).toEqual({ monthly: 9, daily: 9 });
    expect(spentUsd(budget, 'acme', evening + 5 * HOUR_MS)).toEqual({ monthly: 1, daily: 1 });
  });

  test('midnights of a wrong clock forget nothing of the day to which it returns', () => {
    const budget = tracker(NOON);
    budget.record(ada, 5 * USD, {}, NOON);
    for (let hour = 26; hour <= 37; hour += 1) budget.record(ada, 0.25 * USD, {}, NOON + hour * HOUR_MS);
    expect(spentUsd(budget, 'acme', NOON + 37 * HOUR_MS)).toEqual({ monthly: 8, daily: 0.5 });
    expect(spentUsd(budget, 'acme', NOON + 11 * HOUR_MS)).toEqual({ monthly: 8, daily: 8 });
  });

  test('who spent nothing meanwhile is not forgotten while the clock is in doubt', () => {
    const evening = Date.parse('2026-11-30T20:00:00Z');
    const budget = tracker(evening);
    budget.record(ada, 8 * USD, {}, evening);
    budget.drainChanges();
    for (let sweep = 0; sweep < 4; sweep += 1) budget.sweep(evening + 26 * HOUR_MS);
    expect(spentUsd(budget, 'acme', evening)).toEqual({ monthly: 8, daily: 8 });
  });

  test('what is shown again is stored again', () => {
    const budget = tracker(NOON);
    budget.record(ada, 8 * USD, {}, NOON);
    budget.record(ada, 1 * USD, {}, NOON + 26 * HOUR_MS);
    budget.drainChanges();
    budget.expire(NOON + 1);
    const after = tracker(NOON + 2);
    after.restore(
      budget.drainChanges().flatMap(({ row }) => row ?? []),
      NOON + 2,
    );
    expect(spentUsd(after, 'acme', NOON + 2)).toEqual({ monthly: 9, daily: 9 });
  });

  test('a clock set back by an hour is waited for; one set back further is believed', () => {
    const spentAfterStep = (ms: number) => {
      const budget = tracker(MIDNIGHT - 6 * HOUR_MS);
      budget.record(ada, 2 * USD, {}, MIDNIGHT - 6 * HOUR_MS);
      budget.record(ada, 4 * USD, {}, MIDNIGHT);
      return spentUsd(budget, 'acme', MIDNIGHT - ms);
    };
    expect(spentAfterStep(HOUR_MS)).toEqual({ monthly: 6, daily: 4 });
    expect(spentAfterStep(HOUR_MS + 1)).toEqual({ monthly: 6, daily: 6 });
  });

  test('a reservation is held for ten minutes after a step back, not until its old time', () => {
    const budget = tracker(NOON);
    budget.reserve(ada, 1, 10 * USD, NOON);
    expect(budget.reserve(ada, 2, 1, NOON - 26 * HOUR_MS).ok).toBe(false);
    expect(budget.reserve(ada, 2, 1, NOON - 26 * HOUR_MS + 600_000).ok).toBe(true);
  });

  test('the ledger is told of the day that is shown again, without grants of another', () => {
    const config = budgetConfig({ daily_limit_usd: 10 });
    const budget = new BudgetTracker(config, NOON);
    budget.useLedger(new BudgetGrants(5_000), config, NOON);
    const exchange = (nowMs: number, grantedMicroUsd: number) => {
      const rows = budget.holdings.dueRows(100, true, nowMs);
      const [global] = rows.filter(({ owner, period }) => owner === 'global' && period.startsWith('d:'));
      const { owner, period } = global!;
      const answered = { spentByAllMicroUsd: 0, heldByAllMicroUsd: 0, alertPercent: undefined };
      budget.holdings.takeGrants(rows, [{ owner, period, grantedMicroUsd, ...answered }], nowMs);
      return { period, spentMicroUsd: global!.spentMicroUsd, keptMicroUsd: global!.keptMicroUsd };
    };
    const wrong = NOON + 26 * HOUR_MS;
    budget.record(ada, 5 * USD, {}, NOON);
    expect(exchange(NOON, 6 * USD)).toEqual({ period: 'd:2026-11-04', spentMicroUsd: 5_000_000, keptMicroUsd: 0 });
    budget.record(ada, 1 * USD, {}, wrong);
    expect(exchange(wrong, 9 * USD)).toEqual({ period: 'd:2026-11-05', spentMicroUsd: 1_000_000, keptMicroUsd: 0 });
    expect(budget.wouldExceed(ada, 1 * USD, wrong)).toBeUndefined();
    expect(budget.reserve(ada, 1, 1 * USD, NOON)).toMatchObject({ ok: false, fault: { doubt: 'short' } });
    expect(exchange(NOON, 8 * USD)).toEqual({ period: 'd:2026-11-04', spentMicroUsd: 6_000_000, keptMicroUsd: 0 });
    expect(budget.reserve(ada, 1, 1 * USD, NOON).ok).toBe(true);
  });
});
