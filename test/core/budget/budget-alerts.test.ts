/** Alerts before a cap is used up, and then. */
import { describe, expect, test } from 'vitest';
import { BudgetTracker } from '../../../src/core/budget/budget.ts';
import { ada, budgetConfig, HOUR_MS, NOON, USD } from '../../support/budgets.ts';

const tracker = (budget: Record<string, unknown>) => new BudgetTracker(budgetConfig(budget), NOON);

describe('budget alerts', () => {
  test('80 % and 100 % of a cap alert once per period, widest tier first', () => {
    const budget = tracker({ org_daily_limit_usd: 10, agent_monthly_limit_usd: 10 });
    const said = (microUsd: number, nowMs = NOON) =>
      budget
        .record(ada, microUsd, {}, nowMs)
        .alerts.map(({ tier, orgId, teamId, agentId, period, percent, spentMicroUsd, limitMicroUsd }) => [
          tier,
          orgId,
          teamId,
          agentId,
          period,
          percent,
          spentMicroUsd,
          limitMicroUsd,
        ]);
    expect(said(8 * USD - 1)).toEqual([]);
    expect(said(1)).toEqual([
      ['org', 'acme', null, null, 'daily', 80, 8_000_000, 10_000_000],
      ['agent', 'acme', 'search', 'ada', 'monthly', 80, 8_000_000, 10_000_000],
    ]);
    expect(said(1)).toEqual([]);
    expect(said(2 * USD)).toEqual([
      ['org', 'acme', null, null, 'daily', 100, 10_000_001, 10_000_000],
      ['agent', 'acme', 'search', 'ada', 'monthly', 100, 10_000_001, 10_000_000],
    ]);
    expect(said(20 * USD)).toEqual([]);
    expect(said(10 * USD, NOON + 24 * HOUR_MS)).toEqual([
      ['org', 'acme', null, null, 'daily', 80, 10_000_000, 10_000_000],
      ['org', 'acme', null, null, 'daily', 100, 10_000_000, 10_000_000],
    ]);
  });

  test('a raised cap alerts again when spend comes near it; an unchanged one does not', () => {
    const budget = tracker({ agent_monthly_limit_usd: 10 });
    const said = (microUsd: number) =>
      budget
        .record(ada, microUsd, {}, NOON)
        .alerts.map(({ percent, limitMicroUsd }) => `${percent} of ${limitMicroUsd / USD}`);
    const caps = (agent_monthly_limit_usd: number | undefined) =>
      budget.reconfigure(
        agent_monthly_limit_usd === undefined ? undefined : budgetConfig({ agent_monthly_limit_usd }),
        NOON,
      );
    expect(said(10 * USD)).toEqual(['80 of 10', '100 of 10']);
    caps(100);
    expect(said(69 * USD)).toEqual([]);
    expect(said(1 * USD)).toEqual(['80 of 100']);
    caps(90); // still over 80 %
    expect(said(1 * USD)).toEqual([]);
    caps(undefined);
    caps(90); // lifted and put back with nothing spent in between
    expect(said(1 * USD)).toEqual([]);
    expect(said(8 * USD)).toEqual(['100 of 90']);
    expect(said(50 * USD)).toEqual([]);
    caps(150); // 140 of it are spent: the 80 % were said, the 100 % are said anew
    expect(said(9 * USD)).toEqual([]);
    expect(said(1 * USD)).toEqual(['100 of 150']);
    caps(1_000); // 150 of it are spent: all is said anew, also by a single record
    expect(said(850 * USD)).toEqual(['80 of 1000', '100 of 1000']);
  });

  test('a cap of 0 is not used up before the first micro-dollar', () => {
    const budget = tracker({ agent_daily_limit_usd: 0 });
    expect(budget.record(ada, 0, {}, NOON)).toEqual({ exceeded: undefined, alerts: [], duplicate: false });
    expect(budget.record(ada, 1, {}, NOON).alerts.map(({ percent }) => percent)).toEqual([80, 100]);
  });

  test('a monthly cap alone alerts once in the month, on any day', () => {
    const budget = tracker({ agent_monthly_limit_usd: 10 });
    const said = (microUsd: number, nowMs: number) =>
      budget.record(ada, microUsd, {}, nowMs).alerts.map(({ tier, period, percent }) => `${tier} ${period} ${percent}`);
    expect(said(8 * USD, NOON)).toEqual(['agent monthly 80']);
    expect(said(1 * USD, NOON + 24 * HOUR_MS)).toEqual([]);
    expect(said(1 * USD, NOON + 48 * HOUR_MS)).toEqual(['agent monthly 100']);
    expect(said(9 * USD, NOON + 30 * 24 * HOUR_MS)).toEqual(['agent monthly 80']);
  });
});
