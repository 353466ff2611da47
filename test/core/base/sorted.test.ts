import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SequencedList } from '../../../src/core/base/sorted.ts';
import { runs } from '../../support/runs.ts';

describe('sequenced list', () => {
  test('any additions and removals keep the order of numbers, from any number on', () => {
    const steps = fc.array(
      fc.oneof(fc.record({ add: fc.integer({ min: 1, max: 3 }) }), fc.record({ remove: fc.nat(300) })),
      { maxLength: 300, size: 'max' },
    );
    fc.assert(
      fc.property(steps, fc.nat(300), (history, from) => {
        const list = new SequencedList<string>();
        const model = new Map<number, string>();
        let last = 0;
        for (const step of history) {
          if ('add' in step) {
            last += step.add;
            list.add(last, `item ${last}`);
            model.set(last, `item ${last}`);
          } else {
            list.remove(step.remove);
            model.delete(step.remove);
          }
        }
        expect(list.size).toBe(model.size);
        expect([...list.after(0)]).toEqual([...model.values()]);
        expect([...list.after(from)]).toEqual([...model].flatMap(([number, item]) => (number > from ? [item] : [])));
      }),
      { numRuns: runs(100) },
    );
  });

  test('a list that most have left holds the few that stayed, each at its number', () => {
    const list = new SequencedList<number>();
    for (let number = 1; number <= 10_000; number += 1) list.add(number, number);
    for (let number = 1; number <= 10_000; number += 1) if (number % 1_000 !== 0) list.remove(number);
    expect({ listCount: list.size, after: [...list.after(7_999)] }).toEqual({
      listCount: 10,
      after: [8_000, 9_000, 10_000],
    });
    list.remove(9_000);
    list.add(10_001, 10_001);
    expect([...list.after(8_000)]).toEqual([10_000, 10_001]);
  });

  test('a number that does not grow is a defect', () => {
    const list = new SequencedList<string>();
    list.add(5, 'five');
    expect(() => list.add(5, 'again')).toThrow('the numbers of a list grow');
  });
});
