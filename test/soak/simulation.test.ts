/** As test/simulation, for a million steps of other seeds in each run. */
import { describe, expect, test, vi } from 'vitest';
import { World } from '../simulation/world.ts';
import { startSoak } from '../support/soak.ts';

vi.mock('node:fs', async (original) => (await import('../support/fragile-disk.ts')).fragileDisk.over(await original()));

const STEPS = 1_000_000;
/** Steps of one world. A failure is found again faster in a short one, and its log stays small. */
const WORLD_STEPS = 2_500;

describe('the simulation', () => {
  test('finds nothing in a million steps', async () => {
    const soak = startSoak('simulation');
    const worlds = soak.of(STEPS / WORLD_STEPS);
    const counts: Record<string, number> = {};
    for (let nth = 0; nth < worlds; nth += 1) {
      const played = await World.play(soak.seed + nth, WORLD_STEPS);
      for (const [kind, count] of Object.entries(played.counts)) counts[kind] = (counts[kind] ?? 0) + count;
    }
    expect(counts.ask).toBeGreaterThan(0);
    soak.done({
      steps: worlds * WORLD_STEPS,
      'broken promises': 0,
      'disks that failed for a while': counts.disk ?? 0,
      'clocks that were set': counts.clock ?? 0,
      'kills of the process': counts.crash ?? 0,
      'deaths of the audit thread': counts['kill-audit'] ?? 0,
      'deaths of an I/O thread': counts['kill-io'] ?? 0,
      'halts put in force or released': counts.halt ?? 0,
    });
  });
});
