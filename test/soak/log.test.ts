/** As test/simulation/log, for five million steps of other seeds in each run. */
import { describe, expect, test } from 'vitest';
import { AppliedEverywhere } from '../../src/cluster/applied.ts';
import { SharedLog } from '../../src/cluster/log.ts';
import { World } from '../simulation/log/world.ts';
import { startSoak } from '../support/soak.ts';

const STEPS = 5_000_000;
const WORLD_STEPS = 5_000;

describe('the log of a cluster', () => {
  test('keeps what it promises in five million steps', async () => {
    const soak = startSoak('log');
    const worlds = soak.of(STEPS / WORLD_STEPS);
    const counts: Record<string, number> = {};
    for (let nth = 0; nth < worlds; nth += 1) {
      const played = await World.play({ SharedLog, AppliedEverywhere }, soak.seed + nth, WORLD_STEPS);
      for (const [kind, count] of Object.entries(played.counts)) counts[kind] = (counts[kind] ?? 0) + count;
    }
    expect(counts.propose).toBeGreaterThan(0);
    soak.done({
      steps: worlds * WORLD_STEPS,
      'broken promises': 0,
      'changes proposed': counts.propose ?? 0,
      'gateways suspended or resumed': counts.suspend ?? 0,
      'gateways replaced': counts.replace ?? 0,
      'servers that took over without the tail': counts['fail over'] ?? 0,
    });
  });
});
