import { describe, expect, test } from 'vitest';
import { FairQueue } from '../../src/fairness/fair-queue.ts';

/** Work that ends when the test says so. */
function open(places: number, atOnce = 1) {
  const queue = new FairQueue({ atOnce, places });
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  return {
    begun,
    ask: (orgId: string | null, name: string): Promise<string> | undefined =>
      queue.run(orgId, () => {
        begun.push(name);
        return new Promise((resolve) => ends.push(() => resolve(name)));
      }),
    endOne: async () => {
      const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
      await turn();
      ends.shift()!();
      await turn();
    },
    queue,
  };
}

describe('fair queue', () => {
  test('runs one at a time, and an org waits for one task of each other org', async () => {
    const { ask, begun, endOne } = open(100);
    for (const name of ['a1', 'a2', 'a3', 'a4']) void ask('acme', name);
    void ask('globex', 'g1');
    void ask(null, 'n1');
    void ask('globex', 'g2');
    await endOne();
    expect(begun).toEqual(['a1', 'g1']);
    for (let ended = 0; ended < 6; ended += 1) await endOne();
    expect(begun).toEqual(['a1', 'g1', 'n1', 'a2', 'g2', 'a3', 'a4']);
  });

  test('runs two at a time where allowed', async () => {
    const { ask, begun, endOne } = open(100, 2);
    for (const name of ['a1', 'a2', 'a3', 'a4']) void ask('acme', name);
    void ask('globex', 'g1');
    await endOne();
    expect(begun).toEqual(['a1', 'a2', 'g1']);
    for (let ended = 0; ended < 4; ended += 1) await endOne();
    void ask('acme', 'a5');
    void ask('acme', 'a6');
    void ask('acme', 'a7');
    await endOne();
    expect(begun).toEqual(['a1', 'a2', 'g1', 'a3', 'a4', 'a5', 'a6', 'a7']);
  });

  test('after a pause runs as many at a time as before', async () => {
    const { ask, begun, endOne } = open(100);
    void ask('acme', 'a1');
    await endOne();
    for (const name of ['a2', 'a3', 'a4']) void ask('acme', name);
    await endOne();
    expect(begun).toEqual(['a1', 'a2', 'a3']);
  });

  test('an org gets half of the places and has them back as its work ends', async () => {
    const { ask, endOne, queue } = open(6);
    const find = (...orgIds: string[]): boolean[] => orgIds.map((orgId) => ask(orgId, 'work') !== undefined);
    expect(find('acme', 'acme', 'acme', 'acme', 'globex')).toEqual([true, true, true, false, true]);
    for (let ended = 0; ended < 3; ended += 1) await endOne();
    expect(find('acme', 'acme', 'acme')).toEqual([true, true, false]);
    for (let ended = 0; ended < 3; ended += 1) await endOne();
    for (let round = 0; round < 4; round += 1)
      await expect(queue.run('acme', () => Promise.reject(new Error('a defect')))).rejects.toThrow('a defect');
    expect(find('acme', 'acme', 'acme', 'acme')).toEqual([true, true, true, false]);
  });

  test('a caller bound to no org may take every place; then all wait', async () => {
    const { ask, endOne } = open(3);
    const find = (...orgIds: (string | null)[]): boolean[] => orgIds.map((orgId) => ask(orgId, 'work') !== undefined);
    expect(find(null, null, null, null, 'acme')).toEqual([true, true, true, false, false]);
    await endOne();
    expect(find('acme', 'globex', null)).toEqual([true, false, false]);
  });

  test('an org gets the larger half of an odd number of places, and a single one', () => {
    const { ask } = open(3);
    expect(['acme', 'acme', 'acme'].map((orgId) => ask(orgId, 'work') !== undefined)).toEqual([true, true, false]);
    expect(open(1).ask('acme', 'work')).toBeDefined();
  });

  test('started work is never refused: it waits its turn and displaces new work', async () => {
    const { ask, begun, endOne, queue } = open(4);
    for (const name of ['a1', 'a2']) void ask('acme', name);
    void queue.runFurther('acme', () => Promise.resolve().then(() => void begun.push('further')));
    void ask('globex', 'g1');
    expect({ askA3: ask('acme', 'a3'), askG2: ask('globex', 'g2'), inUse: queue.inUse }).toEqual({
      askA3: undefined,
      askG2: undefined,
      inUse: 4,
    });
    for (let ended = 0; ended < 3; ended += 1) await endOne();
    expect(begun).toEqual(['a1', 'g1', 'a2', 'further']);
    const find = (...orgIds: string[]): boolean[] => orgIds.map((orgId) => ask(orgId, 'work') !== undefined);
    expect(find('acme', 'acme', 'acme')).toEqual([true, true, false]);
  });
});
