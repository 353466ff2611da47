/**
 * However the one message of a call comes, and whichever way it takes through the gateway for that, the answer is the
 * same.
 */
import { once } from 'node:events';
import { type ClientHttp2Session, connect, constants, type IncomingHttpHeaders } from 'node:http2';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { fail } from '../../../src/core/base/result.ts';
import { binaryCodec } from '../../../src/doors/proto/binary.ts';
import type { CheckActionResponse } from '../../../src/doors/proto/messages.ts';
import { eventually } from '../../support/eventually.ts';
import { WRITE_KEY } from '../../support/fake-ports.ts';
import { framed } from '../../support/grpc-frames.ts';
import { AGENT, check, crawler, POLICY, scene, withScene } from './harness.ts';

withScene();

let session: ClientHttp2Session;
describe('express', () => {
  beforeEach(async () => {
    session = connect(`http://${scene.address}`);
    await once(session, 'remoteSettings');
  });
  afterEach(() => session.destroy());

  const MESSAGE = framed(binaryCodec('CheckActionRequest').encode(check({ correlationId: 'c' })) as Buffer);

  type Told = {
    readonly head: IncomingHttpHeaders;
    readonly status: unknown;
    readonly message: string;
    readonly answer: CheckActionResponse | undefined;
  };

  /** Sends the pieces in turns of their own, the last with the end of the request. */
  async function call(pieces: readonly Buffer[], fields: Readonly<Record<string, string>> = {}): Promise<Told> {
    const stream = session.request({
      ':method': 'POST',
      ':path': `${POLICY}/CheckAction`,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...fields,
    });
    const trailers: IncomingHttpHeaders = {};
    const come: Buffer[] = [];
    stream
      .on('data', (piece: Buffer) => come.push(piece))
      .on('trailers', (fields) => Object.assign(trailers, fields))
      .on('error', () => undefined);
    const headed = once(stream, 'response');
    const closed = once(stream, 'close');
    for (const piece of pieces.slice(0, -1)) {
      await new Promise((resolve) => stream.write(piece, resolve));
      await new Promise((resolve) => session.ping(resolve)); // and so it has come
    }
    stream.end(pieces.at(-1));
    const [head] = (await headed) as [IncomingHttpHeaders];
    await closed;
    const all = { ...head, ...trailers };
    const bytes = Buffer.concat(come);
    const answer = bytes.length === 0 ? undefined : binaryCodec('CheckActionResponse').decode(bytes.subarray(5));
    return {
      head,
      status: all['grpc-status'],
      message: decodeURIComponent(String(all['grpc-message'] ?? '')),
      answer: answer?.ok === true ? answer.value : undefined,
    };
  }

  test.each([
    ['in one piece', [MESSAGE], {}],
    ['in two pieces', [MESSAGE.subarray(0, 40), MESSAGE.subarray(40)], {}],
    ['with a split prefix', [MESSAGE.subarray(0, 3), MESSAGE.subarray(3)], {}],
    ['byte by byte', Array.from(MESSAGE, (byte) => Buffer.from([byte])), {}],
    ['before the end of the request', [MESSAGE, Buffer.alloc(0)], {}],
    ['as application/grpc+proto', [MESSAGE], { 'content-type': 'application/grpc+proto' }],
    ['with a deadline', [MESSAGE], { 'grpc-timeout': '5S' }],
    ['with a deadline in nanoseconds', [MESSAGE], { 'grpc-timeout': '99999999n' }],
    ['with metadata', [MESSAGE], { 'x-request-id': '1', 'user-agent': 'agent/1.0', 'trace-bin': 'AAEC' }],
  ])('a check that comes %s is answered', async (_how, pieces, fields) => {
    expect(await call(pieces, fields)).toMatchObject({
      status: '0',
      message: '',
      answer: { decision: 'allow', opId: 'trace:span', correlationId: 'c' },
    });
    expect(scene.gateway.asked).toMatchObject([{ type: 'check', agent: crawler }]);
  });

  test.each([
    ['without a message', { pieces: [Buffer.alloc(0)], fields: {}, status: '12', message: /no request message/ }],
    [
      'with half a message',
      { pieces: [MESSAGE.subarray(0, 40)], fields: {}, status: '12', message: /no request message/ },
    ],
    [
      'with half a prefix',
      { pieces: [MESSAGE.subarray(0, 4)], fields: {}, status: '12', message: /no request message/ },
    ],
    [
      'with two messages in one piece',
      { pieces: [Buffer.concat([MESSAGE, MESSAGE])], fields: {}, status: '12', message: /second request message/ },
    ],
    [
      'with two messages in two pieces',
      { pieces: [MESSAGE, MESSAGE], fields: {}, status: '12', message: /second request message/ },
    ],
    [
      'with a message and a half',
      {
        pieces: [Buffer.concat([MESSAGE, MESSAGE.subarray(0, 9)])],
        fields: {},
        status: '12',
        message: /second request message/,
      },
    ],
    [
      'with a compressed message',
      {
        pieces: [framed(MESSAGE.subarray(5), { flag: 1 })],
        fields: { 'grpc-encoding': 'gzip' },
        status: '12',
        message: /send messages uncompressed/,
      },
    ],
    [
      'with bytes that are no message',
      { pieces: [framed(Buffer.from([0x0a, 0x7f, 0x01]))], fields: {}, status: '3', message: /message: is truncated/ },
    ],
    [
      'with a deadline that is none',
      {
        pieces: [MESSAGE],
        fields: { 'grpc-timeout': 'soon' },
        status: '13',
        message: /Invalid grpc-timeout value "soon"/,
      },
    ],
  ] as const)('a call %s gets the reason', async (_how, { pieces, fields, status, message }) => {
    const answered = await call(pieces, fields);
    expect({ status: answered.status, message: answered.message }).toEqual({
      status,
      message: expect.stringMatching(message),
    });
  });

  test('a call ended by its head has no message either', async () => {
    const stream = session.request(
      { ':method': 'POST', ':path': `${POLICY}/CheckAction`, 'content-type': 'application/grpc', te: 'trailers' },
      { endStream: true },
    );
    const [head] = (await once(stream, 'response')) as [IncomingHttpHeaders];
    expect(head['grpc-status']).toBe('12');
    stream.destroy();
  });

  test('clients are told that messages are accepted uncompressed', async () => {
    expect((await call([MESSAGE])).head).toMatchObject({
      ':status': 200,
      'content-type': 'application/grpc+proto',
      'grpc-accept-encoding': 'identity',
    });
  });

  test('a refusal carries its stable code and its retry time', async () => {
    scene.gateway.answer = () => ({
      reply: fail({ kind: 'overloaded', retryAfterSecs: 3, what: 'the gateway' }),
      auditId: undefined,
    });
    expect((await call([MESSAGE])).head).toMatchObject({
      ':status': 200,
      'grpc-status': '8',
      'svc-code': 'overloaded',
      'retry-after': '3',
    });
  });

  test('a bearer vouches for an agent on either path', async () => {
    const vouched = framed(binaryCodec('CheckActionRequest').encode(check({ credentialToken: '' })) as Buffer);
    for (const pieces of [[vouched], [vouched.subarray(0, 9), vouched.subarray(9)]]) {
      expect(await call(pieces, { authorization: `Bearer ${WRITE_KEY}` })).toMatchObject({ status: '0' });
    }
    expect(scene.gateway.asked).toMatchObject([
      { principal: { subject: 'key:w' } },
      { principal: { subject: 'key:w' } },
    ]);
  });

  test('a method whose answer is empty is answered all the same', async () => {
    const request = framed(
      binaryCodec('AckOpControlRequest').encode({
        agent: crawler,
        credentialToken: check().credentialToken,
        opId: 't:s',
        sequence: 1,
      } as never) as Buffer,
    );
    const answered = await call([request], { ':path': `${AGENT}/AckOpControl` });
    expect({ status: answered.status, message: answered.message }).toEqual({ status: '0', message: '' });
  });

  test('a client that cancels a check, or drops its connection, affects nobody', async () => {
    const release: (() => void)[] = [];
    scene.gateway.answer = () =>
      new Promise((resolve) => {
        release.push(() => resolve(undefined as never));
      });
    const cancelled = session.request({
      ':method': 'POST',
      ':path': `${POLICY}/CheckAction`,
      'content-type': 'application/grpc',
      te: 'trailers',
      'grpc-timeout': '20S',
    });
    cancelled.on('error', () => undefined).end(MESSAGE);
    const gone = connect(`http://${scene.address}`);
    gone.on('error', () => undefined);
    gone
      .request({
        ':method': 'POST',
        ':path': `${POLICY}/CheckAction`,
        'content-type': 'application/grpc',
        te: 'trailers',
      })
      .on('error', () => undefined)
      .end(MESSAGE);
    await eventually(() => expect(release).toHaveLength(2));
    cancelled.close(constants.NGHTTP2_CANCEL);
    gone.destroy();
    await new Promise((resolve) => session.ping(resolve));
    for (const answer of release) answer();
    scene.gateway.answer = undefined;
    expect(await call([MESSAGE])).toMatchObject({ status: '0' });
    expect(scene.defects).toEqual([]);
  });

  test('the requests of a client that does not take its answers are not kept', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const deaf = connect(`http://${scene.address}`, { settings: { initialWindowSize: 0 } });
    onTestFinished(() => deaf.destroy());
    const long = framed(
      binaryCodec('CheckActionRequest').encode(check({ attributes: { text: 'x'.repeat(15_000) } })) as Buffer,
    );
    const ask = async (times: number): Promise<void> => {
      for (; times > 0; times -= 1) {
        const stream = deaf.request({
          ':method': 'POST',
          ':path': `${POLICY}/CheckAction`,
          'content-type': 'application/grpc',
          te: 'trailers',
        });
        stream.on('error', () => undefined).end(long);
        await once(stream, 'response'); // its message does not fit into the window
      }
    };
    await ask(20);
    collect();
    const before = process.memoryUsage().arrayBuffers;
    await ask(200);
    await eventually(() => {
      collect();
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1_000_000); // they have three times as much
    });
    expect(scene.gateway.asked).toHaveLength(220);
  });
});
