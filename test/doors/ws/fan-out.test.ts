import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { OpId } from '../../../src/core/base/ids.ts';
import type { Page } from '../../../src/core/base/page.ts';
import { fail, ok } from '../../../src/core/base/result.ts';
import type { Principal } from '../../../src/core/identity/roles.ts';
import type { OpState } from '../../../src/core/ops/op-state.ts';
import type { OpView } from '../../../src/core/ops/op-view.ts';
import type { StreamSocket } from '../../../src/doors/engine/engine.ts';
import { FanOut, type FanOutOptions } from '../../../src/doors/ws/fan-out.ts';
import { CLOSE, type Reader } from '../../../src/doors/ws/reader.ts';
import { EVENT_KINDS, type EventKind, type GatewayEvent } from '../../../src/ports/events.ts';
import { eventually } from '../../support/eventually.ts';
import { UNCHECKED } from '../../support/ops.ts';

const ANYBODY: Principal = { subject: 'key:k1', scopes: ['admin'], orgId: null };

type Board = {
  readonly reader: Reader;
  readonly frames: any[];
  closed: number | undefined;
  /** Takes nothing while true. */
  isStuck: boolean;
  unsent: number;
  /** How often it was sent something, each time in one packet, and how long each time takes. */
  packets: number;
  packetMs: number;
  drain(): void;
};

const fanOuts: FanOut[] = [];
describe('fan out', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date', 'performance'] });
  });
  afterEach(() => {
    for (const fanOut of fanOuts.splice(0)) fanOut.closeAll({ code: 1001, reason: 'the gateway is shutting down' });
    vi.useRealTimers();
  });

  function scene(options: Partial<FanOutOptions> = {}) {
    const interests: ('all' | readonly string[])[] = [];
    const asked: { request: Parameters<FanOutOptions['listOps']>[0]; answer: (page: Page<OpView>) => void }[] = [];
    const fanOut = new FanOut({
      maxReaders: 10_000,
      onInterest: (interest) => interests.push(interest),
      listOps: (request) => new Promise((resolve) => asked.push({ request, answer: (page) => resolve(ok(page)) })),
      onError: (error) => {
        throw error;
      },
      nowMs: () => Date.now(),
      name: 'test',
      most: { ofChannel: 5_000, ofThread: 20_000 },
      ...options,
    });
    fanOuts.push(fanOut);
    const join = ({
      orgId = null,
      kinds = EVENT_KINDS,
      principal = ANYBODY,
      wantsSnapshot = false,
      lineage = false,
      expiresAtMs = Infinity,
    }: {
      orgId?: string | null;
      kinds?: readonly EventKind[];
      principal?: Principal;
      wantsSnapshot?: boolean;
      lineage?: boolean;
      expiresAtMs?: number;
    } = {}): Board => {
      const seat = fanOut.reserve({
        principal,
        expiresAtMs,
        interest: { orgId, kinds: new Set(kinds), lineage },
        wantsSnapshot,
      });
      if (!seat.ok) throw new Error(seat.fault.kind);
      const board: Board = {
        reader: seat.value,
        frames: [],
        closed: undefined,
        isStuck: false,
        unsent: 0,
        packets: 0,
        packetMs: 0,
        drain: () => {
          board.isStuck = false;
          board.unsent = 0;
          fanOut.drained(board.reader);
        },
      };
      const sink: StreamSocket = {
        send: (frame) => {
          board.frames.push(JSON.parse(frame.toString()));
          if (board.isStuck) board.unsent += frame.length;
          return true;
        },
        together: (write) => {
          board.packets += 1;
          write();
          vi.advanceTimersByTime(board.packetMs);
        },
        unsentBytes: () => board.unsent,
        end: (code) => {
          board.closed = code;
          fanOut.leave(board.reader);
        },
      };
      fanOut.open(seat.value, sink);
      return board;
    };
    return { fanOut, interests, asked, join };
  }

  let lastId = 0;
  const change = (opId: string, state: OpState, orgId: string | null = 'acme'): GatewayEvent => ({
    id: (lastId += 1),
    kind: 'ops_change',
    orgId,
    agentId: 'crawler',
    atMs: 1_000,
    payload: { ...UNCHECKED, opId: opId as OpId, state, registeredAtMs: 400, updatedAtMs: 1_000, teamId: 'search' },
  });
  const other = (kind: Exclude<EventKind, 'ops_change'>, orgId: string | null = 'acme'): GatewayEvent => ({
    id: (lastId += 1),
    kind,
    orgId,
    agentId: null,
    atMs: 1_000,
    payload: {},
  });

  const wordsOf = (frames: readonly any[]) =>
    frames.map(({ event_type, payload }) =>
      event_type === 'ops_change'
        ? `${payload.op_id} ${payload.state}`
        : event_type === 'lagged'
          ? `lagged ${payload.dropped}`
          : event_type,
    );
  const settled = async (board: Board, count: number) => {
    await eventually(() => expect(board.frames.length).toBeGreaterThanOrEqual(count));
    return wordsOf(board.frames);
  };
  const turn = () => new Promise((resolve) => setImmediate(resolve));

  test('a slice of time ends with the reader that uses it up; then requests get theirs', async () => {
    const { fanOut, join } = scene();
    const boards = Array.from({ length: 5 }, () => Object.assign(join(), { packetMs: 1 }));
    fanOut.publish([change('t:1', 'running')]);
    const served: number[] = [];
    for (let nth = 0; nth < 6; nth += 1) {
      await turn();
      served.push(boards.filter(({ frames }) => frames.length === 1).length);
    }
    expect(served).toEqual([1, 2, 3, 4, 5, 5]);
  });

  test('readers whose turns take long get what gathers meanwhile in one packet', async () => {
    const { fanOut, join } = scene();
    const boards = Array.from({ length: 5 }, () => Object.assign(join(), { packetMs: 1 }));
    const before = boards.map(({ packets }) => packets);
    for (let nth = 0; nth < 40; nth += 1) {
      fanOut.publish([change(`t:${nth}`, 'running')]);
      await turn();
    }
    for (const board of boards) await settled(board, 40);
    const expected = Array.from({ length: 40 }, (_, nth) => `t:${nth} running`);
    for (const [at, board] of boards.entries()) {
      expect(wordsOf(board.frames)).toEqual(expected);
      expect(board.packets - before[at]!).toBeLessThan(20);
    }
  });

  test('a frame has exactly the specified fields', async () => {
    const { fanOut, join } = scene();
    const board = join();
    fanOut.publish([change('t:"1"', 'running', null)]);
    await settled(board, 1);
    expect(board.frames).toEqual([
      {
        id: String(lastId),
        event_type: 'ops_change',
        org_id: null,
        agent_id: 'crawler',
        timestamp: '1970-01-01T00:00:01.000Z',
        payload: { op_id: 't:"1"', state: 'running', updated_at: '1970-01-01T00:00:01.000Z' },
      },
    ]);
  });

  test('team and registration time go only to the readers that requested them', async () => {
    const { fanOut, join } = scene();
    const [strict, full, second] = [
      join({ orgId: 'acme' }),
      join({ orgId: 'acme', lineage: true }),
      join({ lineage: true }),
    ];
    fanOut.publish([change('t:1', 'running'), other('violation')]);
    for (const board of [strict, full, second]) await settled(board, 2);
    const head = {
      id: String(lastId - 1),
      event_type: 'ops_change',
      org_id: 'acme',
      agent_id: 'crawler',
      timestamp: '1970-01-01T00:00:01.000Z',
    };
    const violation = {
      id: String(lastId),
      event_type: 'violation',
      org_id: 'acme',
      agent_id: null,
      timestamp: '1970-01-01T00:00:01.000Z',
      payload: {},
    };
    expect(strict.frames).toEqual([
      { ...head, payload: { op_id: 't:1', state: 'running', updated_at: '1970-01-01T00:00:01.000Z' } },
      violation,
    ]);
    expect(full.frames).toEqual([
      {
        ...head,
        payload: {
          op_id: 't:1',
          state: 'running',
          updated_at: '1970-01-01T00:00:01.000Z',
          registered_at: '1970-01-01T00:00:00.400Z',
          team_id: 'search',
          action: null,
          resource: null,
          policy: null,
          rule_id: null,
          reason: null,
          estimated_cost_usd: 0,
          spent_usd: 0,
          approval_id: null,
          error: null,
          ended: null,
        },
      },
      violation,
    ]);
    expect(second.frames).toEqual(full.frames);
    await eventually(() => expect(fanOut.held).toBe(0));
  });

  test('slow readers get the latest state of each operation, with the team or without', async () => {
    const { fanOut, join } = scene();
    const boards = [join(), join({ lineage: true })];
    for (const board of boards) board.isStuck = true;
    fanOut.publish(Array.from({ length: 300 }, (_, at) => change(`fill:${at}`, 'pending')));
    for (const board of boards) await settled(board, 50);
    fanOut.publish([change('t:1', 'pending'), change('t:1', 'running'), change('t:1', 'paused')]);
    for (const board of boards) {
      board.drain();
      expect((await settled(board, 301)).slice(-2)).toEqual(['fill:299 pending', 't:1 paused']);
    }
  });

  test('a reader that keeps up sees every state, also in quick succession', async () => {
    const { fanOut, join } = scene();
    const board = join();
    fanOut.publish([change('t:1', 'pending'), change('t:1', 'running'), change('t:1', 'paused')]);
    expect(await settled(board, 3)).toEqual(['t:1 pending', 't:1 running', 't:1 paused']);
  });

  test('a reader sees what it requested and may see', async () => {
    const { fanOut, join } = scene();
    const [all, acme, violations] = [join(), join({ orgId: 'acme' }), join({ orgId: 'acme', kinds: ['violation'] })];
    fanOut.publish([
      change('t:1', 'pending', 'globex'),
      change('t:2', 'pending', null),
      other('violation'),
      other('account', null),
      change('t:3', 'pending'),
    ]);
    expect(await settled(all, 5)).toEqual(['t:1 pending', 't:2 pending', 'violation', 'account', 't:3 pending']);
    expect(wordsOf(acme.frames)).toEqual(['violation', 't:3 pending']);
    expect(wordsOf(violations.frames)).toEqual(['violation']);
  });

  test("a slow reader gets each operation's latest state and all other events", async () => {
    const { fanOut, join } = scene();
    const [slow, fast] = [join(), join()];
    slow.isStuck = true;
    const filler = Array.from({ length: 300 }, (_, at) => change(`fill:${at}`, 'pending'));
    fanOut.publish(filler);
    await settled(fast, 300);
    const before = slow.frames.length;
    expect(before).toBeLessThan(300);
    fanOut.publish([
      change('t:1', 'pending'),
      change('t:1', 'running'),
      other('violation'),
      change('t:2', 'pending'),
      change('t:1', 'paused'),
      other('agent'),
    ]);
    await settled(fast, 306);
    expect(slow.frames).toHaveLength(before);
    slow.drain();
    expect((await settled(slow, 304)).slice(-4)).toEqual(['violation', 't:2 pending', 't:1 paused', 'agent']);
    expect(wordsOf(fast.frames).slice(-6)).toEqual([
      't:1 pending',
      't:1 running',
      'violation',
      't:2 pending',
      't:1 paused',
      'agent',
    ]);
    await vi.advanceTimersByTimeAsync(1_000);
    await eventually(() => expect(fanOut.held).toBe(0));
    expect(fanOut.dropped).toBe(0);
    fanOut.publish([change('t:1', 'running'), change('t:1', 'completing')]);
    expect((await settled(slow, 306)).slice(-2)).toEqual(['t:1 running', 't:1 completing']);
  });

  test('bounds the backlog of a slow reader, and counts the gap in place', async () => {
    const { fanOut, join } = scene();
    const slow = join();
    slow.isStuck = true;
    for (let at = 0; at < 60; at += 1)
      fanOut.publish(Array.from({ length: 100 }, (_, of) => change(`op:${at * 100 + of}`, 'running')));
    await turn();
    expect(fanOut.held).toBeLessThanOrEqual(5_000);
    slow.drain();
    await eventually(() => expect(slow.frames.at(-1).payload.op_id).toBe('op:5999'));
    const words = wordsOf(slow.frames);
    const dropped = Number(/^lagged (\d+)$/.exec(words.find((word) => word.startsWith('lagged')) ?? '')?.[1]);
    expect(words.filter((word) => word.startsWith('lagged'))).toHaveLength(1);
    // Nothing is missing without being counted.
    expect(words.length - 1 + dropped).toBe(6_000);
    expect(fanOut.dropped).toBe(dropped);
    expect(slow.frames.find(({ event_type }) => event_type === 'lagged')).toEqual({
      event_type: 'lagged',
      payload: { dropped },
    });
  });

  test('two slow readers of the same events each learn what they missed', async () => {
    const { fanOut, join } = scene();
    const publish = (from: number, to: number): void =>
      fanOut.publish(Array.from({ length: to - from }, (_, at) => change(`op:${from + at}`, 'running')));
    const never = join();
    never.isStuck = true;
    const atFirst = join();
    publish(0, 2_000);
    await settled(atFirst, 2_000);
    atFirst.isStuck = true;
    publish(2_000, 6_000);
    await turn();
    const wordsOf = [];
    for (const board of [never, atFirst]) {
      board.drain();
      await eventually(() => expect(board.frames.at(-1).payload.op_id).toBe('op:5999'));
      const lagged = board.frames.filter(({ event_type }) => event_type === 'lagged');
      wordsOf.push({
        lagged: lagged.length,
        events:
          board.frames.length -
          lagged.length +
          lagged.reduce((sum: number, { payload }) => sum + Number(payload.dropped), 0),
      });
    }
    expect(wordsOf).toEqual([
      { lagged: 1, events: 6_000 },
      { lagged: 0, events: 6_000 },
    ]);
  });

  test('operations that keep changing cost a slow reader no event', async () => {
    const { fanOut, join } = scene();
    const slow = join();
    slow.isStuck = true;
    for (let round = 0; round < 100; round += 1)
      fanOut.publish(
        Array.from({ length: 100 }, (_, of) => change(`op:${of}`, round % 2 === 0 ? 'paused' : 'running')),
      );
    fanOut.publish([other('violation')]);
    await turn();
    slow.drain();
    await eventually(() => expect(slow.frames.at(-1).event_type).toBe('violation'));
    expect(fanOut.dropped).toBe(0);
    const last = new Map(slow.frames.map(({ payload }) => [payload.op_id, payload.state]));
    expect([...last.values()].filter((state) => state === 'paused')).toHaveLength(0);
  });

  test("slow readers of very many orgs stay within the thread's limit", async () => {
    const { fanOut, join } = scene();
    const boards = Array.from({ length: 100 }, (_, at) => join({ orgId: `org-${at}` }));
    for (const board of boards) board.isStuck = true;
    for (let round = 0; round < 220; round += 1)
      fanOut.publish(boards.map((_, at) => change(`op:${at}-${round}`, 'running', `org-${at}`)));
    await turn();
    expect(fanOut.held).toBeLessThanOrEqual(20_000);
  });

  test('a reader that takes nothing for half a minute is disconnected; a slow one is not', async () => {
    const { fanOut, join } = scene();
    const [dead, slow] = [join(), join()];
    for (const board of [dead, slow]) board.isStuck = true;
    for (let seconds = 0; seconds < 32; seconds += 1) {
      fanOut.publish(Array.from({ length: 500 }, (_, of) => change(`op:${seconds}-${of}`, 'running')));
      await turn();
      await vi.advanceTimersByTimeAsync(1_000);
      if (seconds % 10 === 9) {
        slow.drain();
        slow.isStuck = true;
      }
    }
    expect({ deadClosed: dead.closed, slowClosed: slow.closed }).toEqual({ deadClosed: 4008, slowClosed: undefined });
    expect(fanOut.size).toBe(1);
  });

  test('a stream ends when its credential does, and when it is revoked', async () => {
    const { fanOut, join } = scene();
    const [expiring, revoked, kept] = [
      join({ expiresAtMs: Date.now() + 5_000 }),
      join({ principal: { ...ANYBODY, subject: 'key:k2' } }),
      join(),
    ];
    fanOut.closeSubject('key:k2');
    expect({ expiringClosed: expiring.closed, revokedClosed: revoked.closed, keptClosed: kept.closed }).toEqual({
      expiringClosed: undefined,
      revokedClosed: 4401,
      keptClosed: undefined,
    });
    await vi.advanceTimersByTimeAsync(5_000);
    expect({ expiringClosed: expiring.closed, keptClosed: kept.closed }).toEqual({
      expiringClosed: 4401,
      keptClosed: undefined,
    });
  });

  test('when the gateway stops, every reader is told', () => {
    const { fanOut, join } = scene();
    const readers = [join(), join({ orgId: 'acme' }), join({ kinds: ['violation'] })];
    fanOut.closeAll(CLOSE.goingAway);
    expect({ readers: readers.map(({ closed }) => closed), fanOutCount: fanOut.size }).toEqual({
      readers: [1001, 1001, 1001],
      fanOutCount: 0,
    });
  });

  test('a reader that keeps sending is disconnected, an occasional message is fine', async () => {
    const { fanOut, join } = scene();
    const [talker, quiet] = [join(), join()];
    for (let words = 0; words < 1_000; words += 1) if (talker.closed === undefined) fanOut.heard(talker.reader);
    for (let seconds = 0; seconds < 120; seconds += 1) {
      fanOut.heard(quiet.reader);
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect({ talkerClosed: talker.closed, quietClosed: quiet.closed }).toEqual({
      talkerClosed: 1008,
      quietClosed: undefined,
    });
  });

  test('the main thread learns which orgs have readers, and which have none any more', async () => {
    const { fanOut, interests, join } = scene();
    const first = join({ orgId: 'acme' });
    join({ orgId: 'acme', kinds: ['violation'] });
    const globex = join({ orgId: 'globex' });
    const all = join();
    expect(interests).toEqual([['acme'], ['acme', 'globex'], 'all']);
    for (const { reader } of [first, globex, all]) fanOut.leave(reader);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(interests.slice(3)).toEqual([['acme']]);
  });

  test('refuses one reader too many', () => {
    const { fanOut, join } = scene({ maxReaders: 1 });
    join();
    expect(
      fanOut.reserve({
        principal: ANYBODY,
        expiresAtMs: Infinity,
        interest: { orgId: null, kinds: new Set(EVENT_KINDS), lineage: false },
        wantsSnapshot: false,
      }),
    ).toEqual(fail({ kind: 'overloaded', retryAfterSecs: 5, what: 'the number of streams' }));
  });

  test('an org that opens ever more streams gets half of them', () => {
    const { fanOut, join } = scene({ maxReaders: 4 });
    const of = (orgId: string) => ({ orgId, principal: { ...ANYBODY, orgId } });
    const [first] = [join(of('acme')), join(of('acme'))];
    expect(() => join(of('acme'))).toThrow('overloaded');
    join(of('globex'));
    fanOut.leave(first!.reader);
    join(of('acme'));
    join();
    expect(() => join(of('globex'))).toThrow('overloaded');
  });

  const row = (opId: string, state: OpState): OpView => ({
    ...UNCHECKED,
    opId: opId as OpId,
    state,
    registeredAtMs: 500,
    updatedAtMs: 900,
    agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
    acknowledgedAtMs: undefined,
  });

  test('a snapshot page precedes the events after it, and never replaces a newer one', async () => {
    const { fanOut, asked, join } = scene();
    const board = join({ wantsSnapshot: true });
    expect(asked[0]!.request).toEqual({ principal: ANYBODY, orgId: undefined, perPage: 500, cursor: undefined });
    fanOut.publish([change('t:1', 'paused')]); // while the page is on its way
    await turn();
    expect(board.frames).toEqual([]);
    asked[0]!.answer({ items: [row('t:1', 'running'), row('t:2', 'running')], next: '2' });
    expect(await settled(board, 2)).toEqual(['t:2 running', 't:1 paused']);
    expect(board.frames[0]).toEqual({
      id: 'test-1',
      event_type: 'ops_change',
      org_id: 'acme',
      agent_id: 'crawler',
      timestamp: '1970-01-01T00:00:00.900Z',
      payload: { op_id: 't:2', state: 'running', updated_at: '1970-01-01T00:00:00.900Z' },
    });
    await eventually(() => expect(asked).toHaveLength(2));
    expect(asked[1]!.request.cursor).toBe('2');
    fanOut.publish([change('t:4', 'pending')]);
    asked[1]!.answer({ items: [row('t:3', 'pending')], next: undefined });
    expect((await settled(board, 4)).slice(2)).toEqual(['t:3 pending', 't:4 pending']);
    await turn();
    expect(asked).toHaveLength(2);
  });

  test('a snapshot gives what an operation is about to readers that requested it', async () => {
    const { asked, join } = scene();
    const board = join({ wantsSnapshot: true, lineage: true });
    const failed = {
      ...row('t:1', 'completing'),
      action: 'tool.call',
      spentMicroUsd: 50_000,
      ended: 'failed',
    } as const;
    asked[0]!.answer({ items: [failed], next: undefined });
    await settled(board, 1);
    expect(board.frames).toEqual([
      {
        id: 'test-1',
        event_type: 'ops_change',
        org_id: 'acme',
        agent_id: 'crawler',
        timestamp: '1970-01-01T00:00:00.900Z',
        payload: {
          op_id: 't:1',
          state: 'completing',
          updated_at: '1970-01-01T00:00:00.900Z',
          registered_at: '1970-01-01T00:00:00.500Z',
          team_id: 'search',
          action: 'tool.call',
          resource: null,
          policy: null,
          rule_id: null,
          reason: null,
          estimated_cost_usd: 0,
          spent_usd: 0.05,
          approval_id: null,
          error: null,
          ended: 'failed',
        },
      },
    ]);
  });

  test('pages are read one at a time, however many readers want one', async () => {
    const { asked, join } = scene();
    const boards = Array.from({ length: 3 }, () => join({ wantsSnapshot: true }));
    for (let page = 0; page < 3; page += 1) {
      await eventually(() => expect(asked).toHaveLength(page + 1));
      asked[page]!.answer({ items: [row('t:1', 'running')], next: undefined });
    }
    for (const board of boards) expect(await settled(board, 1)).toEqual(['t:1 running']);
  });

  test('a reader whose snapshot cannot be read is asked to retry', async () => {
    const { join } = scene({
      listOps: async () => fail({ kind: 'overloaded', retryAfterSecs: 1, what: 'the gateway' }),
    });
    const board = join({ wantsSnapshot: true });
    await eventually(() => expect(board.closed).toBe(1013));
  });

  test('a snapshot of kinds without operations is empty', () => {
    const { asked, join } = scene();
    join({ wantsSnapshot: true, kinds: ['violation'] });
    expect(asked).toEqual([]);
  });
});
