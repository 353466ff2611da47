import { describe, expect, test } from 'vitest';
import type { AgentIdentity } from '../../src/core/base/ids.ts';
import {
  ADMIN,
  CRAWLER,
  checkOf,
  completionOf,
  controlOf,
  digestOf,
  openGovernor,
  opId,
  signalOf,
} from '../support/governor.ts';

describe('state that is dropped', () => {
  const bearer = (agent: AgentIdentity) => ({ agent, credential: undefined, principal: ADMIN });
  const claimed = (n: number): AgentIdentity => ({ orgId: 'acme', teamId: 'search', agentId: `claimed-${n}` });

  test.each([
    ["checks on somebody else's operation", (n: number) => checkOf(claimed(n), 't:s', bearer(claimed(n)))],
    ['dry runs', (n: number) => checkOf(claimed(n), `d:${n}`, { ...bearer(claimed(n)), dryRun: true })],
    [
      'completions of what does not exist',
      (n: number) => ({ ...completionOf(claimed(n), 'none:s'), ...bearer(claimed(n)) }),
    ],
    [
      "completions of somebody else's operation",
      (n: number) => ({ ...completionOf(claimed(n), 't:s'), ...bearer(claimed(n)) }),
    ],
    [
      'acknowledgements',
      (n: number) => ({ type: 'ack-signal' as const, ...bearer(claimed(n)), opId: opId('t:s'), sequence: 1 }),
    ],
    ['control streams', (n: number) => ({ type: 'open-control' as const, ...bearer(claimed(n)), stream: n })],
  ])('names claimed in %s', (_what, commandOf) => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 1);
    const before = governor.agents.knownCount;
    for (let n = 0; n < 100; n += 1) governor.apply(commandOf(n) as never, 2);
    expect(governor.agents.knownCount).toBe(before);
  });

  test('finished operations, a slice at a time where they are many', () => {
    const governor = openGovernor({ maxOps: 10_000, maxOrgOps: 10_000 });
    for (let n = 0; n <= 5_000; n += 1)
      governor.apply<'check'>(checkOf(CRAWLER, `t:${n}`, { resource: 'forbidden' }), 1);
    expect({ sweep: governor.sweep(100_000), opCount: governor.ops.size }).toEqual({ sweep: true, opCount: 1 });
    expect({ sweep: governor.sweep(100_000), opCount: governor.ops.size }).toEqual({ sweep: false, opCount: 0 });
  });

  test('signals of a swept operation, and the times of their acknowledgement', () => {
    const governor = openGovernor();
    const voucher = { agent: CRAWLER, credential: digestOf(CRAWLER), principal: undefined };
    for (const [index, op] of ['t:1', 't:2'].entries()) {
      governor.apply<'check'>(checkOf(CRAWLER, op), 1);
      governor.apply<'control-op'>(controlOf(op, 'terminate'), 10);
      governor.post(signalOf(op, index + 1, 'terminate'), 10);
    }
    governor.apply<'ack-signal'>({ type: 'ack-signal', ...voucher, opId: opId('t:2'), sequence: 11 }, 20);
    const pending = () =>
      governor.apply<'open-control'>({ type: 'open-control', ...voucher, stream: 1 }, 100_000).reply;
    expect(pending()).toEqual({ ok: true, value: { pending: [{ opId: 't:1', signal: 'terminate', sequence: 10 }] } });
    governor.sweep(100_000);
    expect(pending()).toEqual({ ok: true, value: { pending: [] } });
    // An operation that comes by that name again has been told nothing yet.
    governor.apply<'check'>(checkOf(CRAWLER, 't:2'), 100_000);
    expect(
      governor.apply<'get-op'>({ type: 'get-op', principal: ADMIN, opId: opId('t:2') }, 100_000).reply,
    ).toMatchObject({ value: { state: 'running', acknowledgedAtMs: undefined } });
    expect(
      governor.apply<'ack-signal'>({ type: 'ack-signal', ...voucher, opId: opId('t:2'), sequence: 11 }, 100_000).reply
        .ok,
    ).toBe(false);
  });

  test('an agent known only by the operations of others, once its last is swept', () => {
    const governor = openGovernor({ agents: [] });
    for (let n = 0; n < 100; n += 1) {
      governor.apply<'check'>(checkOf(claimed(n), `t:${n}`, bearer(claimed(n))), 1);
      governor.apply<'control-op'>(controlOf(`t:${n}`, 'terminate'), 1);
    }
    expect(governor.agents.knownCount).toBe(100);
    governor.sweep(100_000);
    expect({ knownCount: governor.agents.knownCount, opCount: governor.ops.size }).toEqual({
      knownCount: 0,
      opCount: 0,
    });
  });

  test('an org with its teams, once the last operation of its last agent is swept', () => {
    const governor = openGovernor({ agents: [] });
    for (let n = 0; n < 10; n += 1) {
      governor.apply<'check'>(checkOf(claimed(n % 2), `t:${n}`, bearer(claimed(n % 2))), 1);
      governor.apply<'control-op'>(controlOf(`t:${n}`, 'terminate'), n < 9 ? 1 : 50_000);
    }
    const known = () => [
      governor.agents.knownCount,
      [...governor.agents.groups.orgs.after(0)].map(({ orgId, opCount }) => `${opCount} of ${orgId}`),
    ];
    governor.sweep(100_000);
    expect(known()).toEqual([1, ['1 of acme']]);
    governor.sweep(110_000);
    expect(known()).toEqual([0, []]);
  });

  test('the budgets of agents that appear for one operation each, as fast as they come', () => {
    const governor = openGovernor({ agents: [], maxOps: 100_000, maxOrgOps: 100_000 });
    const [perSweep, kept] = [2_000, 7]; // finished operations stay for 60 s, and a sweep comes every 10 s
    for (let round = 0; round < 25; round += 1) {
      const nowMs = round * 10_000;
      for (let n = 0; n < perSweep; n += 1) {
        const [agent, op] = [claimed(n + round * perSweep), `t:${round}-${n}`];
        governor.apply<'check'>(checkOf(agent, op, bearer(agent)), nowMs);
        governor.apply<'control-op'>(controlOf(op, 'complete'), nowMs);
      }
      for (let isMoreLeft = true; isMoreLeft; isMoreLeft = governor.sweep(nowMs));
    }
    expect(governor.ops.size).toBeLessThanOrEqual(perSweep * kept);
    expect(governor.budgets.status({ limit: 1_000_000 }, 250_000).items.length).toBeLessThan(2 * perSweep * kept);
  });
});
