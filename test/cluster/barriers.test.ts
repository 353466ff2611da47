/** Whom a change waits for, whatever this gateway has heard of the others (docs/cluster.md, What holds everywhere). */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Barriers } from '../../src/cluster/barriers.ts';
import { Replicas } from '../../src/cluster/replicas.ts';
import { FakeCluster, type FakeMember } from '../support/fake-cluster.ts';

describe('a barrier', () => {
  let cluster: FakeCluster;
  let one: FakeMember;
  let two: FakeMember;
  let acted: string[];
  const barriersOf = ({ bus, membership }: FakeMember) => {
    const replicas = new Replicas((error) => {
      throw error;
    });
    replicas.keep('halts', async () => {
      acted.push(membership.name);
      return { ok: true, value: undefined };
    });
    const store = { noteUnconfirmed: async () => ({ ok: true, value: undefined }) as const };
    return new Barriers({ bus, membership, store, replicas, inAllThreads: async () => undefined });
  };
  const looksAndFinds = (fake: FakeMember, known = fake.membership.others()) => {
    fake.see([]);
    vi.spyOn(fake.membership, 'lookAgain').mockImplementation(async () => {
      fake.see(known);
      return true;
    });
  };
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    cluster = new FakeCluster();
    acted = [];
    one = cluster.join('one');
    two = cluster.join('two');
    barriersOf(two);
  });
  afterEach(() => void vi.useRealTimers());

  test('waits for a gateway that has joined and was not heard of yet', async () => {
    const barriers = barriersOf(one);
    looksAndFinds(one);
    const passed = barriers.pass('halts').then((names) => ({ names, acted: [...acted] }));
    await cluster.settle();
    expect(await passed).toEqual({ names: [], acted: ['two'] });
  });

  test('names such a gateway when it does not answer', async () => {
    const barriers = barriersOf(one);
    looksAndFinds(one);
    const passed = barriers.pass('halts');
    cluster.take();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await passed).toEqual(['two']);
    expect(barriers.unconfirmed).toBe(1);
  });

  test('waits for nobody who ended meanwhile, nor for suspects', async () => {
    cluster.suspect('two');
    const three = cluster.join('three');
    const passed = barriersOf(one).pass('halts');
    await cluster.settle();
    cluster.retire(three.membership.name);
    expect(await passed).toEqual([]);
  });

  test('names the database where it cannot be asked who takes part', async () => {
    vi.spyOn(one.membership, 'lookAgain').mockResolvedValue(false);
    const passed = barriersOf(one).pass('halts');
    await cluster.settle();
    expect(await passed).toEqual(['database']);
    expect(acted).toEqual(['two']);
  });

  test('does not wait longer for a database that does not answer than for gateways', async () => {
    vi.spyOn(one.membership, 'lookAgain').mockReturnValue(new Promise(() => undefined));
    const passed = barriersOf(one).pass('halts');
    await cluster.settle();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await passed).toEqual(['database']);
  });

  test('names a gateway that was replaced and may not have ended', async () => {
    const known = one.membership.others();
    const before = { ...known[0]!, run: 'before' as never, name: 'before', state: 'retired' as const };
    one.see([...known, before]);
    const passed = barriersOf(one).pass('halts');
    await cluster.settle();
    expect(await passed).toEqual(['before']);
  });

  test('costs those who confirm it, however many others are under way', async () => {
    for (let nth = 0; nth < 98; nth += 1) cluster.join(`gateway-${nth}`);
    const others = one.membership.others();
    const listeners: ((from: never, message: never) => void)[] = [];
    const bus = { ...one.bus, onMessage: (listener: never) => void listeners.push(listener), send: () => true };
    const barriers = barriersOf({ ...one, bus });
    const passed = Promise.all(Array.from({ length: 200 }, () => barriers.pass('halts')));
    await vi.advanceTimersByTimeAsync(0);
    const beganMs = performance.now();
    for (let id = 1; id <= 200; id += 1)
      for (const { run } of others) listeners[0]!(run as never, { type: 'confirm', id } as never);
    const tookMs = performance.now() - beganMs;
    expect(await passed).toEqual(Array.from({ length: 200 }, () => []));
    expect(tookMs).toBeLessThan(500); // it was 24 s
  });

  test('passes at once at a gateway that is the only one', async () => {
    cluster.retire('two');
    expect(await barriersOf(one).pass('halts')).toEqual([]);
  });
});
