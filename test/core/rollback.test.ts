import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { agentKeyOf } from '../../src/core/base/ids.ts';
import type { Command } from '../../src/core/commands.ts';
import type { Governor } from '../../src/core/governor.ts';
import { OP_STATES } from '../../src/core/ops/op-state.ts';
import type { Undo } from '../../src/core/rollback.ts';
import {
  ADMIN,
  CRAWLER,
  checkOf,
  controlOf,
  digestOf,
  openGovernor,
  opId,
  SIBLING,
  signalOf,
} from '../support/governor.ts';
import { UNCHECKED } from '../support/ops.ts';
import { runs } from '../support/runs.ts';

/** Applies the commands as one batch and answers with what undoes it. */
const applyAll = (governor: Governor, commands: readonly Command[], nowMs: number): Undo[] =>
  commands.flatMap((command) => governor.apply(command as never, nowMs).undo ?? []);
const stateOf = (governor: Governor, op: string) => {
  const slot = governor.ops.find(opId(op), 'acme');
  return slot === undefined ? undefined : governor.ops.stateOf(slot);
};
const registerOp = (op: string): Command => ({ type: 'register-op', principal: ADMIN, opId: opId(op), agent: CRAWLER });
const complete = (op: string): Command => ({
  type: 'complete-op',
  agent: CRAWLER,
  credential: digestOf(CRAWLER),
  principal: undefined,
  opId: opId(op),
});

describe('a change that could not be recorded has not happened', () => {
  test.each<[string, readonly Command[], readonly Command[], string | undefined]>([
    ['a pause', [], [controlOf('t:s', 'pause')], 'running'],
    ['a resume', [controlOf('t:s', 'pause')], [controlOf('t:s', 'resume')], 'paused'],
    ['a termination', [], [controlOf('t:s', 'terminate')], 'running'],
    ['a termination of what is paused', [controlOf('t:s', 'pause')], [controlOf('t:s', 'terminate')], 'paused'],
    ['a completion', [], [complete('t:s')], 'running'],
    [
      'several moves of one batch',
      [],
      [controlOf('t:s', 'pause'), controlOf('t:s', 'resume'), controlOf('t:s', 'terminate')],
      'running',
    ],
    ['a registration', [], [registerOp('t:new')], undefined],
    ['a registration and an end', [], [registerOp('t:new'), controlOf('t:new', 'terminate')], undefined],
  ])('%s', (_what, before, batch, expected) => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 1_000);
    applyAll(governor, before, 1_500);
    const op = 'opId' in batch[0]! ? batch[0].opId! : 't:s';
    const undos = applyAll(governor, batch, 2_000);
    expect(stateOf(governor, op)).not.toBe(expected);
    governor.rollBack(undos, [], 0, 2_500);
    expect(stateOf(governor, op)).toBe(expected);
    // Asked again, it is done as if for the first time.
    expect(
      batch
        .map((command) => governor.apply(command as never, 3_000))
        .map(({ reply, undo }) => [reply.ok, undo !== undefined]),
    ).toEqual(batch.map(() => [true, true]));
  });

  test('a check that holds no more than before does not hold it longer either', () => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s', { estimatedCostMicroUsd: 10 }), 1_000);
    const undos = applyAll(governor, [checkOf(CRAWLER, 't:s', { estimatedCostMicroUsd: 10 })], 5_000);
    const slot = governor.ops.find(opId('t:s'), 'acme')!;
    expect(governor.budgets.heldUntilMs(slot)).toBe(605_000);
    governor.rollBack(undos, [], 1, 6_000);
    expect(governor.budgets.heldUntilMs(slot)).toBe(601_000);
  });

  test('event readers are notified with a time no older than the last', () => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 1_000);
    const undos = applyAll(governor, [controlOf('t:s', 'pause')], 2_000);
    expect(governor.rollBack(undos, [], 0, 2_500)).toMatchObject([
      { kind: 'op-changed', op: { opId: 't:s', state: 'running', updatedAtMs: 2_500 } },
    ]);
  });

  test('later changes are rolled back first, and everything is as before', () => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s', { estimatedCostMicroUsd: 1_000_000 }), 1_000);
    const batches: Command[][] = [
      [controlOf('t:s', 'pause')],
      [
        controlOf('t:s', 'resume'),
        checkOf(CRAWLER, 't:s', { estimatedCostMicroUsd: 3_000_000 }),
        controlOf('t:s', 'pause'),
      ],
      [registerOp('t:new')],
      [checkOf(CRAWLER, 't:new', { estimatedCostMicroUsd: 2_000_000 }), controlOf('t:s', 'terminate')],
    ];
    const undos = batches.map((batch) => applyAll(governor, batch, 2_000));
    expect({
      stateS: stateOf(governor, 't:s'),
      stateNew: stateOf(governor, 't:new'),
      reservations: governor.budgets.reservations,
    }).toEqual({ stateS: 'terminated', stateNew: 'running', reservations: { count: 1, microUsd: 2_000_000 } });
    const shown = undos.toReversed().map((each) => {
      governor.rollBack(each, [checkOf(CRAWLER, 't:s'), checkOf(CRAWLER, 't:new')], 2, 2_500);
      return [stateOf(governor, 't:s'), stateOf(governor, 't:new'), governor.budgets.reservations.microUsd];
    });
    expect(shown).toEqual([
      ['paused', 'pending', 3_000_000],
      ['paused', undefined, 3_000_000],
      ['paused', undefined, 1_000_000],
      ['running', undefined, 1_000_000],
    ]);
  });

  test('a registered operation that is gone takes no other operation with it', () => {
    const governor = openGovernor();
    const undos = applyAll(governor, [registerOp('t:gone')], 2_000);
    applyAll(governor, [controlOf('t:gone', 'terminate')], 2_100);
    governor.sweep(200_000);
    governor.apply<'register-op'>(registerOp('t:other') as never, 200_000);
    expect(governor.rollBack(undos, [checkOf(CRAWLER, 't:gone')], 0, 200_000)).toEqual([]);
    expect({ stateGone: stateOf(governor, 't:gone'), stateOther: stateOf(governor, 't:other') }).toEqual({
      stateGone: undefined,
      stateOther: 'pending',
    });
  });

  test('a swept operation does not return with another operation of its id', () => {
    const governor = openGovernor();
    applyAll(governor, [registerOp('t:s')], 1_000);
    const undos = applyAll(governor, [controlOf('t:s', 'terminate')], 2_000);
    governor.sweep(200_000);
    governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 200_000);
    governor.rollBack([], [checkOf(CRAWLER, 't:s')], 1, 200_000);
    expect(governor.rollBack(undos, [], 1, 200_000)).toEqual([]);
    expect(stateOf(governor, 't:s')).toBe('terminated');
  });

  test('an agent known only by such an operation is dropped', () => {
    const governor = openGovernor();
    const ghost = { ...CRAWLER, agentId: 'ghost' };
    const undos = applyAll(
      governor,
      [{ type: 'register-op', principal: ADMIN, opId: opId('t:s'), agent: ghost }],
      2_000,
    );
    expect(governor.agents.get(agentKeyOf(ghost))).toBeDefined();
    expect(governor.rollBack(undos, [], 0, 2_500)).toEqual([]);
    expect(governor.agents.get(agentKeyOf(ghost))).toBeUndefined();
  });

  test('event readers get the operations whose allow nobody received, and no ended ones', () => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 2_000);
    governor.apply<'check'>(checkOf(CRAWLER, 't:ended'), 2_000);
    applyAll(governor, [controlOf('t:ended', 'terminate')], 2_100);
    expect(governor.rollBack([], [checkOf(CRAWLER, 't:s'), checkOf(CRAWLER, 't:ended')], 0, 2_500)).toEqual([
      {
        kind: 'op-changed',
        op: {
          ...UNCHECKED,
          opId: 't:s',
          state: 'terminated',
          registeredAtMs: 2_000,
          updatedAtMs: 2_500,
          agent: CRAWLER,
          action: 'tool.call',
          resource: 'web_search',
          reason: 'the audit log cannot be written; until it can, everything that must be recorded is refused',
          ended: 'denied',
          acknowledgedAtMs: undefined,
        },
      },
    ]);
  });

  test.each([
    ['an Allow', 'web_search'],
    ['a Deny', 'forbidden'],
  ])('%s of an operation that waited for its check: it waits again, and holds no money', (_what, resource) => {
    const governor = openGovernor();
    applyAll(governor, [registerOp('t:waiting')], 1_000);
    const undos = applyAll(
      governor,
      [checkOf(CRAWLER, 't:waiting', { resource, estimatedCostMicroUsd: 5_000_000 })],
      2_000,
    );
    expect(stateOf(governor, 't:waiting')).toBe(resource === 'forbidden' ? 'terminated' : 'running');
    expect(governor.rollBack(undos, [checkOf(CRAWLER, 't:waiting')], 1, 2_500)).toEqual([
      {
        kind: 'op-changed',
        op: {
          ...UNCHECKED,
          opId: 't:waiting',
          state: 'pending',
          registeredAtMs: 1_000,
          updatedAtMs: 2_500,
          agent: CRAWLER,
          acknowledgedAtMs: undefined,
        },
      },
    ]);
    expect(governor.budgets.reservations).toEqual({ count: 0, microUsd: 0 });
  });

  test('an operation registered and checked in one batch is gone, with its reservation', () => {
    const governor = openGovernor();
    const undos = applyAll(
      governor,
      [registerOp('t:s'), checkOf(CRAWLER, 't:s', { estimatedCostMicroUsd: 5_000_000 })],
      2_000,
    );
    governor.rollBack(undos, [checkOf(CRAWLER, 't:s')], 0, 2_500);
    expect({ state: stateOf(governor, 't:s'), reservations: governor.budgets.reservations }).toEqual({
      state: undefined,
      reservations: { count: 0, microUsd: 0 },
    });
  });

  test('a second check keeps a running operation running, with the money of the first', () => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s', { estimatedCostMicroUsd: 5_000_000 }), 1_000);
    const undos = applyAll(governor, [checkOf(CRAWLER, 't:s', { resource: 'forbidden' })], 2_000);
    expect(governor.rollBack(undos, [checkOf(CRAWLER, 't:s')], 1, 2_500)).toEqual([]);
    expect({ state: stateOf(governor, 't:s'), reservations: governor.budgets.reservations }).toEqual({
      state: 'running',
      reservations: { count: 1, microUsd: 5_000_000 },
    });
  });

  test('a second check that reserves more gives the difference back, without an event', () => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s', { estimatedCostMicroUsd: 5_000_000 }), 1_000);
    const undos = applyAll(governor, [checkOf(CRAWLER, 't:s', { estimatedCostMicroUsd: 8_000_000 })], 2_000);
    expect(governor.budgets.reservations.microUsd).toBe(8_000_000);
    expect(governor.rollBack(undos, [checkOf(CRAWLER, 't:s')], 1, 2_500)).toEqual([]);
    expect(governor.budgets.reservations.microUsd).toBe(5_000_000);
    expect(governor.ops.list(undefined, 10).ops.map((slot) => governor.ops.recordOf(slot))).toMatchObject([
      { opId: 't:s', state: 'running', registeredAtMs: 1_000, updatedAtMs: 1_000, estimatedMicroUsd: 5_000_000 },
    ]);
  });

  test('a rolled back second check does not reserve again what was used meanwhile', () => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s', { estimatedCostMicroUsd: 5_000_000 }), 1_000);
    const undos = applyAll(governor, [checkOf(CRAWLER, 't:s', { estimatedCostMicroUsd: 8_000_000 })], 2_000);
    governor.apply<'record-usage'>(
      {
        type: 'record-usage',
        agent: CRAWLER,
        credential: digestOf(CRAWLER),
        principal: undefined,
        costMicroUsd: 7_000_000,
        opId: opId('t:s'),
        usageId: undefined,
      },
      2_100,
    );
    governor.rollBack(undos, [checkOf(CRAWLER, 't:s')], 1, 2_500);
    expect(governor.budgets.reservations).toEqual({ count: 1, microUsd: 1_000_000 });
  });

  test('a rolled back termination does not reserve again what had been released', () => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s', { estimatedCostMicroUsd: 5_000_000 }), 1_000);
    governor.sweep(601_000); // after ten minutes it is given back
    governor.rollBack(applyAll(governor, [controlOf('t:s', 'terminate')], 602_000), [], 0, 602_500);
    expect({ state: stateOf(governor, 't:s'), reservations: governor.budgets.reservations }).toEqual({
      state: 'running',
      reservations: { count: 0, microUsd: 0 },
    });
  });

  test("keeps the agent's acknowledgements", () => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 1_000);
    const [signal] = governor
      .apply<'control-op'>(controlOf('t:s', 'pause'), 1_100)
      .effects.filter(({ kind }) => kind === 'signal');
    const { sequence } = governor.post(signal as never, 1_200)!;
    governor.apply<'ack-signal'>(
      {
        type: 'ack-signal',
        agent: CRAWLER,
        credential: digestOf(CRAWLER),
        principal: undefined,
        opId: opId('t:s'),
        sequence,
      },
      1_300,
    );
    const undos = applyAll(governor, [controlOf('t:s', 'resume')], 2_000);
    const shown = () => governor.apply<'get-op'>({ type: 'get-op', principal: ADMIN, opId: opId('t:s') }, 3_000).reply;
    expect(shown()).toMatchObject({ value: { acknowledgedAtMs: undefined } });
    governor.rollBack(undos, [], 0, 2_500);
    expect(shown()).toMatchObject({ value: { state: 'paused', acknowledgedAtMs: 1_300 } });
  });
});

describe('rollback', () => {
  test('an operation resumed by rollback never delays the sweep of later ones', () => {
    const governor = openGovernor();
    for (const op of ['t:s', 't:other']) governor.apply<'check'>(checkOf(CRAWLER, op), 1_000);
    governor.rollBack(applyAll(governor, [controlOf('t:s', 'terminate')], 2_000), [], 0, 2_500);
    applyAll(governor, [controlOf('t:other', 'terminate')], 3_000);
    applyAll(governor, [controlOf('t:s', 'pause')], 62_000);
    governor.sweep(63_000);
    expect({ stateS: stateOf(governor, 't:s'), stateOther: stateOf(governor, 't:other') }).toEqual({
      stateS: 'paused',
      stateOther: undefined,
    });
    // Once it has ended for good, it is swept in its own time.
    applyAll(governor, [controlOf('t:s', 'terminate')], 70_000);
    governor.sweep(129_999);
    expect(stateOf(governor, 't:s')).toBe('terminated');
    governor.sweep(130_000);
    expect(stateOf(governor, 't:s')).toBeUndefined();
  });

  test('a waiting signal survives a completion that could not be recorded', () => {
    const governor = openGovernor();
    const voucher = { agent: CRAWLER, credential: digestOf(CRAWLER), principal: undefined };
    const pending = () => governor.apply<'open-control'>({ type: 'open-control', ...voucher, stream: 1 }, 3_000).reply;
    const acknowledge = (sequence: number) =>
      governor.apply<'ack-signal'>({ type: 'ack-signal', ...voucher, opId: opId('t:s'), sequence }, 3_000).reply.ok;
    const post = (signal: 'pause' | 'resume', nowMs: number) => governor.post(signalOf('t:s', 1, signal), nowMs);
    governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 1_000);
    applyAll(governor, [controlOf('t:s', 'pause'), controlOf('t:s', 'resume')], 1_100);
    post('pause', 1_200);
    const undos = applyAll(governor, [complete('t:s')], 2_000);
    // The word that the earlier one was recorded may come as late as this.
    expect(post('resume', 2_100)).toBeUndefined();
    expect({ pending: pending(), acknowledge: acknowledge(2_100) }).toEqual({
      pending: { ok: true, value: { pending: [] } },
      acknowledge: false,
    });
    governor.rollBack(undos, [], 0, 2_500);
    expect(pending()).toEqual({ ok: true, value: { pending: [{ opId: 't:s', signal: 'resume', sequence: 2_100 }] } });
    expect(acknowledge(2_100)).toBe(true);
  });

  describe('a registration of an agent that could not be recorded', () => {
    const NEW = { ...CRAWLER, agentId: 'new' };
    const register = (agent: typeof CRAWLER, credential: string): Command => ({
      type: 'register-agent',
      principal: ADMIN,
      agent,
      credential: credential as never,
      parent: undefined,
    });

    test('leaves none if it was new', () => {
      const governor = openGovernor();
      const undos = applyAll(governor, [register(NEW, 'digest')], 2_000);
      expect(governor.rollBack(undos, [], 0, 2_500)).toEqual([
        { kind: 'agent-removed', identity: NEW, key: agentKeyOf(NEW) },
      ]);
      expect({
        agents: governor.agents.get(agentKeyOf(NEW)),
        owner: governor.agents.ownerOf('digest' as never),
      }).toEqual({ agents: undefined, owner: undefined });
    });

    test('leaves the old token in force if it changed it', () => {
      const governor = openGovernor();
      const undos = applyAll(governor, [register(CRAWLER, 'fresh')], 2_000);
      expect(governor.rollBack(undos, [], 0, 2_500)).toMatchObject([
        { kind: 'agent-saved', registration: { credential: digestOf(CRAWLER) }, rotated: true },
      ]);
      expect({
        key: governor.agents.ownerOf(digestOf(CRAWLER))?.key,
        owner: governor.agents.ownerOf('fresh' as never),
      }).toEqual({ key: agentKeyOf(CRAWLER), owner: undefined });
    });

    test('leaves the agent registered if it ended the registration', () => {
      const governor = openGovernor();
      const undos = applyAll(governor, [{ type: 'deregister-agent', principal: ADMIN, agent: CRAWLER }], 2_000);
      expect(governor.agents.ownerOf(digestOf(CRAWLER))).toBeUndefined();
      governor.rollBack(undos, [], 0, 2_500);
      expect(governor.agents.ownerOf(digestOf(CRAWLER))?.key).toBe(agentKeyOf(CRAWLER));
    });

    test.each<[string, Command]>([
      ['with a new token', register(CRAWLER, 'fresh')],
      [
        'with another parent',
        { type: 'register-agent', principal: ADMIN, agent: CRAWLER, credential: digestOf(CRAWLER), parent: NEW },
      ],
      ['that ended it', { type: 'deregister-agent', principal: ADMIN, agent: CRAWLER }],
    ])('%s leaves the parent it had', (_what, unrecorded) => {
      const governor = openGovernor();
      applyAll(
        governor,
        [
          register(NEW, 'digest'),
          { type: 'register-agent', principal: ADMIN, agent: CRAWLER, credential: digestOf(CRAWLER), parent: SIBLING },
        ],
        1_000,
      );
      governor.rollBack(applyAll(governor, [unrecorded], 2_000), [], 0, 2_500);
      expect(governor.agents.get(agentKeyOf(CRAWLER))?.parent).toBe(agentKeyOf(SIBLING));
      expect([...governor.agents.childrenOf(agentKeyOf(SIBLING))].map(({ key }) => key)).toEqual([agentKeyOf(CRAWLER)]);
    });

    test('leaves everything as it was if it changed all but the token', () => {
      const governor = openGovernor();
      const undos = applyAll(
        governor,
        [{ type: 'register-agent', principal: ADMIN, agent: CRAWLER, credential: digestOf(CRAWLER), parent: SIBLING }],
        2_000,
      );
      governor.rollBack(undos, [], 0, 2_500);
      expect({
        key: governor.agents.ownerOf(digestOf(CRAWLER))?.key,
        parent: governor.agents.get(agentKeyOf(CRAWLER))?.parent,
      }).toEqual({ key: agentKeyOf(CRAWLER), parent: undefined });
    });

    test.each<[string, Command]>([
      [
        'with another parent',
        { type: 'register-agent', principal: ADMIN, agent: CRAWLER, credential: digestOf(CRAWLER), parent: SIBLING },
      ],
      ['that ended it', { type: 'deregister-agent', principal: ADMIN, agent: CRAWLER }],
    ])('%s makes no agent its own ancestor when its parent descends from it by now', (_what, unrecorded) => {
      const governor = openGovernor();
      const child = (agent: typeof CRAWLER, parent: typeof CRAWLER): Command => ({
        type: 'register-agent',
        principal: ADMIN,
        agent,
        credential: digestOf(agent),
        parent,
      });
      const [parent, between] = [
        { ...CRAWLER, agentId: 'parent' },
        { ...CRAWLER, agentId: 'between' },
      ];
      applyAll(governor, [register(parent, digestOf(parent)), child(CRAWLER, parent), child(between, CRAWLER)], 1_000);
      const undos = applyAll(governor, [unrecorded], 2_000);
      expect(governor.apply(child(parent, between) as never, 2_100).reply).toMatchObject({ ok: true });
      governor.rollBack(undos, [], 0, 2_500);
      expect([CRAWLER, parent, between].map((agent) => governor.agents.get(agentKeyOf(agent))?.parent)).toEqual([
        undefined,
        agentKeyOf(between),
        agentKeyOf(CRAWLER),
      ]);
    });

    test('does not undo a later one', () => {
      const governor = openGovernor();
      const undos = applyAll(governor, [register(CRAWLER, 'lost')], 2_000);
      governor.apply<'register-agent'>(register(CRAWLER, 'later') as never, 2_100);
      expect(governor.rollBack(undos, [], 0, 2_500)).toEqual([]);
      expect(governor.agents.ownerOf('later' as never)?.key).toBe(agentKeyOf(CRAWLER));
    });

    test('does not take a token from an agent that has it by now', () => {
      const governor = openGovernor();
      const undos = applyAll(governor, [{ type: 'deregister-agent', principal: ADMIN, agent: CRAWLER }], 2_000);
      governor.apply<'register-agent'>(register(NEW, digestOf(CRAWLER)) as never, 2_100);
      expect(governor.rollBack(undos, [], 0, 2_500)).toEqual([]);
      expect(governor.agents.ownerOf(digestOf(CRAWLER))?.key).toBe(agentKeyOf(NEW));
    });
  });

  test('rolled back batches leave counts and sweep as if they had never been', () => {
    const ops = ['t:0', 't:1', 't:2', 't:3'];
    const command = fc
      .tuple(
        fc.constantFrom(...ops),
        fc.constantFrom('register', 'pause', 'resume', 'terminate', 'complete') as fc.Arbitrary<
          'register' | 'pause' | 'resume' | 'terminate' | 'complete'
        >,
      )
      .map(([op, verb]): Command => (verb === 'register' ? registerOp(op) : controlOf(op, verb)));
    const batches = fc.array(
      fc.record({
        commands: fc.array(command, { maxLength: 5, size: 'max' }),
        isWritten: fc.boolean(),
        sweeps: fc.boolean(),
        checks: fc.option(fc.constantFrom(...ops)),
      }),
      { maxLength: 30, size: 'max' },
    );
    fc.assert(
      fc.property(batches, (history) => {
        const [governor, model] = [1, 2].map(() => openGovernor({ agents: [CRAWLER, SIBLING], sweepTtlMs: 0 })) as [
          Governor,
          Governor,
        ];
        let nowMs = 0;
        for (const { commands, isWritten, sweeps, checks } of history) {
          nowMs += 10_000;
          if (checks !== null)
            for (const each of [governor, model]) each.apply<'check'>(checkOf(CRAWLER, checks), nowMs);
          nowMs += 10_000;
          const undos = applyAll(governor, commands, nowMs);
          if (isWritten) applyAll(model, commands, nowMs);
          else governor.rollBack(undos, [], 0, nowMs + 1);
          expect(ops.map((op) => stateOf(governor, op))).toEqual(ops.map((op) => stateOf(model, op)));
          expect(governor.ops.counts).toEqual(model.ops.counts);
          nowMs += 1_000;
          if (!sweeps) continue;
          for (const each of [governor, model]) each.sweep(nowMs);
          expect(ops.map((op) => stateOf(governor, op))).toEqual(ops.map((op) => stateOf(model, op)));
          const entry = (each: Governor) => each.agents.get(agentKeyOf(CRAWLER))!;
          expect({
            ops: entry(governor).ops,
            unfinishedOps: entry(governor).unfinishedOps,
            opCount: governor.ops.size,
          }).toEqual({ ops: entry(model).ops, unfinishedOps: entry(model).unfinishedOps, opCount: model.ops.size });
        }
        for (const state of OP_STATES)
          expect(
            governor.ops
              .list(state, 100)
              .ops.map((slot) => governor.ops.idOf(slot))
              .sort(),
          ).toEqual(
            model.ops
              .list(state, 100)
              .ops.map((slot) => model.ops.idOf(slot))
              .sort(),
          );
      }),
      { numRuns: runs(50) },
    );
  });
});
