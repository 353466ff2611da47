import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Durations, sumOfDurations } from '../../../src/core/stats/durations.ts';
import { leftBy, NO_STATS } from '../../../src/threads/main/io-threads.ts';
import { ADMIN, opId } from '../../support/governor.ts';
import { openSwitchboard } from '../../support/switchboard.ts';

describe('io threads', () => {
  test('counters of dead threads stay counted; their gauges are gone', () => {
    const checks = { counts: [1, 2], sumMs: 30 };
    const first = {
      pendingRequests: 1,
      webSockets: 2,
      controlStreams: 3,
      droppedEvents: 4,
      refusedRequests: 5,
      requests: { http: 6, grpc: 7, connect: 8 },
      checks,
    };
    const second = {
      ...first,
      droppedEvents: 40,
      refusedRequests: 50,
      requests: { http: 60, grpc: 70, connect: 80 },
      checks: { counts: [10, 20], sumMs: 300 },
    };
    expect(leftBy(second, leftBy(first, NO_STATS))).toEqual({
      pendingRequests: 0,
      webSockets: 0,
      controlStreams: 0,
      droppedEvents: 44,
      refusedRequests: 55,
      requests: { http: 66, grpc: 77, connect: 88 },
      checks: { counts: [11, 22, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], sumMs: 330 },
    });
  });

  test('a duration counts once, in the first bucket that holds it or in the last', () => {
    const durations = new Durations();
    for (const ms of [0, 0.5, 0.6, 1, 1.1, 5_000, 10_000, 10_001, 60_000]) durations.add(ms);
    expect(durations.totals).toEqual({
      counts: [2, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2],
      sumMs: expect.closeTo(85_004.2),
    });
    expect(sumOfDurations([])).toEqual({ counts: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], sumMs: 0 });
  });

  test('a revocation reaches every thread before its answer leaves for any', async () => {
    const { ask, threads, sent } = openSwitchboard();
    const left: string[] = [];
    threads.connect(1, {
      post: (messages) => void left.push(...messages.map(({ type }) => type)),
      maxBatch: 64,
    });
    threads.broadcast({ type: 'revoked', subject: 'account:a' });
    ask({ type: 'get-op', principal: ADMIN, opId: opId('t:1') });
    expect(sent.map(({ type }) => type)).toEqual(['revoked', 'command-reply']);
    expect(left).toEqual(['revoked']);
    await sleep(20);
    expect(left).toEqual(['revoked']);
  });
});
