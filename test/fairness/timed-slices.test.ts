import { describe, expect, test } from 'vitest';
import { TimedSlices } from '../../src/fairness/timed-slices.ts';

const BOUNDS = { aimMs: 4, first: 100, least: 50, most: 1_000 };

/** The sizes of slices whose items take these times, in microseconds each. */
function sizes(itemsUs: readonly number[]): readonly number[] {
  let nowMs = 0;
  const slices = new TimedSlices(BOUNDS, { now: () => nowMs });
  return itemsUs.map((us) =>
    slices.run((most) => {
      nowMs += (most * us) / 1_000;
      return most;
    }),
  );
}

describe('slices by time', () => {
  test('come to take the time aimed at, whatever an item costs', () => {
    expect(sizes([10, 10, 10, 10])).toEqual([100, 200, 400, 400]);
    expect(sizes([80, 80, 80])).toEqual([100, 50, 50]);
  });

  test('stay within their bounds, also where nothing takes any time', () => {
    expect(sizes([0, 0, 0, 0, 0, 0])).toEqual([100, 200, 400, 800, 1_000, 1_000]);
    expect(sizes([10_000, 10_000, 10])).toEqual([100, 50, 50]);
  });

  test('shrink at once where items become dearer, and grow by no more than twice', () => {
    expect(sizes([1, 1, 1, 40, 40, 1])).toEqual([100, 200, 400, 800, 100, 100]);
  });

  test('a pause during one slice is made up for by the next ones', () => {
    expect(sizes([10, 10, 1_000, 10, 10, 10, 10])).toEqual([100, 200, 400, 50, 100, 200, 400]);
  });
});
