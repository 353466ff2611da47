import { describe, expect, test } from 'vitest';
import { Batcher, toThread, withinThread } from '../../src/threads/batcher.ts';
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
  const batcher = new Batcher<number>(toThread(port as never, (messages) => new Uint8Array(messages)));
  return { batcher, posted, transferred };
}

describe('batcher', () => {
  test('messages of one turn cross as one ordered batch whose memory is transferred', async () => {
    const { batcher, posted, transferred } = open();
    for (const n of [1, 2, 3]) batcher.send(n);
    expect(posted).toEqual([]);
    await eventually(() => expect(posted).toEqual([[1, 2, 3]]));
    expect(transferred[0]).toHaveLength(1);
    batcher.send(4);
    await eventually(() => expect(posted).toEqual([[1, 2, 3], [4]]));
  });

  test('flushed messages are not sent again, and an empty box sends nothing', async () => {
    const { batcher, posted } = open();
    batcher.send(1);
    batcher.flush();
    batcher.flush();
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    expect(posted).toEqual([[1]]);
  });

  test('within one thread a batch of any size waits for the end of the turn', async () => {
    const received: (readonly number[])[] = [];
    const batcher = new Batcher<number>(withinThread((messages) => void received.push(messages)));
    const all = Array.from({ length: 200 }, (_, n) => n);
    for (const n of all) batcher.send(n);
    expect(received).toEqual([]);
    await eventually(() => expect(received).toEqual([all]));
  });

  test('a large batch is sent before the end of the turn, complete and in order', async () => {
    const { batcher, posted } = open();
    const all = Array.from({ length: 200 }, (_, n) => n);
    for (const n of all) batcher.send(n);
    expect(posted.length).toBeGreaterThan(1);
    await eventually(() => expect(posted.flat()).toEqual(all));
  });
});
