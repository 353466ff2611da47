/** Random steps over the real core, recorder and writer, the same for the same seed: what must hold does at each. */
import { describe, expect, test, vi } from 'vitest';
import { MUTANTS } from './mutants.ts';
import { Violation } from './violation.ts';
import { World } from './world.ts';

vi.mock('node:fs', async (original) => (await import('../support/fragile-disk.ts')).fragileDisk.over(await original()));

// Always the same here, or the test would fail now and then: test/soak/simulation.test.ts tries others.
const SEEDS = [1, 2, 3, 4];
const STEPS = 1_500;
const MUTANT_STEPS = 600;
const MORE_SEEDS = 12;

describe('the simulation', () => {
  test.each(SEEDS)('finds nothing with failing writes and a clock that jumps (seed %i)', async (seed) => {
    const { counts } = await World.play(seed, STEPS);
    for (const kind of ['ask', 'main', 'audit', 'store', 'disk', 'clock', 'halt'])
      expect(counts[kind]).toBeGreaterThan(0);
  });

  test('takes the same way for the same seed, and another for another', async () => {
    const [one, same, other] = [await World.play(5, 300), await World.play(5, 300), await World.play(6, 300)];
    expect(same).toEqual(one);
    expect(other.digest).not.toBe(one.digest);
  });

  test.each(MUTANTS)('finds a gateway that $name', async ({ mutation, found, seed }) => {
    for (let tried = seed; tried < seed + MORE_SEEDS; tried += 1) {
      const defect = await World.play(tried, MUTANT_STEPS, mutation).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (defect === undefined) continue;
      expect(defect).toBeInstanceOf(Violation);
      expect((defect as Violation).message).toContain(`seed ${tried}, step `);
      expect(found).toContain((defect as Violation).invariant);
      return;
    }
    expect.fail(`none of ${MORE_SEEDS} seeds finds it`);
  });
});
