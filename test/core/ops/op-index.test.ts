import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { OpId } from '../../../src/core/base/ids.ts';
import { HASH_KEY_LENGTH, OpIndex } from '../../../src/core/ops/op-index.ts';
import { HASH_KEY } from '../../support/governor.ts';
import { runs } from '../../support/runs.ts';

/** With this key every id has the same hash. */
const ALL_COLLIDE = new Int32Array(HASH_KEY_LENGTH);
/** As good as random, and the same in every run. */
const RANDOM_KEY = new Int32Array(
  Uint8Array.from(
    createHash('shake256', { outputLength: HASH_KEY_LENGTH * 4 })
      .update('key')
      .digest(),
  ).buffer,
);

/** The only one here: that two orgs may use the same id is tested with the registry. */
const ORG = 'acme';

function open(hashKey: Int32Array) {
  const ids: (OpId | undefined)[] = [];
  const index = new OpIndex(hashKey, (slot, id) => ids[slot] === id);
  return {
    index,
    add: (id: string): void => {
      ids.push(id as OpId);
      index.add(id as OpId, ids.length - 1);
    },
    remove: (id: string): void => {
      const slot = index.find(id as OpId, ORG)!;
      index.remove(id as OpId, slot);
      ids[slot] = undefined;
    },
    find: (id: string): string | undefined => {
      const slot = index.find(id as OpId, ORG);
      return slot === undefined ? undefined : ids[slot];
    },
  };
}

describe.each([
  ['ids that spread', HASH_KEY],
  ['ids that all collide', ALL_COLLIDE],
])('%s', (_, hashKey) => {
  test('finds exactly what is in it after any additions and removals', () => {
    const step = fc.record({ isAdded: fc.boolean(), name: fc.integer({ min: 0, max: 300 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 600, size: 'max' }), (steps) => {
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
      }),
      { numRuns: runs(20) },
    );
  });
});

describe('op index', () => {
  test('grows as needed and distinguishes the longest ids', () => {
    const { add, find } = open(HASH_KEY);
    const idOf = (nth: number): string => `${'t'.repeat(256)}:${String(nth).padStart(256, 's')}`;
    for (let nth = 0; nth < 20_000; nth += 1) add(idOf(nth));
    for (let nth = 0; nth < 20_000; nth += 1) expect(find(idOf(nth))).toBe(idOf(nth));
    expect(find(idOf(20_000))).toBeUndefined();
    expect(find('t:s')).toBeUndefined();
  });

  test('finds an id with letters outside ASCII', () => {
    const { add, find } = open(HASH_KEY);
    add('трасса:π');
    add('трасса:ρ');
    expect(find('трасса:π')).toBe('трасса:π');
    expect(find('трасса:σ')).toBeUndefined();
  });

  test.each([
    [
      'the first character',
      (nth: number) => `${String.fromCharCode(0x4e00 + nth)}${'t'.repeat(255)}:${'s'.repeat(256)}`,
    ],
    [
      'the last character',
      (nth: number) => `${'t'.repeat(256)}:${'s'.repeat(255)}${String.fromCharCode(0x4e00 + nth)}`,
    ],
    ['a number in the middle', (nth: number) => `trace-${nth * 1_000_000_007}:span`],
    ['the zeros behind them', (nth: number) => 't:s'.padEnd(3 + (nth % 510), '\0') + String(Math.floor(nth / 510))],
  ])('ids that differ only in %s do not collide', (_, idOf) => {
    let looks = 0;
    const ids = Array.from({ length: 5_000 }, (_, nth) => idOf(nth) as OpId);
    const index = new OpIndex(RANDOM_KEY, (slot, id) => {
      looks += 1;
      return ids[slot] === id;
    });
    ids.forEach((id, slot) => index.add(id, slot));
    ids.forEach((id, slot) => expect(index.find(id, ORG)).toBe(slot));
    expect(looks).toBe(5_000);
  });

  test('does not grow with what comes and goes, only with what it holds', () => {
    const { index } = open(HASH_KEY);
    const bytesBefore = process.memoryUsage().arrayBuffers;
    for (let nth = 0; nth < 500_000; nth += 1) {
      index.add(`trace-${nth}:span` as OpId, nth);
      index.remove(`trace-${nth}:span` as OpId, nth);
    }
    expect(process.memoryUsage().arrayBuffers - bytesBefore).toBeLessThan(1_000_000);
  });
});
