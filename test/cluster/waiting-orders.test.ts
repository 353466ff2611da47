/** Orders to operations of gateways that do not answer, whatever becomes of these gateways and of the database. */
import { beforeEach, describe, expect, test } from 'vitest';
import { homeOf } from '../../src/cluster/run.ts';
import { WaitingOrders } from '../../src/cluster/waiting-orders.ts';
import type { AgentKey } from '../../src/core/base/ids.ts';
import { fail, ok } from '../../src/core/base/result.ts';
import type { CommandOf, Replies } from '../../src/core/commands.ts';
import type { StateRow } from '../../src/ports/cluster.ts';
import { FakeCluster, type FakeMember } from '../support/fake-cluster.ts';

const AGENT = 'acme/search/crawler' as AgentKey;
const OTHERS = 'globex/search/crawler' as AgentKey;
const OP = 't:s' as never;
const AWAY = { ok: false, fault: { kind: 'store_unreachable', retryAfterSecs: 1 } } as const;

const recorded: string[] = [];
const record = async (_: unknown, home: string) => {
  recorded.push(home);
  return ok(undefined);
};

const command = (trigger: 'pause' | 'resume' | 'terminate', orgId: string | undefined = 'acme') => ({
  type: 'control-op' as const,
  principal: { subject: 'key:a', scopes: ['write' as const], orgId: null },
  opId: OP,
  orgId,
  trigger,
});

/** The table, as all gateways see it. */
class Table {
  isAway = false;
  readonly rows = new Map<string, StateRow>();

  readonly store = {
    turn: async (
      _kind: unknown,
      key: string,
      decide: (rows: readonly StateRow[], nowMs: number) => readonly Omit<StateRow, 'version'>[],
    ) => {
      if (this.isAway) return AWAY;
      const known = this.rows.get(key);
      for (const write of decide(known?.body === undefined ? [] : [known], 0))
        this.rows.set(write.id, structuredClone({ ...write, version: 1 }));
      return ok([]);
    },
    changes: async () =>
      this.isAway
        ? AWAY
        : ok({ rows: structuredClone([...this.rows.values()]), isWhole: false, seen: () => undefined }),
  };

  get left(): readonly unknown[] {
    return [...this.rows.values()].filter(({ body }) => body !== undefined);
  }
}

describe('orders that wait for their gateway', () => {
  let cluster: FakeCluster;
  let table: Table;
  let one: ReturnType<typeof open>;
  let two: ReturnType<typeof open>;
  let home: ReturnType<typeof open>;
  let nowMs: number;
  const open = (member: FakeMember) => {
    const carriedOut: CommandOf<'control-op'>[] = [];
    const world = { newest: 0, reply: ok({}) as never as Replies['control-op'] };
    const errors: unknown[] = [];
    const warnings: string[] = [];
    const orders = new WaitingOrders({
      store: table.store,
      membership: member.membership,
      barrier: { pass: async () => [] },
      wallMs: () => nowMs,
      nextSequence: () => nowMs,
      carriedOut: () => world.newest,
      warn: (message) => warnings.push(message),
      onError: (error) => errors.push(error),
    });
    orders.follow(async (given) => {
      carriedOut.push(given);
      return world.reply;
    });
    return { orders, carriedOut, world, warnings, errors, home: homeOf(member.run) };
  };
  beforeEach(() => {
    cluster = new FakeCluster();
    table = new Table();
    nowMs = 1_000;
    one = open(cluster.join('one'));
    two = open(cluster.join('two'));
    home = open(cluster.join('home', 'suspect'));
  });

  test('hold at all others from their answer on, which names the gateway', async () => {
    recorded.length = 0;
    const given = await one.orders.give(command('terminate'), [home.home], record);
    expect(recorded).toEqual([home.home]);
    expect(given).toMatchObject({
      ok: true,
      value: { op: { opId: OP, state: 'terminated', home: home.home }, unconfirmed: ['home'] },
    });
    await two.orders.refresh();
    for (const { orders } of [one, two]) {
      expect(orders.closedElsewhere(AGENT, OP)).toBe('terminated');
      expect([orders.closedElsewhere(OTHERS, OP), orders.closedElsewhere(AGENT, 't:other' as never)]).toEqual([
        undefined,
        undefined,
      ]);
    }
  });

  test('are carried out once by the gateway before it serves again, and leave then', async () => {
    await one.orders.give(command('pause'), [home.home], record);
    const reading = home.orders.refresh();
    await reading;
    expect(home.carriedOut).toEqual([
      {
        type: 'control-op',
        principal: { subject: 'key:a', scopes: ['write'], orgId: 'acme' },
        opId: OP,
        trigger: 'pause',
      },
    ]);
    await home.orders.refresh();
    await home.orders.refresh();
    expect(home.carriedOut.length).toBe(1);
    expect(home.orders.closedElsewhere(AGENT, OP)).toBeUndefined(); // its registry says what the operation is
    await two.orders.refresh();
    expect([two.carriedOut, two.orders.closedElsewhere(AGENT, OP), table.left]).toEqual([[], undefined, []]);
  });

  test('give way to what the gateway was ordered later, and to a newer one that waits', async () => {
    await one.orders.give(command('pause'), [home.home], record);
    home.world.newest = 2_000;
    await home.orders.refresh();
    await home.orders.refresh();
    expect([home.carriedOut, table.left]).toEqual([[], []]);
    await one.orders.give(command('pause'), [home.home], record);
    nowMs = 3_000;
    await two.orders.refresh();
    await two.orders.give(command('resume'), [home.home], record);
    expect(two.orders.closedElsewhere(AGENT, OP)).toBeUndefined();
    await home.orders.refresh();
    expect(home.carriedOut.map(({ trigger }) => trigger)).toEqual(['resume']);
  });

  test('are tried again where they could not be recorded, and dropped where meaningless', async () => {
    await one.orders.give(command('pause'), [home.home], record);
    home.world.reply = fail({ kind: 'audit_unavailable' });
    await home.orders.refresh();
    await home.orders.refresh();
    expect([home.carriedOut.length, table.left.length]).toEqual([2, 1]);
    home.world.reply = fail({ kind: 'invalid_transition', opId: OP, from: 'terminated', trigger: 'pause' });
    await home.orders.refresh();
    await home.orders.refresh();
    expect([home.carriedOut.length, table.left, home.errors]).toEqual([3, [], []]);
  });

  test('apply to all orgs if their author sees all', async () => {
    const everywhere = { ...command('pause'), orgId: undefined };
    await one.orders.give(everywhere, [home.home], record);
    expect([AGENT, OTHERS].map((agent) => one.orders.closedElsewhere(agent, OP))).toEqual(['paused', 'paused']);
    home.world.reply = fail({ kind: 'ambiguous', opId: OP, orgIds: ['acme', 'globex'] });
    await home.orders.refresh();
    expect(home.warnings.length).toBe(1);
    const bound = { ...command('pause'), principal: { ...everywhere.principal, orgId: 'globex' } };
    expect(await one.orders.give(bound, [home.home], record)).toMatchObject({ fault: { kind: 'org_forbidden' } });
  });

  test('are not left where they cannot be recorded', async () => {
    const refused = fail({ kind: 'audit_unavailable' } as const);
    expect(await one.orders.give(command('terminate'), [home.home], async () => refused)).toEqual(refused);
    expect([table.left, one.orders.closedElsewhere(AGENT, OP)]).toEqual([[], undefined]);
  });

  test('are not promised where the database cannot take them', async () => {
    table.isAway = true;
    expect(await one.orders.give(command('terminate'), [home.home], record)).toEqual(AWAY);
    expect(one.orders.closedElsewhere(AGENT, OP)).toBeUndefined();
    table.isAway = false;
    expect(await one.orders.give({ ...command('pause'), trigger: 'complete' }, [home.home], record)).toBeUndefined();
    expect(await one.orders.give(command('pause'), [], record)).toBeUndefined();
  });

  test('outlive a gateway that never comes back for a day, and can be changed', async () => {
    await one.orders.give(command('terminate'), [home.home], record);
    await two.orders.refresh();
    cluster.retire('home');
    expect(await two.orders.give(command('resume'), [], record)).toMatchObject({
      fault: { kind: 'invalid_transition' },
    });
    expect(await two.orders.give(command('terminate', 'globex'), [], record)).toBeUndefined();
    expect(await two.orders.give(command('terminate'), [], record)).toMatchObject({
      ok: true,
      value: { unconfirmed: [] },
    });
    nowMs += 24 * 3_600_000 + 1;
    await two.orders.refresh();
    await two.orders.refresh();
    expect([two.orders.size, table.left]).toEqual([0, []]);
  });

  test('are refused beyond what can wait', async () => {
    for (let nth = 0; nth < 10_000; nth += 1)
      await one.orders.give({ ...command('pause'), opId: `t:${nth}` as never }, [home.home], record);
    expect(await one.orders.give(command('pause'), [home.home], record)).toMatchObject({
      fault: { kind: 'overloaded' },
    });
  });
});
