import { describe, expect, test } from 'vitest';
import { Multimap } from '../../src/core/multimap.ts';

describe('multimap', () => {
  test('a key holds each of its values once, in order of insertion, until removed', () => {
    const map = new Multimap<string, number>();
    for (const value of [3, 1, 3, 2]) map.add('a', value);
    map.add('b', 3);
    expect([[...map.keys()], map.has('a'), map.has('c')]).toEqual([['a', 'b'], true, false]);
    expect([...map.of('a')]).toEqual([3, 1, 2]);
    map.delete('a', 3);
    map.delete('c', 3);
    expect([[...map.of('a')], [...map.of('b')], [...map.of('c')]]).toEqual([[1, 2], [3], []]);
    map.deleteAll('a');
    map.delete('b', 3);
    expect([map.of('a').size, map.of('b').size, map.has('b'), [...map.keys()]]).toEqual([0, 0, false, []]);
  });
});
