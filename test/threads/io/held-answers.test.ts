import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { COUNTERS_BYTES, FAILURES, WRITTEN } from '../../../src/threads/audit/audit-counters.ts';
import { HeldAnswers } from '../../../src/threads/io/held-answers.ts';
import { eventually } from '../../support/eventually.ts';

/** The test plays the audit thread; `given` has the first ids of the batches whose answers were let go. */
function open() {
  const shared = new SharedArrayBuffer(COUNTERS_BYTES);
  const counters = new Int32Array(shared);
  const given: number[] = [];
  const answers = new HeldAnswers({ counters: shared, release: (firstId) => given.push(firstId) });
  return {
    answers,
    given,
    hold: (batch: number, failures = 0) =>
      answers.take([{ type: 'held', batch, firstId: 100 + batch, failures, replies: [] }]),
    write: (batch: number) => {
      Atomics.store(counters, WRITTEN, batch);
      Atomics.notify(counters, WRITTEN);
    },
    fail: () => Atomics.add(counters, FAILURES, 1),
  };
}

describe('held answers', () => {
  test('releases written answers at once', () => {
    const { given, hold, write } = open();
    write(2);
    for (const batch of [1, 2, 3]) hold(batch);
    expect(given).toEqual([101, 102]);
  });

  test('the others are given in order, as soon as they are written', async () => {
    const { given, hold, write } = open();
    for (const batch of [1, 2, 3]) hold(batch);
    await turn();
    expect(given).toEqual([]);
    write(1);
    await eventually(() => expect(given).toEqual([101]));
    hold(4);
    write(4);
    await eventually(() => expect(given).toEqual([101, 102, 103, 104]));
  });

  test('numbers of batches wrap around', async () => {
    const { given, hold, write } = open();
    write(2 ** 31 - 2);
    hold(2 ** 31 - 1);
    hold(-(2 ** 31));
    expect(given).toEqual([]);
    write(-(2 ** 31));
    await eventually(() => expect(given).toEqual([100 + 2 ** 31 - 1, 100 - 2 ** 31]));
  });

  test('nothing from before a failed write is given by what is written after it', async () => {
    const { answers, given, hold, write, fail } = open();
    for (const batch of [1, 2, 3]) hold(batch);
    fail(); // at 3, before the main thread has learned of it
    write(4);
    await turn();
    expect(given).toEqual([]);
    answers.take([{ type: 'not-recorded', from: 3 }]);
    expect(given).toEqual([101, 102]);
    hold(4, 1);
    expect(given).toEqual([101, 102, 104]);
  });
});
