import { describe, expect, test } from 'vitest';
import { BudgetTracker } from '../../../src/core/budget/budget.ts';
import type { BudgetRow } from '../../../src/core/budget/rows.ts';
import { LimitTracker } from '../../../src/core/limits/limits.ts';
import type { BudgetStore } from '../../../src/ports/ports.ts';
import { SpendSaver } from '../../../src/threads/main/spend-saver.ts';
import { CRAWLER } from '../../support/governor.ts';
import { spentUsd } from '../../support/spent-usd.ts';

const NOW_MS = Date.parse('2026-11-04T12:00:00Z');

/** A store whose commits end when the test says so, in their order. */
function openStore() {
  const rows = new Map<string, BudgetRow>();
  const commits: ((isCommitted: boolean) => void)[] = [];
  const save: BudgetStore['save'] = (changes) =>
    new Promise<void>((resolve, reject) => {
      commits.push((isCommitted) => {
        if (!isCommitted) return reject(new Error('no space left'));
        for (const { key, row } of changes) row === undefined ? rows.delete(key) : rows.set(key, row as BudgetRow);
        resolve();
      });
    });
  return { save, commits, rows };
}

function openSaver() {
  const store = openStore();
  const budgets = new BudgetTracker(undefined, NOW_MS);
  const limits = new LimitTracker({ maxStates: 10, sessionTtlMs: 60_000, firstOf: (key) => key });
  const saver = new SpendSaver(budgets, limits, store);
  const record = (usageId: string, to = budgets) => to.record(CRAWLER, 1_000_000, { usageId }, NOW_MS);
  /** Told as the switchboard tells it: what became of the answer. */
  const recordAndSave = (usageId: string) => {
    record(usageId);
    return saver.save().then(
      () => 'saved',
      () => 'failed',
    );
  };
  /** Restores a gateway that starts after a kill. */
  const afterKill = () => {
    const restored = new BudgetTracker(undefined, NOW_MS);
    restored.restore(store.rows.values(), NOW_MS);
    return restored;
  };
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  return { ...store, saver, record, recordAndSave, afterKill, turn };
}

describe('spend saver', () => {
  test('usage counts once over retries, failed commits and a kill', async () => {
    const { recordAndSave, record, afterKill, commits, turn } = openSaver();
    const first = recordAndSave('u1');
    await turn();
    const second = recordAndSave('u2');
    await turn();
    commits[0]!(false);
    expect(await first).toBe('failed');
    await turn();
    commits[1]!(true);
    expect(await second).toBe('saved');
    const restarted = afterKill();
    expect(record('u1', restarted).duplicate).toBe(true);
    expect(spentUsd(restarted, CRAWLER.orgId, NOW_MS).daily).toBe(2);
  });

  test('after a kill at any time no stored spend lacks its usage id', async () => {
    const { recordAndSave, record, afterKill, commits, turn } = openSaver();
    const outcomes: Promise<string>[] = [];
    for (const [at, isCommitted] of [true, false, true, false, false, true].entries()) {
      outcomes.push(recordAndSave(`u${outcomes.length}`), recordAndSave(`u${outcomes.length + 1}`));
      await turn();
      commits[at]!(isCommitted);
      await turn();
      const restarted = afterKill();
      outcomes.forEach((_, nth) => record(`u${nth}`, restarted)); // all are sent again
      expect(spentUsd(restarted, CRAWLER.orgId, NOW_MS).daily).toBe(outcomes.length);
    }
    expect(await Promise.all(outcomes)).toEqual([
      'saved',
      'saved',
      'failed',
      'failed',
      'saved',
      'saved',
      'failed',
      'failed',
      'failed',
      'failed',
      'saved',
      'saved',
    ]);
  });

  test('requests during a write wait for one more write and no longer', async () => {
    const { recordAndSave, saver, commits, rows, turn } = openSaver();
    const first = recordAndSave('u1');
    await turn();
    const later = [recordAndSave('u2'), recordAndSave('u3'), saver.save().then(() => 'saved')];
    await turn();
    commits[0]!(true);
    expect(await first).toBe('saved');
    await turn();
    commits[1]!(true);
    expect(await Promise.all(later)).toEqual(['saved', 'saved', 'saved']);
    expect(commits).toHaveLength(2);
    expect([...rows.keys()].filter((key) => key.startsWith('usage/')).map((key) => key.split('/').at(-1))).toEqual([
      'u1',
      'u2',
      'u3',
    ]);
  });
});
