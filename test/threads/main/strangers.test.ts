import { describe, expect, test } from 'vitest';
import { RateLimiter } from '../../../src/limits/rate-limit.ts';
import { Strangers } from '../../../src/threads/main/strangers.ts';
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

describe('strangers', () => {
  test('are all denied; few are recorded, little of each, and one entry has the rest', async () => {
    let nowMs = 1_000;
    const { ask, replyTo, batches, switchboard, write, told } = openSwitchboard({
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
    expect(JSON.parse(`{${entries[0]!.slice(1)}}`).payload).toEqual({
      action: 'tool.call',
      resource: '\u20ac'.repeat(128),
      identity: 'unverified',
    });
    for (const id of ids.slice(10)) expect(await replyTo(id)).toMatchObject({ ok: true, value: { decision: 'deny' } });

    // What an agent does meanwhile is recorded as ever.
    write(1);
    ask(checkOf(CRAWLER, 't:own'));
    expect(batches.at(-1)!.bodies).toContain('ActionAllowed');

    const before = told.length;
    nowMs += 59_000;
    switchboard.receive(0, [STATS]);
    expect(told).toHaveLength(before);
    nowMs += 1_000;
    switchboard.receive(0, [STATS]);
    expect(batches.at(-1)!.bodies).toContain(
      '"payload":{"identity":"unverified","suppressed":190,"since":"1970-01-01T00:00:01.000Z"}',
    );
    switchboard.receive(0, [STATS]);
    expect(told).toHaveLength(before + 1);
  });

  test('are all recorded where the limit is off', () => {
    const strangers = new Strangers(new RateLimiter(0));
    const draft = { eventType: 'ActionDenied', lineage: CRAWLER, actor: 'anonymous' } as const;
    const outcome = { reply: { ok: true, value: undefined }, effects: [{ kind: 'audit', draft }] } as never;
    for (let number = 0; number < 1_000; number += 1) expect(strangers.filter(outcome, 0)).toBe(outcome);
    expect(strangers.report(120_000)).toBeUndefined();
  });
});
