/** Statistics of several gateways, added up. */
import { describe, expect, test } from 'vitest';
import { mergedStats } from '../../../src/core/stats/merge.ts';
import type { StatsView } from '../../../src/core/stats/view.ts';

const NONE = { allow: 0, deny: 0, pending: 0, spentMicroUsd: 0 };
const EMPTY: StatsView = {
  window: '24h',
  fromMs: 100,
  toMs: 200,
  sum: NONE,
  causes: [],
  rules: [],
  agents: [],
  orgs: [],
  latency: undefined,
  top: { rules: [], agents: [], spenders: [] },
  points: [],
  isIncomplete: false,
};
const agent = (agentId: string) => ({ orgId: 'acme', teamId: 'search', agentId });
const tally = (agentId: string, checks: number, denies: number, spentMicroUsd: number) => ({
  agent: agent(agentId),
  checks,
  denies,
  spentMicroUsd,
});

describe('statistics of several gateways', () => {
  test('are added up by what they are about, the most first', () => {
    const one: StatsView = {
      ...EMPTY,
      sum: { allow: 5, deny: 3, pending: 1, spentMicroUsd: 10 },
      causes: [
        { cause: 'rule', count: 2 },
        { cause: 'budget', count: 1 },
      ],
      rules: [
        { policy: 'p', ruleId: 'r', count: 2 },
        { policy: undefined, ruleId: undefined, count: 1 },
      ],
      agents: [{ agent: agent('a'), count: 3 }],
      orgs: [{ orgId: 'acme', ...NONE, allow: 5, deny: 3 }],
      top: {
        rules: [{ policy: 'p', ruleId: 'r', allow: 1, deny: 2, pending: 0 }],
        agents: [tally('a', 8, 3, 10)],
        spenders: [tally('a', 8, 3, 10)],
      },
      latency: { p50: 1, p95: null, p99: 9 },
      points: [{ atMs: 60, ...NONE, allow: 5, latency: { p50: 1, p95: null, p99: 9 } }],
    };
    const other: StatsView = {
      ...EMPTY,
      fromMs: 50,
      toMs: 210,
      sum: { allow: 1, deny: 4, pending: 0, spentMicroUsd: 5 },
      causes: [{ cause: 'budget', count: 4 }],
      rules: [
        { policy: 'p', ruleId: 'r', count: 1 },
        { policy: 'p', ruleId: 's', count: 9 },
      ],
      agents: [
        { agent: agent('b'), count: 4 },
        { agent: agent('a'), count: 2 },
      ],
      orgs: [
        { orgId: 'globex', ...NONE, deny: 4 },
        { orgId: 'acme', ...NONE, allow: 1 },
      ],
      top: {
        rules: [
          { policy: 'p', ruleId: 's', allow: 0, deny: 9, pending: 0 },
          { policy: 'p', ruleId: 'r', allow: 0, deny: 1, pending: 1 },
        ],
        agents: [tally('b', 5, 4, 0), tally('a', 2, 2, 5)],
        spenders: [tally('a', 2, 2, 5)],
      },
      latency: { p50: 2, p95: 3, p99: 4 },
      points: [
        { atMs: 0, ...NONE, deny: 4, latency: undefined },
        { atMs: 60, ...NONE, allow: 1, latency: undefined },
      ],
      isIncomplete: true,
    };
    expect(mergedStats([one, other])).toEqual({
      window: '24h',
      fromMs: 50,
      toMs: 210,
      sum: { allow: 6, deny: 7, pending: 1, spentMicroUsd: 15 },
      causes: [
        { cause: 'budget', count: 5 },
        { cause: 'rule', count: 2 },
      ],
      rules: [
        { policy: 'p', ruleId: 's', count: 9 },
        { policy: 'p', ruleId: 'r', count: 3 },
        { policy: undefined, ruleId: undefined, count: 1 },
      ],
      agents: [
        { agent: agent('a'), count: 5 },
        { agent: agent('b'), count: 4 },
      ],
      orgs: [
        { orgId: 'globex', ...NONE, deny: 4 },
        { orgId: 'acme', ...NONE, allow: 6, deny: 3 },
      ],
      top: {
        rules: [
          { policy: 'p', ruleId: 's', allow: 0, deny: 9, pending: 0 },
          { policy: 'p', ruleId: 'r', allow: 1, deny: 3, pending: 1 },
        ],
        agents: [tally('a', 10, 5, 15), tally('b', 5, 4, 0)],
        spenders: [tally('a', 10, 5, 15)],
      },
      latency: { p50: 2, p95: 3, p99: 9 },
      points: [
        { atMs: 0, ...NONE, deny: 4, latency: undefined },
        { atMs: 60, ...NONE, allow: 6, latency: { p50: 1, p95: null, p99: 9 } },
      ],
      isIncomplete: true,
    });
  });

  test('show the 50 with the most, and the rest as one', () => {
    const view = (from: number): StatsView => ({
      ...EMPTY,
      agents: Array.from({ length: 40 }, (_, nth) => ({ agent: agent(`a${from + nth}`), count: 100 - nth })),
    });
    const { agents } = mergedStats([view(0), view(40)]);
    expect(agents).toHaveLength(51);
    // The 15 that come last at each of the two: from 75 down to 61.
    expect(agents.at(-1)).toEqual({ agent: undefined, count: 2 * (15 * 68) });
  });
});
