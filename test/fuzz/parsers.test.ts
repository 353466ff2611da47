/** A short pass of what test/soak/fuzz.test.ts does millions of times. */
import { describe, expect, test } from 'vitest';
import { fuzz } from './fuzz.ts';
import { TARGETS } from './targets.ts';

describe('parsers', () => {
  test('survive what is almost right, each within a second', () => {
    const { inputs, taken } = fuzz(TARGETS, 1, 15_000);
    // Neither nonsense only nor valid only: both would reach little.
    expect(taken / inputs).toBeGreaterThan(0.1);
    expect(taken / inputs).toBeLessThan(0.9);
  });

  test('a parser that throws or hangs is found, with the input that shows it', () => {
    const broken = { name: 'broken', share: 1, run: () => JSON.parse('{') as boolean };
    expect(() => fuzz([broken], 1, 5)).toThrow(/^broken did not survive input \d+$/);
    const slow = {
      name: 'slow',
      share: 1,
      run: () => {
        const untilMs = performance.now() + 12;
        while (performance.now() < untilMs);
        return true;
      },
    };
    expect(() => fuzz([slow], 1, 5, 10)).toThrow(/^slow did not survive input \d+$/);
  });
});
