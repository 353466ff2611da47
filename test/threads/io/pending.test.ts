import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Pending } from '../../../src/threads/io/pending.ts';
import { runs } from '../../support/runs.ts';

describe('pending', () => {
  test('each request is returned by its own number, once', () => {
    // Takes the one that has waited longest, the one that came last, or any between.
    const steps = fc.array(
      fc.oneof(
        { weight: 3, arbitrary: fc.constant('add' as const) },
        { weight: 2, arbitrary: fc.record({ take: fc.nat(1_000) }) },
      ),
      { maxLength: 1_000, size: 'max' },
    );
    fc.assert(
      fc.property(steps, (history) => {
        const pending = new Pending<string>();
        const model = new Map<number, string>();
        const given = new Set<number>();
        for (const [at, step] of history.entries()) {
          if (step === 'add') {
            const number = pending.add(`request ${at}`);
            expect(given.has(number)).toBe(false);
            given.add(number);
            model.set(number, `request ${at}`);
          } else if (model.size > 0) {
            const number = [...model.keys()][step.take % model.size]!;
            expect(pending.take(number)).toBe(model.get(number));
            expect(pending.take(number)).toBeUndefined();
            model.delete(number);
          }
          expect(pending.size).toBe(model.size);
        }
        for (const [number, item] of model) expect(pending.take(number)).toBe(item);
        expect(pending.size).toBe(0);
      }),
      { numRuns: runs(15) },
    );
  });

  test('a request that waits among a hundred thousand others keeps its number', () => {
    const pending = new Pending<string>();
    const slow = pending.add('slow');
    const numbers = new Set<number>();
    const handedOver = new Set<string | undefined>();
    for (let quick = 0; quick < 100_000; quick += 1) {
      const number = pending.add('quick');
      numbers.add(number);
      handedOver.add(pending.take(number));
    }
    expect({ numberCount: numbers.size, hasSlow: numbers.has(slow), handedOver: [...handedOver] }).toEqual({
      numberCount: 100_000,
      hasSlow: false,
      handedOver: ['quick'],
    });
    expect(pending.take(slow)).toBe('slow');
  });

  test('an unknown or finished number returns nothing', () => {
    const pending = new Pending<string>();
    expect(pending.take(1)).toBeUndefined();
    const number = pending.add('one');
    expect(pending.take(number + 64)).toBeUndefined();
    expect(pending.take(0)).toBeUndefined();
    expect(pending.take(number)).toBe('one');
    expect(pending.take(number)).toBeUndefined();
  });

  test('all pending requests are taken at once, and none is answered later', () => {
    const pending = new Pending<number>();
    const numbers = Array.from({ length: 100 }, (_, index) => pending.add(index));
    pending.take(numbers[50]!);
    expect(pending.takeAll().toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 100 }, (_, index) => index).filter((index) => index !== 50),
    );
    expect([pending.size, ...numbers.map((number) => pending.take(number))]).toEqual([
      0,
      ...numbers.map(() => undefined),
    ]);
    expect(numbers).not.toContain(pending.add(1));
  });
});
