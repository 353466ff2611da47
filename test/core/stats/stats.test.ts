import { describe, expect, test } from 'vitest';
import type { DecisionCause } from '../../../src/core/check/cause.ts';
import { Stats } from '../../../src/core/stats/stats.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const START_MS = Date.parse('2026-11-04T12:00:00Z');
const BOUNDS_MS = [1, 10, 100];

const agentOf = (orgId: string, agentId = 'a') => ({ orgId, teamId: 't', agentId });
const ALLOW = { decision: 'allow', cause: undefined, policy: 'p', ruleId: 'ok' } as const;
const denyBy = (cause: DecisionCause, policy?: string, ruleId?: string) =>
  ({ decision: 'deny', cause, policy, ruleId }) as const;

const open = () => new Stats(START_MS, BOUNDS_MS);

describe('statistics', () => {
  test('count checks, denies and spend, for all and for each org', () => {
    const stats = open();
    stats.countCheck(agentOf('acme'), ALLOW, START_MS);
    stats.countCheck(agentOf('acme', 'b'), denyBy('rule', 'p', 'no-rm'), START_MS);
    stats.countCheck(agentOf('acme', 'b'), denyBy('rule', 'p', 'no-rm'), START_MS + MINUTE_MS);
    stats.countCheck(agentOf('acme'), denyBy('budget'), START_MS + MINUTE_MS);
    stats.countCheck(agentOf('globex'), { ...ALLOW, decision: 'pending' }, START_MS + MINUTE_MS);
    stats.countSpend(agentOf('acme'), 1_500_000, START_MS + MINUTE_MS);
    const all = stats.view(undefined, START_MS + 2 * MINUTE_MS);
    expect(all).toMatchObject({
      fromMs: START_MS,
      toMs: START_MS + 2 * MINUTE_MS,
      sum: { allow: 1, deny: 3, pending: 1, spentMicroUsd: 1_500_000 },
      causes: [
        { cause: 'rule', count: 2 },
        { cause: 'budget', count: 1 },
      ],
      agents: [
        { agent: agentOf('acme', 'b'), count: 2 },
        { agent: agentOf('acme'), count: 1 },
      ],
      orgs: [
        { orgId: 'acme', allow: 1, deny: 3, pending: 0, spentMicroUsd: 1_500_000 },
        { orgId: 'globex', allow: 0, deny: 0, pending: 1, spentMicroUsd: 0 },
      ],
      isIncomplete: false,
    });
    expect(all.rules).toEqual([{ policy: 'p', ruleId: 'no-rm', count: 2 }]);
    expect(all.points.map(({ latency: _, ...minute }) => minute)).toEqual([
      { atMs: START_MS, allow: 1, deny: 1, pending: 0, spentMicroUsd: 0 },
      { atMs: START_MS + MINUTE_MS, allow: 0, deny: 2, pending: 1, spentMicroUsd: 1_500_000 },
    ]);
    const globex = stats.view('globex', START_MS + 2 * MINUTE_MS);
    expect(globex).toMatchObject({ sum: { allow: 0, deny: 0, pending: 1 }, causes: [], rules: [], agents: [] });
    expect(globex.latency).toBeUndefined();
    expect(globex.orgs.map(({ orgId }) => orgId)).toEqual(['globex']);
    expect(stats.view('nobody', START_MS)).toMatchObject({ sum: { allow: 0 }, orgs: [], points: [] });
  });

  test('count who could not prove who it is for no org and no agent', () => {
    const stats = open();
    for (const cause of ['credential', 'unrecorded'] as const)
      stats.countCheck(agentOf('acme'), denyBy(cause), START_MS);
    expect(stats.view(undefined, START_MS)).toMatchObject({ sum: { deny: 2 }, orgs: [], agents: [] });
    expect(stats.view('acme', START_MS)).toMatchObject({ sum: { deny: 0 } });
  });

  test('forget what is older than a month, and keep their counters for the metrics', () => {
    const stats = open();
    stats.countCheck(agentOf('acme'), ALLOW, START_MS + 30 * MINUTE_MS);
    stats.countCheck(agentOf('acme'), denyBy('rule', 'p', 'r'), START_MS + 90 * MINUTE_MS);
    const sumAt = (minutes: number) => stats.view('acme', START_MS + 24 * HOUR_MS + minutes * MINUTE_MS).sum;
    expect(sumAt(29)).toMatchObject({ allow: 1, deny: 1 });
    expect(sumAt(30)).toMatchObject({ allow: 0, deny: 1 });
    expect(sumAt(90)).toMatchObject({ allow: 0, deny: 0 });
    stats.prune(START_MS + 721 * HOUR_MS);
    expect(stats.orgTotals).toEqual([{ orgId: 'acme', allow: 1, deny: 1, pending: 0, spentMicroUsd: 0 }]);
    stats.prune(START_MS + 723 * HOUR_MS);
    expect(stats.orgTotals).toEqual([]);
    expect(stats.causes.rule).toBe(1);
    expect([...stats.rules.entries()]).toEqual([['p', 'r', [1]]]);
    stats.countCheck(agentOf('acme'), ALLOW, START_MS + 724 * HOUR_MS);
    expect(stats.view('acme', START_MS + 724 * HOUR_MS).sum).toMatchObject({ allow: 1, deny: 0 });
  });

  test('show a window of minutes or of hours, with names of their own', () => {
    const stats = open();
    stats.countCheck(agentOf('acme', 'early'), denyBy('rule', 'p', 'old'), START_MS);
    stats.countCheck(agentOf('acme', 'late'), ALLOW, START_MS + 50 * MINUTE_MS);
    const nowMs = START_MS + 55 * MINUTE_MS;
    expect(stats.view('acme', nowMs, '15m')).toMatchObject({
      sum: { allow: 1, deny: 0 },
      causes: [],
      top: {
        rules: [{ policy: 'p', ruleId: 'ok', allow: 1, deny: 0, pending: 0 }],
        agents: [{ agent: agentOf('acme', 'late'), checks: 1, denies: 0 }],
        spenders: [],
      },
    });
    expect(stats.view('acme', nowMs, '1h')).toMatchObject({ sum: { allow: 1, deny: 1 }, causes: [{ count: 1 }] });
    stats.prune(START_MS + 26 * HOUR_MS);
    stats.countCheck(agentOf('acme', 'late'), ALLOW, START_MS + 26 * HOUR_MS);
    const week = stats.view('acme', START_MS + 26 * HOUR_MS, '7d');
    expect(week).toMatchObject({ window: '7d', sum: { allow: 2, deny: 1 } });
    expect(week.points.map(({ atMs, allow, deny }) => ({ atMs, allow, deny }))).toEqual([
      { atMs: START_MS, allow: 1, deny: 1 },
      { atMs: START_MS + 26 * HOUR_MS, allow: 1, deny: 0 },
    ]);
    expect(week.top.agents.map(({ agent, checks }) => [agent.agentId, checks])).toEqual([
      ['late', 2],
      ['early', 1],
    ]);
  });

  test('rank agents by what they have spent', () => {
    const stats = open();
    stats.countSpend(agentOf('acme', 'thrifty'), 1_000_000, START_MS);
    stats.countSpend(agentOf('globex', 'spender'), 7_000_000, START_MS);
    stats.countSpend(agentOf('acme', 'thrifty'), 2_000_000, START_MS);
    expect(stats.view(undefined, START_MS).top.spenders).toEqual([
      { agent: agentOf('globex', 'spender'), checks: 0, denies: 0, spentMicroUsd: 7_000_000 },
      { agent: agentOf('acme', 'thrifty'), checks: 0, denies: 0, spentMicroUsd: 3_000_000 },
    ]);
    expect(stats.view('acme', START_MS).top.spenders.map(({ agent }) => agent.agentId)).toEqual(['thrifty']);
  });

  test('are the same after a restart, hour by hour and minute by minute', () => {
    const stats = open();
    stats.countCheck(agentOf('acme'), ALLOW, START_MS);
    stats.noteLatency([0, 4, 0, 0], START_MS);
    stats.countCheck(agentOf('globex'), denyBy('no_rule'), START_MS + 30 * HOUR_MS);
    stats.countSpend(agentOf('globex'), 5_000_000, START_MS + 30 * HOUR_MS);
    stats.noteLatency([0, 4, 9, 0], START_MS + 30 * HOUR_MS);
    stats.prune(START_MS + 30 * HOUR_MS);
    const rows = JSON.parse(JSON.stringify(stats.takeUnsaved(1_000).flatMap(({ row }) => row ?? [])));
    expect(stats.takeUnsaved(1_000)).toEqual([]);
    const after = new Stats(START_MS + 31 * HOUR_MS, BOUNDS_MS);
    after.restore(rows, START_MS + 31 * HOUR_MS);
    for (const window of ['1h', '24h', '7d'] as const)
      for (const org of [undefined, 'acme', 'globex'])
        expect(after.view(org, START_MS + 31 * HOUR_MS, window)).toEqual(
          stats.view(org, START_MS + 31 * HOUR_MS, window),
        );
    expect(after.view(undefined, START_MS + 31 * HOUR_MS, '7d')).toMatchObject({
      fromMs: START_MS,
      sum: { allow: 1, deny: 1, spentMicroUsd: 5_000_000 },
      latency: { p50: 100, p95: 100, p99: 100 },
    });
  });

  test('offer again what could not be saved, and remove what is over', () => {
    const stats = open();
    stats.countCheck(agentOf('acme'), ALLOW, START_MS);
    const first = stats.takeUnsaved(10);
    const hour = START_MS / HOUR_MS;
    expect(first.map(({ key }) => key)).toEqual([`/${hour}`, `acme/${hour}`]);
    stats.putBack(first);
    expect(stats.takeUnsaved(10)).toEqual(first);
    stats.prune(START_MS + 800 * HOUR_MS);
    expect(stats.takeUnsaved(10).filter(({ row }) => row === undefined)).toEqual([
      { key: `/${hour}`, row: undefined },
      { key: `/latency/${hour}`, row: undefined },
      { key: `acme/${hour}`, row: undefined },
    ]);
  });

  test('stay within their memory, whatever is asked of them', () => {
    const stats = open();
    for (let at = 0; at < 1_000; at += 1) {
      stats.countCheck(agentOf('acme', `a${at}`), denyBy('rule', 'p', `r${at}`), START_MS);
      stats.countCheck(agentOf('acme', 'a0'), denyBy('rule', 'p', 'r0'), START_MS);
    }
    const acme = stats.view('acme', START_MS);
    expect(acme.rules.length).toBe(51);
    expect(acme.rules[0]).toMatchObject({ count: 1_001 });
    expect(acme.rules.at(-1)).toEqual({ policy: undefined, ruleId: undefined, count: 2_000 - 1_001 - 49 });
    expect(acme.agents.at(-1)).toEqual({ agent: undefined, count: 2_000 - 1_001 - 49 });
    expect({ size: stats.rules.size, others: stats.rules.others }).toEqual({ size: 500, others: [500] });
    for (let at = 0; at < 9_000; at += 1) stats.countCheck(agentOf(`org-${at}`), denyBy('no_rule'), START_MS);
    expect(stats.orgTotals.length).toBe(8_000);
    expect(stats.view(undefined, START_MS)).toMatchObject({ sum: { deny: 11_000 }, isIncomplete: true });
    expect(stats.view('org-10', START_MS)).toMatchObject({ sum: { deny: 1 }, isIncomplete: false });
    expect(stats.view('org-8999', START_MS)).toMatchObject({ sum: { deny: 0 }, isIncomplete: true });
    stats.prune(START_MS + 30 * HOUR_MS);
    stats.countCheck(agentOf('org-8999'), ALLOW, START_MS + 30 * HOUR_MS);
    expect(stats.view('org-8999', START_MS + 30 * HOUR_MS)).toMatchObject({ sum: { allow: 1 }, isIncomplete: false });
  });

  test('tell how long checks took, of each minute and of the day', () => {
    const stats = open();
    stats.noteLatency([5, 5, 0, 0], START_MS);
    stats.countCheck(agentOf('acme'), ALLOW, START_MS);
    stats.noteLatency([5, 5, 89, 1], START_MS + MINUTE_MS);
    stats.countCheck(agentOf('acme'), ALLOW, START_MS + MINUTE_MS);
    const { latency, points } = stats.view(undefined, START_MS + MINUTE_MS);
    expect(points.map((minute) => minute.latency)).toEqual([
      { p50: 1, p95: 10, p99: 10 },
      { p50: 100, p95: 100, p99: 100 },
    ]);
    expect(latency).toEqual({ p50: 100, p95: 100, p99: 100 });
    const tomorrow = START_MS + 24 * HOUR_MS;
    expect(stats.view(undefined, tomorrow).latency).toEqual({ p50: 100, p95: 100, p99: 100 });
    expect(stats.view(undefined, tomorrow + MINUTE_MS).latency).toEqual({ p50: null, p95: null, p99: null });
  });
});
