import { describe, expect, test } from 'vitest';
import type { AgentIdentity } from '../../../src/core/base/ids.ts';
import { BudgetTracker } from '../../../src/core/budget/budget.ts';
import { parseBudgetCursor } from '../../../src/core/budget/status.ts';
import { ada, budgetConfig, HOUR_MS, NOON, stray, USD } from '../../support/budgets.ts';
import { spentUsd } from '../../support/spent-usd.ts';

const bob: AgentIdentity = { orgId: 'acme', teamId: 'search', agentId: 'bob' };
const cy: AgentIdentity = { orgId: 'acme', teamId: 'ads', agentId: 'cy' };
const eve: AgentIdentity = { orgId: 'globex', teamId: 'search', agentId: 'ada' };

const tracker = (budget: Record<string, unknown>, nowMs = NOON) => new BudgetTracker(budgetConfig(budget), nowMs);

describe('budget', () => {
  test('without caps everything fits and is still counted', () => {
    const budget = new BudgetTracker(undefined, NOON);
    expect(budget.record(ada, 5 * USD, {}, NOON)).toEqual({ exceeded: undefined, alerts: [], duplicate: false });
    expect(budget.reserve(ada, 1, 1_000_000 * USD, NOON)).toEqual({ ok: true, value: undefined });
    expect(spentUsd(budget, 'acme', NOON)).toEqual({ monthly: 5, daily: 5 });
  });

  test.each([
    ['daily_limit_usd', 'global', 'daily'],
    ['monthly_limit_usd', 'global', 'monthly'],
    ['org_daily_limit_usd', 'org', 'daily'],
    ['org_monthly_limit_usd', 'org', 'monthly'],
    ['team_daily_limit_usd', 'team', 'daily'],
    ['team_monthly_limit_usd', 'team', 'monthly'],
    ['agent_daily_limit_usd', 'agent', 'daily'],
    ['agent_monthly_limit_usd', 'agent', 'monthly'],
  ])('%s caps the %s tier for its %s period, to the micro-dollar', (key, tier, period) => {
    const budget = tracker({ [key]: 10 });
    expect(budget.record(ada, 10 * USD, {}, NOON).exceeded).toBeUndefined();
    expect(budget.reserve(ada, 1, 1, NOON)).toEqual({
      ok: false,
      fault: { tier, period, spentMicroUsd: 10_000_000, reservedMicroUsd: 0, limitMicroUsd: 10_000_000 },
    });
    expect(budget.record(ada, 1, {}, NOON).exceeded).toEqual({
      tier,
      period,
      spentMicroUsd: 10_000_001,
      reservedMicroUsd: 0,
      limitMicroUsd: 10_000_000,
    });
  });

  test('the first cap exceeded answers: global, org, team, agent; monthly before daily', () => {
    const keys = [
      'monthly_limit_usd',
      'daily_limit_usd',
      'org_monthly_limit_usd',
      'org_daily_limit_usd',
      'team_monthly_limit_usd',
      'team_daily_limit_usd',
      'agent_monthly_limit_usd',
      'agent_daily_limit_usd',
    ];
    const answers = keys.map((_, from) => {
      const caps = Object.fromEntries(keys.slice(from).map((key) => [key, 1]));
      const { exceeded } = tracker(caps).record(ada, 2 * USD, {}, NOON);
      return `${exceeded?.tier} ${exceeded?.period}`;
    });
    expect(answers).toEqual([
      'global monthly',
      'global daily',
      'org monthly',
      'org daily',
      'team monthly',
      'team daily',
      'agent monthly',
      'agent daily',
    ]);
  });

  test('a record over a cap still counts in every tier', () => {
    const budget = tracker({ agent_daily_limit_usd: 1 });
    budget.record(ada, 3 * USD, {}, NOON);
    budget.record(ada, 4 * USD, {}, NOON);
    expect(
      budget.status({}, NOON).items.map((row) => [row.tier, row.daily.spentMicroUsd, row.monthly.spentMicroUsd]),
    ).toEqual([
      ['global', 7_000_000, 7_000_000],
      ['org', 7_000_000, 7_000_000],
      ['team', 7_000_000, 7_000_000],
      ['agent', 7_000_000, 7_000_000],
    ]);
  });

  test('of one org never affects another when used up', () => {
    const budget = tracker({ org_daily_limit_usd: 1, team_daily_limit_usd: 1, agent_daily_limit_usd: 1 });
    budget.record(ada, 5 * USD, {}, NOON);
    expect(budget.reserve(cy, 1, 1, NOON)).toMatchObject({ ok: false, fault: { tier: 'org' } });
    expect(budget.reserve(eve, 2, USD, NOON)).toMatchObject({ ok: true });
    expect(budget.reserve(stray, 3, USD, NOON)).toMatchObject({ ok: true });
  });

  test('agents without an org have no org cap, but global, team and agent caps', () => {
    expect(tracker({ org_daily_limit_usd: 0 }).reserve(stray, 1, USD, NOON).ok).toBe(true);
    expect(tracker({ daily_limit_usd: 0 }).reserve(stray, 1, USD, NOON)).toMatchObject({ fault: { tier: 'global' } });
    expect(tracker({ team_daily_limit_usd: 0 }).reserve(stray, 1, USD, NOON)).toMatchObject({
      fault: { tier: 'team' },
    });
    expect(tracker({ agent_daily_limit_usd: 0 }).reserve(stray, 1, USD, NOON)).toMatchObject({
      fault: { tier: 'agent' },
    });
    const budget = tracker({});
    budget.record(stray, USD, {}, NOON);
    expect(spentUsd(budget, '', NOON)).toEqual({ monthly: 0, daily: 0 });
    expect(
      budget.status({}, NOON).items.map(({ tier, orgId, teamId, agentId }) => [tier, orgId, teamId, agentId]),
    ).toEqual([
      ['global', null, null, null],
      ['team', '', 'search', null],
      ['agent', '', 'search', 'ada'],
    ]);
  });

  test('a check that costs nothing passes at the cap, and is denied over it', () => {
    const budget = tracker({ org_daily_limit_usd: 1 });
    budget.record(ada, USD, {}, NOON);
    expect(budget.reserve(bob, 1, 0, NOON).ok).toBe(true);
    budget.record(ada, 1, {}, NOON);
    expect(budget.reserve(bob, 1, 0, NOON)).toMatchObject({ ok: false, fault: { tier: 'org', period: 'daily' } });
    expect(budget.wouldExceed(bob, 0, NOON)).toMatchObject({ tier: 'org', period: 'daily' });
  });

  test('a check that costs nothing is not denied for what others have only reserved', () => {
    const budget = tracker({ org_daily_limit_usd: 1 });
    budget.reserve(ada, 1, USD, NOON);
    budget.reconfigure(budgetConfig({ org_daily_limit_usd: 0.5 }), NOON);
    expect(budget.reserve(bob, 2, 0, NOON).ok).toBe(true);
    expect(budget.reserve(bob, 2, 1, NOON).ok).toBe(false);
  });

  test('pays for exactly as many of 1,000 racing agents as the last dollar buys', () => {
    const budget = tracker({ daily_limit_usd: 100 });
    budget.record(ada, 99 * USD, {}, NOON);
    const won = Array.from(
      { length: 1000 },
      (_, index) =>
        budget.reserve({ orgId: `org-${index % 10}`, teamId: 'team', agentId: `agent-${index}` }, index, 30_000, NOON)
          .ok,
    ).filter(Boolean);
    expect(won).toHaveLength(33); // 33 × 0.03 = 0.99
  });

  test('a refused reservation reserves nothing in any tier', () => {
    const budget = tracker({ agent_daily_limit_usd: 1, daily_limit_usd: 10 });
    expect(budget.reserve(ada, 1, 2 * USD, NOON).ok).toBe(false);
    expect(budget.status({}, NOON).items.map((row) => row.reservedMicroUsd)).toEqual([0, 0, 0, 0]);
  });

  test('a further check may reserve more, and a refused one keeps what is reserved', () => {
    const budget = tracker({ org_daily_limit_usd: 10 });
    const reserved = () => budget.status({ orgId: 'acme' }, NOON).items[0]?.reservedMicroUsd;
    budget.reserve(ada, 1, 8 * USD, NOON);
    expect(budget.reserve(ada, 1, 9 * USD, NOON).ok).toBe(true);
    expect(reserved()).toBe(9_000_000);
    expect(budget.reserve(ada, 1, 11 * USD, NOON)).toMatchObject({ ok: false });
    expect(reserved()).toBe(9_000_000);
  });

  test('a cheaper further check frees no money of the running operation', () => {
    const budget = tracker({ org_daily_limit_usd: 10 });
    const reserved = () => budget.status({ orgId: 'acme' }, NOON).items[0]?.reservedMicroUsd;
    budget.reserve(ada, 1, 8 * USD, NOON);
    expect(budget.reserve(ada, 1, 3 * USD, NOON).ok).toBe(true);
    expect(reserved()).toBe(8_000_000);
    expect(budget.reserve(ada, 1, 0, NOON).ok).toBe(true);
    expect(reserved()).toBe(8_000_000);
    expect(budget.reserve(bob, 2, 3 * USD, NOON)).toMatchObject({ ok: false, fault: { tier: 'org', period: 'daily' } });
  });

  test('only a further check that costs something extends a reservation', () => {
    const budget = tracker({ org_daily_limit_usd: 10 });
    budget.reserve(ada, 1, 10 * USD, NOON);
    budget.reserve(ada, 1, 0, NOON + 599_999);
    expect(budget.wouldExceed(bob, 1, NOON + 600_000)).toBeUndefined();
    budget.reserve(ada, 1, 10 * USD, NOON + 600_000);
    budget.reserve(ada, 1, 1 * USD, NOON + 900_000);
    expect(budget.wouldExceed(bob, 1, NOON + 1_499_999)).toMatchObject({ reservedMicroUsd: 10_000_000 });
    expect(budget.wouldExceed(bob, 1, NOON + 1_500_000)).toBeUndefined();
  });

  test("a dry-run check does not count its own operation's reservation twice", () => {
    const budget = tracker({ org_daily_limit_usd: 10 });
    budget.reserve(ada, 1, 8 * USD, NOON);
    expect(budget.wouldExceed(ada, 10 * USD, NOON, 1)).toBeUndefined();
    expect(budget.wouldExceed(ada, 10 * USD + 1, NOON, 1)).toMatchObject({ tier: 'org' });
    expect(budget.wouldExceed(ada, 3 * USD, NOON, 2)).toMatchObject({ tier: 'org' });
    expect(budget.wouldExceed(bob, 3 * USD, NOON, 1)).toMatchObject({ tier: 'org' });
  });

  test('recorded usage replaces reserved money; the rest stays until the end', () => {
    const budget = tracker({ org_daily_limit_usd: 10 });
    budget.reserve(ada, 1, 6 * USD, NOON);
    budget.record(ada, 2 * USD, { op: 1 }, NOON);
    expect(budget.wouldExceed(ada, 4 * USD + 1, NOON)).toMatchObject({
      tier: 'org',
      spentMicroUsd: 2_000_000,
      reservedMicroUsd: 4_000_000,
    });
    expect(budget.reserve(ada, 2, 4 * USD, NOON).ok).toBe(true);
    budget.release(1);
    expect(budget.reserve(ada, 2, 8 * USD, NOON).ok).toBe(true);
    expect(budget.record(ada, 9 * USD, { op: 2 }, NOON).exceeded).toMatchObject({
      tier: 'org',
      spentMicroUsd: 11_000_000,
      reservedMicroUsd: 0,
    });
  });

  test("settles no operation with another agent's record", () => {
    const budget = tracker({ org_daily_limit_usd: 10 });
    budget.reserve(ada, 1, 6 * USD, NOON);
    budget.record(bob, 1, { op: 1 }, NOON);
    expect(budget.wouldExceed(bob, 4 * USD, NOON)).toMatchObject({ reservedMicroUsd: 6_000_000 });
  });

  test('released money is free at once, and a second release changes nothing', () => {
    const budget = tracker({ org_daily_limit_usd: 10 });
    budget.reserve(ada, 1, 10 * USD, NOON);
    expect(budget.release(1)).toBe(true);
    expect(budget.release(1)).toBe(false);
    expect(budget.wouldExceed(bob, 10 * USD, NOON)).toBeUndefined();
    expect(budget.wouldExceed(bob, 10 * USD + 1, NOON)).toMatchObject({ reservedMicroUsd: 0 });
  });

  test('a reservation expires after ten minutes, to the millisecond, whoever asks', () => {
    const budget = tracker({ org_daily_limit_usd: 10 });
    budget.reserve(ada, 1, 10 * USD, NOON);
    expect(budget.wouldExceed(bob, 1, NOON + 599_999)).toMatchObject({ tier: 'org' });
    expect(budget.wouldExceed(bob, 1, NOON + 600_000)).toBeUndefined();
  });

  test('each reservation expires at its own time, in whatever order others end', () => {
    const budget = tracker({ org_daily_limit_usd: 10 });
    const room = (nowMs: number) => 10 * USD - (budget.wouldExceed(bob, 10 * USD, nowMs)?.reservedMicroUsd ?? 0);
    budget.reserve(ada, 1, 1 * USD, NOON);
    budget.reserve(ada, 2, 2 * USD, NOON + 60_000);
    budget.reserve(cy, 3, 4 * USD, NOON + 120_000);
    budget.reserve(ada, 1, 1 * USD, NOON + 180_000); // checked again: its ten minutes begin again
    budget.release(2);
    expect([600_000, 719_999, 720_000, 779_999, 780_000].map((ms) => room(NOON + ms))).toEqual([
      5_000_000, 5_000_000, 9_000_000, 9_000_000, 10_000_000,
    ]);
  });

  test('expiry works in bounded steps until all is given back', () => {
    const budget = tracker({});
    for (let index = 0; index < 2_500; index += 1) budget.reserve(ada, index, 1, NOON);
    expect([1, 2, 3, 4].map(() => budget.expire(NOON + 600_000))).toEqual([1000, 1000, 500, 0]);
  });

  test('spend ends with its day and its month in the time zone of the budget', () => {
    const start = Date.parse('2026-10-31T22:00:00Z'); // 23:00 in Berlin
    const budget = tracker({ timezone: 'Europe/Berlin' }, start);
    budget.record(ada, 3 * USD, {}, start);
    expect(spentUsd(budget, 'acme', Date.parse('2026-10-31T22:59:59.999Z'))).toEqual({ monthly: 3, daily: 3 });
    expect(spentUsd(budget, 'acme', Date.parse('2026-10-31T23:00:00Z'))).toEqual({ monthly: 0, daily: 0 });
    budget.record(ada, 4 * USD, {}, Date.parse('2026-11-01T05:00:00Z'));
    expect(spentUsd(budget, 'acme', Date.parse('2026-11-01T23:00:00Z'))).toEqual({ monthly: 4, daily: 0 });
  });

  test('a reservation over midnight counts against the new day until it is settled', () => {
    const budget = tracker({ daily_limit_usd: 10 }, Date.parse('2026-11-04T23:59:00Z'));
    budget.reserve(ada, 1, 10 * USD, Date.parse('2026-11-04T23:59:00Z'));
    expect(budget.reserve(bob, 2, 1, Date.parse('2026-11-05T00:01:00Z')).ok).toBe(false);
  });

  test('a clock set back over midnight reopens no ended day', () => {
    const midnight = Date.parse('2026-11-05T00:00:00Z');
    const budget = tracker({ daily_limit_usd: 10 }, midnight - HOUR_MS);
    budget.record(ada, 10 * USD, {}, midnight - 1);
    budget.record(ada, 6 * USD, {}, midnight + 1);
    expect(budget.record(ada, 3 * USD, {}, midnight - HOUR_MS + 1).exceeded).toBeUndefined();
    expect(spentUsd(budget, 'acme', midnight + 2)).toEqual({ monthly: 19, daily: 9 });
    expect(spentUsd(budget, 'acme', midnight + 24 * HOUR_MS)).toEqual({ monthly: 19, daily: 0 });
  });

  test('a clock that jumps an hour ahead and back begins the new day once', () => {
    const evening = Date.parse('2026-11-04T23:30:00Z');
    const budget = tracker({ daily_limit_usd: 10 }, evening);
    budget.record(ada, 1 * USD, {}, evening);
    budget.record(ada, 2 * USD, {}, evening + HOUR_MS);
    budget.record(ada, 4 * USD, {}, evening);
    expect(spentUsd(budget, 'acme', evening + HOUR_MS)).toEqual({ monthly: 7, daily: 6 });
  });

  test('caps and reservations recover from a clock that was a year ahead', () => {
    const budget = tracker({ daily_limit_usd: 10 });
    const wrong = NOON + 365 * 24 * HOUR_MS;
    budget.record(ada, 4 * USD, {}, wrong);
    budget.reserve(ada, 1, 6 * USD, wrong);
    expect(budget.wouldExceed(bob, 1, NOON)).toMatchObject({ spentMicroUsd: 4_000_000, reservedMicroUsd: 6_000_000 });
    expect(budget.wouldExceed(bob, 6 * USD, NOON + 600_000)).toBeUndefined();
    expect(spentUsd(budget, 'acme', Date.parse('2026-11-05T00:00:00Z'))).toEqual({ monthly: 4, daily: 0 });
  });

  test('caps change at once; spend and periods stay', () => {
    const budget = tracker({ org_daily_limit_usd: 10 });
    budget.record(ada, 6 * USD, {}, NOON);
    budget.reconfigure(budgetConfig({ org_daily_limit_usd: 5 }), NOON);
    expect(budget.wouldExceed(ada, 0, NOON)).toMatchObject({
      tier: 'org',
      spentMicroUsd: 6_000_000,
      limitMicroUsd: 5_000_000,
    });
    budget.reconfigure(undefined, NOON);
    expect(budget.wouldExceed(ada, 1_000 * USD, NOON)).toBeUndefined();
    budget.reconfigure(budgetConfig({ org_daily_limit_usd: 7 }), NOON);
    expect(budget.wouldExceed(ada, USD, NOON)).toBeUndefined();
    expect(budget.wouldExceed(ada, USD + 1, NOON)).toMatchObject({ tier: 'org' });
  });

  test('a new time zone keeps the spend of a current date and reopens no ended one', () => {
    const zoned = (timezone: string) => budgetConfig({ daily_limit_usd: 100, timezone });
    const utcEvening = Date.parse('2026-11-04T20:00:00Z');
    const west = new BudgetTracker(zoned('UTC'), utcEvening);
    west.record(ada, 5 * USD, {}, utcEvening);
    west.reconfigure(zoned('America/Los_Angeles'), utcEvening);
    expect(spentUsd(west, 'acme', Date.parse('2026-11-05T07:59:59Z')).daily).toBe(5);
    expect(spentUsd(west, 'acme', Date.parse('2026-11-05T08:00:00Z')).daily).toBe(0);

    const east = new BudgetTracker(zoned('UTC'), utcEvening);
    east.record(ada, 5 * USD, {}, utcEvening);
    east.reconfigure(zoned('Asia/Tokyo'), utcEvening); // where 5 November has begun
    expect(spentUsd(east, 'acme', utcEvening)).toEqual({ monthly: 5, daily: 0 });
    east.record(ada, 7 * USD, {}, utcEvening);
    east.reconfigure(zoned('UTC'), utcEvening);
    expect(spentUsd(east, 'acme', utcEvening).daily).toBe(7);
    expect(spentUsd(east, 'acme', Date.parse('2026-11-05T23:59:59Z')).daily).toBe(7);
    expect(spentUsd(east, 'acme', Date.parse('2026-11-06T00:00:00Z')).daily).toBe(0);
  });

  test('an owner with spend this month or a reservation is never evicted as idle', () => {
    const budget = tracker({ agent_monthly_limit_usd: 10 });
    budget.record(ada, 5 * USD, {}, NOON);
    budget.reserve(bob, 1, 6 * USD, NOON);
    budget.drainChanges(); // all of it is stored
    const swept = (nowMs: number) => [1, 2, 3, 4].forEach(() => budget.sweep(nowMs));
    swept(NOON);
    expect(budget.wouldExceed(bob, 5 * USD, NOON)).toEqual({
      tier: 'agent',
      period: 'monthly',
      spentMicroUsd: 0,
      reservedMicroUsd: 6_000_000,
      limitMicroUsd: 10_000_000,
    });
    swept(NOON + 24 * HOUR_MS);
    expect(budget.wouldExceed(ada, 6 * USD, NOON + 24 * HOUR_MS)).toEqual({
      tier: 'agent',
      period: 'monthly',
      spentMicroUsd: 5_000_000,
      reservedMicroUsd: 0,
      limitMicroUsd: 10_000_000,
    });
  });

  test('a usage id counts once; a retry gets the first answer and no alert', () => {
    const budget = tracker({ agent_daily_limit_usd: 1 });
    const first = budget.record(ada, 2 * USD, { usageId: 'u1' }, NOON);
    expect(first).toMatchObject({ duplicate: false, exceeded: { spentMicroUsd: 2_000_000 } });
    expect(first.alerts).toHaveLength(2);
    budget.record(ada, USD, {}, NOON);
    expect(budget.record(ada, 2 * USD, { usageId: 'u1' }, NOON)).toEqual({
      duplicate: true,
      alerts: [],
      exceeded: first.exceeded,
    });
    expect(spentUsd(budget, 'acme', NOON).daily).toBe(3);
  });

  test('the same usage id of another agent is another usage', () => {
    const budget = tracker({});
    for (const agent of [ada, bob, eve, stray])
      expect(budget.record(agent, USD, { usageId: 'u1' }, NOON).duplicate).toBe(false);
    expect(budget.status({}, NOON).items[0]?.daily.spentMicroUsd).toBe(4_000_000);
  });

  test('a usage id is remembered for a day', () => {
    const budget = tracker({});
    budget.record(ada, USD, { usageId: 'u1' }, NOON);
    expect(budget.record(ada, USD, { usageId: 'u1' }, NOON + 24 * HOUR_MS - 1).duplicate).toBe(true);
    expect(budget.record(ada, USD, { usageId: 'u1' }, NOON + 24 * HOUR_MS).duplicate).toBe(false);
  });

  test('spend stays an exact number, however often the largest cost is sent', () => {
    const budget = tracker({ monthly_limit_usd: 1_000_000_000 });
    for (let index = 0; index < 9_100; index += 1) budget.record(ada, 1_000_000 * USD, {}, NOON);
    expect(budget.status({}, NOON).items[0]?.monthly.spentMicroUsd).toBe(Number.MAX_SAFE_INTEGER);
    expect(budget.reserve(ada, 1, 0, NOON)).toMatchObject({ fault: { tier: 'global', period: 'monthly' } });
  });

  test('reservations stay exact without a cap', () => {
    const budget = tracker({});
    const results = Array.from({ length: 9_100 }, (_, index) => budget.reserve(ada, index, 1_000_000 * USD, NOON).ok);
    expect(results.filter(Boolean)).toHaveLength(9_007);
    for (let index = 0; index < 9_100; index += 1) budget.release(index);
    expect(budget.status({}, NOON).items[0]?.reservedMicroUsd).toBe(0);
  });

  test('the status shows spend, reservations, caps, and when a period began and ends', () => {
    const budget = tracker({ org_daily_limit_usd: 10, timezone: 'Europe/Berlin' });
    budget.record(ada, USD, {}, NOON);
    budget.reserve(ada, 1, 2 * USD, NOON);
    expect(budget.status({ orgId: 'acme', limit: 1 }, NOON).items).toEqual([
      {
        tier: 'org',
        orgId: 'acme',
        teamId: null,
        agentId: null,
        reservedMicroUsd: 2_000_000,
        monthly: {
          spentMicroUsd: 1_000_000,
          limitMicroUsd: undefined,
          periodStartMs: Date.parse('2026-10-31T23:00:00Z'),
          resetMs: Date.parse('2026-11-30T23:00:00Z'),
        },
        daily: {
          spentMicroUsd: 1_000_000,
          limitMicroUsd: 10_000_000,
          periodStartMs: Date.parse('2026-11-03T23:00:00Z'),
          resetMs: Date.parse('2026-11-04T23:00:00Z'),
        },
      },
    ]);
  });

  test('status pages hold every row once, and those of an org only its own', () => {
    const budget = tracker({});
    for (let index = 0; index < 60; index += 1)
      budget.handleOf({ orgId: `o${index % 3}`, teamId: `t${index % 6}`, agentId: `a${index}` }, true);
    budget.handleOf(stray, true);
    const walk = (filter: { orgId?: string }, limit: number) => {
      const seen: string[] = [];
      for (
        let page = budget.status({ ...filter, limit }, NOON);
        ;
        page = budget.status({ ...filter, limit, after: parseBudgetCursor(page.next ?? '') }, NOON)
      ) {
        seen.push(...page.items.map((row) => [row.tier, row.orgId, row.teamId, row.agentId].join('/')));
        if (page.next === undefined) return seen;
      }
    };
    const all = walk({}, 1000);
    expect(all).toHaveLength(1 + 3 + 6 + 60 + 2);
    expect(all.slice(0, 5)).toEqual(['global///', 'org/o0//', 'org/o1//', 'org/o2//', 'team/o0/t0/']);
    for (const limit of [1, 2, 7, 50, 72]) expect(walk({}, limit)).toEqual(all);
    expect(walk({ orgId: 'o1' }, 4)).toEqual(all.filter((row) => row.split('/')[1] === 'o1'));
    expect(walk({ orgId: 'nobody' }, 4)).toEqual([]);
  });

  test.each(['', '4', '0.', '1.x', '1.2.3.4.5', '-1', '1.1e3', '1.9999999999999999'])('%j is not a cursor', (text) => {
    expect(parseBudgetCursor(text)).toBeUndefined();
  });

  test('drops expired state: owners without spend or handle, and old usage ids', () => {
    const budget = tracker({});
    const handle = budget.handleOf(bob, true)!;
    budget.record(ada, USD, { usageId: 'u1' }, NOON);
    budget.record(cy, USD, {}, NOON);
    expect(budget.sweep(NOON)).toBe(0);
    const nextMonth = Date.parse('2026-12-01T00:00:00Z');
    expect(budget.sweep(NOON + 24 * HOUR_MS)).toBe(1); // the usage id
    for (let hour = -25; hour < 0; hour += 1) budget.sweep(nextMonth + hour * HOUR_MS); // else the clock is in doubt
    expect(budget.sweep(nextMonth)).toBe(0); // nothing goes before the store has it
    budget.drainChanges();
    expect(budget.sweep(nextMonth)).toBe(3); // ada, cy and the team ads
    expect(budget.status({}, nextMonth).items.map((row) => row.agentId ?? row.teamId ?? row.orgId)).toEqual([
      null,
      'acme',
      'search',
      'bob',
    ]);
    expect(budget.drainChanges()).toEqual([
      { key: 'spend/agent/acme/search/ada', row: undefined },
      { key: 'spend/agent/acme/ads/cy', row: undefined },
      { key: 'spend/team/acme/ads', row: undefined },
    ]);
    budget.forget(handle);
    expect(budget.sweep(nextMonth)).toBe(3);
    expect(() => budget.reserve(handle, 1, 1, nextMonth)).toThrow('a handle is not used after it was forgotten');
  });

  test('a dry run applies the caps of an unknown agent and stores nothing about it', () => {
    const budget = tracker({ org_daily_limit_usd: 10, agent_daily_limit_usd: 5 });
    budget.record(ada, 8 * USD, {}, NOON);
    const unheardOf = { ...ada, teamId: 'new', agentId: 'unheard-of' };
    expect(budget.wouldExceed(unheardOf, 1 * USD, NOON)).toBeUndefined();
    expect(budget.wouldExceed(unheardOf, 3 * USD, NOON)).toEqual({
      tier: 'org',
      period: 'daily',
      spentMicroUsd: 8_000_000,
      reservedMicroUsd: 0,
      limitMicroUsd: 10_000_000,
    });
    expect(budget.wouldExceed({ ...unheardOf, orgId: 'other' }, 6 * USD, NOON)).toEqual({
      tier: 'agent',
      period: 'daily',
      spentMicroUsd: 0,
      reservedMicroUsd: 0,
      limitMicroUsd: 5_000_000,
    });
    expect(budget.status({}, NOON).items.map((row) => row.agentId ?? row.teamId ?? row.orgId)).toEqual([
      null,
      'acme',
      'search',
      'ada',
    ]);
  });
});
