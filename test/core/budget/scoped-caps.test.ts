import { describe, expect, test } from 'vitest';
import { BudgetTracker } from '../../../src/core/budget/budget.ts';
import { parsePolicyDocument } from '../../../src/core/policy/document.ts';
import { compilePolicies } from '../../../src/core/policy/policy.ts';

const agent = (orgId: string, teamId = 'search', agentId = 'a1') => ({ orgId, teamId, agentId });

function trackerOf(budgets: Readonly<Record<string, object>>): { tracker: BudgetTracker; put: typeof put } {
  const tracker = new BudgetTracker(configOf(budgets), 0);
  const put = (others: Readonly<Record<string, object>>): void => tracker.reconfigure(configOf(others), 0);
  return { tracker, put };
}

function configOf(budgets: Readonly<Record<string, object>>) {
  const documents = Object.entries(budgets).map(([scope, budget], nth) => {
    const { document, problems } = parsePolicyDocument({ name: `p${nth}`, scope, budget }, 'test.yaml');
    expect(problems).toEqual([]);
    return document!;
  });
  const compiled = compilePolicies(documents);
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.fault));
  return compiled.value.budget;
}

const denies = (tracker: BudgetTracker, who: ReturnType<typeof agent>, usd: number): string | undefined => {
  const exceeded = tracker.wouldExceed(who, usd * 1_000_000, 0);
  return exceeded && `${exceeded.tier} ${exceeded.period} ${exceeded.limitMicroUsd / 1_000_000}`;
};

const GENERAL = { org_daily_limit_usd: 10, org_monthly_limit_usd: 30, agent_daily_limit_usd: 5 };

describe('caps of a scope', () => {
  test('they take the place of the general ones, and what they leave out stays', () => {
    const { tracker } = trackerOf({ global: GENERAL, 'org:acme': { daily_limit_usd: 40, agent_daily_limit_usd: 50 } });
    expect(denies(tracker, agent('acme'), 31)).toBe('org monthly 30');
    expect(denies(tracker, agent('acme'), 30)).toBe(undefined);
    expect(denies(tracker, agent('other'), 6)).toBe('agent daily 5');
    expect(denies(tracker, agent('other'), 11)).toBe('org daily 10');
  });

  test('the narrowest scope that names a cap decides', () => {
    const { tracker } = trackerOf({
      'org:acme': { agent_daily_limit_usd: 1, agent_monthly_limit_usd: 9 },
      'team:acme/search': { agent_daily_limit_usd: 2, daily_limit_usd: 7 },
      'agent:acme/search/a1': { daily_limit_usd: 8 },
    });
    expect(denies(tracker, agent('acme', 'search', 'a1'), 8)).toBe('team daily 7');
    expect(denies(tracker, agent('acme', 'search', 'a1'), 7)).toBe(undefined);
    expect(denies(tracker, agent('acme', 'search', 'a2'), 3)).toBe('agent daily 2');
    expect(denies(tracker, agent('acme', 'mail', 'a1'), 2)).toBe('agent daily 1');
    expect(denies(tracker, agent('acme', 'search', 'a2'), 10)).toBe('team daily 7');
    expect(denies(tracker, agent('acme', 'mail', 'a1'), 10)).toBe('agent monthly 9');
    expect(denies(tracker, agent('other'), 1_000)).toBe(undefined);
  });

  test('a reload puts them in force for owners with spend, and lifts them again', () => {
    const { tracker, put } = trackerOf({ global: GENERAL });
    tracker.record(agent('acme'), 4_000_000, {}, 0);
    tracker.record(agent('other'), 4_000_000, {}, 0);
    put({ global: GENERAL, 'agent:acme/search/a1': { daily_limit_usd: 3 } });
    expect(denies(tracker, agent('acme'), 0)).toBe('agent daily 3');
    expect(denies(tracker, agent('other'), 0)).toBe(undefined);
    put({ global: { ...GENERAL, agent_daily_limit_usd: 4.5 } });
    expect(denies(tracker, agent('acme'), 0)).toBe(undefined);
    expect(denies(tracker, agent('acme'), 1)).toBe('agent daily 4.5');
  });

  test('agents without an org are of no scope but the global one', () => {
    const { tracker } = trackerOf({ global: { agent_daily_limit_usd: 5 }, 'org:acme': { agent_daily_limit_usd: 1 } });
    expect(denies(tracker, agent(''), 5)).toBe(undefined);
    expect(denies(tracker, agent(''), 6)).toBe('agent daily 5');
  });
});
