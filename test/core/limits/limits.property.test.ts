import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { STRANGER } from '../../support/governor.ts';
import { ask, openLimited, START_MS } from '../../support/limits.ts';
import { runs, SEED } from '../../support/runs.ts';

const EVERY_MS = 20_000;
const MAX = 5;

describe('a limit of calls in a span', () => {
  test('never allows more in any span, and is false for at most a tenth of it', () => {
    const steps = fc.array(fc.integer({ min: 0, max: 9_000 }), { minLength: 10, maxLength: 80 });
    fc.assert(
      fc.property(steps, fc.integer({ min: 0, max: 5_000 }), (pauses, beginMs) => {
        let governor = openLimited([{ id: 'few', per: 'agent', calls: MAX, every: '20s' }]);
        const allowedAt: number[] = [];
        let nowMs = START_MS + beginMs;
        pauses.forEach((pause, nth) => {
          nowMs += pause;
          // A restart in between changes nothing.
          if (nth % 17 === 16) {
            const rows = governor.limits.drainChanges().flatMap(({ row }) => (row === undefined ? [] : [row]));
            const kept = new Map(rows.map((row) => [row.key, row]));
            governor = openLimited([{ id: 'few', per: 'agent', calls: MAX, every: '20s' }]);
            governor.limits.restore(JSON.parse(JSON.stringify([...kept.values()])));
          }
          const within = (ms: number) => allowedAt.filter((at) => at > nowMs - ms).length;
          const { decision } = ask(governor, `t:s${nth}`, nowMs);
          if (within(EVERY_MS) >= MAX) expect(decision).toBe('deny');
          if (within(EVERY_MS + EVERY_MS / 10) < MAX) expect(decision).toBe('allow');
          if (decision === 'allow') allowedAt.push(nowMs);
        });
      }),
      { numRuns: runs(20), ...(SEED !== undefined && { seed: SEED }) },
    );
  });

  test('is not passed by 64 checks at once, nor felt by another org', () => {
    const governor = openLimited([{ id: 'few', per: 'session', calls: 40 }]);
    const decisions = Array.from({ length: 64 }, (_, nth) => ask(governor, `t:s${nth}`).decision);
    expect(decisions.filter((decision) => decision === 'allow')).toHaveLength(40);
    expect(ask(governor, 't:s1', START_MS, {}, STRANGER).decision).toBe('allow');
  });
});

describe('a limit of money', () => {
  test('is not passed by estimates in parallel, whatever is spent of them', () => {
    const step = fc.record({
      cost: fc.integer({ min: 0, max: 40 }),
      ends: fc.boolean(),
      spends: fc.integer({ min: 0, max: 40 }),
    });
    fc.assert(
      fc.property(fc.array(step, { minLength: 5, maxLength: 60 }), (all) => {
        const governor = openLimited([{ id: 'cap', per: 'session', usd: 0.0001 }]);
        let spent = 0;
        const held = new Map<string, number>();
        const holds = () => [...held.values()].reduce((sum, each) => sum + each, 0);
        all.forEach(({ cost, ends, spends }, nth) => {
          const op = `t:s${nth}`;
          const { decision } = ask(governor, op, START_MS, { estimatedCostMicroUsd: cost });
          const hasRoom = cost === 0 ? spent < 100 : spent + holds() + cost <= 100;
          expect(decision).toBe(hasRoom ? 'allow' : 'deny');
          if (!hasRoom) return;
          if (cost > 0) held.set(op, cost);
          const used = Math.min(spends, cost);
          governor.apply<'record-usage'>(
            {
              type: 'record-usage',
              agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
              principal: { subject: 'key:admin', scopes: ['admin'], orgId: null },
              credential: undefined,
              opId: op as never,
              usageId: undefined,
              costMicroUsd: used,
              tokens: undefined,
            },
            START_MS,
          );
          spent += used;
          if (cost > 0) held.set(op, cost - used);
          if (!ends) return;
          governor.apply<'complete-op'>(
            {
              type: 'complete-op',
              agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
              principal: { subject: 'key:admin', scopes: ['admin'], orgId: null },
              credential: undefined,
              opId: op as never,
            },
            START_MS,
          );
          held.delete(op);
        });
      }),
      { numRuns: runs(20), ...(SEED !== undefined && { seed: SEED }) },
    );
  });
});
