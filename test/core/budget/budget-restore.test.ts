import { describe, expect, test } from 'vitest';
import type { AgentIdentity } from '../../../src/core/base/ids.ts';
import { BudgetTracker } from '../../../src/core/budget/budget.ts';
import type { BudgetChange, BudgetRow } from '../../../src/core/budget/rows.ts';
import { ada, budgetConfig, HOUR_MS, NOON, stray, USD } from '../../support/budgets.ts';
import { spentUsd } from '../../support/spent-usd.ts';

const eve: AgentIdentity = { orgId: 'globex', teamId: 'search', agentId: 'eve' };

const CAPS = budgetConfig({ org_daily_limit_usd: 10 });

/**
 * A store of keys and values, as the gateway keeps one on disk. Rows go through JSON, as they would through any codec.
 */
function createStore() {
  const rows = new Map<string, string>();
  return {
    rows,
    write(changes: readonly BudgetChange[]) {
      for (const { key, row } of changes) {
        if (row === undefined) rows.delete(key);
        else rows.set(key, JSON.stringify(row));
      }
    },
    read: () => [...rows.values()].map((text) => JSON.parse(text) as BudgetRow),
  };
}

function restart(store: ReturnType<typeof createStore>, nowMs: number, budget = CAPS): BudgetTracker {
  const tracker = new BudgetTracker(budget, nowMs);
  tracker.restore(store.read(), nowMs);
  return tracker;
}
const spendOf = (tracker: BudgetTracker, nowMs: number) =>
  tracker
    .status({ limit: 1000 }, nowMs)
    .items.map((row) => [
      row.tier,
      row.orgId,
      row.teamId,
      row.agentId,
      row.monthly.spentMicroUsd,
      row.daily.spentMicroUsd,
    ]);

describe('budget restore', () => {
  test('a restart restores spend, repeats no alert and reserves nothing', () => {
    const store = createStore();
    const before = new BudgetTracker(CAPS, NOON);
    before.record(ada, 8 * USD, {}, NOON);
    before.record(eve, 2 * USD, {}, NOON);
    before.record(stray, 1 * USD, {}, NOON);
    before.reserve(ada, 1, 2 * USD, NOON);
    store.write(before.drainChanges());
    const after = restart(store, NOON + 1);
    expect(spendOf(after, NOON + 1)).toEqual(spendOf(before, NOON + 1));
    expect(spendOf(after, NOON + 1)).toContainEqual(['org', 'acme', null, null, 8_000_000, 8_000_000]);
    expect(after.record(ada, 1, {}, NOON + 1).alerts).toEqual([]);
    expect(after.wouldExceed(ada, 2 * USD, NOON + 1)).toMatchObject({
      tier: 'org',
      spentMicroUsd: 8_000_001,
      reservedMicroUsd: 0,
    });
    expect(
      after
        .drainChanges()
        .map(({ key }) => key)
        .toSorted(),
    ).toEqual(['spend/agent/acme/search/ada', 'spend/global', 'spend/org/acme', 'spend/team/acme/search']);
  });

  test('an alert of the month is not repeated after a restart on a later day', () => {
    const caps = budgetConfig({ agent_monthly_limit_usd: 10 });
    const store = createStore();
    const before = new BudgetTracker(caps, NOON);
    expect(before.record(ada, 8 * USD, {}, NOON).alerts).toHaveLength(1);
    store.write(before.drainChanges());
    const nextDayMs = NOON + 24 * 3_600_000;
    const after = restart(store, nextDayMs, caps);
    expect(after.record(ada, 1 * USD, {}, nextDayMs).alerts).toEqual([]);
    expect(after.record(ada, 1 * USD, {}, nextDayMs).alerts.map(({ percent }) => percent)).toEqual([100]);
  });

  test('writes only what changed, and one row for a total changed many times', () => {
    const tracker = new BudgetTracker(CAPS, NOON);
    for (let index = 0; index < 50; index += 1) tracker.record(ada, 1, {}, NOON);
    tracker.record(eve, 1, {}, NOON);
    expect(
      tracker
        .drainChanges()
        .map(({ key }) => key)
        .toSorted(),
    ).toEqual([
      'spend/agent/acme/search/ada',
      'spend/agent/globex/search/eve',
      'spend/global',
      'spend/org/acme',
      'spend/org/globex',
      'spend/team/acme/search',
      'spend/team/globex/search',
    ]);
    expect(tracker.drainChanges()).toEqual([]);
    tracker.reserve(ada, 1, 1, NOON);
    expect(tracker.drainChanges()).toEqual([]);
  });

  test('rows that a store could not write are offered again with later changes', () => {
    const store = createStore();
    const tracker = new BudgetTracker(CAPS, NOON);
    tracker.record(ada, 3 * USD, { usageId: 'u1' }, NOON);
    tracker.record(eve, 2 * USD, {}, NOON); // and never again
    const failed = tracker.drainChanges();
    tracker.record(ada, 4 * USD, {}, NOON);
    tracker.requeueChanges(failed);
    store.write(tracker.drainChanges());
    expect(tracker.drainChanges()).toEqual([]);
    const after = restart(store, NOON);
    expect(spentUsd(after, 'acme', NOON)).toEqual({ monthly: 7, daily: 7 });
    expect(spentUsd(after, 'globex', NOON)).toEqual({ monthly: 2, daily: 2 });
    expect(after.record(ada, 3 * USD, { usageId: 'u1' }, NOON).duplicate).toBe(true);
  });

  test('a usage id resent after a crash counts once and gets the first answer', () => {
    const store = createStore();
    const before = new BudgetTracker(CAPS, NOON);
    const first = before.record(ada, 11 * USD, { usageId: 'u/1' }, NOON);
    store.write(before.drainChanges());
    const after = restart(store, NOON + HOUR_MS);
    expect(after.record(ada, 11 * USD, { usageId: 'u/1' }, NOON + HOUR_MS)).toEqual({
      duplicate: true,
      alerts: [],
      exceeded: first.exceeded,
    });
    expect(after.record(eve, 11 * USD, { usageId: 'u/1' }, NOON + HOUR_MS).duplicate).toBe(false);
  });

  test('drops days and months that ended during downtime, also from the store', () => {
    const store = createStore();
    const before = new BudgetTracker(CAPS, NOON);
    before.record(ada, 8 * USD, { usageId: 'u1' }, NOON);
    store.write(before.drainChanges());

    const nextDay = restart(store, NOON + 24 * HOUR_MS);
    expect(spentUsd(nextDay, 'acme', NOON + 24 * HOUR_MS)).toEqual({ monthly: 8, daily: 0 });

    const nextMonth = Date.parse('2026-12-01T00:00:00Z');
    const later = restart(store, nextMonth);
    expect(spendOf(later, nextMonth)).toEqual([['global', null, null, null, 0, 0]]);
    store.write(later.drainChanges());
    expect([...store.rows.keys()]).toEqual([]);
  });

  test('drops owners that spent only in past months, and still restores later spend', () => {
    const store = createStore();
    const tracker = new BudgetTracker(CAPS, NOON);
    tracker.record(ada, 8 * USD, {}, NOON);
    store.write(tracker.drainChanges());
    const december = Date.parse('2026-12-01T12:00:00Z');
    for (let hour = -24; hour <= 0; hour += 1) tracker.sweep(december + hour * HOUR_MS); // else the clock is in doubt
    expect(spendOf(tracker, december)).toEqual([['global', null, null, null, 0, 0]]);
    store.write(tracker.drainChanges());
    expect([...store.rows.keys()]).toEqual(['spend/global']);
    tracker.record(ada, 3 * USD, {}, december);
    store.write(tracker.drainChanges());
    tracker.record(eve, 1 * USD, {}, december);
    store.write(tracker.drainChanges());
    expect(spentUsd(restart(store, december), 'acme', december)).toEqual({ monthly: 3, daily: 3 });
  });

  test('a clock behind the last run reopens no ended day', () => {
    const midnight = Date.parse('2026-11-05T00:00:00Z');
    const store = createStore();
    const before = new BudgetTracker(CAPS, midnight - HOUR_MS);
    before.record(ada, 10 * USD, {}, midnight - 1);
    before.record(ada, 6 * USD, {}, midnight + 1);
    store.write(before.drainChanges());
    const after = restart(store, midnight - HOUR_MS);
    expect(after.wouldExceed(ada, 5 * USD, midnight - HOUR_MS)).toMatchObject({ spentMicroUsd: 6_000_000 });
    expect(spentUsd(after, 'acme', midnight + HOUR_MS)).toEqual({ monthly: 16, daily: 6 });
    expect(spentUsd(after, 'acme', midnight + 24 * HOUR_MS).daily).toBe(0);
  });

  test('spend stored by a clock far ahead counts now and gets the right date', () => {
    const store = createStore();
    const wrong = NOON + 400 * 24 * HOUR_MS;
    const before = new BudgetTracker(CAPS, wrong);
    before.record(ada, 6 * USD, {}, wrong);
    store.write(before.drainChanges());
    const after = restart(store, NOON);
    expect(spentUsd(after, 'acme', NOON)).toEqual({ monthly: 6, daily: 6 });
    store.write(after.drainChanges());
    const nextMonth = Date.parse('2026-12-01T00:00:00Z');
    expect(spentUsd(restart(store, nextMonth), 'acme', nextMonth)).toEqual({ monthly: 0, daily: 0 });
  });

  test('a new time zone after downtime keeps the spend of a date that goes on', () => {
    const store = createStore();
    const before = new BudgetTracker(budgetConfig({ timezone: 'UTC' }), NOON);
    before.record(ada, 6 * USD, {}, NOON);
    store.write(before.drainChanges());
    const evening = Date.parse('2026-11-05T05:00:00Z'); // 21:00 on the 4th in Los Angeles
    expect(
      spentUsd(restart(store, evening, budgetConfig({ timezone: 'America/Los_Angeles' })), 'acme', evening).daily,
    ).toBe(6);
    expect(spentUsd(restart(store, evening, budgetConfig({ timezone: 'UTC' })), 'acme', evening).daily).toBe(0);
  });

  test('spend stored in a zone ahead of the new one is not counted twice', () => {
    const utcEvening = Date.parse('2026-11-04T20:00:00Z');
    const store = createStore();
    const tokyo = new BudgetTracker(budgetConfig({ timezone: 'Asia/Tokyo' }), utcEvening); // the 5th
    tokyo.record(ada, 6 * USD, {}, utcEvening);
    store.write(tokyo.drainChanges());
    const after = restart(store, utcEvening, budgetConfig({ timezone: 'America/Los_Angeles' }));
    expect(spentUsd(after, 'acme', utcEvening).daily).toBe(6);
    expect(spentUsd(after, 'acme', Date.parse('2026-11-06T07:59:59Z')).daily).toBe(6);
    expect(spentUsd(after, 'acme', Date.parse('2026-11-06T08:00:00Z')).daily).toBe(0);
  });
});
