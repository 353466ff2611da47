/** Every parser with ten million inputs that are almost right (test/fuzz has them). */
import { describe, expect, test } from 'vitest';
import { fuzz } from '../fuzz/fuzz.ts';
import { TARGETS } from '../fuzz/targets.ts';
import { startSoak } from '../support/soak.ts';

const INPUTS = 10_000_000;

describe('parsers', () => {
  test('survive ten million inputs that are almost right', () => {
    const soak = startSoak('fuzz');
    const { inputs, taken, slowestMs, slowest } = fuzz(TARGETS, soak.seed, soak.of(INPUTS));
    expect(taken).toBeGreaterThan(inputs / 20);
    soak.done({
      parsers: TARGETS.length,
      inputs,
      'of them taken as valid': `${Math.round((taken / inputs) * 100)} %`,
      'that a parser did not survive': 0,
      'that took longer than 1 s': 0,
      'slowest input': `${slowestMs.toFixed(1)} ms, ${slowest.replace(/, input \d+$/, '')}`,
    });
  });
});
