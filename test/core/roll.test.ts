import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Roll } from '../../src/core/roll.ts';

test('whatever comes and goes, what is there is told in the order of its numbers, from any number on', () => {
  const steps = fc.array(fc.oneof(fc.record({ add: fc.integer({ min: 1, max: 3 }) }), fc.record({ remove: fc.nat(300) })), { maxLength: 300 });
  fc.assert(fc.property(steps, fc.nat(300), (history, from) => {
    const roll = new Roll<string>();
    const model = new Map<number, string>();
    let last = 0;
    for (const step of history) {
      if ('add' in step) {
        last += step.add;
        roll.add(last, `item ${last}`);
        model.set(last, `item ${last}`);
      } else {
        roll.remove(step.remove);
        model.delete(step.remove);
      }
    }
    expect(roll.size).toBe(model.size);
    expect([...roll.after(0)]).toEqual([...model.values()]);
    expect([...roll.after(from)]).toEqual([...model].flatMap(([number, item]) => (number > from ? [item] : [])));
  }), { numRuns: 300 });
});

test('a roll that most have left holds the few that stayed, each at its number', () => {
  const roll = new Roll<number>();
  for (let number = 1; number <= 10_000; number += 1) roll.add(number, number);
  for (let number = 1; number <= 10_000; number += 1) if (number % 1_000 !== 0) roll.remove(number);
  expect([roll.size, [...roll.after(7_999)]]).toEqual([10, [8_000, 9_000, 10_000]]);
  roll.remove(9_000);
  roll.add(10_001, 10_001);
  expect([...roll.after(8_000)]).toEqual([10_000, 10_001]);
});

test('a number that does not grow is a defect', () => {
  const roll = new Roll<string>();
  roll.add(5, 'five');
  expect(() => roll.add(5, 'again')).toThrow('the numbers of a roll grow');
});
