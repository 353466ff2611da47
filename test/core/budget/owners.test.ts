import { describe, expect, test } from 'vitest';
import type { AgentIdentity } from '../../../src/core/base/ids.ts';
import { BudgetTracker } from '../../../src/core/budget/budget.ts';
import { budgetConfig, NOON, USD } from '../../support/budgets.ts';
import { ADMIN, openGovernor } from '../../support/governor.ts';
import { spentUsd } from '../../support/spent-usd.ts';

const LIMITS = { ofOrg: 10, ofAll: 40, forRegistered: 4 };
const tracker = (budget: Record<string, unknown> = {}) =>
  new BudgetTracker(budgetConfig(budget), NOON, undefined, LIMITS);
const invented = (nth: number, orgId = 'acme'): AgentIdentity => ({
  orgId,
  teamId: `team-${nth}`,
  agentId: `agent-${nth}`,
});

describe('owners of budgets', () => {
  test('made up by somebody with a key are bounded, and their money counts all the same', () => {
    const budget = tracker({ org_daily_limit_usd: 5_000 });
    for (let nth = 0; nth < 10_000; nth += 1) budget.record(invented(nth), USD, { usageId: 'the same' }, NOON);
    expect({ owners: budget.owners, overflows: budget.overflows }).toEqual({ owners: 11, overflows: 9_995 });
    expect(spentUsd(budget, 'acme', NOON)).toEqual({ monthly: 10_000, daily: 10_000 });
    expect(budget.record(invented(0), 0, {}, NOON).exceeded).toMatchObject({ tier: 'org', period: 'daily' });
    expect(budget.drainChanges().filter(({ row }) => row?.kind === 'spend')).toHaveLength(12);
    // A retry is recognised although its agent has no budget of its own.
    expect(budget.record(invented(9_999), USD, { usageId: 'the same' }, NOON).duplicate).toBe(true);
  });

  test('leave room for other orgs, up to a number of orgs', () => {
    const budget = tracker();
    for (let nth = 0; nth < 1_000; nth += 1) budget.record(invented(nth), USD, {}, NOON);
    budget.record(invented(0, 'globex'), USD, {}, NOON);
    expect(budget.status({ orgId: 'globex' }, NOON).items).toHaveLength(3);
    for (let nth = 0; nth < 1_000; nth += 1) budget.record(invented(0, `org-${nth}`), USD, {}, NOON);
    expect(budget.owners).toBe(40);
    expect(budget.status({}, NOON).items[0]).toMatchObject({ tier: 'global', daily: { spentMicroUsd: 2_001 * USD } });
  });

  test('have their own caps if they are registered', () => {
    const budget = tracker({ agent_daily_limit_usd: 10 });
    for (let nth = 0; nth < 100; nth += 1) budget.record(invented(nth), USD, {}, NOON);
    const agent = budget.handleOf(invented(100), true)!;
    expect(budget.handleOf(invented(101), false)).toBeUndefined();
    expect(budget.record(agent, 11 * USD, {}, NOON).exceeded).toMatchObject({ tier: 'agent', limitMicroUsd: 10 * USD });
  });

  test('without a budget of their own reserve in the tiers above, and give back', () => {
    const budget = tracker({ org_daily_limit_usd: 20 });
    for (let nth = 0; nth < 10; nth += 1) budget.record(invented(nth), USD, {}, NOON);
    expect(budget.reserve(invented(50), 1, 6 * USD, NOON).ok).toBe(true);
    expect(budget.reserve(invented(51), 2, 6 * USD, NOON)).toMatchObject({ ok: false, fault: { tier: 'org' } });
    budget.release(1);
    expect(budget.reserve(invented(51), 2, 6 * USD, NOON).ok).toBe(true);
  });

  test('survive a restart as far as there is room, and the sums do whole', () => {
    const before = new BudgetTracker(budgetConfig({}), NOON);
    for (let nth = 0; nth < 100; nth += 1) before.record(invented(nth), USD, {}, NOON);
    const rows = before.drainChanges().flatMap(({ row }) => row ?? []);
    const after = tracker();
    after.restore(rows, NOON);
    expect(after.owners).toBe(1 + LIMITS.ofOrg + LIMITS.forRegistered);
    expect(spentUsd(after, 'acme', NOON)).toEqual({ monthly: 100, daily: 100 });
  });

  test('spending for made-up agents takes no room from registered ones', () => {
    const budgets = tracker({ agent_daily_limit_usd: 1 });
    const governor = openGovernor({ budgets });
    const spend = (agent: AgentIdentity) =>
      governor.apply<'record-usage'>(
        {
          type: 'record-usage',
          agent,
          credential: undefined,
          principal: ADMIN,
          costMicroUsd: 2 * USD,
          opId: undefined,
          usageId: undefined,
        },
        NOON,
      ).reply;
    for (let nth = 0; nth < 100; nth += 1) spend(invented(nth));
    expect(spend(invented(200))).toEqual({ ok: true, value: { status: 'ok' } });
    expect(spend({ orgId: 'acme', teamId: 'search', agentId: 'crawler' })).toEqual({
      ok: true,
      value: { status: 'limit_exceeded', tier: 'agent', period: 'daily' },
    });
  });
});
