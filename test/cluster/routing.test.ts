/** Which gateway decides what, whatever becomes of the messages between them. */
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { ClusterPeers } from '../../src/cluster/questions.ts';
import { type Elsewhere, Routing } from '../../src/cluster/routing.ts';
import { homeOf } from '../../src/cluster/run.ts';
import type { SecretDigest } from '../../src/core/base/ids.ts';
import type { Command, CommandType, Replies } from '../../src/core/commands.ts';
import type { Governor } from '../../src/core/governor.ts';
import type { RunId } from '../../src/ports/cluster.ts';
import { FakeCluster } from '../support/fake-cluster.ts';
import { openGovernor } from '../support/governor.ts';

const PEERS = -3;
const TOKEN = 'digest' as SecretDigest;
const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
const PRINCIPAL = { subject: 'key:a', scopes: ['admin', 'write', 'read'], orgId: null } as const;
const OP = 't:s' as never;

const CHECK = {
  type: 'check',
  agent: AGENT,
  credential: TOKEN,
  principal: undefined,
  opId: OP,
  action: 'tool.call',
  resource: 'web_search',
  attributes: undefined,
  estimatedCostMicroUsd: 0,
  caller: undefined,
  dryRun: false,
} satisfies Command;
const COMPLETE = {
  type: 'complete-op',
  agent: AGENT,
  credential: TOKEN,
  principal: undefined,
  opId: OP,
} satisfies Command;
const USAGE = { ...COMPLETE, type: 'record-usage', costMicroUsd: 5, usageId: undefined } satisfies Command;
const GET = { type: 'get-op', principal: PRINCIPAL, opId: OP } satisfies Command;
const PAUSE = { type: 'control-op', principal: PRINCIPAL, opId: OP, trigger: 'pause' } satisfies Command;

type Answer = { readonly reply: Replies[CommandType]; readonly elsewhere: Elsewhere | undefined };

/** A gateway as far as it decides. */
class Gateway {
  readonly governor: Governor = openGovernor();
  readonly decided: CommandType[] = [];
  readonly warnings: string[] = [];
  /** For whom an order was left. */
  readonly left: string[] = [];
  /** Whom an order was given for that nobody could carry out. */
  readonly absent: string[] = [];
  readonly run: RunId;
  readonly home: string;
  readonly routing: Routing;
  #lastId = 0;
  readonly #waiting = new Map<number, (answer: Answer) => void>();

  constructor(cluster: FakeCluster, name: string) {
    const { bus, membership, clock, run } = cluster.join(name);
    this.run = run;
    this.home = homeOf(run);
    const onError = (error: unknown): void => {
      throw error;
    };
    this.governor.restoreAgent({ identity: AGENT, credential: TOKEN, registeredAtMs: 0, parent: undefined });
    const decide = (command: Command): Replies[CommandType] => {
      this.decided.push(command.type);
      return this.governor.apply<CommandType>(command as never, 1_000).reply;
    };
    this.routing = new Routing({
      peers: new ClusterPeers({ bus, membership, clock, onError }),
      membership,
      ops: this.governor.ops,
      lookup: {
        isUnknown: (credential) => this.governor.agents.ownerOf(credential) === undefined,
        lookFor: (_, done) => setImmediate(done),
      },
      peersIo: PEERS,
      decideHere: async (command) => ({ reply: decide(command), auditId: 7 }),
      orderAbsent: async (_, away) => void this.absent.push(away[0]!),
      leaveOrder: async (_, away) => (this.left.push(...away), []),
      resume: (_, id, command) => this.#waiting.get(id)?.({ reply: decide(command), elsewhere: undefined }),
      answer: (_, id, reply, elsewhere) => this.#waiting.get(id)?.({ reply, elsewhere }),
      steadyMs: Date.now,
      clock,
      warn: (message) => this.warnings.push(message),
      onError,
    });
  }

  ask(command: Command): Promise<Answer> {
    const id = (this.#lastId += 1);
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      if (this.routing.divert(0, id, command)) return;
      this.decided.push(command.type);
      resolve({ reply: this.governor.apply<CommandType>(command as never, 1_000).reply, elsewhere: undefined });
    });
  }
}

describe('a command', () => {
  let cluster: FakeCluster;
  let one: Gateway;
  let two: Gateway;
  let three: Gateway;
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    cluster = new FakeCluster();
    [one, two, three] = ['one', 'two', 'three'].map((name) => new Gateway(cluster, name)) as [
      Gateway,
      Gateway,
      Gateway,
    ];
  });
  afterEach(() => void vi.useRealTimers());

  const settled = async (asked: Promise<Answer>): Promise<Answer> => {
    await cluster.settle();
    return asked;
  };
  /** Everything that is sent meanwhile is lost. */
  const lost = async (asked: Promise<Answer>): Promise<Answer> => {
    for (let at = 0; at < 5; at += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      cluster.take();
      await vi.advanceTimersByTimeAsync(1_000);
    }
    return asked;
  };

  test('asks nobody if it begins an operation', async () => {
    expect((await one.ask(CHECK)).reply).toMatchObject({ ok: true, value: { decision: 'allow' } });
    expect(cluster.waiting).toEqual([]);
  });

  test('is decided at its home, and says so', async () => {
    await one.ask(CHECK);
    const again = await settled(two.ask({ ...CHECK, home: one.home }));
    expect(again).toMatchObject({ reply: { ok: true }, elsewhere: { home: one.home, auditId: 7 } });
    expect([one.decided, two.decided]).toEqual([['check', 'check'], []]);
    const completed = await settled(three.ask({ ...COMPLETE, home: one.home }));
    expect(completed.reply).toMatchObject({ ok: true, value: { state: 'completing', home: one.home } });
  });

  test('without one is decided by whoever has the operation', async () => {
    await one.ask(CHECK);
    expect((await settled(three.ask(USAGE))).reply).toEqual({ ok: true, value: { status: 'ok' } });
    const misled = { ...COMPLETE, home: two.home };
    expect((await settled(three.ask(misled))).reply).toMatchObject({ ok: true, value: { state: 'completing' } });
    expect([one.decided, two.decided, three.decided]).toEqual([['check', 'record-usage', 'complete-op'], [], []]);
  });

  test('about an operation that nobody has is answered here; its money counts once', async () => {
    expect((await settled(two.ask(COMPLETE))).reply).toMatchObject({ ok: false, fault: { kind: 'not_found' } });
    expect((await settled(two.ask(USAGE))).reply).toEqual({ ok: true, value: { status: 'ok' } });
    expect([one.decided, two.decided, three.decided]).toEqual([[], ['complete-op', 'record-usage'], []]);
  });

  test.each([COMPLETE, USAGE])('about an operation of another agent is refused at any gateway', async (command) => {
    const owner = { ...AGENT, agentId: 'owner' };
    one.governor.restoreAgent({
      identity: owner,
      credential: 'owner' as SecretDigest,
      registeredAtMs: 0,
      parent: undefined,
    });
    await one.ask({ ...CHECK, agent: owner, credential: 'owner' as SecretDigest });
    const atHome = await settled(one.ask(command));
    expect(atHome.reply).toMatchObject({ ok: false, fault: { kind: 'not_owner' } });
    expect((await settled(two.ask(command))).reply).toEqual(atHome.reply);
  });

  test('is refused with the name of a home that does not answer, and not decided', async () => {
    await one.ask(CHECK);
    const fault = { kind: 'unreachable_gateway', gateway: 'one', retryAfterSecs: 1 };
    for (const command of [
      { ...CHECK, home: one.home },
      { ...COMPLETE, home: one.home },
    ])
      expect((await lost(two.ask(command))).reply).toEqual({ ok: false, fault });
    const some = { kind: 'unreachable_gateway', gateway: 'one, three', retryAfterSecs: 1 };
    expect((await lost(two.ask(COMPLETE))).reply).toEqual({ ok: false, fault: some });
    expect((await lost(two.ask(GET))).reply).toEqual({ ok: false, fault: some });
    expect(two.decided).toEqual(['get-op']);
    for (const name of ['one', 'three']) cluster.suspect(name); // for long
    expect((await lost(two.ask(GET))).reply).toMatchObject({ ok: false, fault: { kind: 'not_found' } });
    expect((await lost(two.ask({ ...GET, home: one.home }))).reply).toEqual({ ok: false, fault });
  });

  test('finds the operation gone if its home has ended: a check begins it anew', async () => {
    await one.ask(CHECK);
    cluster.retire('one');
    const again = await settled(two.ask({ ...CHECK, home: one.home }));
    expect(again).toMatchObject({ reply: { ok: true, value: { decision: 'allow' } }, elsewhere: undefined });
    expect((await settled(three.ask({ ...COMPLETE, home: one.home }))).reply).toMatchObject({
      ok: true,
      value: { home: two.home },
    });
    expect((await settled(three.ask({ ...GET, home: one.home }))).reply).toMatchObject({
      ok: false,
      fault: { kind: 'not_found' },
    });
  });

  test('is refused here if its caller is unknown, without asking others', async () => {
    const stranger = { credential: 'unknown' as SecretDigest };
    const refused = await settled(two.ask({ ...CHECK, ...stranger, home: one.home }));
    expect(refused.reply).toMatchObject({ ok: true, value: { decision: 'deny', cause: 'credential' } });
    expect((await settled(two.ask({ ...COMPLETE, ...stranger }))).reply).toMatchObject({ ok: false });
    expect(cluster.waiting).toEqual([]);
    expect(one.decided).toEqual([]);
  });

  test('reaches every gateway that has the operation if an operator sends it', async () => {
    await one.ask(CHECK);
    await two.ask(CHECK);
    expect((await settled(three.ask(PAUSE))).reply).toMatchObject({ ok: true, value: { state: 'paused' } });
    const found = (await settled(three.ask(GET))).reply;
    expect(found).toMatchObject({
      ok: true,
      value: { state: 'paused', home: one.home, others: [{ state: 'paused', home: two.home }] },
    });
    expect((await settled(three.ask({ ...PAUSE, trigger: 'resume', home: two.home }))).reply).toMatchObject({
      ok: true,
      value: { state: 'running', home: two.home },
    });
    expect((await settled(one.ask(GET))).reply).toMatchObject({
      value: { state: 'paused', others: [{ state: 'running' }] },
    });
  });

  test('must name the org if two have the operation and the operator sees all', async () => {
    const other = { orgId: 'globex', teamId: 'search', agentId: 'crawler' };
    const token = 'other' as SecretDigest;
    for (const { governor } of [one, two])
      governor.restoreAgent({ identity: other, credential: token, registeredAtMs: 0, parent: undefined });
    await one.ask(CHECK);
    await two.ask({ ...CHECK, agent: other, credential: token });
    const ambiguous = { ok: false, fault: { kind: 'ambiguous', orgIds: ['acme', 'globex'] } };
    expect((await settled(one.ask(GET))).reply).toMatchObject(ambiguous);
    expect((await settled(one.ask(PAUSE))).reply).toMatchObject(ambiguous);
    expect((await settled(one.ask({ ...PAUSE, orgId: 'globex' }))).reply).toMatchObject({
      ok: true,
      value: { agent: other, state: 'paused' },
    });
    const bound = { ...PRINCIPAL, orgId: 'acme' };
    expect((await settled(two.ask({ ...GET, principal: bound }))).reply).toMatchObject({ value: { agent: AGENT } });
    expect((await settled(two.ask({ ...GET, principal: bound, orgId: 'globex' }))).reply).toMatchObject({
      fault: { kind: 'org_forbidden' },
    });
  });

  test('names the gateways that may not act by it to the operator', async () => {
    await one.ask(CHECK);
    cluster.suspect('three');
    three.routing.divert = () => false;
    const asked = one.ask({ ...PAUSE, orgId: 'acme' });
    for (const sent of cluster.take()) if (sent.to === 'all') cluster.deliver({ ...sent, to: two.home as never });
    await vi.advanceTimersByTimeAsync(2_500);
    expect(await asked).toMatchObject({ reply: { ok: true, unconfirmed: ['two', 'three'] } });
    // It may have a part of the operation; the other one has been away for too long.
    expect(one.left).toEqual([two.home]);
  });

  describe('of an operator, while another gateway is silent,', () => {
    /** The third gateway neither gets nor sends anything. */
    const exceptThree = async (): Promise<void> => {
      for (let round = 0; round < 6; round += 1) {
        for (const { to, ...sent } of cluster.take())
          for (const at of [one, two]) if (to === 'all' || to === at.run) cluster.deliver({ ...sent, to: at.run });
        await new Promise((resolve) => setImmediate(resolve));
      }
    };

    test.each([
      ['its org', { orgId: 'acme' }],
      ['an operator of one', { principal: { ...PRINCIPAL, orgId: 'acme' } }],
    ])('is carried out by each home at once, once, if it names %s', async (_, naming) => {
      await one.ask(CHECK);
      await two.ask(CHECK);
      const asked = two.ask({ ...PAUSE, ...naming });
      await exceptThree();
      const ordered = [one, two].map(({ decided }) => decided.filter((type) => type === 'control-op').length);
      expect([ordered, two.left]).toEqual([[1, 1], []]);
      await vi.advanceTimersByTimeAsync(250);
      expect(await asked).toMatchObject({ reply: { ok: true, value: { state: 'paused' }, unconfirmed: ['three'] } });
      expect(two.left).toEqual([three.home]);
      expect([one, two].map(({ decided }) => decided.filter((type) => type === 'control-op').length)).toEqual([1, 1]);
    });

    test('waits for it if it does not say which org, as another may have it', async () => {
      await one.ask(CHECK);
      const asked = two.ask(PAUSE);
      await exceptThree();
      expect(one.decided).toEqual(['check', 'get-op']);
      await vi.advanceTimersByTimeAsync(250);
      await exceptThree();
      expect(await asked).toMatchObject({ reply: { ok: true, value: { state: 'paused' }, unconfirmed: ['three'] } });
    });
  });

  test('that was carried out here is left for all others if they cannot be asked', async () => {
    await one.ask(CHECK);
    const overloaded = { ok: false, fault: { kind: 'overloaded', retryAfterSecs: 1, what: 'questions' } } as const;
    vi.spyOn(ClusterPeers.prototype, 'askAll').mockResolvedValueOnce(overloaded).mockResolvedValueOnce(overloaded);
    onTestFinished(() => void vi.restoreAllMocks());
    expect((await one.ask(PAUSE)).reply).toEqual(overloaded);
    expect((await one.ask({ ...PAUSE, orgId: 'acme' })).reply).toMatchObject({
      ok: true,
      value: { state: 'paused' },
      unconfirmed: ['two', 'three'],
    });
    expect(one.left).toEqual([two.home, three.home]);
  });

  test.each(['named', 'looked for'])(
    'of an operator waits a quarter of a second for a home that is %s',
    async (how) => {
      await one.ask(CHECK);
      const asked = two.ask({ ...PAUSE, orgId: 'acme', ...(how === 'named' && { home: one.home }) });
      await new Promise((resolve) => setImmediate(resolve));
      cluster.take();
      await vi.advanceTimersByTimeAsync(250);
      // The order left for it is the business of the log.
      expect((await asked).reply).toMatchObject({ fault: { kind: 'unreachable_gateway' } });
      expect(two.absent).toEqual([one.home]);
    },
  );

  test('beyond what all can be asked is refused, once with a warning', async () => {
    const asked = Array.from({ length: 2_001 }, () => one.ask(USAGE));
    expect((await asked[2_000])?.reply).toMatchObject({ ok: false, fault: { kind: 'overloaded' } });
    expect(one.warnings.length).toBe(1);
  });

  test('for a page goes to the gateway that had the one before, one after the other', async () => {
    const list = { type: 'list-ops', principal: PRINCIPAL, orgId: undefined, perPage: 2 } as const;
    await two.ask(CHECK);
    await three.ask(CHECK);
    const first = (await settled(one.ask({ ...list, cursor: undefined }))).reply;
    expect(first).toMatchObject({
      ok: true,
      value: { incomplete: [], items: [{ home: three.home }, { home: two.home }] },
    });
    const alone = (await settled(one.ask({ ...list, perPage: 1, cursor: undefined }))).reply;
    expect(alone).toMatchObject({ value: { items: [{ home: three.home }], next: `${two.home}.` } });
    const second = await settled(three.ask({ ...list, perPage: 1, cursor: `${two.home}.` }));
    expect(second.reply).toMatchObject({ value: { items: [{ home: two.home }], next: undefined } });
    const without = await lost(one.ask({ ...list, cursor: undefined }));
    expect(without.reply).toMatchObject({ value: { items: [], incomplete: ['three', 'two'] } });
    expect((await settled(one.ask({ ...list, cursor: 'nonsense' }))).reply).toMatchObject({
      fault: { kind: 'invalid_argument', field: 'cursor' },
    });
  });
});
