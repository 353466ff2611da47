import { describe, expect, test } from 'vitest';
import { Multimap } from '../../../src/core/base/lists.ts';

describe('multimap', () => {
  test('a key holds each of its values once, in order of insertion, until removed', () => {
    const map = new Multimap<string, number>();
    for (const value of [3, 1, 3, 2]) map.add('a', value);
    map.add('b', 3);
    expect({ keys: [...map.keys()], hasA: map.has('a'), hasC: map.has('c') }).toEqual({
      keys: ['a', 'b'],
      hasA: true,
      hasC: false,
    });
    expect([...map.of('a')]).toEqual([3, 1, 2]);
    map.delete('a', 3);
    map.delete('c', 3);
    expect({ ofA: [...map.of('a')], ofB: [...map.of('b')], ofC: [...map.of('c')] }).toEqual({
      ofA: [1, 2],
      ofB: [3],
      ofC: [],
    });
    map.deleteAll('a');
    map.delete('b', 3);
    expect({ countA: map.of('a').size, countB: map.of('b').size, hasB: map.has('b'), keys: [...map.keys()] }).toEqual({
      countA: 0,
      countB: 0,
      hasB: false,
      keys: [],
    });
  });
});
