import { connect, createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { writeInPieces } from '../../../src/doors/grpc/pieces.ts';
import { eventually } from '../../support/eventually.ts';

/** A stream that ends with trailers, whose client takes `windowBytes` and then nothing until it reads. */
async function open(windowBytes: number) {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    settings: { initialWindowSize: windowBytes },
  });
  onTestFinished(() => {
    session.destroy();
    server.close();
  });
  const accepted = new Promise<ServerHttp2Stream>((resolve) => {
    server.once('stream', resolve);
  });
  const client = session.request({ ':path': '/' });
  const stream = await accepted;
  let left = 0;
  writeInPieces(stream, () => {
    left += 1;
  });
  stream.respond({ ':status': 200 }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ done: 'yes' }));
  const trailers = new Promise<unknown>((resolve) => {
    client.once('trailers', ({ done }) => resolve(done));
  });
  return {
    stream,
    left: () => left,
    /** Once the client has it, what was sent before has come too. */
    ping: () =>
      new Promise<void>((resolve) => {
        session.ping(() => resolve());
      }),
    readAll: async () => {
      const pieces: Buffer[] = [];
      for await (const piece of client) pieces.push(piece as Buffer);
      return { bytes: Buffer.concat(pieces), trailers: await trailers };
    },
  };
}

describe('pieces', () => {
  test('each chunk for a slow client counts as it leaves, in order', async () => {
    const { stream, left, ping, readAll } = await open(20_000);
    const messages = Array.from({ length: 10 }, (_, index) => Buffer.alloc(10_000, index));
    for (const message of messages) stream.write(message);
    stream.end();
    await eventually(() => expect(left()).toBe(2));
    await ping();
    expect({ left: left(), writableLength: stream.writableLength }).toEqual({ left: 2, writableLength: 90_000 });
    expect(await readAll()).toEqual({ bytes: Buffer.concat(messages), trailers: 'yes' });
    expect(left()).toBe(10);
  });

  test('one large message leaves in chunks too', async () => {
    const { stream, left, readAll } = await open(20_000);
    const message = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 251));
    stream.end(message);
    await eventually(() => expect(left()).toBe(1));
    expect(await readAll()).toEqual({ bytes: message, trailers: 'yes' });
    expect(left()).toBe(7);
  });

  test('many small messages waiting together still leave as one', async () => {
    const { stream, left, readAll } = await open(65_535);
    for (let index = 0; index < 100; index += 1) stream.write(Buffer.alloc(150, index));
    stream.end();
    expect((await readAll()).bytes.length).toBe(15_000);
    expect(left()).toBe(2);
  });
});
