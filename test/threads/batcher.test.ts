import { describe, expect, test } from 'vitest';
import { Batcher } from '../../src/threads/batcher.ts';
import { eventually } from '../support/eventually.ts';

function open() {
  const posted: number[][] = [];
  const transferred: ArrayBuffer[][] = [];
  const port = {
    postMessage: (bytes: Uint8Array, transfer: ArrayBuffer[]) => {
      posted.push([...bytes]);
      transferred.push(transfer);
    },
  };
  const batcher = new Batcher<number>(port as never, (messages) => new Uint8Array(messages));
  return { batcher, posted, transferred };
}

describe('batcher', () => {
  test('what is said within one turn crosses as one batch, in its order, and its memory is handed over', async () => {
    const { batcher, posted, transferred } = open();
    for (const n of [1, 2, 3]) batcher.send(n);
    expect(posted).toEqual([]);
    await eventually(() => expect(posted).toEqual([[1, 2, 3]]));
    expect(transferred[0]).toHaveLength(1);
    batcher.send(4);
    await eventually(() => expect(posted).toEqual([[1, 2, 3], [4]]));
  });

  test('what is flushed is not sent again, and an empty box sends nothing', async () => {
    const { batcher, posted } = open();
    batcher.send(1);
    batcher.flush();
    batcher.flush();
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    expect(posted).toEqual([[1]]);
  });

  test('a large batch does not wait for the end of the turn, and nothing of it is lost or changes places', async () => {
    const { batcher, posted } = open();
    const all = Array.from({ length: 200 }, (_, n) => n);
    for (const n of all) batcher.send(n);
    expect(posted.length).toBeGreaterThan(1);
    await eventually(() => expect(posted.flat()).toEqual(all));
  });
});
