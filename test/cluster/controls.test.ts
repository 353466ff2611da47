/** Orders to operations at other gateways, whatever becomes of the database and the messages. */
import { beforeEach, describe, expect, test } from 'vitest';
import { type OrderToGone, SharedControls } from '../../src/cluster/controls.ts';
import { homeOf } from '../../src/cluster/run.ts';
import { type AgentKey, agentKeyOf } from '../../src/core/base/ids.ts';
import { fail, ok } from '../../src/core/base/result.ts';
import type { Signal } from '../../src/core/views.ts';
import type { StateRow } from '../../src/ports/cluster.ts';
import { FakeCluster, type FakeMember } from '../support/fake-cluster.ts';

const AGENT = 'acme/search/crawler' as AgentKey;
const OP = 't:s' as never;
const sent = (signal: 'pause' | 'resume' | 'terminate') => ({ agent: AGENT, opId: OP, signal });

/** The table, as all gateways see it. */
class Table {
  isAway = false;
  /** Questions to it meanwhile get no answer. */
  isSilent = false;
  /** A reading has all that there is. */
  isWhole = false;
  readonly rows = new Map<string, StateRow>();

  readonly store = {
    put: async (_kind: unknown, writes: readonly Omit<StateRow, 'version'>[]) => {
      if (this.isSilent) return new Promise<never>(() => undefined);
      if (this.isAway) return fail({ kind: 'store_unreachable', retryAfterSecs: 1 } as const);
      for (const write of writes) this.rows.set(write.id, { ...write, version: 1 });
      return ok([]);
    },
    changes: async () =>
      this.isAway
        ? fail({ kind: 'store_unreachable', retryAfterSecs: 1 } as const)
        : ok({ rows: structuredClone([...this.rows.values()]), isWhole: this.isWhole, seen: () => undefined }),
  };
}

describe('orders to operations', () => {
  let cluster: FakeCluster;
  let table: Table;
  let one: ReturnType<typeof open>;
  let two: ReturnType<typeof open>;
  let nowMs: number;
  /** Details that barriers have carried to the others, in their order. */
  let carried: unknown[];
  const open = (member: FakeMember) => {
    const delivered: number[] = [];
    const errors: unknown[] = [];
    const controls = new SharedControls({
      store: table.store,
      membership: member.membership,
      bus: member.bus,
      barrier: {
        pass: async (_, detail) => {
          carried.push(structuredClone(detail));
          return ['three'];
        },
      },
      wallMs: () => nowMs,
      onError: (error) => errors.push(error),
    });
    controls.follow((_, { sequence }) => delivered.push(sequence));
    return { controls, delivered, member, home: homeOf(member.run) };
  };
  let recorded: AgentKey[];
  const order = (signal: Signal, orgId?: string, record?: OrderToGone['record']) =>
    two.controls.order({
      opId: OP,
      orgId,
      signal,
      record:
        record ??
        (async (agent) => {
          recorded.push(agentKeyOf(agent));
          return ok(undefined);
        }),
    });
  beforeEach(() => {
    recorded = [];
    cluster = new FakeCluster();
    table = new Table();
    nowMs = 1_000;
    carried = [];
    one = open(cluster.join('one'));
    two = open(cluster.join('two'));
  });

  test('hold at the others once they are answered, and end with resuming', async () => {
    expect(await one.controls.save(sent('pause'), 7, nowMs)).toEqual(['three']);
    expect(two.controls.closedElsewhere(AGENT, OP)).toBeUndefined();
    await two.controls.refresh();
    expect(two.controls.closedElsewhere(AGENT, OP)).toBe('paused');
    expect(two.controls.closedElsewhere('acme/search/other' as AgentKey, OP)).toBeUndefined();
    expect(one.controls.closedElsewhere(AGENT, OP)).toBeUndefined(); // here its own registry says so
    await one.controls.save(sent('resume'), 8, nowMs);
    await two.controls.refresh();
    expect(two.controls.closedElsewhere(AGENT, OP)).toBeUndefined();
    expect(two.delivered).toEqual([7, 8]);
  });

  test('are delivered once, however often they are read, until they are acknowledged', async () => {
    await one.controls.save(sent('pause'), 7, nowMs);
    for (let at = 0; at < 3; at += 1) await two.controls.refresh();
    expect(two.delivered).toEqual([7]);
    expect(two.controls.pendingOf(AGENT)).toEqual([{ opId: OP, signal: 'pause', sequence: 7 }]);
    expect(one.controls.pendingOf(AGENT)).toEqual([]);
    expect(one.controls.acknowledge(AGENT, OP, 6)).toBe(false);
    expect(one.controls.acknowledge(AGENT, OP, 7)).toBe(true);
    await cluster.settle();
    await two.controls.refresh();
    expect(two.controls.pendingOf(AGENT)).toEqual([]);
    expect(two.controls.closedElsewhere(AGENT, OP)).toBe('paused');
  });

  test('reach agents elsewhere with the message that they are written, without a query', async () => {
    await one.controls.save(sent('pause'), 7, nowMs);
    table.isAway = true;
    expect((await two.controls.refresh(carried.at(-1))).ok).toBe(true);
    expect([two.delivered, two.controls.closedElsewhere(AGENT, OP)]).toEqual([[7], 'paused']);
    await two.controls.refresh(carried.at(-1)); // repeated
    table.isAway = false;
    await two.controls.refresh();
    expect([two.delivered, two.controls.closedElsewhere(AGENT, OP)]).toEqual([[7], 'paused']);
    await two.controls.refresh(); // nothing new in the table
    expect(two.controls.closedElsewhere(AGENT, OP)).toBe('paused');
  });

  test('do not come back by a message that is later than their end', async () => {
    await one.controls.save(sent('pause'), 7, nowMs);
    one.controls.forget(AGENT, OP);
    await cluster.settle();
    await two.controls.refresh();
    table.rows.clear(); // what was read before is not read again
    expect((await two.controls.refresh(carried.at(-1))).ok).toBe(true);
    await two.controls.refresh();
    expect([two.controls.size, two.controls.closedElsewhere(AGENT, OP)]).toEqual([0, undefined]);
  });

  test('stand at their home if the database is away, and are written once it is back', async () => {
    table.isAway = true;
    one.member.bus.isConnected = false;
    expect(await one.controls.save(sent('terminate'), 7, nowMs)).toEqual(['database']);
    one.member.bus.isConnected = true;
    expect((await two.controls.refresh()).ok).toBe(false);
    table.isAway = false;
    await one.controls.refresh();
    await cluster.settle();
    await two.controls.refresh();
    expect(two.controls.closedElsewhere(AGENT, OP)).toBe('terminated');
  });

  test('go over the bus while the database is away, and are written once it is back', async () => {
    table.isAway = true;
    expect(await one.controls.save(sent('pause'), 7, nowMs)).toEqual(['database', 'three']);
    expect((await two.controls.refresh(carried[0])).ok).toBe(true);
    expect([two.controls.closedElsewhere(AGENT, OP), two.delivered]).toEqual(['paused', [7]]);
    // It is tried again every 2 s, and told to nobody twice.
    await one.controls.refresh();
    await cluster.settle();
    expect(carried).toHaveLength(1);
    // Who reads all that there is before it is written keeps it.
    table.isAway = false;
    table.isWhole = true;
    await two.controls.refresh();
    expect(two.controls.closedElsewhere(AGENT, OP)).toBe('paused');
    await one.controls.refresh();
    await cluster.settle();
    expect(table.rows.get(`${AGENT} ${OP}`)?.body).toMatchObject({ signal: 'pause', sequence: 7 });
    await two.controls.refresh();
    one.controls.forget(AGENT, OP);
    await cluster.settle();
    await two.controls.refresh();
    expect([two.controls.size, two.delivered]).toEqual([0, [7]]);
  });

  test('are persisted by another gateway if the sender died first', async () => {
    table.isAway = true;
    await one.controls.save(sent('terminate'), 7, nowMs);
    await two.controls.refresh(carried[0]);
    cluster.retire('one');
    table.isAway = false;
    await two.controls.refresh();
    await cluster.settle();
    expect(table.rows.get(`${AGENT} ${OP}`)?.body).toMatchObject({ signal: 'terminate', home: one.home });
    expect(two.controls.closedElsewhere(AGENT, OP)).toBe('terminated');
  });

  test('do not wait for a database that is silent, and the later one counts', async () => {
    table.isSilent = true;
    one.member.membership.isLeased = false;
    expect(await one.controls.save(sent('pause'), 7, nowMs)).toEqual(['database', 'three']);
    expect(await one.controls.save(sent('resume'), 8, nowMs)).toEqual(['database', 'three']);
    for (const late of carried.toReversed()) await two.controls.refresh(late);
    expect([two.controls.closedElsewhere(AGENT, OP), two.delivered]).toEqual([undefined, [8]]);
  });

  test('leave with their operation, and a day after their gateway has ended', async () => {
    await one.controls.save(sent('terminate'), 7, nowMs);
    await two.controls.refresh();
    two.controls.forget(AGENT, OP); // an operation of its own with that id
    await two.controls.refresh();
    expect(two.controls.closedElsewhere(AGENT, OP)).toBe('terminated');
    cluster.retire('one');
    await two.controls.refresh();
    expect(two.controls.closedElsewhere(AGENT, OP)).toBe('terminated');
    nowMs += 24 * 3_600_000 + 1;
    await two.controls.refresh();
    await cluster.settle();
    expect([two.controls.size, table.rows.get(`${AGENT} ${OP}`)?.body]).toEqual([0, undefined]);
  });

  test('go by their record alone when their gateway has ended', async () => {
    await one.controls.save(sent('pause'), 7, nowMs);
    await two.controls.refresh();
    expect(await order('resume')).toBeUndefined(); // its gateway decides
    cluster.retire('one');
    expect(await order('resume', 'globex')).toBeUndefined();
    expect(await order('resume', 'acme')).toMatchObject({
      value: { op: { opId: OP, state: 'running', home: one.home } },
    });
    expect(recorded).toEqual([AGENT]);
    expect(two.controls.closedElsewhere(AGENT, OP)).toBeUndefined();
    expect(await order('pause', 'acme')).toBeUndefined();
  });

  test('go to all of one org when their gateway has ended, and never to those of two', async () => {
    const sibling = 'acme/search/reader' as AgentKey;
    const foreign = 'globex/search/crawler' as AgentKey;
    for (const agent of [AGENT, sibling, foreign])
      await one.controls.save({ agent, opId: OP, signal: 'pause' }, 7, nowMs);
    await two.controls.refresh();
    cluster.retire('one');
    const orgIds = ['acme', 'globex'];
    expect(await order('resume')).toEqual(fail({ kind: 'ambiguous', opId: OP, orgIds }));
    expect(await order('resume', 'acme')).toMatchObject({ ok: true });
    expect(recorded).toEqual([AGENT, sibling]);
    const left = [AGENT, sibling, foreign].map((agent) => two.controls.closedElsewhere(agent, OP));
    expect(left).toEqual([undefined, undefined, 'paused']);
  });

  test('change nothing if they cannot be recorded and their gateway has ended', async () => {
    await one.controls.save(sent('pause'), 7, nowMs);
    await two.controls.refresh();
    cluster.retire('one');
    const unwritten = fail({ kind: 'audit_unavailable' } as const);
    expect(await order('resume', 'acme', async () => unwritten)).toEqual(unwritten);
    expect(two.controls.closedElsewhere(AGENT, OP)).toBe('paused');
  });

  test('have growing numbers, whoever gives them', async () => {
    expect([one.controls.nextSequence(5.5), one.controls.nextSequence(5.5)]).toEqual([5, 6]);
    await one.controls.save(sent('pause'), 99, nowMs);
    await two.controls.refresh();
    expect(two.controls.nextSequence(1)).toBe(100);
  });
});
