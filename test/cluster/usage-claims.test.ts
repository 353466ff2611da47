/** Usage ids that several gateways share: claimed, counted, settled. */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { UsageClaims } from '../../src/cluster/usage-claims.ts';
import type { AgentKey } from '../../src/core/base/ids.ts';
import type { UsageKey } from '../../src/core/outcome.ts';
import type { UsageClaim, UsageIds } from '../../src/ports/cluster.ts';

const keyOf = (usageId: string): UsageKey => ({ agent: 'acme/search/crawler' as AgentKey, usageId });
const AWAY = { ok: false, fault: { kind: 'store_unreachable', retryAfterSecs: 1 } } as const;

/** Answers every claim with what `verdicts` says about its id, and notes what it was asked. */
function openClaims(verdicts: (usageId: string) => UsageClaim) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const claimed: string[][] = [];
  const settled: string[][] = [];
  const world = { isAway: false, hangs: false };
  const idsOf = (keys: readonly UsageKey[]): string[] => keys.map(({ usageId }) => usageId);
  const store: UsageIds = {
    claim: async (keys) => {
      if (world.hangs) return new Promise(() => undefined);
      if (world.isAway) return AWAY;
      claimed.push(idsOf(keys));
      return { ok: true, value: keys.map(({ usageId }) => verdicts(usageId)) };
    },
    settle: async (keys) => {
      if (world.isAway) return AWAY;
      settled.push(idsOf(keys));
      return { ok: true, value: undefined };
    },
  };
  const errors: unknown[] = [];
  const claims = new UsageClaims({
    store,
    isCutOff: () => world.isAway,
    steadyMs: () => Date.now(),
    onError: (error) => errors.push(error),
  });
  return { claims, claimed, settled, world, errors };
}

describe('usage ids of several gateways', () => {
  test('are claimed together with those of the same moment', async () => {
    const { claims, claimed } = openClaims((id) => (id === 'known' ? 'counted' : 'mine'));
    const verdicts = await Promise.all(['one', 'known', 'two'].map((id) => claims.claim(keyOf(id))));
    expect(verdicts).toEqual(['mine', 'counted', 'mine']);
    expect(claimed).toEqual([['one', 'known', 'two']]);
  });

  test('are asked for again, for 3 s, while another gateway counts them', async () => {
    let asked = 0;
    const { claims } = openClaims((id) => (id === 'soon' && (asked += 1) > 3 ? 'counted' : 'busy'));
    const soon = claims.claim(keyOf('soon'));
    const never = claims.claim(keyOf('never'));
    await vi.advanceTimersByTimeAsync(100);
    expect(await soon).toBe('counted');
    await vi.advanceTimersByTimeAsync(3_000);
    expect(await never).toBe('busy');
  });

  test('are counted here while the database is away, and settled when it is back', async () => {
    const { claims, settled, world } = openClaims(() => 'mine');
    world.isAway = true;
    expect(await claims.claim(keyOf('one'))).toBe('mine');
    await claims.settle(keyOf('one'));
    expect(settled).toEqual([]);
    world.isAway = false;
    await vi.advanceTimersByTimeAsync(1_100);
    expect(settled).toEqual([['one']]);
  });

  test('are counted nowhere by a database that is only slow: the caller tries again', async () => {
    const { claims, world } = openClaims(() => 'mine');
    world.hangs = true;
    const first = claims.claim(keyOf('one'));
    await vi.advanceTimersByTimeAsync(7_000);
    expect(await first).toBe('busy');
    world.hangs = false;
    expect(await claims.claim(keyOf('one'))).toBe('mine');
  });
});
