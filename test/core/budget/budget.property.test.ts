import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AgentIdentity } from '../../../src/core/base/ids.ts';
import { BudgetTracker } from '../../../src/core/budget/budget.ts';
import type { BudgetConfig, Period, Tier } from '../../../src/core/budget/config.ts';
import type { BudgetRow } from '../../../src/core/budget/rows.ts';
import { runs } from '../../support/runs.ts';

/**
 * The same budgets, told as simply as possible: a list of all that was ever spent, a list of what is held, and every
 * answer a sum over them. Amounts are small, so that caps are met all the time.
 */
class NaiveBudget {
  caps: BudgetConfig;
  timeMs: number;
  /** A period that has begun goes on, though the clock was set back by up to an hour. */
  periodMs: number;
  spent: { agent: AgentIdentity; cost: number; atMs: number }[] = [];
  held = new Map<number, { agent: AgentIdentity; cost: number; untilMs: number }>();
  answered = new Map<string, string | undefined>();
  constructor(caps: BudgetConfig, nowMs: number) {
    this.caps = caps;
    this.timeMs = nowMs;
    this.periodMs = nowMs;
  }
  see(nowMs: number) {
    this.periodMs = Math.max(this.periodMs, nowMs);
    if (nowMs < this.timeMs - 30_000) {
      this.timeMs = nowMs;
      for (const [opId, each] of this.held)
        this.held.set(opId, { ...each, untilMs: Math.min(each.untilMs, nowMs + 600_000) });
    }
    this.timeMs = Math.max(this.timeMs, nowMs);
    for (const [opId, { untilMs }] of this.held) if (untilMs <= this.timeMs) this.held.delete(opId);
  }
  first(agent: AgentIdentity, cost: number, except?: number): string | undefined {
    for (const tier of ['global', 'org', 'team', 'agent'] as const) {
      if (tier === 'org' && agent.orgId === '') continue;
      for (const period of ['monthly', 'daily'] as const) {
        const limit = this.caps.limitsMicroUsd[tier][period];
        const taken = cost === 0 ? 0 : this.heldIn(tier, agent, except) + cost;
        if (limit !== undefined && this.spentIn(tier, period, agent) + taken > limit) return `${tier} ${period}`;
      }
    }
    return undefined;
  }
  spentIn(tier: Tier, period: Period, agent: AgentIdentity) {
    return sum(
      this.spent.filter(
        (each) => within(tier, each.agent, agent) && dateOf(each.atMs, period) === dateOf(this.periodMs, period),
      ),
    );
  }
  heldIn(tier: Tier, agent: AgentIdentity, except?: number) {
    return sum(
      [...this.held]
        .filter(([opId, each]) => opId !== except && within(tier, each.agent, agent))
        .map(([, each]) => each),
    );
  }
}
const sum = (costs: readonly { cost: number }[]) => costs.reduce((total, { cost }) => total + cost, 0);
const dateOf = (atMs: number, period: Period) => new Date(atMs).toISOString().slice(0, period === 'daily' ? 10 : 7);
const within = (tier: Tier, a: AgentIdentity, b: AgentIdentity) =>
  tier === 'global' ||
  (a.orgId === b.orgId && (tier === 'org' || (a.teamId === b.teamId && (tier === 'team' || a.agentId === b.agentId))));

const AGENTS = ['o1/t1/a1', 'o1/t1/a2', 'o1/t2/a1', 'o2/t1/a1', '/t1/a1', '/t1/a2'].map((path): AgentIdentity => {
  const [orgId = '', teamId = '', agentId = ''] = path.split('/');
  return { orgId, teamId, agentId };
});
const agent = fc.constantFrom(...AGENTS);
const op = fc.integer({ min: 0, max: 5 });
const cost = fc.integer({ min: 0, max: 12 });
const cap = fc.option(fc.integer({ min: 0, max: 60 }), { nil: undefined, freq: 2 });
const limits = fc.record({ monthly: cap, daily: cap });
const config: fc.Arbitrary<BudgetConfig> = fc.record({
  limitsMicroUsd: fc.record({ global: limits, org: limits, team: limits, agent: limits }),
  timezone: fc.constant('UTC'),
  actionOnExceed: fc.constant('deny' as const),
  scoped: fc.constant([]),
});
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('reserve' as const), agent, op, cost }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('record' as const),
      agent,
      cost,
      op: fc.option(op, { nil: undefined }),
      usage: fc.option(fc.constantFrom('u1', 'u2', 'u3'), { nil: undefined }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('release' as const), op }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('would' as const), agent, cost }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      ms: fc.oneof(
        fc.integer({ min: 1, max: 400_000 }),
        fc.integer({ min: -3_600_000, max: 3_600_000 }),
        fc.integer({ min: 0, max: 40 * 3_600_000 }),
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('reconfigure' as const), config: fc.option(config, { nil: undefined }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('sweep' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
);
const UNCAPPED: BudgetConfig = {
  limitsMicroUsd: {
    global: { monthly: undefined, daily: undefined },
    org: { monthly: undefined, daily: undefined },
    team: { monthly: undefined, daily: undefined },
    agent: { monthly: undefined, daily: undefined },
  },
  timezone: 'UTC',
  actionOnExceed: 'deny',
  scoped: [],
};
const START = Date.parse('2026-11-28T20:00:00Z');
const named = (exceeded: { tier: Tier; period: Period } | undefined) =>
  exceeded === undefined ? undefined : `${exceeded.tier} ${exceeded.period}`;

describe('budget properties', () => {
  test('any sequence of calls matches a plain list of what was spent and reserved', () => {
    fc.assert(
      fc.property(config, fc.array(step, { minLength: 1, maxLength: 60, size: 'max' }), (caps, steps) => {
        let nowMs = START;
        const usageLimits = { ttlMs: 365 * 24 * 3_600_000, perOrg: 100, total: 100 };
        let real = new BudgetTracker(caps, nowMs, usageLimits);
        const model = new NaiveBudget(caps, nowMs);
        const store = new Map<string, BudgetRow>();
        const opOf = (index: number, owner: AgentIdentity) => index * AGENTS.length + AGENTS.indexOf(owner);
        for (const each of steps) {
          if (each.do === 'wait') nowMs = Math.max(nowMs + each.ms, model.timeMs - 3_600_000);
          model.see(nowMs);
          switch (each.do) {
            case 'reserve': {
              const opNumber = opOf(each.op, each.agent);
              const expected = model.first(each.agent, each.cost, opNumber);
              const answer = real.reserve(each.agent, opNumber, each.cost, nowMs);
              expect(answer.ok ? undefined : named(answer.fault)).toBe(expected);
              const cost = Math.max(each.cost, model.held.get(opNumber)?.cost ?? 0);
              if (expected === undefined && each.cost > 0)
                model.held.set(opNumber, { agent: each.agent, cost, untilMs: model.timeMs + 600_000 });
              break;
            }
            case 'record': {
              const opNumber = each.op === undefined ? undefined : opOf(each.op, each.agent);
              const answer = real.record(each.agent, each.cost, { usageId: each.usage, op: opNumber }, nowMs);
              const usageKey = `${opOf(0, each.agent)} ${each.usage}`;
              if (each.usage !== undefined && model.answered.has(usageKey)) {
                expect({ duplicate: answer.duplicate, named: named(answer.exceeded) }).toEqual({
                  duplicate: true,
                  named: model.answered.get(usageKey),
                });
                break;
              }
              model.spent.push({ agent: each.agent, cost: each.cost, atMs: model.periodMs });
              const held = opNumber === undefined ? undefined : model.held.get(opNumber);
              if (held !== undefined && held.cost > each.cost)
                model.held.set(opNumber!, { ...held, cost: held.cost - each.cost });
              else if (held !== undefined) model.held.delete(opNumber!);
              expect({ duplicate: answer.duplicate, named: named(answer.exceeded) }).toEqual({
                duplicate: false,
                named: model.first(each.agent, 0),
              });
              if (each.usage !== undefined) model.answered.set(usageKey, named(answer.exceeded));
              break;
            }
            case 'release':
              for (const owner of AGENTS) {
                real.expire(nowMs);
                expect(real.release(opOf(each.op, owner))).toBe(model.held.delete(opOf(each.op, owner)));
              }
              break;
            case 'would':
              expect(named(real.wouldExceed(each.agent, each.cost, nowMs))).toBe(model.first(each.agent, each.cost));
              break;
            case 'reconfigure':
              real.reconfigure(each.config, nowMs);
              model.caps = each.config ?? UNCAPPED;
              break;
            case 'sweep':
              real.sweep(nowMs);
              break;
            case 'restart':
              for (const { key, row } of real.drainChanges())
                row === undefined ? store.delete(key) : store.set(key, row);
              nowMs = model.timeMs = model.periodMs; // what a stored date tells of the time is no finer than a day
              real = new BudgetTracker(model.caps, nowMs, usageLimits);
              real.restore(store.values(), nowMs);
              model.held.clear();
              break;
          }
          for (const row of real.status({ limit: 100 }, nowMs).items) {
            const owner = { orgId: row.orgId ?? '', teamId: row.teamId ?? '', agentId: row.agentId ?? '' };
            expect({
              rowTier: row.tier,
              monthlySpentMicroUsd: row.monthly.spentMicroUsd,
              dailySpentMicroUsd: row.daily.spentMicroUsd,
              rowReservedMicroUsd: row.reservedMicroUsd,
            }).toEqual({
              rowTier: row.tier,
              monthlySpentMicroUsd: model.spentIn(row.tier, 'monthly', owner),
              dailySpentMicroUsd: model.spentIn(row.tier, 'daily', owner),
              rowReservedMicroUsd: model.heldIn(row.tier, owner),
            });
          }
        }
      }),
      { numRuns: runs(30) },
    );
  });
});
