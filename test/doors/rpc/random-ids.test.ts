import { describe, expect, test } from 'vitest';
import { newSpanId, newTraceId } from '../../../src/doors/rpc/random-ids.ts';

describe('ids that the gateway makes itself', () => {
  test('are hex of full length, and none comes twice', () => {
    const ids = Array.from({ length: 2_000 }, () => [newTraceId(), newSpanId()]);
    expect(ids.filter(([trace, span]) => !/^[\da-f]{32}$/.test(trace!) || !/^[\da-f]{16}$/.test(span!))).toEqual([]);
    expect(new Set(ids.flat()).size).toBe(4_000);
  });
});
