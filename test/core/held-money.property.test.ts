import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type AgentIdentity, agentKeyOf } from '../../src/core/base/ids.ts';
import { BudgetTracker } from '../../src/core/budget/budget.ts';
import type { BudgetConfig } from '../../src/core/budget/config.ts';
import type { Outcome } from '../../src/core/outcome.ts';
import {
  ADMIN,
  CRAWLER,
  checkOf,
  controlOf,
  digestOf,
  openGovernor,
  opId,
  SIBLING,
  STRANGER,
} from '../support/governor.ts';
import { runs } from '../support/runs.ts';

const NO_LIMIT = { monthly: undefined, daily: undefined };
const CAPPED: BudgetConfig = {
  limitsMicroUsd: { global: NO_LIMIT, org: { ...NO_LIMIT, daily: 60 }, team: NO_LIMIT, agent: NO_LIMIT },
  timezone: 'UTC',
  actionOnExceed: 'deny',
  scoped: [],
};
const HOLD_MS = 600_000;

const agent = fc.constantFrom(CRAWLER, SIBLING, STRANGER);
const op = fc.integer({ min: 0, max: 3 });
const cost = fc.integer({ min: 0, max: 20 });
/**
 * How long after it a command is rolled back, because it could not be recorded; undefined for those that are recorded.
 */
const lostAfterMs = fc.option(fc.constantFrom(0, 20_000, 300_000, HOLD_MS), { nil: undefined, freq: 3 });
/** An operator's credential may act for an agent that is not registered, too. */
const own = { agent, op, asOperator: fc.boolean() };
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('check' as const),
      ...own,
      cost,
      resource: fc.constantFrom('web_search', 'web_search', 'forbidden'),
      dryRun: fc.boolean(),
      lostAfterMs,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('usage' as const),
      ...own,
      cost,
      usageId: fc.option(fc.constantFrom('u1', 'u2'), { nil: undefined }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('complete' as const), ...own, lostAfterMs }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('control' as const),
      agent,
      op,
      trigger: fc.constantFrom('pause' as const, 'resume' as const, 'terminate' as const, 'complete' as const),
      lostAfterMs,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('registration' as const), agent, ends: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('sweep' as const),
      afterMs: fc.constantFrom(0, 20_000, 61_000, 300_000, HOLD_MS),
    }),
  },
);

/** The amount that an operation holds for its agent: the highest estimate since it last held nothing, minus usage. */
type Held = { readonly agent: AgentIdentity; readonly cost: number; readonly untilMs: number };

describe('held money properties', () => {
  test('a reservation is the highest estimate minus usage, until the end or 10 min', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 60, size: 'max' }), (steps) => {
        let nowMs = 1_000;
        const budgets = new BudgetTracker(CAPPED, nowMs);
        const governor = openGovernor({ budgets });
        const held = new Map<string, Held>();
        const pass = (ms: number): void => {
          nowMs += ms;
          for (const [id, { untilMs }] of held) if (untilMs <= nowMs) held.delete(id);
        };
        /**
         * Nobody is told of a change that is not on record, and then what was held before it is held again, for the
         * rest of its time.
         */
        const lose = (id: string, before: Held | undefined, { undo }: Outcome): void => {
          if (undo === undefined) return;
          governor.rollBack([undo], [], 0, nowMs);
          if (before === undefined || before.untilMs <= nowMs) held.delete(id);
          else held.set(id, before);
        };
        for (const each of steps) {
          if (each.do === 'sweep') {
            pass(each.afterMs);
            governor.sweep(nowMs);
          } else if (each.do === 'registration') {
            if (each.ends)
              governor.apply<'deregister-agent'>(
                { type: 'deregister-agent', principal: ADMIN, agent: each.agent },
                nowMs,
              );
            else
              governor.apply<'register-agent'>(
                {
                  type: 'register-agent',
                  principal: ADMIN,
                  agent: each.agent,
                  credential: digestOf(each.agent),
                  parent: undefined,
                },
                nowMs,
              );
          } else {
            const id = `${each.agent.orgId}-${each.agent.agentId}:${each.op}`;
            const before = held.get(id);
            const voucher =
              'asOperator' in each && each.asOperator
                ? { credential: undefined, principal: ADMIN }
                : { credential: digestOf(each.agent), principal: undefined };
            switch (each.do) {
              case 'check': {
                const outcome = governor.apply<'check'>(
                  checkOf(each.agent, id, {
                    ...voucher,
                    estimatedCostMicroUsd: each.cost,
                    resource: each.resource,
                    dryRun: each.dryRun,
                  }),
                  nowMs,
                );
                const { reply } = outcome;
                if (reply.ok && reply.value.decision === 'allow' && !each.dryRun && each.cost > 0) {
                  held.set(id, {
                    agent: each.agent,
                    cost: Math.max(each.cost, before?.cost ?? 0),
                    untilMs: nowMs + HOLD_MS,
                  });
                }
                if (each.lostAfterMs === undefined) break;
                pass(each.lostAfterMs);
                lose(id, before, outcome);
                break;
              }
              case 'usage': {
                const spent = () => budgets.status({ limit: 100 }, nowMs).items[0]!.daily.spentMicroUsd;
                const spentBefore = spent();
                governor.apply<'record-usage'>(
                  {
                    type: 'record-usage',
                    agent: each.agent,
                    ...voucher,
                    costMicroUsd: each.cost,
                    opId: opId(id),
                    usageId: each.usageId,
                  },
                  nowMs,
                );
                if (before === undefined || spent() === spentBefore) break;
                if (before.cost > each.cost) held.set(id, { ...before, cost: before.cost - each.cost });
                else held.delete(id);
                break;
              }
              case 'complete':
              case 'control': {
                const outcome =
                  each.do === 'complete'
                    ? governor.apply<'complete-op'>(
                        { type: 'complete-op', agent: each.agent, ...voucher, opId: opId(id) },
                        nowMs,
                      )
                    : governor.apply<'control-op'>(controlOf(id, each.trigger), nowMs);
                const { reply } = outcome;
                if (reply.ok && (reply.value.state === 'completing' || reply.value.state === 'terminated'))
                  held.delete(id);
                if (each.lostAfterMs === undefined) break;
                pass(each.lostAfterMs);
                lose(id, before, outcome);
                break;
              }
            }
          }
          const sumOf = (of: (agent: AgentIdentity) => boolean): number =>
            [...held.values()].filter((one) => of(one.agent)).reduce((sum, one) => sum + one.cost, 0);
          budgets.expire(nowMs);
          expect(budgets.reservations).toEqual({ count: held.size, microUsd: sumOf(() => true) });
          for (const row of budgets.status({ limit: 100 }, nowMs).items) {
            const expected =
              row.tier === 'agent'
                ? sumOf((one) => agentKeyOf(one) === `${row.orgId}/${row.teamId}/${row.agentId}`)
                : sumOf((one) => row.orgId === null || one.orgId === row.orgId);
            expect({ tier: row.tier, reservedMicroUsd: row.reservedMicroUsd }).toEqual({
              tier: row.tier,
              reservedMicroUsd: expected,
            });
          }
        }
      }),
      { numRuns: runs(25) },
    );
  });
});
