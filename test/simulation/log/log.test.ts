/** Random steps over the log of a cluster: what it promises holds after each, and fails without any one rule. */
import { describe, expect, test } from 'vitest';
import { AppliedEverywhere } from '../../../src/cluster/applied.ts';
import { SharedLog } from '../../../src/cluster/log.ts';
import { codeOf, MUTANTS } from './mutants.ts';
import { Broken, World } from './world.ts';

const CODE = { SharedLog, AppliedEverywhere };
/** Each rule is needed in one of these worlds at least, and most in the first. */
const MUTANT_SEEDS = [8, 3, 5, 1];
const MUTANT_STEPS = 2_500;

describe('the log of a cluster', () => {
  test.each([1, 2, 3, 4])('keeps what it promises, whatever fails (seed %i)', async (seed) => {
    const { counts } = await World.play(CODE, seed, 5_000);
    for (const kind of ['propose', 'serve', 'deliver', 'lose', 'suspend', 'replace', 'fail over', 'trim', 'zombie'])
      expect([kind, (counts[kind] ?? 0) > 0]).toEqual([kind, true]);
  });

  test.each(MUTANTS)('does not without the rule: $rule', async (mutant) => {
    const code = await codeOf(mutant);
    const without = 'without' in mutant ? mutant.without : undefined;
    const playAll = async (): Promise<void> => {
      for (const seed of MUTANT_SEEDS) await World.play(code, seed, MUTANT_STEPS, without);
    };
    await expect(playAll()).rejects.toBeInstanceOf(Broken);
  });
});
