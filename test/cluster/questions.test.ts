/** Questions between gateways, whatever becomes of the messages. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ClusterPeers } from '../../src/cluster/questions.ts';
import type { Asked, Decided } from '../../src/ports/cluster.ts';
import { FakeCluster, type FakeMember } from '../support/fake-cluster.ts';

const ASKED = { command: { type: 'find-agent', credential: 'c' }, ifKnown: false } as unknown as Asked<'decide'>;
const answer = (auditId: number): Decided => ({ auditId });
const unreachable = (gateway: string) => ({
  ok: false,
  fault: { kind: 'unreachable_gateway', gateway, retryAfterSecs: 1 },
});

describe('a question to another gateway', () => {
  let cluster: FakeCluster;
  let one: FakeMember;
  let two: FakeMember;
  let errors: unknown[];
  let served: unknown[];
  const peersOf = ({ bus, membership, clock }: FakeMember, auditId: number) => {
    const peers = new ClusterPeers({ bus, membership, clock, onError: (error) => errors.push(error) });
    peers.serve('decide', async (asked) => {
      served.push(asked);
      return answer(auditId);
    });
    return peers;
  };
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    cluster = new FakeCluster();
    errors = [];
    served = [];
    one = cluster.join('one');
    two = cluster.join('two');
  });
  afterEach(() => void vi.useRealTimers());

  test('is answered by the one that was asked', async () => {
    peersOf(two, 2);
    const three = cluster.join('three');
    peersOf(three, 3);
    const asked = peersOf(one, 1).ask(three.run, 'decide', ASKED);
    await cluster.settle();
    expect(await asked).toEqual({ ok: true, value: { auditId: 3 } });
    expect(served).toEqual([ASKED]);
  });

  test('is refused by a gateway that leaves, which answers those before', async () => {
    let decide: () => void = () => undefined;
    const leaving = peersOf(two, 2);
    leaving.serve('decide', () => new Promise((resolve) => (decide = () => resolve(answer(2)))));
    const peers = peersOf(one, 1);
    const before = peers.ask(two.run, 'decide', ASKED);
    await cluster.settle();
    let hasStopped = false;
    const stopped = leaving.stop().then(() => (hasStopped = true));
    const after = peers.ask(two.run, 'decide', ASKED);
    await cluster.settle();
    expect(await after).toMatchObject({ ok: false, fault: { kind: 'overloaded' } });
    expect(hasStopped).toBe(false);
    decide();
    await cluster.settle();
    expect(await before).toEqual({ ok: true, value: { auditId: 2 } });
    await stopped;
  });

  test('or its answer, when lost, leaves the asker with the name after a second', async () => {
    peersOf(two, 2);
    const peers = peersOf(one, 1);
    const lost = peers.ask(two.run, 'decide', ASKED);
    cluster.take();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await lost).toEqual(unreachable('two'));
    const unanswered = peers.ask(two.run, 'decide', ASKED);
    for (const sent of cluster.take()) cluster.deliver(sent);
    await vi.advanceTimersByTimeAsync(0);
    cluster.take();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await unanswered).toEqual(unreachable('two'));
    expect(peers.asked).toBe(0);
  });

  test('is dropped if it comes too late by the clock of the database', async () => {
    peersOf(two, 2);
    two.clock.aheadMs = -4_000;
    const asked = peersOf(one, 1).ask(two.run, 'decide', ASKED);
    const [question] = cluster.take();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await asked).toEqual(unreachable('two'));
    cluster.deliver(question!);
    expect(served.length).toBe(1); // for that gateway no more than a second has passed
    two.clock.aheadMs = 0;
    cluster.deliver(question!);
    expect(served.length).toBe(1);
  });

  test('takes the first answer only', async () => {
    peersOf(two, 2);
    const peers = peersOf(one, 1);
    const first = peers.ask(two.run, 'decide', ASKED);
    for (const sent of cluster.take()) cluster.deliver(sent);
    await vi.advanceTimersByTimeAsync(0);
    const [reply] = cluster.take();
    cluster.deliver(reply!);
    expect(await first).toEqual({ ok: true, value: { auditId: 2 } });
    const second = peers.ask(two.run, 'decide', ASKED);
    cluster.deliver(reply!);
    cluster.deliver({ ...reply!, from: cluster.join('three').run });
    cluster.take();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await second).toEqual(unreachable('two'));
  });

  test('ends at once when the one that was asked has ended, or the bus is cut off', async () => {
    peersOf(two, 2);
    const peers = peersOf(one, 1);
    const asked = peers.ask(two.run, 'decide', ASKED);
    cluster.retire('two');
    expect(await asked).toEqual(unreachable('two'));
    expect(await peers.ask(two.run, 'decide', ASKED)).toEqual(unreachable(two.run));
    cluster.join('two');
    one.bus.isConnected = false;
    expect(await peers.ask(two.run, 'decide', ASKED)).toEqual(unreachable('two'));
  });

  test('is ignored from a replaced run, and answered from one that has just joined', async () => {
    peersOf(two, 2);
    const zombie = peersOf(one, 1);
    cluster.retire('one');
    const asked = zombie.ask(two.run, 'decide', ASKED);
    await cluster.settle();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await asked).toEqual(unreachable('two'));
    expect(served).toEqual([]);
    const three = peersOf(cluster.join('three'), 3);
    const known = two.membership.others();
    two.see([]);
    vi.spyOn(two.membership, 'lookAgain').mockImplementation(async () => {
      two.see(known);
      return true;
    });
    const welcome = three.ask(two.run, 'decide', ASKED);
    await cluster.settle();
    expect(await welcome).toEqual({ ok: true, value: { auditId: 2 } });
  });

  test('waits, if sent to all, for the live ones and names those that did not answer', async () => {
    peersOf(two, 2);
    peersOf(cluster.join('three'), 3);
    cluster.join('four'); // never answers
    cluster.suspect('four');
    const gathered = peersOf(one, 1).askAll('decide', ASKED);
    await cluster.settle();
    expect(await gathered).toMatchObject({
      ok: true,
      value: { answers: [{ answer: { auditId: 2 } }, { answer: { auditId: 3 } }], missing: ['four'] },
    });
    cluster.join('four');
    let isOver = false;
    const waits = peersOf(one, 1).askAll('decide', ASKED);
    void waits.then(() => (isOver = true));
    await cluster.settle();
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await waits).toMatchObject({ ok: true, value: { missing: ['four'] } });
  });

  test('ends, if sent to all, with a sufficient answer, and at once if nobody is there', async () => {
    peersOf(two, 2);
    cluster.join('three'); // never answers
    const found = peersOf(one, 1).askAll('decide', ASKED, ({ auditId }) => auditId === 2);
    await cluster.settle();
    expect(await found).toMatchObject({ ok: true, value: { answers: [{ answer: { auditId: 2 } }] } });
    one.see([]);
    expect(await peersOf(one, 1).askAll('decide', ASKED)).toEqual({ ok: true, value: { answers: [], missing: [] } });
  });

  test('is logged there if it fails, and refused if its kind is unknown', async () => {
    const peers = peersOf(two, 2);
    peers.serve('decide', () => Promise.reject(new Error('a defect')));
    const asked = peersOf(one, 1).ask(two.run, 'decide', ASKED);
    await cluster.settle();
    expect(await asked).toEqual(unreachable('two'));
    expect(errors).toEqual([new Error('a defect')]);
    const unknown = peersOf(one, 1).ask(two.run, 'of a later release' as 'decide', ASKED);
    await cluster.settle();
    expect(await unknown).toEqual(unreachable('two'));
  });

  test('is refused where too many wait already', async () => {
    const peers = new ClusterPeers({ ...one, maxAsked: 2, onError: (error) => errors.push(error) });
    const asked = [1, 2].map(() => peers.ask(two.run, 'decide', ASKED));
    expect(await peers.ask(two.run, 'decide', ASKED)).toMatchObject({ ok: false, fault: { kind: 'overloaded' } });
    await vi.advanceTimersByTimeAsync(1_000);
    expect((await asked[0])?.ok).toBe(false);
    expect(peers.asked).toBe(0);
  });
});
