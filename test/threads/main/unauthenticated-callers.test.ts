import { describe, expect, test } from 'vitest';
import { UnauthenticatedCallers } from '../../../src/threads/main/unauthenticated-callers.ts';
import { CRAWLER, checkOf } from '../../support/governor.ts';
import { openSwitchboard } from '../../support/switchboard.ts';

const STATS = {
  type: 'stats',
  stats: {
    pendingRequests: 0,
    controlStreams: 0,
    webSockets: 0,
    droppedEvents: 0,
    refusedRequests: 0,
    requests: { http: 0, connect: 0, grpc: 0 },
    checks: { counts: [], sumMs: 0 },
  },
} as never;

/** With another token each time, as somebody sends them who wants a limit of each one's own. */
const stranger = (number: number) =>
  checkOf(CRAWLER, `t:${number}`, {
    credential: `digest-${number}` as never,
    resource: '\u20ac'.repeat(680),
    attributes: { filler: 'x'.repeat(8_000) },
  });

/** Parses an entry without its id. */
const bodyOf = (body: string) => JSON.parse(`{${body.slice(1)}}`);

describe('unauthenticated callers', () => {
  test('are all denied; few are recorded, little of each, and one entry has the rest', async () => {
    let nowMs = 1_000;
    const { ask, replyTo, batches, switchboard, write, sentToAudit } = openSwitchboard({
      strangersAMinute: 10,
      maxUnrecorded: 1_000,
      nowMs: () => nowMs,
    });
    const ids = ask(...Array.from({ length: 200 }, (_, number) => stranger(number)));
    const entries = batches.flatMap(({ bodies }) => bodies.split('\n'));
    expect({ entries: entries.length, bytes: entries.join('').length < 10 * 1_000 }).toEqual({
      entries: 10,
      bytes: true,
    });
    expect(bodyOf(entries[0]!).payload).toEqual({
      action: 'tool.call',
      resource: '\u20ac'.repeat(128),
      identity: 'unverified',
      network: '192.0.2.1',
    });
    for (const id of ids.slice(10)) expect(await replyTo(id)).toMatchObject({ ok: true, value: { decision: 'deny' } });

    // An agent's actions meanwhile are recorded as ever, and count as nobody's share but its own.
    write(1);
    ask(checkOf(CRAWLER, 't:own'));
    expect(batches.at(-1)!.bodies).toContain('ActionAllowed');
    expect(batches.map(({ strangerBytes }) => strangerBytes > 0)).toEqual([true, false]);

    const before = sentToAudit.length;
    nowMs += 59_000;
    switchboard.receive(0, [STATS]);
    expect(sentToAudit).toHaveLength(before);
    nowMs += 1_000;
    switchboard.receive(0, [STATS]);
    expect(bodyOf(batches.at(-1)!.bodies).payload).toEqual({
      identity: 'unverified',
      network: '192.0.2.1',
      suppressed: 190,
      since: '1970-01-01T00:00:01.000Z',
    });
    switchboard.receive(0, [STATS]);
    expect(sentToAudit).toHaveLength(before + 1);
  });

  test('leave room for those of another network, ten in all', () => {
    const { ask, batches } = openSwitchboard({
      strangersAMinute: 10,
      maxUnrecorded: 10_000,
      networkOf: (id) => `10.0.0.${Math.floor((id - 1) / 200)}`,
    });
    ask(...Array.from({ length: 20 * 200 }, (_, number) => stranger(number)));
    const recorded = new Map<string, number>();
    for (const body of batches.flatMap(({ bodies }) => bodies.split('\n'))) {
      const { network } = bodyOf(body).payload;
      recorded.set(network, (recorded.get(network) ?? 0) + 1);
    }
    expect([...recorded]).toEqual(Array.from({ length: 10 }, (_, network) => [`10.0.0.${network}`, 10]));
  });

  test('are reported in 51 entries a minute, from however many networks they come', () => {
    const unauthenticated = new UnauthenticatedCallers({ perMinute: 1, checksPerMinute: 0, isShareFull: () => false });
    const denied = { reply: { ok: true, value: undefined }, effects: [] } as never;
    for (let number = 0; number < 100_000; number += 1) unauthenticated.admit(denied, `2001:db8:${number}::/64`, 0);
    for (let number = 0; number < 5; number += 1) unauthenticated.admit(denied, '2001:db8:99::/64', 0);
    const reports = unauthenticated.report(60_000);
    expect(reports).toHaveLength(51);
    expect(reports[0]!.payload).toMatchObject({ network: '2001:db8:99::/64', suppressed: 6 });
    const sum = reports.reduce((total, { payload }) => total + Number(payload?.suppressed), 0);
    expect(sum).toBe(100_005 - 10);
    expect(unauthenticated.report(120_000)).toEqual([]);
  });

  test('are only counted, all together, once their share of the log is used up', () => {
    let nowMs = 1_000;
    const { ask, audit, batches, switchboard } = openSwitchboard({ strangersAMinute: 10, nowMs: () => nowMs });
    audit.receive({ type: 'share', isFull: true });
    ask(...Array.from({ length: 20 }, (_, number) => stranger(number)));
    expect(batches).toEqual([]);
    nowMs += 60_000;
    switchboard.receive(0, [STATS]);
    expect(batches.map(({ bodies }) => bodyOf(bodies).payload)).toEqual([
      { identity: 'unverified', suppressed: 20, since: '1970-01-01T00:00:01.000Z' },
    ]);
  });

  test('are all recorded where the limit is off', () => {
    const { ask, batches } = openSwitchboard({ strangersAMinute: 0, maxUnrecorded: 2_000 });
    ask(...Array.from({ length: 1_000 }, (_, number) => stranger(number)));
    expect(batches.flatMap(({ bodies }) => bodies.split('\n'))).toHaveLength(1_000);
  });

  test('share the limit of checks of their network, whatever tokens they make up', async () => {
    const { ask, replyTo, governor } = openSwitchboard({ checksAMinute: 10, maxUnrecorded: 1_000 });
    const ids = ask(...Array.from({ length: 300 }, (_, number) => stranger(number)));
    // The answers to the first ten wait for the audit log.
    for (const id of ids.slice(10))
      expect(await replyTo(id)).toMatchObject({ ok: false, fault: { kind: 'rate_limited', limit: 10 } });
    // An agent has its own.
    ask(checkOf(CRAWLER, 't:own'));
    expect(governor.ops.find('t:own' as never, 'acme')).toBeDefined();
  });

  test('are forgotten with the thread that was asked about them', () => {
    const { switchboard, batches } = openSwitchboard({ strangersAMinute: 10 });
    switchboard.receive(0, [{ type: 'command', id: 1_000, command: stranger(0) }]);
    switchboard.disconnect(0);
    switchboard.receive(0, [{ type: 'located', id: 1_000, network: '192.0.2.1' }]);
    expect(batches).toEqual([]);
  });
});
