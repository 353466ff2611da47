import { describe, expect, test } from 'vitest';
import { backoffMs, spreadMs } from '../../../src/core/base/backoff.ts';

describe('a wait before something is tried again', () => {
  test('doubles with each failure in a row, up to the longest', () => {
    const wait = (failures: number): number => backoffMs(failures, { firstMs: 500, longestMs: 5_000 });
    expect([1, 2, 3, 4, 5, 6, 2_000].map(wait)).toEqual([500, 1_000, 2_000, 4_000, 5_000, 5_000, 5_000]);
  });

  test('is spread over its second half', () => {
    expect([0, 0.5, 0.999].map((random) => spreadMs(1_000, random))).toEqual([500, 750, 999.5]);
  });
});
