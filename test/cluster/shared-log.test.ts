/** Decisions of gateways at their place in one log, by the real classes over a model of its head. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { homeOf } from '../../src/cluster/run.ts';
import type { SecretDigest } from '../../src/core/base/ids.ts';
import type { CommandOf } from '../../src/core/commands.ts';
import type { Entry } from '../../src/ports/cluster-log.ts';
import { ADMIN, CRAWLER, checkOf, opId, SIBLING } from '../support/governor.ts';
import { type LogGateway, LogWorld } from '../support/log-gateway.ts';

const ASKING = {
  decide: () =>
    ({ kind: 'require_approval', reason: 'asks', policy: 'test', ruleId: 'ask', cause: undefined }) as const,
};
const PARTS = { agents: [CRAWLER, SIBLING] };
const registering = (agentId: string, credential: string): CommandOf<'register-agent'> => ({
  type: 'register-agent',
  principal: ADMIN,
  agent: { orgId: 'acme', teamId: 'search', agentId },
  credential: credential as SecretDigest,
  parent: undefined,
});
const ordering = (trigger: 'pause' | 'resume' | 'terminate', op = 't:1'): CommandOf<'control-op'> => ({
  type: 'control-op',
  principal: ADMIN,
  opId: opId(op),
  trigger,
});
const halting = (id: string): CommandOf<'create-halt'> => ({
  type: 'create-halt',
  principal: ADMIN,
  halt: { id, scope: 'global', mode: 'pause', actions: ['*'], reason: 'test', expiresAtMs: undefined } as never,
});
const decisionOf = (gateway: LogGateway, op: string): string | undefined => {
  const { reply } = gateway.governor.apply<'check'>(checkOf(CRAWLER, op), Date.parse('2026-11-25T12:00:01Z'));
  return reply.ok ? reply.value.decision : undefined;
};

describe('gateways with one log', () => {
  let world: LogWorld;
  let one: LogGateway;
  let two: LogGateway;
  let three: LogGateway;
  beforeEach(() => {
    world = new LogWorld();
    [one, two, three] = ['one', 'two', 'three'].map((name) => world.open(name, PARTS)) as [
      LogGateway,
      LogGateway,
      LogGateway,
    ];
  });
  afterEach(() => {
    for (const { log } of world.gateways) log.stop();
  });
  const settled = async <T>(work: Promise<T>): Promise<T> => {
    let isDone = false;
    const done = work.finally(() => {
      isDone = true;
    });
    while (!isDone) await world.settle();
    return done;
  };

  test('give one credential to one agent, wherever both register at once', async () => {
    const replies = await settled(
      Promise.all([one.decide(registering('a', 'same')), two.decide(registering('b', 'same'))]),
    );
    await world.settle();
    expect(replies.map(({ ok }) => ok).toSorted()).toEqual([false, true]);
    const winner = replies[0].ok ? 'a' : 'b';
    for (const { governor } of world.gateways)
      expect(governor.agents.ownerOf('same' as SecretDigest)?.identity.agentId).toBe(winner);
  });

  test('refuse one registration of many, and no other change that is on its way', async () => {
    await settled(one.decide(registering('first', 'taken')));
    one.governor.apply<'check'>(checkOf(CRAWLER, 't:1'), world.nowMs);
    const replies = await settled(
      Promise.all([
        two.decide(registering('second', 'taken')),
        ...Array.from({ length: 20 }, (_, at) => two.decide(registering(`agent-${at}`, `own-${at}`))),
        one.decide(ordering('pause')),
      ]),
    );
    expect(replies.map(({ ok }) => ok)).toEqual([false, ...Array.from({ length: 21 }, () => true)]);
    expect(one.governor.ops.stateOf(one.governor.ops.find(opId('t:1'), 'acme')!)).toBe('paused');
  });

  test('know a rotated token nowhere once that is answered', async () => {
    await settled(one.decide(registering('a', 'old')));
    const rotated = await settled(two.decide(registering('a', 'new')));
    expect(rotated).toMatchObject({ ok: true, unconfirmed: [] });
    for (const { governor, revoked } of world.gateways) {
      expect(governor.agents.ownerOf('old' as SecretDigest)).toBeUndefined();
      expect(governor.agents.ownerOf('new' as SecretDigest)).toBeDefined();
      if (governor !== two.governor) expect(revoked).toEqual(['acme/search/a']);
    }
  });

  test('name a gateway that does not act by it, which follows when it goes on', async () => {
    three.isStopped = true;
    const halted = await settled(one.decide(halting('h')));
    expect(halted).toMatchObject({ ok: true, unconfirmed: ['three'] });
    expect([decisionOf(two, 't:2'), decisionOf(three, 't:3')]).toEqual(['deny', 'allow']);
    await three.log.follow();
    expect(decisionOf(three, 't:4')).toBe('deny');
  });

  test('wait for nobody with a new agent, and for all with a rotation of its token', async () => {
    three.isStopped = true;
    const [first, rotated] = ['first', 'second'].map((token) => registering('newcomer', token));
    expect(await settled(one.decide(first!))).toMatchObject({ ok: true, unconfirmed: [] });
    expect(await settled(one.decide(rotated!))).toMatchObject({ ok: true, unconfirmed: ['three'] });
  });

  test('do what was not answered once, and say so', async () => {
    world.losesAnswers = 2;
    expect(await settled(one.decide(halting('h')))).toMatchObject({ ok: true, unconfirmed: [] });
    expect(world.head.log.flatMap(({ entries }) => entries)).toHaveLength(1);
    world.isAway = true;
    expect(await settled(one.decide(halting('lost')))).toMatchObject({ fault: { kind: 'store_unreachable' } });
    expect(one.governor.halts.get('lost')).toBeUndefined();
    world.isAway = false;
    await one.log.follow();
    expect(one.governor.halts.get('lost')).toBeUndefined();
  });

  test('bring back what a server has lost that took over', async () => {
    const behind = world.head.copy();
    await settled(one.decide(halting('h')));
    await settled(two.decide(registering('a', 'lost')));
    world.head = behind;
    const later = await settled(three.decide(registering('b', 'later')));
    expect(later).toMatchObject({ ok: true });
    for (const { log } of world.gateways) await log.follow();
    await world.settle();
    for (const { governor } of world.gateways) {
      expect(governor.halts.activeCount).toBe(1);
      expect(governor.agents.ownerOf('lost' as SecretDigest)).toBeDefined();
      expect(governor.agents.ownerOf('later' as SecretDigest)).toBeDefined();
    }
  });

  test('let an operation that was paused begin nowhere, until it is resumed', async () => {
    one.governor.apply<'check'>(checkOf(CRAWLER, 't:1'), world.nowMs);
    await settled(one.decide(ordering('pause')));
    expect([decisionOf(two, 't:1'), two.delivered]).toEqual(['deny', [expect.objectContaining({ signal: 'pause' })]]);
    await settled(one.decide(ordering('resume')));
    expect(decisionOf(two, 't:1')).toBe('allow');
  });

  test('have an order carried out by a gateway that was stopped when it was given', async () => {
    one.governor.apply<'check'>(checkOf(CRAWLER, 't:1'), world.nowMs);
    one.isStopped = true;
    const given = two.orders.give(ordering('terminate'), ['one'], async () => ({ ok: true, value: undefined }));
    expect(await settled(given)).toMatchObject({ ok: true, value: { unconfirmed: ['one'] } });
    expect(decisionOf(three, 't:1')).toBe('deny');
    await one.log.follow();
    expect(one.governor.ops.stateOf(one.governor.ops.find(opId('t:1'), 'acme')!)).toBe('terminated');
  });

  test('have it carried out there too where another gateway has a part of the operation', async () => {
    for (const { governor } of [one, two, three]) governor.apply<'check'>(checkOf(CRAWLER, 't:1'), world.nowMs);
    one.isStopped = true;
    await settled(two.orders.leave(ordering('terminate'), [homeOf(one.fake.run)]));
    await settled(two.orders.leave(ordering('terminate'), [homeOf(one.fake.run)]));
    await one.log.follow();
    const states = [one, two, three].map(({ governor: { ops } }) => ops.stateOf(ops.find(opId('t:1'), 'acme')!));
    expect(states).toEqual(['terminated', 'running', 'running']);
  });

  test('obey a resume of an operation whose home has died', async () => {
    one.governor.apply<'check'>(checkOf(CRAWLER, 't:1'), world.nowMs);
    await settled(one.decide(ordering('pause')));
    world.cluster.retire('one');
    world.gateways.splice(0, 1);
    const record = async () => ({ ok: true, value: undefined }) as const;
    const given = await settled(two.orders.give(ordering('resume'), [], record) as Promise<unknown>);
    expect(given).toMatchObject({ ok: true });
    expect([decisionOf(two, 't:1'), decisionOf(three, 't:1')]).toEqual(['allow', 'allow']);
  });

  test('obey what is decided under numbers used before a fall back to an older state', async () => {
    const seqs = () =>
      world.head.log.map(({ seq, entries }) => [seq, ...entries.map(({ kind, id }) => `${kind} ${id}`)]);
    await settled(one.decide(halting('h1')));
    const older = world.head.copy();
    await settled(one.decide(halting('h2')));
    await settled(one.decide(halting('h3')));
    expect(seqs().slice(1)).toEqual([
      [2, 'halts h1'],
      [3, 'halts h2'],
      [4, 'halts h3'],
    ]);
    world.head = older;
    // A newcomer, which knows nothing of what was lost, has the number 3.
    const newcomer = world.open('four', PARTS);
    expect(await settled(newcomer.decide(halting('h4')))).toMatchObject({ ok: true });
    expect(seqs()[2]).toEqual([3, 'halts h4']);
    await settled(Promise.all([one, two, three].map(({ log }) => log.follow())));
    const release = { type: 'release-halt', principal: ADMIN, id: 'h2', reason: 'over' } as const;
    expect(await settled(two.decide(release))).toMatchObject({ ok: true, unconfirmed: [] });
    const stateOf = (gateway: LogGateway, id: string): string => {
      const halt = gateway.governor.halts.get(id);
      return halt === undefined ? 'unknown' : (halt.released?.reason ?? 'in force');
    };
    for (const gateway of [one, two, three])
      expect(['h1', 'h2', 'h3', 'h4'].map((id) => stateOf(gateway, id))).toEqual([
        'in force',
        'over',
        'in force',
        'in force',
      ]);
  });

  test('keep a terminate that a late acknowledgement of an older signal meets', async () => {
    one.governor.apply<'check'>(checkOf(CRAWLER, 't:1'), world.nowMs);
    await settled(one.decide(ordering('pause')));
    const [signal] = two.delivered;
    three.isStopped = true;
    await settled(one.decide(ordering('terminate')));
    // It has not heard of the latter.
    expect(three.orders.acknowledge('acme/search/crawler' as never, opId('t:1'), signal!.sequence)).toBe(true);
    await world.settle();
    three.isStopped = false;
    await three.log.follow();
    for (const gateway of [two, three]) {
      const pending = gateway.orders.pendingOf('acme/search/crawler' as never);
      expect(pending).toMatchObject([{ signal: 'terminate' }]);
    }
  });

  test('forget an agent before its removal is answered, also one that is on its way', async () => {
    world.losesAnswers = 1;
    const registered = two.decide(registering('a', 'token'));
    await expect.poll(() => world.head.state.has('agents acme/search/a')).toBe(true);
    await one.log.follow();
    const agent = { orgId: 'acme', teamId: 'search', agentId: 'a' };
    const removed = await settled(one.decide({ type: 'deregister-agent', principal: ADMIN, agent }));
    expect(removed).toMatchObject({ ok: true, unconfirmed: [] });
    const known = (): unknown[] =>
      world.gateways.map(({ governor }) => governor.agents.ownerOf('token' as SecretDigest));
    expect(known()).toEqual([undefined, undefined, undefined]);
    // It was registered first, and says so late.
    expect(await settled(registered)).toMatchObject({ ok: true });
    expect(known()).toEqual([undefined, undefined, undefined]);
  });

  test('remove old orders to gateways that have ended some at a time', async () => {
    const day = 24 * 3_600_000;
    const old = (nth: number): Entry => ({
      ...{ kind: 'orders', id: `acme/search/crawler old:${nth}` },
      body: { agent: 'acme/search/crawler', opId: `old:${nth}`, signal: 'pause', sequence: nth, home: 'gone', atMs: 0 },
    });
    const recent: Entry = {
      ...{ kind: 'orders', id: 'acme/search/crawler t:1' },
      body: {
        agent: 'acme/search/crawler',
        opId: 't:1',
        signal: 'pause',
        sequence: 1,
        home: 'gone',
        atMs: world.nowMs - day + 1,
      },
    };
    const entries = [...Array.from({ length: 1_200 }, (_, nth) => old(nth)), recent];
    world.head.append(one.fake.run, 'before', world.head.head, [entries], 100, world.members());
    await one.log.follow();
    const left: number[] = [];
    for (let look = 0; look < 3; look += 1) {
      one.orders.tidy();
      await world.settle();
      left.push(world.head.whole().states.length);
    }
    expect(left).toEqual([701, 201, 1]);
    expect(world.head.log.slice(-3).map((row) => row.entries.length)).toEqual([500, 500, 200]);
  });

  test('tell of an order that the database cannot take, and write it once it can', async () => {
    one.governor.apply<'check'>(checkOf(CRAWLER, 't:1'), world.nowMs);
    world.isAway = true;
    const sent = { agent: 'acme/search/crawler' as never, opId: opId('t:1'), signal: 'pause' } as const;
    expect(await settled(one.orders.save(sent, one.orders.nextSequence(world.nowMs), world.nowMs))).toEqual([
      'database',
    ]);
    await world.settle();
    expect(decisionOf(two, 't:1')).toBe('deny');
    world.isAway = false;
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    await world.settle();
    expect(world.head.whole().states).toMatchObject([{ kind: 'orders', body: { signal: 'pause' } }]);
  });
});

describe('approvals of gateways with one log', () => {
  test('are asked for once and used once, however many race at however many gateways', async () => {
    const world = new LogWorld();
    const gateways = ['one', 'two', 'three'].map((name) => world.open(name, { ...PARTS, policies: ASKING }));
    const all = <T>(work: (gateway: LogGateway, at: number) => Promise<T>): Promise<T[]> =>
      Promise.all([0, 1, 2].flatMap((nth) => gateways.map((gateway, at) => work(gateway, 3 * nth + at))));
    const settled = async <T>(work: Promise<T>): Promise<T> => {
      let isDone = false;
      void work.then(() => (isDone = true));
      while (!isDone) await world.settle();
      return work;
    };
    const asked = await settled(all((gateway, at) => gateway.decide(checkOf(CRAWLER, `a:${at}`) as never)));
    const ids = new Set(asked.map((reply) => (reply as { value: { approvalId: string } }).value.approvalId));
    expect(ids.size).toBe(1);
    const [id] = ids;
    const approved = await settled(
      gateways[1]!.decide({
        ...{ type: 'decide-approval', principal: ADMIN, id: id!, kind: 'approve', reason: 'ok' },
        ...{
          lineage: [{ subject: ADMIN.subject, names: [], isValid: true }] as never,
          people: { 'agent:acme/search/crawler': 'asker', 'key:admin': 'admin' },
        },
      }),
    );
    expect(approved).toMatchObject({ ok: true, value: { state: 'approved' }, unconfirmed: [] });
    const used = await settled(all((gateway, at) => gateway.decide(checkOf(CRAWLER, `b:${at}`) as never)));
    const decisions = used.map((reply) => (reply as { value: { decision: string } }).value.decision);
    expect(decisions.filter((decision) => decision === 'allow')).toHaveLength(1);
    for (const { log } of gateways) log.stop();
  });

  test('end what waits elsewhere, and leave it where it was checked again', async () => {
    const world = new LogWorld();
    const [one, two] = ['one', 'two'].map((name) => world.open(name, { ...PARTS, policies: ASKING }));
    const settled = async <T>(work: Promise<T>): Promise<T> => {
      let isDone = false;
      void work.then(() => (isDone = true));
      while (!isDone) await world.settle();
      return work;
    };
    const stateAt = ({ governor }: LogGateway, op: string): string => {
      const slot = governor.ops.find(opId(op), 'acme');
      return slot === undefined ? 'absent' : governor.ops.stateOf(slot);
    };
    const decide = async (kind: 'approve' | 'deny', id: string) =>
      settled(
        one!.decide<'decide-approval'>({
          ...{ type: 'decide-approval', principal: ADMIN, id, kind, reason: 'x' },
          ...{
            lineage: [{ subject: ADMIN.subject, names: [], isValid: true }] as never,
            people: { 'agent:acme/search/crawler': 'asker', 'key:admin': 'admin' },
          },
        }),
      );
    const ask = async (gateway: LogGateway, op: string) => {
      const reply = await settled(gateway.decide<'check'>(checkOf(CRAWLER, op)));
      return reply.ok ? reply.value : undefined;
    };
    const first = await ask(two!, 't:1');
    await decide('deny', first!.approvalId!);
    await world.settle();
    expect(stateAt(two!, 't:1')).toBe('terminated');
    const second = await ask(two!, 't:2');
    await decide('approve', second!.approvalId!);
    expect(await ask(one!, 't:2')).toMatchObject({ decision: 'allow' });
    await world.settle();
    expect([stateAt(one!, 't:2'), stateAt(two!, 't:2')]).toEqual(['running', 'absent']);
    for (const { log } of [one!, two!]) log.stop();
  });

  test('are ended by the first gateway, and by another where that one does not', async () => {
    const world = new LogWorld();
    const gateways = ['one', 'two'].map((name) => world.open(name, { ...PARTS, policies: ASKING }));
    const [first, second] = gateways.toSorted((one, other) => (one.fake.run < other.fake.run ? -1 : 1));
    const expiring = async (op: string) => {
      const asked = second!.decide<'check'>(checkOf(CRAWLER, op));
      await world.settle();
      const reply = await asked;
      const id = reply.ok ? reply.value.approvalId! : '';
      return { id, expiresAtMs: second!.governor.approvals.get(id)!.expiresAtMs };
    };
    const tick = async (gateway: LogGateway): Promise<void> => {
      const ticked = gateway.tickApprovals();
      await world.settle();
      await ticked;
    };
    const statesOf = (id: string) => gateways.map(({ governor }) => governor.approvals.get(id)!.state);
    const early = await expiring('t:1');
    world.nowMs = early.expiresAtMs + 1;
    await tick(second!);
    expect(statesOf(early.id)).toEqual(['pending', 'pending']);
    await tick(first!);
    expect(statesOf(early.id)).toEqual(['expired', 'expired']);
    const late = await expiring('t:2');
    world.nowMs = late.expiresAtMs + 5_000;
    await tick(second!);
    expect(statesOf(late.id)).toEqual(['pending', 'pending']);
    world.nowMs = late.expiresAtMs + 5_001;
    await tick(second!);
    expect(statesOf(late.id)).toEqual(['expired', 'expired']);
    for (const { log } of gateways) log.stop();
  });
});
