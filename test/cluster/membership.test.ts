/** The lease of one gateway, by a database whose answers the tests hold back. */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { ClusterClock } from '../../src/cluster/clock.ts';
import { KeptMembership } from '../../src/cluster/membership.ts';
import type { Member, MemberStore, RunId } from '../../src/ports/cluster.ts';

const memberOf = (name: string): Member => ({
  ...{ run: name as RunId, name, state: 'live', version: '1', protocols: [1, 1], leaseUntilMs: 0, skewMs: 0 },
  ...{
    policyVersion: undefined,
    auditHead: undefined,
    unconfirmed: 0,
    isOnBus: true,
    onOutage: 'serve',
    applied: undefined,
  },
});

function open(more: Partial<MemberStore> = {}) {
  vi.useFakeTimers({ now: 0 });
  onTestFinished(() => void vi.useRealTimers());
  const table = { members: [memberOf('one')] as readonly Member[], beats: 0 };
  const done = { ok: true, value: undefined } as const;
  const store: MemberStore = {
    now: async () => ({ ok: true, value: Date.now() }),
    join: async () => done,
    beat: async () => {
      table.beats += 1;
      const untilMs = Date.now() + 5_000;
      return {
        ok: true,
        value: table.members.map((each) => ({ ...each, leaseUntilMs: each.leaseUntilMs || untilMs })),
      };
    },
    tidy: async () => done,
    noteUnconfirmed: async () => done,
    list: async () => ({ ok: true, value: { members: [], stranded: new Map() } }),
    forget: async () => ({ ok: true, value: { microUsd: 0 } }),
    leave: async () => done,
    ...more,
  };
  const warnings: string[] = [];
  const clock = new ClusterClock();
  /** Each is called when it is over; the first one is at once. */
  const catchUps: (() => void)[] = [];
  const membership = new KeptMembership({
    store,
    joining: { run: 'one' as RunId, name: 'one', version: '1', protocols: [1, 1], onOutage: 'serve' },
    clocks: { steadyMs: () => Date.now(), wallMs: () => Date.now() },
    clock,
    catchUp: async () => {
      await new Promise<void>((resolve) => {
        catchUps.push(resolve);
        if (catchUps.length === 1) resolve();
      });
      return done;
    },
    reportOf: () => ({ policyVersion: '1', auditHead: undefined, isOnBus: true, applied: { seq: 1, mark: 'x' } }),
    onBeat: () => undefined,
    hasCaughtUp: () => true,
    onReplaced: () => undefined,
    log: { info: () => undefined, warn: (message) => void warnings.push(message) },
  });
  onTestFinished(() => membership.stop());
  return { membership, clock, store, table, warnings, catchUps };
}

describe('a member of a cluster', () => {
  test('keeps its lease while tables are tidied, however long that takes', async () => {
    let tidied = 0;
    const { membership, table } = open({
      tidy: () => {
        tidied += 1;
        return new Promise(() => undefined);
      },
    });
    await membership.start();
    await vi.advanceTimersByTimeAsync(60_000);
    expect({ isLeased: membership.isLeased, beats: table.beats, tidied }).toEqual({
      isLeased: true,
      beats: 61,
      tidied: 1,
    });
  });

  test('goes on where tables cannot be tidied, and says so', async () => {
    const { membership, table, warnings } = open({ tidy: () => Promise.reject(new Error('no such function')) });
    await membership.start();
    await vi.advanceTimersByTimeAsync(5_000);
    expect({ beats: table.beats, warnings }).toEqual({
      beats: 6,
      warnings: Array.from({ length: 2 }, () => 'tidying the tables of the cluster failed'),
    });
  });

  test('catches up before it serves after a pause that neither of its clocks has seen', async () => {
    const { membership, table, catchUps } = open();
    const extendedTo = (ms: number): void => {
      table.members = [{ ...memberOf('one'), leaseUntilMs: ms }];
    };
    extendedTo(5_000);
    await membership.start();
    extendedTo(6_000);
    await vi.advanceTimersByTimeAsync(1_000);
    extendedTo(11_000); // the lease has just not ended
    await vi.advanceTimersByTimeAsync(1_000);
    expect({ caughtUp: catchUps.length, isLeased: membership.isLeased }).toEqual({ caughtUp: 1, isLeased: true });
    extendedTo(16_001);
    await vi.advanceTimersByTimeAsync(1_000);
    expect({ caughtUp: catchUps.length, isLeased: membership.isLeased }).toEqual({ caughtUp: 2, isLeased: false });
    catchUps[1]!();
    await vi.advanceTimersByTimeAsync(0);
    expect(membership.isLeased).toBe(true);
  });

  test('knows the time of the database by its beats, wherever its own clock is set', async () => {
    const databaseMs = (): number => performance.now() + 3_000;
    const { membership, clock, warnings } = open({
      beat: async () => ({ ok: true, value: [{ ...memberOf('one'), leaseUntilMs: databaseMs() + 5_000 }] }),
    });
    await membership.start();
    const startMs = performance.now();
    expect([clock.nowMs() - startMs, clock.skewMs]).toEqual([3_000, -3_000]);
    for (const [wallMs, skewMs] of [
      [86_400_000, 86_397_000],
      [-86_400_000, -86_405_000],
    ] as const) {
      vi.setSystemTime(wallMs);
      expect(clock.nowMs()).toBe(databaseMs());
      await vi.advanceTimersByTimeAsync(2_000);
      expect([clock.nowMs(), clock.skewMs]).toEqual([databaseMs(), skewMs]);
    }
    expect(warnings).toEqual(['the clock of this gateway is wrong']);
  });

  test('looks for others anew, though an answer of before is on its way', async () => {
    const { membership, store, table } = open();
    await membership.start();
    let answer: () => void = () => undefined;
    const before = [{ ...memberOf('one'), leaseUntilMs: 6_000 }];
    vi.spyOn(store, 'beat').mockImplementationOnce(async () => {
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return { ok: true, value: before };
    });
    await vi.advanceTimersByTimeAsync(1_000);
    table.members = [memberOf('one'), memberOf('two')];
    const looked = membership.lookAgain().then(() => membership.others().map(({ name }) => name));
    answer();
    expect(await looked).toEqual(['two']);
  });
});
