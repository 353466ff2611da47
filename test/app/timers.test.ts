import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { followClock } from '../../src/app/timers.ts';
import { createClock } from '../../src/system/clock.ts';
import { Closers } from '../../src/system/closers.ts';

const NOW = Date.parse('2026-11-04T12:00:00Z');
const HOUR_MS = 3_600_000;

describe('following the clock', () => {
  beforeEach(() => vi.useFakeTimers({ now: NOW, toFake: ['setInterval', 'clearInterval', 'Date', 'performance'] }));
  afterEach(() => vi.useRealTimers());

  test('sets everything back, says so in the log of the gateway, and records it', async () => {
    const told: unknown[] = [];
    const closers = new Closers();
    followClock(
      {
        closers,
        log: { info: () => undefined, warn: (...said: unknown[]) => told.push(said), error: () => undefined } as never,
      },
      {
        clock: createClock(),
        clusterClock: undefined,
        audit: { record: async (draft: object) => (told.push(draft), { ok: true, value: undefined }) } as never,
      },
      {
        governor: { setBack: (ms: number) => told.push(['governor', ms]) } as never,
        stats: { setBack: (ms: number) => told.push(['stats', ms]) } as never,
      },
    );
    vi.setSystemTime(NOW - 26 * HOUR_MS);
    vi.advanceTimersByTime(10_000);
    expect(told).toEqual([]);
    vi.advanceTimersByTime(1_000);
    const [before, after] = ['2026-11-04T12:00:05.500Z', '2026-11-03T10:00:11.000Z'];
    expect(told).toEqual([
      ['governor', Date.parse('2026-11-03T10:00:11Z')],
      ['stats', Date.parse('2026-11-03T10:00:11Z')],
      ['the clock of this machine was set back, and is followed', { from: before, to: after }],
      {
        eventType: 'SettingsChanged',
        lineage: { orgId: null, teamId: null, agentId: null },
        actor: 'gateway',
        payload: { changed: [{ name: 'clock', before, after }] },
      },
    ]);
    await closers.closeAll(0);
    expect(vi.getTimerCount()).toBe(0);
  });
});
