/** Halts and approvals of other gateways, as this gateway's governor follows them. */
import { describe, expect, test } from 'vitest';
import { SharedApprovals } from '../../src/cluster/shared-approvals.ts';
import { StateFeed } from '../../src/cluster/state-feed.ts';
import type { Approval } from '../../src/core/approvals/approval.ts';
import { fail, ok } from '../../src/core/base/result.ts';
import type { Command, CommandOf, CommandType, Replies } from '../../src/core/commands.ts';
import type { Governor } from '../../src/core/governor.ts';
import type { Halt } from '../../src/core/halts/halt.ts';
import type { Outcome } from '../../src/core/outcome.ts';
import type { Member, RunId, SharedStates, StateRow } from '../../src/ports/cluster.ts';
import { HaltKeeper, type HaltSharing } from '../../src/use-cases/halts.ts';
import { ADMIN, CRAWLER, checkOf, openGovernor, opId, SIBLING } from '../support/governor.ts';

const NOW_MS = Date.parse('2026-11-25T12:00:00Z');
const ASKING = {
  decide: () =>
    ({ kind: 'require_approval', reason: 'asks', policy: 'test', ruleId: 'ask', cause: undefined }) as const,
};
const UNRECORDED = fail({ kind: 'audit_unavailable' });
const HALT: Halt = {
  id: 'h',
  scope: 'agent:acme/search/crawler',
  mode: 'terminate',
  actions: ['*'],
  reason: 'an incident',
  createdBy: 'key:admin',
  createdAtMs: NOW_MS,
  expiresAtMs: undefined,
  released: undefined,
};

const applied = (governor: Governor, command: Command, nowMs: number): Outcome =>
  (governor as unknown as { apply(command: Command, nowMs: number): Outcome }).apply(command, nowMs);

/** Applies commands as the main thread does; while `isUnrecorded`, what would change something is refused. */
function commandsOf(governor: Governor) {
  const commands = {
    isUnrecorded: false,
    nowMs: NOW_MS,
    saved: [] as { readonly id: string; readonly row: unknown }[],
    events: [] as string[],
    ask<T extends CommandType>(command: CommandOf<T> & { readonly type: T }): Promise<Replies[T]> {
      if (commands.isUnrecorded && !command.type.startsWith('adopt')) return Promise.resolve(UNRECORDED as never);
      const { reply, effects }: Outcome = applied(governor, command as never, commands.nowMs);
      for (const effect of effects) {
        if (effect.kind === 'state-saved') commands.saved.push(effect);
        if (effect.kind === 'audit') commands.events.push(effect.draft.eventType);
      }
      return Promise.resolve(reply as never);
    },
  };
  return commands;
}

const stateOf = (governor: Governor, op: string): string => {
  const slot = governor.ops.find(opId(op), 'acme');
  return slot === undefined ? 'absent' : governor.ops.stateOf(slot);
};

describe('halts of other gateways', () => {
  function openKeeper(shared?: Partial<HaltSharing>) {
    const governor = openGovernor();
    const commands = commandsOf(governor);
    const errors: unknown[] = [];
    let ids = 0;
    const keeper = new HaltKeeper({
      commands,
      newId: () => `h-${(ids += 1)}`,
      breathe: () => Promise.resolve(),
      stopwatch: performance,
      matchOf: () => ({ agents: 0, nearest: undefined }),
      pause: () => {
        commands.isUnrecorded = false; // the disk has room again
        return Promise.resolve();
      },
      onError: (error) => errors.push(error),
      shared: {
        inTurn: (_, apply) => apply(commands.nowMs),
        opsElsewhere: async () => 0,
        changeApprovals: async () => undefined,
        ...shared,
      },
    });
    for (const op of ['t:1', 't:2']) governor.apply<'check'>(checkOf(CRAWLER, op), NOW_MS);
    governor.apply<'check'>(checkOf(SIBLING, 't:3'), NOW_MS);
    return { governor, commands, keeper, errors };
  }

  test('hold at once, and stop what runs here; the count goes to who has asked', async () => {
    const { governor, keeper, commands } = openKeeper();
    keeper.adopt('h', HALT);
    const { reply } = governor.apply<'check'>(checkOf(CRAWLER, 't:4'), NOW_MS);
    expect(reply).toMatchObject({ value: { decision: 'deny', cause: 'halt' } });
    expect(await keeper.affected('h')).toBe(2);
    expect(['t:1', 't:2', 't:3'].map((op) => stateOf(governor, op))).toEqual(['terminated', 'terminated', 'running']);
    // Set by another gateway, which has recorded it.
    expect([commands.saved, commands.events]).toEqual([[], ['OpTerminated', 'OpTerminated']]);
    expect(await keeper.affected('another')).toBe(0);
  });

  test('resume what they had paused, when they are released or never were', async () => {
    for (const after of [{ ...HALT, released: { atMs: NOW_MS, by: 'key:b', reason: 'over' } }, undefined]) {
      const { governor, keeper } = openKeeper();
      keeper.adopt('h', { ...HALT, mode: 'pause' });
      await keeper.affected('h');
      expect(stateOf(governor, 't:1')).toBe('paused');
      keeper.adopt('h', after && { ...after, mode: 'pause' });
      expect(await keeper.affected('h')).toBe(2);
      expect([stateOf(governor, 't:1'), governor.halts.activeCount]).toEqual(['running', 0]);
    }
  });

  test('stop what runs as soon as it can be recorded', async () => {
    const { governor, keeper, commands } = openKeeper();
    commands.isUnrecorded = true;
    keeper.adopt('h', HALT);
    expect(await keeper.affected('h')).toBe(2);
    expect(stateOf(governor, 't:1')).toBe('terminated');
  });

  test('stop what has begun during a release that was not recorded', async () => {
    const { governor, keeper, commands, errors } = openKeeper();
    const { scope, actions, reason } = HALT;
    await keeper.create(ADMIN, { scope, mode: 'pause', actions, reason, expiresAtMs: undefined });
    const ask = commands.ask.bind(commands);
    commands.ask = async (command) => {
      if (command.type !== 'release-halt') return ask(command);
      const before = governor.halts.get('h-1')!;
      await ask(command);
      governor.apply<'check'>(checkOf(CRAWLER, 't:5'), NOW_MS);
      expect(stateOf(governor, 't:5')).toBe('running');
      governor.halts.put(before); // taken back
      commands.isUnrecorded = true;
      return UNRECORDED as never;
    };
    expect(await keeper.release(ADMIN, 'h-1', 'over')).toEqual(UNRECORDED);
    await expect.poll(() => stateOf(governor, 't:5')).toBe('paused');
    expect(errors).toEqual([]);
  });

  test('count what all gateways have stopped, but for those that do not act by it', async () => {
    const waitedFor: (readonly string[])[] = [];
    const { keeper } = openKeeper({
      inTurn: async (_, apply) => ({ ...(await apply(NOW_MS)), unconfirmed: ['three'] }),
      opsElsewhere: async (_, without) => (waitedFor.push(without), 40),
    });
    const { scope, mode, actions, reason } = HALT;
    const made = await keeper.create(ADMIN, { scope, mode, actions, reason, expiresAtMs: undefined });
    expect(made).toMatchObject({ ok: true, value: { opsAffected: 42 }, unconfirmed: ['three'] });
    expect(waitedFor).toEqual([['three']]);
  });

  test('expire by the clock of the database, once', async () => {
    let databaseMs = NOW_MS + 900;
    const { governor, keeper, commands, errors } = openKeeper({ inTurn: (_, apply) => apply(databaseMs) });
    governor.restoreHalt({ ...HALT, expiresAtMs: NOW_MS + 1_000 });
    commands.nowMs = NOW_MS + 5_000; // the clock of this gateway is ahead
    const release = () => keeper.releaseExpired(governor.halts.expiredAt(commands.nowMs));
    await release();
    expect([governor.halts.activeCount, commands.events]).toEqual([1, []]);
    databaseMs += 100;
    await Promise.all([release(), release()]);
    expect([governor.halts.activeCount, commands.events, errors]).toEqual([0, ['HaltReleased'], []]);
  });
});

describe('approvals of other gateways', () => {
  /** A database whose rows are at hand at once. */
  function openShared(others: readonly Pick<Member, 'run' | 'state'>[] = []) {
    const governor = openGovernor({ policies: ASKING });
    const commands = commandsOf(governor);
    const rows = new Map<string, StateRow>();
    const store = {
      find: async (_, id) => ok(rows.get(id)),
      turn: async (_, key, decide) => {
        const writes = decide(
          [...rows.values()].filter((row) => row.key === key),
          commands.nowMs,
        );
        const written = writes.map((each) => ({ ...each, version: (rows.get(each.id)?.version ?? 0) + 1 }));
        for (const row of written) rows.set(row.id, row);
        return ok(written);
      },
      changes: async () => ok({ rows: [...rows.values()], isWhole: false, seen: () => undefined }),
    } as Partial<SharedStates> as SharedStates;
    const feed = new StateFeed(
      {
        kind: 'approvals',
        store,
        bus: { send: () => true } as never,
        barrier: { pass: async () => [] },
        isAwaited: () => true,
        onError: (error) => expect(error).toBe(undefined),
      },
      [],
    );
    const woken: string[] = [];
    const shared = new SharedApprovals({
      feed,
      governor,
      membership: { self: 'b' as RunId, others: () => others as readonly Member[] },
      commands: {
        ask: (command) => {
          const reply = commands.ask(command as never);
          for (const { id, row } of commands.saved.splice(0)) void feed.save(id, row);
          return reply as never;
        },
      },
      onChanged: ({ id, state }) => woken.push(`${id} ${state}`),
      nowMs: () => commands.nowMs,
      onError: (error) => expect(error).toBe(undefined),
    });
    /** As the main thread has a command decided. */
    const decide = (command: Command): Promise<Replies[CommandType]> =>
      new Promise((resolve) => {
        const perform = (isLookedFor: boolean): void => {
          const { reply, turn, effects } = applied(governor, command, commands.nowMs);
          for (const effect of effects) if (effect.kind === 'state-saved') void feed.save(effect.id, effect.row);
          if (turn === undefined || ('unknownId' in turn && isLookedFor)) return resolve(reply);
          shared.take(
            turn,
            () => perform('unknownId' in turn),
            (fault) => resolve(fail(fault)),
          );
        };
        perform(false);
      });
    const check = async (op: string) => {
      const reply = (await decide(checkOf(CRAWLER, op))) as Replies['check'];
      return reply.ok ? reply.value : undefined;
    };
    const changeElsewhere = async (change: (approval: Approval) => Approval): Promise<void> => {
      for (const [id, row] of rows)
        rows.set(id, { ...row, version: row.version + 1, body: change(row.body as Approval) });
      await feed.refresh();
      await Promise.resolve();
    };
    return { governor, commands, rows, feed, shared, decide, check, changeElsewhere, woken };
  }

  test('a check that needs one changes nothing before its turn', () => {
    const { governor } = openShared();
    const outcome = governor.apply<'check'>(checkOf(CRAWLER, 't:1'), NOW_MS);
    expect(outcome).toMatchObject({ turn: { digest: expect.any(String) }, effects: [] });
    expect([governor.ops.size, governor.approvals.size]).toEqual([0, 0]);
  });

  test('end what waits here when they are denied elsewhere, and wake who waits', async () => {
    const { governor, check, changeElsewhere, woken } = openShared();
    const { approvalId } = (await check('t:1'))!;
    await changeElsewhere((approval) => ({
      ...approval,
      state: 'denied',
      decisions: [{ kind: 'deny', by: 'key:b', reason: 'no', atMs: NOW_MS }],
    }));
    expect([stateOf(governor, 't:1'), woken]).toEqual(['terminated', [`${approvalId} denied`]]);
    expect(await check('t:1')).toMatchObject({ decision: 'deny', cause: 'approval' });
  });

  test('are used by the newest state, whatever this gateway has heard', async () => {
    const { rows, check } = openShared();
    await check('t:1');
    const [id, row] = [...rows][0]!;
    const approved = { ...(row.body as Approval), state: 'approved' as const };
    rows.set(id, { ...row, version: 2, body: approved });
    expect(await check('t:2')).toMatchObject({ decision: 'allow', approvalId: id });
    expect(rows.get(id)).toMatchObject({ body: { state: 'used', usedBy: ['t:2'] } });
    expect(await check('t:2')).toMatchObject({ decision: 'allow' }); // it runs under it
    expect(await check('t:3')).toMatchObject({ decision: 'pending' });
    expect(rows.size).toBe(2);
  });

  test('leave an operation to the gateway where it was checked again', async () => {
    const { governor, check, changeElsewhere } = openShared();
    await check('t:1');
    await changeElsewhere((approval) => ({ ...approval, state: 'used', usedBy: [opId('t:1')] }));
    expect(stateOf(governor, 't:1')).toBe('absent');
  });

  test('are looked for where their id is not known here', async () => {
    const [one, two] = [openShared(), openShared()];
    const { approvalId: id = '' } = (await one.check('t:1'))!;
    for (const [key, row] of one.rows) two.rows.set(key, row);
    expect(await two.decide({ type: 'get-approval', principal: ADMIN, id })).toMatchObject({ value: { id } });
    const gone = await two.decide({ type: 'get-approval', principal: ADMIN, id: 'none' });
    expect(gone).toMatchObject({ fault: { kind: 'not_found' } });
  });

  test('are ended by the first gateway, and by another where that one does not', async () => {
    const run = (name: string, state: Member['state']) => [{ run: name as RunId, state }];
    for (const [others, afterMs] of [
      [run('c', 'live'), 0],
      [run('a', 'suspect'), 0],
      [run('a', 'live'), 5_001],
    ] as const) {
      const { commands, check, rows, shared } = openShared(others);
      await check('t:1');
      const { expiresAtMs } = [...rows.values()][0]!.body as Approval;
      const states = [];
      for (const atMs of [expiresAtMs - 1, expiresAtMs + afterMs - 1, expiresAtMs + afterMs]) {
        commands.nowMs = Math.max(commands.nowMs, atMs);
        await shared.tick();
        states.push(([...rows.values()][0]!.body as Approval).state);
      }
      expect(states).toEqual(['pending', 'pending', 'expired']);
    }
  });
});
