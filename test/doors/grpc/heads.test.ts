/** Heads of calls as clients in other languages write them. */
import { once } from 'node:events';
import { connect as connectHttp2, constants, type IncomingHttpHeaders } from 'node:http2';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, test, vi } from 'vitest';
import { binaryCodec } from '../../../src/doors/proto/binary.ts';
import { eventually } from '../../support/eventually.ts';
import { WRITE_KEY } from '../../support/fake-ports.ts';
import { framed } from '../../support/grpc-frames.ts';
import { END_HEADERS, END_STREAM, FRAME, h2, literal, START } from '../../support/http2-frames.ts';
import { check, POLICY, scene, withScene } from './harness.ts';

withScene();

const PATH = `${POLICY}/CheckAction`;
const USUAL = {
  ':method': 'POST',
  ':scheme': 'http',
  ':path': PATH,
  ':authority': 'gateway',
  'content-type': 'application/grpc',
  te: 'trailers',
};

/** A check that says nothing of who asks, but for the bearer. */
const vouched = () => framed(binaryCodec('CheckActionRequest').encode(check({ credentialToken: '' })) as Buffer);

const { DATA, HEADERS } = FRAME;

/**
 * Makes a call on a connection of its own, frame by frame: the client of Node.js writes no field twice. Resolves once
 * the call is over.
 */
function callRaw(fields: readonly (readonly [string, string])[]): Promise<void> {
  const block = Buffer.concat(fields.map(([name, value]) => literal(name, value)));
  const socket = connect(Number(scene.address.split(':')[1]), '127.0.0.1');
  socket.write(Buffer.concat([START, h2(HEADERS, END_HEADERS, 1, block), h2(DATA, END_STREAM, 1, vouched())]));
  return new Promise((resolve, reject) => {
    let come = Buffer.alloc(0);
    socket.on('data', (piece: Buffer) => {
      come = Buffer.concat([come, piece]);
      while (come.length >= 9 && come.length >= 9 + come.readUIntBE(0, 3)) {
        const [type, flags, stream] = [come.readUInt8(3), come.readUInt8(4), come.readUInt32BE(5)];
        come = come.subarray(9 + come.readUIntBE(0, 3));
        if (stream !== 1 || (type !== HEADERS && type !== DATA) || (flags & END_STREAM) === 0) continue;
        socket.destroy();
        resolve();
      }
    });
    socket.on('error', reject).on('end', () => reject(new Error('the connection was ended')));
  });
}

/** A field of 3,900 bytes that is noted under the index 62, and a byte that stands for it. */
const NOTED = Buffer.concat([
  Buffer.from([0x40, 1, 0x61, 0x7f, 0xbd, 0x1d]), // the length: 127 + 0x3d + 0x1d * 128
  Buffer.from('x'.repeat(3_900)),
]);
const NOTED_AGAIN = 0x80 | 62;

describe('heads', () => {
  test('ends the connection, not only the call, if each byte stands for 4 KiB', async () => {
    const fields = Object.entries(USUAL).map(([name, value]) => literal(name, value));
    const socket = connect(Number(scene.address.split(':')[1]), '127.0.0.1').resume();
    const again = Buffer.concat([...fields, Buffer.alloc(100, NOTED_AGAIN)]);
    const closed = once(socket, 'close');
    socket.on('error', () => undefined);
    socket.write(
      Buffer.concat([
        START,
        h2(HEADERS, END_HEADERS | END_STREAM, 1, Buffer.concat([...fields, NOTED])),
        h2(HEADERS, END_HEADERS | END_STREAM, 3, again),
      ]),
    );
    await closed;
  });

  test.each([
    ['one', [`Bearer ${WRITE_KEY}`], [{ principal: { subject: 'key:w' } }]],
    ['a good and a bad', [`Bearer ${WRITE_KEY}`, 'Bearer wrong'], []],
    ['a bad and a good', ['Bearer wrong', `Bearer ${WRITE_KEY}`], []],
    ['twice the same', [`Bearer ${WRITE_KEY}`, `Bearer ${WRITE_KEY}`], []],
    ['a good and an empty', [`Bearer ${WRITE_KEY}`, ''], []],
  ] as const)('may have one authorization field on the wire, not two: %s', async (_what, bearers, asked) => {
    await callRaw([...Object.entries(USUAL), ...bearers.map((value) => ['authorization', value] as const)]);
    expect(scene.gateway.asked).toMatchObject(asked);
    expect(scene.gateway.asked).toHaveLength(asked.length);
  });

  /** Resolves with the headers and the trailers of the whole answer. */
  function call(fields: Record<string, string>, body = vouched()): Promise<IncomingHttpHeaders> {
    const session = connectHttp2(`http://${scene.address}`);
    const stream = session.request({ ...USUAL, authorization: `Bearer ${WRITE_KEY}`, ...fields });
    stream.end(body);
    stream.resume();
    const received: IncomingHttpHeaders = {};
    return new Promise((resolve, reject) => {
      stream
        .on('response', (headers) => Object.assign(received, headers))
        .on('trailers', (headers) => Object.assign(received, headers));
      stream.on('error', reject);
      stream.on('close', () => {
        session.close();
        resolve(received);
      });
    });
  }

  test.each(['600H', '720H', '43200M', '2592000S', '99999999S', '99999999H', '596H', '99999999m', '1H'])(
    'a deadline of %s is not passed before the answer',
    async (timeout) => {
      scene.gateway.answer = () => sleep(50, undefined as never);
      expect(await call({ 'grpc-timeout': timeout })).toMatchObject({ 'grpc-status': '0' });
    },
  );

  test('a deadline that has passed ends the call', async () => {
    scene.gateway.answer = () => new Promise(() => undefined);
    expect(await call({ 'grpc-timeout': '20m' })).toMatchObject({ 'grpc-status': '4' });
  });

  const compressed = (message: Buffer): Buffer => framed(message, { flag: 1 });

  test.each([
    ['gzip', PATH, gzipSync(Buffer.alloc(3_900_000))],
    ['deflate', PATH, deflateSync(Buffer.alloc(3_900_000))],
    ['gzip', `${POLICY}/StreamCheckActions`, gzipSync(Buffer.alloc(3_900_000))],
  ])('a message compressed by %s, sent to %s, is refused without unpacking', async (encoding, path, message) => {
    const before = process.memoryUsage().arrayBuffers;
    let most = before;
    const looking = setInterval(() => {
      most = Math.max(most, process.memoryUsage().arrayBuffers);
    }, 1);
    const received = await Promise.all(
      Array.from({ length: 20 }, () => call({ ':path': path, 'grpc-encoding': encoding }, compressed(message))),
    );
    clearInterval(looking);
    for (const answer of received) {
      expect({
        grpcStatus: answer['grpc-status'],
        message: decodeURIComponent(String(answer['grpc-message'])),
      }).toEqual({
        grpcStatus: '12',
        message: `messages compressed with "${encoding}" are not supported; send messages uncompressed`,
      });
    }
    expect((most - before) / 1_000_000).toBeLessThan(20);
  });

  test.each(['identity', 'gzip'])(
    'a call naming the encoding %s is answered if its message is not compressed',
    async (encoding) => {
      expect(await call({ 'grpc-encoding': encoding })).toMatchObject({ 'grpc-status': '0' });
    },
  );

  test.each([
    ['an answer', {}, vouched(), '0'],
    [
      'the refusal of a compressed message',
      { 'grpc-encoding': 'gzip' },
      compressed(gzipSync(vouched().subarray(5))),
      '12',
    ],
  ] as const)('%s tells the client to send its messages uncompressed', async (_what, fields, message, status) => {
    const received = await call(fields, message);
    expect({ grpcStatus: received['grpc-status'], grpcAcceptEncoding: received['grpc-accept-encoding'] }).toEqual({
      grpcStatus: status,
      grpcAcceptEncoding: 'identity',
    });
  });

  test.each(['application/grpc+json', 'application/grpc-web+proto', 'text/plain'])(
    'a body of %s is not read as gRPC',
    async (type) => {
      expect(await call({ 'content-type': type })).toMatchObject({ ':status': 415 });
      expect(scene.gateway.asked).toEqual([]);
    },
  );

  test('metadata that is not text is dropped and not printed: it may be a credential', async () => {
    const written = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    expect(await call({ 'x-user': 'Müller' })).toMatchObject({ 'grpc-status': '0' });
    scene.gateway.asked.length = 0;
    await call({ authorization: `Bearer ${WRITE_KEY}é` });
    expect(scene.gateway.asked).toMatchObject([{ credential: undefined, principal: undefined }]);
    expect(written.mock.calls).toEqual([]);
    written.mockRestore();
  });

  test('a connection allows 256 calls at a time and announces it', async () => {
    const session = connectHttp2(`http://${scene.address}`);
    await once(session, 'remoteSettings');
    expect(session.remoteSettings.maxConcurrentStreams).toBe(256);
    session.destroy();
  });

  test('metadata over the announced 16 KiB ends its own call and no other', async () => {
    const session = connectHttp2(`http://${scene.address}`, { maxSendHeaderBlockLength: 1024 * 1024 });
    await once(session, 'remoteSettings');
    expect(session.remoteSettings.maxHeaderListSize).toBe(16_384);
    let decide: (answer: never) => void = () => undefined;
    scene.gateway.answer = () =>
      new Promise<never>((resolve) => {
        decide = resolve;
      });
    const other = session.request({ ...USUAL, authorization: `Bearer ${WRITE_KEY}` });
    other.end(vouched());
    await eventually(() => expect(scene.gateway.asked).toHaveLength(1));
    for (const [name, fields] of Object.entries({
      one: { 'x-baggage': 'a'.repeat(17_000) },
      ten: Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`x-baggage-${index}`, 'a'.repeat(2_000)])),
      large: { 'x-baggage': 'a'.repeat(70_000) },
    })) {
      const large = session.request({ ...USUAL, ...fields });
      large.on('error', () => undefined);
      large.end(vouched());
      await new Promise((resolve) => large.once('close', resolve));
      expect(large.rstCode, name).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    }
    const answered = once(other, 'response');
    decide(undefined as never);
    expect((await answered)[0]).toMatchObject({ ':status': 200 });
    session.destroy();
  });

  test('a client ignoring the limit cannot send more by repeating a field', async () => {
    const indexed = Buffer.concat([Buffer.from([0x40]), literal('x-baggage', 'a'.repeat(100)).subarray(1)]); // from here on 0xbe says it again (RFC 7541, 6.2.1)
    const block = Buffer.concat([
      ...Object.entries(USUAL).map(([name, value]) => literal(name, value)),
      literal('authorization', `Bearer ${WRITE_KEY}`),
      indexed,
      Buffer.alloc(115, 0xbe),
    ]);
    const socket = connect(Number(scene.address.split(':')[1]), '127.0.0.1');
    socket.write(Buffer.concat([START, h2(HEADERS, END_HEADERS, 1, block), h2(DATA, END_STREAM, 1, vouched())]));
    let come = Buffer.alloc(0);
    socket.on('data', (piece: Buffer) => {
      come = Buffer.concat([come, piece]);
    });
    await eventually(
      () =>
        expect(come.includes(h2(FRAME.RESET, 0, 1, Buffer.from([0, 0, 0, constants.NGHTTP2_ENHANCE_YOUR_CALM])))).toBe(
          true,
        ),
      5_000,
    );
    socket.destroy();
    expect(scene.gateway.asked).toEqual([]);
  });
});
