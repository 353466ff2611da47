import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { OpId } from '../../src/core/ids.ts';
import { HASH_KEY_LENGTH, OpIndex } from '../../src/core/op-index.ts';
import { HASH_KEY } from '../support/governor.ts';

/** With this key every id has the same hash. */
const ALL_COLLIDE = new Int32Array(HASH_KEY_LENGTH);

function open(hashKey: Int32Array) {
  const ids: (OpId | undefined)[] = [];
  const index = new OpIndex(hashKey, (slot) => ids[slot]);
  return {
    index,
    add: (id: string): void => {
      ids.push(id as OpId);
      index.add(id as OpId, ids.length - 1);
    },
    remove: (id: string): void => {
      const slot = index.find(id as OpId)!;
      index.remove(id as OpId, slot);
      ids[slot] = undefined;
    },
    find: (id: string): string | undefined => {
      const slot = index.find(id as OpId);
      return slot === undefined ? undefined : ids[slot];
    },
  };
}

describe.each([['ids that spread', HASH_KEY], ['ids that all collide', ALL_COLLIDE]])('%s', (_, hashKey) => {
  test('whatever is added and removed, in whatever order, exactly what is in it is found', () => {
    const step = fc.record({ isAdded: fc.boolean(), name: fc.integer({ min: 0, max: 300 }) });
    fc.assert(fc.property(fc.array(step, { maxLength: 600, size: 'max' }), (steps) => {
      const { add, remove, find } = open(hashKey);
      const model = new Set<string>();
      for (const { isAdded, name } of steps) {
        const id = `trace-${name}:span`;
        if (isAdded === model.has(id)) continue;
        if (isAdded) {
          add(id);
          model.add(id);
        } else {
          remove(id);
          model.delete(id);
        }
      }
      for (let name = 0; name <= 300; name += 1) {
        const id = `trace-${name}:span`;
        expect(find(id)).toBe(model.has(id) ? id : undefined);
      }
    }), { numRuns: 60 });
  });
});

test('it grows with what is added, and the longest ids there can be are told apart', () => {
  const { add, find } = open(HASH_KEY);
  const idOf = (nth: number): string => `${'t'.repeat(256)}:${String(nth).padStart(256, 's')}`;
  for (let nth = 0; nth < 20_000; nth += 1) add(idOf(nth));
  for (let nth = 0; nth < 20_000; nth += 1) expect(find(idOf(nth))).toBe(idOf(nth));
  expect(find(idOf(20_000))).toBeUndefined();
  expect(find('t:s')).toBeUndefined();
});

test('an id written in other letters than ASCII is found', () => {
  const { add, find } = open(HASH_KEY);
  add('трасса:π');
  add('трасса:ρ');
  expect(find('трасса:π')).toBe('трасса:π');
  expect(find('трасса:σ')).toBeUndefined();
});
