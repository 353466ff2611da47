/** The messages of a stream, taken out of the pieces that it comes in. */
import { describe, expect, test } from 'vitest';
import { MessageReader } from '../../../src/doors/grpc/messages.ts';
import { framed } from '../../support/grpc-frames.ts';

describe('pieces of messages', () => {
  test('take no more room than twice their bytes if each has one byte', () => {
    const reader = new MessageReader();
    const message = framed(Buffer.alloc(60_000, 'x'));
    for (const byte of message) reader.add(Buffer.from([byte]));
    expect(reader.heldBytes).toBeLessThan(120_000);
    expect(reader.next()).toEqual(Buffer.alloc(60_000, 'x'));
    expect(reader.isEmpty).toBe(true);
  });

  test('keep what was read of them, whatever comes behind', () => {
    const reader = new MessageReader();
    const read: string[] = [];
    const kept: Buffer[] = [];
    const stream = Buffer.concat(['one', '', 'two', 'three'].map((text) => framed(Buffer.from(text))));
    for (const byte of stream) {
      reader.add(Buffer.from([byte]));
      for (let next = reader.next(); next !== undefined; next = reader.next()) kept.push(next);
    }
    for (const message of kept) read.push(message.toString());
    expect(read).toEqual(['one', '', 'two', 'three']);
  });
});
