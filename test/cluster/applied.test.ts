/** Who waits for whom to act by the log. */
import { describe, expect, test } from 'vitest';
import { AppliedEverywhere } from '../../src/cluster/applied.ts';
import type { Bus, ClusterMessage, Member, RunId } from '../../src/ports/cluster.ts';

function open() {
  let hear: (from: RunId, message: ClusterMessage) => void = () => undefined;
  const timers: (() => void)[] = [];
  const now = { steadyMs: 0 };
  const bus = { isConnected: true, send: () => true, onGap: () => undefined } as Partial<Bus>;
  const everywhere = new AppliedEverywhere({
    self: 'self' as RunId,
    bus: { ...bus, onMessage: (listener) => void (hear = listener) } as Bus,
    store: { noteUnconfirmed: async () => ({ ok: true, value: undefined }) },
    isSame: () => true,
    steadyMs: () => now.steadyMs,
    after: (_, call) => {
      timers.push(call);
      return () => void timers.splice(timers.indexOf(call), 1);
    },
  });
  return {
    everywhere,
    timers,
    pass: (ms: number) => {
      now.steadyMs += ms;
    },
    hear: (from: string, seq: number) => hear(from as RunId, { type: 'acted', place: { seq, mark: '' } }),
  };
}

const memberOf = (name: string, more: Partial<Member> = {}): Member =>
  ({ run: name, name, state: 'live', onOutage: 'serve', ...more }) as Member;

describe('waiting for all gateways', () => {
  test('ends when the last of them acts by it, and names who does not within a second', async () => {
    const { everywhere, timers, hear } = open();
    const members = ['self', 'one', 'two'].map((name) => memberOf(name));
    everywhere.say({ seq: 9, mark: '' });
    const first = everywhere.pass({ seq: 5, members });
    const second = everywhere.pass({ seq: 7, members });
    hear('one', 8);
    hear('two', 6);
    expect(await first).toEqual([]);
    for (const over of timers.splice(0)) over();
    expect(await second).toEqual(['two']);
  });

  test('names at once who was replaced and may go on, unless it stops by itself', async () => {
    const { everywhere } = open();
    everywhere.say({ seq: 9, mark: '' });
    const members = [
      memberOf('replaced', { state: 'retired' }),
      memberOf('silent', { state: 'suspect' }),
      memberOf('stopping', { state: 'suspect', onOutage: 'deny' }),
    ];
    expect(await everywhere.pass({ seq: 5, members })).toEqual(['replaced', 'silent']);
  });

  test('names who is suspected by a leap of the clock, until its lease must have ended', async () => {
    const { everywhere, pass } = open();
    everywhere.say({ seq: 9, mark: '' });
    everywhere.noteMembers([memberOf('one', { onOutage: 'deny' })]);
    const members = [memberOf('one', { state: 'suspect', onOutage: 'deny' })];
    everywhere.noteMembers(members);
    pass(7_499);
    expect(await everywhere.pass({ seq: 5, members })).toEqual(['one']);
    pass(1);
    expect(await everywhere.pass({ seq: 5, members })).toEqual([]);
  });

  test('takes little of the main thread for 200 changes at 100 gateways', async () => {
    const { everywhere, hear } = open();
    const members = Array.from({ length: 100 }, (_, at) => memberOf(`gateway-${at}`));
    everywhere.say({ seq: 1_000, mark: '' });
    const begunAt = process.cpuUsage();
    const waiting = Array.from({ length: 200 }, (_, at) => everywhere.pass({ seq: at + 1, members }));
    for (let seq = 1; seq <= 200; seq += 20) for (const { run } of members) hear(run, seq + 19);
    expect(new Set((await Promise.all(waiting)).flat())).toEqual(new Set());
    const { user, system } = process.cpuUsage(begunAt);
    expect((user + system) / 1000).toBeLessThan(150); // of a machine that others use, too
  });
});
