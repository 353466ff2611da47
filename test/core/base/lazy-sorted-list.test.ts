import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LazySortedList } from '../../../src/core/base/sorted.ts';

const change = fc.record({ kind: fc.constantFrom('add', 'add', 'add', 'delete', 'look'), value: fc.nat(20) });

describe('late sorted', () => {
  test('any additions and deletions keep the order and the count', () => {
    fc.assert(
      fc.property(fc.array(change, { size: 'max', maxLength: 60 }), (changes) => {
        const list = new LazySortedList<number>((a, b) => a - b);
        let expected: number[] = [];
        for (const { kind, value } of changes) {
          if (kind === 'add') {
            list.add(value);
            expected = [...expected, value].toSorted((a, b) => a - b);
          } else if (kind === 'delete') {
            list.delete(value);
            const at = expected.indexOf(value);
            expected = expected.filter((_, index) => index !== at);
          } else {
            expect(list.countBefore(value)).toBe(expected.filter((each) => each < value).length);
            expect(list.slice(1, 4)).toEqual(expected.slice(1, 4));
          }
          expect(list.size).toBe(expected.length);
        }
        list.keep((each) => each % 2 === 0);
        expect(list.slice(0, list.size)).toEqual(expected.filter((each) => each % 2 === 0));
      }),
    );
  });
});
