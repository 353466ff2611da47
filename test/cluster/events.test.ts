/** Live events of other gateways, whatever becomes of the messages. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { SharedEvents } from '../../src/cluster/events.ts';
import { homeOf } from '../../src/cluster/run.ts';
import type { OpId } from '../../src/core/base/ids.ts';
import type { GatewayEvent, Interest, UnnumberedEvent } from '../../src/ports/events.ts';
import { FakeCluster, type FakeMember } from '../support/fake-cluster.ts';
import { UNCHECKED } from '../support/ops.ts';

type Gateway = {
  readonly events: SharedEvents;
  readonly shown: UnnumberedEvent[];
  readonly lost: number[];
  /** The last interest of watchers elsewhere. */
  interest: Interest | undefined;
};

let lastId = 0;

const changed = (op: string, state: 'running' | 'paused', orgId = 'acme'): GatewayEvent => ({
  id: (lastId += 1),
  kind: 'ops_change',
  orgId,
  agentId: 'a',
  atMs: 1,
  payload: {
    opId: op as OpId,
    state,
    registeredAtMs: 1,
    updatedAtMs: 1,
    teamId: 't',
    ...UNCHECKED,
  },
});
const halted = (orgId: string | null): GatewayEvent => ({
  id: (lastId += 1),
  kind: 'halt',
  orgId,
  agentId: null,
  atMs: 1,
  payload: { change: 'created' },
});

describe('events of another gateway', () => {
  let cluster: FakeCluster;
  let [near, far]: FakeMember[] = [];
  let watcher: Gateway;
  let source: Gateway;

  function gatewayAt({ bus, membership }: FakeMember): Gateway {
    const gateway: Gateway = {
      shown: [],
      lost: [],
      interest: undefined,
      events: new SharedEvents({
        bus,
        membership,
        setInterest: (interest) => {
          gateway.interest = interest;
        },
        show: (event) => gateway.shown.push(event),
        lost: (count) => gateway.lost.push(count),
        steadyMs: () => Date.now(),
      }),
    };
    return gateway;
  }
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
    cluster = new FakeCluster();
    near = cluster.join('near');
    far = cluster.join('far');
    watcher = gatewayAt(near);
    source = gatewayAt(far);
  });
  afterEach(() => void vi.useRealTimers());

  const deliver = (): void => {
    for (const sent of cluster.take()) cluster.deliver(sent);
  };
  /** Lets the next batch leave, and returns it without delivering it. */
  const batch = () => {
    vi.advanceTimersByTime(50);
    return cluster.take();
  };
  const watch = (interest: Interest): void => {
    watcher.events.watch(interest);
    deliver();
    for (const sent of batch()) cluster.deliver(sent);
  };
  const shownOps = () =>
    watcher.shown.map(({ kind, payload }) => (kind === 'ops_change' ? `${payload.opId} ${payload.state}` : kind));

  test('come while somebody watches, of the orgs that are watched, with their home', () => {
    expect(source.interest).toBeUndefined();
    watch(['acme']);
    expect(source.interest).toEqual(['acme']);
    for (const event of [changed('o', 'running'), changed('o', 'running', 'globex'), halted('acme'), halted(null)])
      source.events.take(event);
    for (const sent of batch()) cluster.deliver(sent);
    expect(shownOps()).toEqual(['o running', 'halt']);
    expect(watcher.shown[0]).toMatchObject({ orgId: 'acme', payload: { home: homeOf(far!.run) } });
    expect('id' in watcher.shown[0]!).toBe(false);
    watch([]);
    expect(source.interest).toEqual([]);
    source.events.take(changed('o', 'paused'));
    expect([batch(), watcher.lost]).toEqual([[], []]);
  });

  test('are the newest of each operation, and counted where there are too many', () => {
    watch('all');
    source.events.take(changed('o', 'running'));
    source.events.take(changed('o', 'paused'));
    for (let nth = 0; nth < 205; nth += 1) source.events.take(halted('acme'));
    for (const sent of batch()) cluster.deliver(sent);
    expect([shownOps()[0], watcher.shown.length, watcher.lost]).toEqual(['o paused', 200, [6]]);
    source.events.take(halted('acme'));
    for (const sent of batch()) cluster.deliver(sent);
    expect([watcher.shown.length, watcher.lost]).toEqual([201, [6]]);
  });

  test('are counted when lost, with the next batch or once the watch is renewed', () => {
    watch('all');
    source.events.take(changed('o', 'running'));
    source.events.take(changed('p', 'running'));
    batch();
    source.events.take(changed('q', 'running'));
    for (const sent of batch()) cluster.deliver(sent);
    expect([shownOps(), watcher.lost]).toEqual([['q running'], [2]]);
    source.events.take(changed('r', 'running'));
    batch();
    vi.advanceTimersByTime(5_000);
    deliver();
    for (const sent of batch()) cluster.deliver(sent);
    expect(watcher.lost).toEqual([2, 1]);
  });

  test('are dropped if they come twice, or belong to a watch that has ended', () => {
    watch('all');
    source.events.take(changed('o', 'running'));
    const [first] = batch();
    for (let times = 0; times < 2; times += 1) cluster.deliver(first!);
    source.events.take(changed('p', 'running'));
    const [second] = batch();
    cluster.deliver(second!);
    cluster.deliver(first!); // late
    watch([]);
    watch('all');
    cluster.deliver(second!);
    expect([shownOps(), watcher.lost]).toEqual([['o running', 'p running'], []]);
  });

  test('may be missing where the gateway had forgotten the watch', () => {
    watch('all');
    source.events.take(changed('o', 'running'));
    for (const sent of batch()) cluster.deliver(sent);
    for (let lost = 0; lost < 4; lost += 1) {
      vi.advanceTimersByTime(5_000);
      cluster.take();
    }
    source.events.take(changed('p', 'running'));
    expect(batch()).toEqual([]);
    expect(source.interest).toEqual([]);
    expect(watcher.lost).toEqual([1]); // it has been silent for long
    vi.advanceTimersByTime(5_000);
    deliver();
    for (const sent of batch()) cluster.deliver(sent);
    source.events.take(changed('q', 'running'));
    for (const sent of batch()) cluster.deliver(sent);
    expect([shownOps(), watcher.lost]).toEqual([
      ['o running', 'q running'],
      [1, 1],
    ]);
  });

  test('may be missing where a gateway has ended, or has joined since', () => {
    watch('all');
    cluster.retire('far');
    expect(watcher.lost).toEqual([1]);
    cluster.take();
    cluster.join('third');
    expect(watcher.lost).toEqual([1, 1]);
    expect(cluster.take()).toMatchObject([{ to: 'all', message: { type: 'watch', interest: 'all' } }]);
  });

  test('go to nobody who has ended, and cost nothing then', () => {
    watch('all');
    cluster.retire('near');
    expect(source.interest).toEqual([]);
    source.events.take(changed('o', 'running'));
    expect(batch()).toEqual([]);
  });

  test('while the bus is cut off are counted afterwards', () => {
    watch('all');
    far!.bus.isConnected = false;
    source.events.take(changed('o', 'running'));
    batch();
    far!.bus.isConnected = true;
    near!.gap();
    deliver();
    for (const sent of batch()) cluster.deliver(sent);
    expect([watcher.shown, watcher.lost]).toEqual([[], [1]]);
  });

  test('are all sent if they concern more orgs than are worth naming', () => {
    watch(Array.from({ length: 101 }, (_, nth) => `org${nth}`));
    expect(source.interest).toBe('all');
  });
});
