/** Halts of other gateways, as this gateway's governor follows them. */
import { describe, expect, test } from 'vitest';
import { fail } from '../../src/core/base/result.ts';
import type { Command, CommandOf, CommandType, Replies } from '../../src/core/commands.ts';
import type { Governor } from '../../src/core/governor.ts';
import type { Halt } from '../../src/core/halts/halt.ts';
import type { Outcome } from '../../src/core/outcome.ts';
import { HaltKeeper, type HaltSharing } from '../../src/use-cases/halts.ts';
import { ADMIN, CRAWLER, checkOf, openGovernor, opId, SIBLING } from '../support/governor.ts';

const NOW_MS = Date.parse('2026-11-25T12:00:00Z');
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
    unconfirmed: undefined as readonly string[] | undefined,
    saved: [] as { readonly id: string; readonly row: unknown }[],
    events: [] as string[],
    ask<T extends CommandType>(command: CommandOf<T> & { readonly type: T }): Promise<Replies[T]> {
      if (commands.isUnrecorded && !command.type.startsWith('adopt')) return Promise.resolve(UNRECORDED as never);
      const { reply, effects }: Outcome = applied(governor, command as never, commands.nowMs);
      for (const effect of effects) {
        if (effect.kind === 'state-saved') commands.saved.push(effect);
        if (effect.kind === 'audit') commands.events.push(effect.draft.eventType);
      }
      const { unconfirmed } = commands;
      return Promise.resolve((unconfirmed ? { ...reply, unconfirmed } : reply) as never);
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
    const { keeper, commands } = openKeeper({
      opsElsewhere: async (_, without) => (waitedFor.push(without), 40),
    });
    const { scope, mode, actions, reason } = HALT;
    commands.unconfirmed = ['three'];
    const made = await keeper.create(ADMIN, { scope, mode, actions, reason, expiresAtMs: undefined });
    expect(made).toMatchObject({ ok: true, value: { opsAffected: 42 }, unconfirmed: ['three'] });
    expect(waitedFor).toEqual([['three']]);
  });

  test('expire once', async () => {
    const { governor, keeper, commands, errors } = openKeeper();
    governor.restoreHalt({ ...HALT, expiresAtMs: NOW_MS + 1_000 });
    commands.nowMs = NOW_MS + 900;
    const release = () => keeper.releaseExpired(governor.halts.expiredAt(commands.nowMs));
    await release();
    expect([governor.halts.activeCount, commands.events]).toEqual([1, []]);
    commands.nowMs += 100;
    await Promise.all([release(), release()]);
    expect([governor.halts.activeCount, commands.events, errors]).toEqual([0, ['HaltReleased'], []]);
  });
});
