/** Events of a cluster's other gateways in the live stream. */
import { afterEach, describe, expect, test } from 'vitest';
import type { OpId } from '../../../src/core/base/ids.ts';
import type { OpState } from '../../../src/core/ops/op-state.ts';
import { FanOut } from '../../../src/doors/ws/fan-out.ts';
import { EVENT_KINDS, type GatewayEvent } from '../../../src/ports/events.ts';
import { eventually } from '../../support/eventually.ts';
import { UNCHECKED } from '../../support/ops.ts';

describe('events of other gateways', () => {
  let fanOut: FanOut;
  afterEach(() => fanOut.closeAll({ code: 1001, reason: 'the gateway is shutting down' }));

  function scene() {
    fanOut = new FanOut({
      maxReaders: 10,
      onInterest: () => undefined,
      listOps: async () => {
        throw new Error('no snapshot was asked for');
      },
      onError: (error) => {
        throw error;
      },
      nowMs: () => Date.now(),
      name: 'test',
      home: 'here',
    });
    const join = (orgId: string | null) => {
      const seat = fanOut.reserve({
        principal: { subject: 'key:k', scopes: ['read'], orgId },
        expiresAtMs: Infinity,
        interest: { orgId, kinds: new Set(EVENT_KINDS), lineage: false },
        wantsSnapshot: false,
      });
      if (!seat.ok) throw new Error(seat.fault.kind);
      const board = { frames: [] as any[], unsent: 0, drained: () => fanOut.drained(seat.value) };
      fanOut.open(seat.value, {
        send: (frame) => {
          board.frames.push(JSON.parse(frame.toString()));
          return true;
        },
        together: (write) => write(),
        unsentBytes: () => board.unsent,
        end: () => fanOut.leave(seat.value),
      });
      return board;
    };
    return { join };
  }

  const change = (opId: string, state: OpState, home?: string): GatewayEvent => ({
    id: 1,
    kind: 'ops_change',
    orgId: 'acme',
    agentId: 'crawler',
    atMs: 1_000,
    payload: { ...UNCHECKED, opId: opId as OpId, state, registeredAtMs: 400, updatedAtMs: 1_000, teamId: 't', home },
  });
  const wordsOf = (frames: readonly any[]) => frames.map(({ payload }) => payload.state ?? `lagged ${payload.dropped}`);

  test('are counted when lost, for those who see all orgs', async () => {
    const { join } = scene();
    const [all, bound] = [join(null), join('acme')];
    fanOut.publish([change('t:1', 'running')]);
    for (const { frames } of [all, bound]) await eventually(() => expect(frames.length).toBe(1));
    fanOut.reportLost(3);
    fanOut.publish([change('t:1', 'paused')]);
    await eventually(() => expect(wordsOf(all.frames)).toEqual(['running', 'lagged 3', 'paused']));
    await eventually(() => expect(wordsOf(bound.frames)).toEqual(['running', 'lagged 1', 'paused']));
    expect(fanOut.dropped).toBe(4);
  });

  test('about an operation of the same id do not take the place of its own', async () => {
    const { join } = scene();
    const slow = join(null);
    slow.unsent = 100_000;
    fanOut.publish([change('t:0', 'running')]);
    await eventually(() => expect(slow.frames.length).toBe(1));
    fanOut.publish([change('t:1', 'pending'), change('t:1', 'running'), change('t:1', 'paused', 'there')]);
    slow.unsent = 0;
    slow.drained();
    await eventually(() =>
      expect(slow.frames.slice(1).map(({ payload }) => `${payload.state} ${payload.op_home}`)).toEqual([
        'running here',
        'paused there',
      ]),
    );
  });
});
