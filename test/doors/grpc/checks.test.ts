/** Streams of checks, down to the bytes: those whose head names an encoding, and those whose head does not. */
import { once } from 'node:events';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ok } from '../../../src/core/base/result.ts';
import { MessageReader } from '../../../src/doors/grpc/messages.ts';
import { binaryCodec } from '../../../src/doors/proto/binary.ts';
import type { StreamCheckActionsResponse } from '../../../src/doors/proto/messages.ts';
import { eventually } from '../../support/eventually.ts';
import { framed } from '../../support/grpc-frames.ts';
import { check, checkAction, POLICY, scene, withScene } from './harness.ts';

withScene();

let session: ClientHttp2Session;
describe('checks on the wire', () => {
  beforeEach(async () => {
    session = connect(`http://${scene.address}`);
    await once(session, 'remoteSettings');
  });
  afterEach(() => session.destroy());

  const request = (id: string, fields = {}): Buffer =>
    framed(
      binaryCodec('StreamCheckActionsRequest').encode(check({ spanId: id, correlationId: id, ...fields })) as Buffer,
    );

  type Call = {
    readonly stream: ClientHttp2Stream;
    readonly headers: IncomingHttpHeaders;
    readonly answers: StreamCheckActionsResponse[];
    isClosed: boolean;
  };

  function open(fields: Readonly<Record<string, string>>, on = session): Call {
    const stream = on.request({
      ':method': 'POST',
      ':path': `${POLICY}/StreamCheckActions`,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...fields,
    });
    const call: Call = { stream, headers: {}, answers: [], isClosed: false };
    const reader = new MessageReader();
    stream.on('data', (piece: Buffer) => {
      reader.add(piece);
      for (let message = reader.next(); message !== undefined; message = reader.next()) {
        const answer = binaryCodec('StreamCheckActionsResponse').decode(message);
        if (answer.ok) call.answers.push(answer.value);
      }
    });
    stream
      .on('response', (headers) => Object.assign(call.headers, headers))
      .on('trailers', (headers) => Object.assign(call.headers, headers));
    stream
      .on('error', () => undefined)
      .on('close', () => {
        call.isClosed = true;
      });
    return call;
  }

  /** Resolves when all of it has come to the gateway. */
  async function send({ stream }: Call, bytes: Buffer): Promise<void> {
    await new Promise((resolve) => stream.write(bytes, resolve));
    await new Promise((resolve) => session.ping(resolve));
  }
  const statusIs = (call: Call, status: string) =>
    eventually(() =>
      expect({ grpcStatus: call.headers['grpc-status'], isClosed: call.isClosed }).toEqual({
        grpcStatus: status,
        isClosed: true,
      }),
    );
  const messageOf = ({ headers }: Call): string => decodeURIComponent(String(headers['grpc-message']));
  const idsOf = ({ answers }: Call): string[] => answers.map(({ correlationId }) => correlationId).sort();

  describe.each([
    ['that names no encoding', {}],
    ['that names an encoding', { 'grpc-encoding': 'gzip' }],
  ])('a stream %s', (way, head) => {
    test('checks are answered one by one, wherever the chunks are cut', async () => {
      const bytes = Buffer.concat([request('a'), request('b'), request('c')]);
      for (const size of [1, 7, 64, bytes.length]) {
        const call = open(head);
        for (let at = 0; at < bytes.length; at += size) call.stream.write(bytes.subarray(at, at + size));
        call.stream.end();
        await statusIs(call, '0');
        expect(idsOf(call)).toEqual(['a', 'b', 'c']);
      }
    });

    test('a check longer than a chunk is answered', async () => {
      const call = open(head);
      call.stream.end(
        Buffer.concat([request('long', { attributes: { text: 'x'.repeat(200_000) } }), request('short')]),
      );
      await statusIs(call, '0');
      expect(call.answers.map(({ correlationId, decision }) => [correlationId, decision])).toEqual([
        ['long', 'allow'],
        ['short', 'allow'],
      ]);
    });

    test('answers come while the stream is open and after the last check', async () => {
      const call = open(head);
      call.stream.write(request('first'));
      await eventually(() => expect(idsOf(call)).toEqual(['first']));
      let answer = (): void => undefined;
      scene.gateway.answer = () =>
        new Promise((resolve) => {
          answer = () => resolve(undefined as never);
        });
      call.stream.end(request('last'));
      await eventually(() => expect(scene.gateway.asked).toHaveLength(2));
      answer();
      await statusIs(call, '0');
      expect(idsOf(call)).toEqual(['first', 'last']);
    });

    test('a stream without a check ends with OK', async () => {
      const call = open(head);
      call.stream.end();
      await statusIs(call, '0');
      expect(call.answers).toEqual([]);
    });

    test('an incomplete check at the end is an error, behind the answers that are due', async () => {
      const call = open(head);
      call.stream.end(Buffer.concat([request('whole'), request('half').subarray(0, 30)]));
      await statusIs(call, '13');
      expect(messageOf(call)).toBe('the stream was ended within a message');
      expect(idsOf(call)).toEqual(['whole']);
    });

    test('a message announced as too large ends the stream before it arrives', async () => {
      const call = open(head);
      call.stream.write(framed(Buffer.alloc(100), { length: 5 * 1024 * 1024 }));
      await eventually(() => expect(call.headers['grpc-status']).toBe('8'));
      expect(messageOf(call)).toBe('the body is larger than 4194304 bytes');
      call.stream.close(constants.NGHTTP2_CANCEL);
    });

    test('a deadline ends the stream, and a late answer is dropped', async () => {
      const late: (() => void)[] = [];
      scene.gateway.answer = () =>
        new Promise((resolve) => {
          late.push(() => resolve(undefined as never));
        });
      const call = open({ ...head, 'grpc-timeout': '100m' });
      await send(call, request('slow'));
      await eventually(() =>
        expect({ grpcStatus: call.headers['grpc-status'], message: messageOf(call) }).toEqual({
          grpcStatus: '4',
          message: 'Deadline exceeded',
        }),
      );
      for (const answer of late) answer();
      call.stream.close(constants.NGHTTP2_CANCEL);
      scene.gateway.answer = undefined;
      await checkAction(check());
      expect(scene.defects).toEqual([]);
    });

    test('clients that break off while answers are on the way affect nobody', async () => {
      const release: (() => void)[] = [];
      scene.gateway.answer = () =>
        new Promise((resolve) => {
          release.push(() => resolve(undefined as never));
        });
      const other = connect(`http://${scene.address}`);
      other.on('error', () => undefined);
      const calls = Array.from({ length: 40 }, (_, index) => open(head, index % 4 === 3 ? other : session));
      for (const [index, { stream }] of calls.entries())
        stream.write(Buffer.concat([request(`${index}-a`), request(`${index}-b`)]));
      await eventually(() => expect(release).toHaveLength(80));
      for (const [index, { stream }] of calls.entries()) if (index % 2 === 0) stream.close(constants.NGHTTP2_CANCEL);
      other.destroy();
      for (const [index, answer] of release.entries()) {
        answer();
        if (index % 5 === 0) await new Promise(setImmediate);
      }
      const stayed = calls.filter((_, index) => index % 4 === 1);
      for (const { stream } of stayed) stream.end();
      for (const call of stayed) await statusIs(call, '0');
      expect(stayed.map(({ answers }) => answers.length)).toEqual(stayed.map(() => 2));
      expect(scene.defects).toEqual([]);
    });

    test('an undecodable message ends the stream after the pending answers', async () => {
      const release: (() => void)[] = [];
      scene.gateway.answer = () =>
        new Promise((resolve) => {
          release.push(() => resolve(undefined as never));
        });
      const call = open(head);
      await send(call, request('due'));
      await send(call, Buffer.concat([framed(Buffer.from([0x0a, 0x7f])), request('after')]));
      expect(release).toHaveLength(1);
      release[0]!();
      await eventually(() => expect(call.headers['grpc-status']).toBe('3'));
      expect(idsOf(call)).toEqual(['due']);
    });

    test.each([
      [
        'announced as larger than any may be',
        { length: 5 * 1024 * 1024 },
        '8',
        'the body is larger than 4194304 bytes',
      ],
      ...(way === 'that names an encoding'
        ? [
            [
              'compressed',
              { flag: 1 },
              '12',
              'messages compressed with "gzip" are not supported; send messages uncompressed',
            ] as const,
          ]
        : []),
    ] as const)(
      'a message that is %s ends the stream after the pending answers, also as last',
      async (_what, prefix, status, message) => {
        const release: (() => void)[] = [];
        scene.gateway.answer = () =>
          new Promise((resolve) => {
            release.push(() => resolve(undefined as never));
          });
        const call = open(head);
        await send(call, Buffer.concat([request('a'), request('b')]));
        await eventually(() => expect(release).toHaveLength(2));
        release[0]!();
        await eventually(() => expect(idsOf(call)).toEqual(['a']));
        await send(call, framed(Buffer.alloc(100), prefix));
        await new Promise<void>((resolve) => call.stream.end(resolve));
        await new Promise((resolve) => session.ping(resolve));
        release[1]!();
        await statusIs(call, status);
        expect(messageOf(call)).toBe(message);
        expect(idsOf(call)).toEqual(['a', 'b']);
        expect(scene.defects).toEqual([]);
      },
    );

    test('a client that does not read gets the passed deadline, whatever came since', async () => {
      const late: (() => void)[] = [];
      scene.gateway.answer = (command) => {
        const reply = {
          reply: ok({
            decision: 'deny',
            reason: 'x'.repeat(2_000),
            policy: undefined,
            ruleId: undefined,
            cause: undefined,
            exceeded: undefined,
            opState: undefined,
          } as const),
          auditId: 1,
        };
        return 'opId' in command && String(command.opId).endsWith('late')
          ? new Promise((resolve) => {
              late.push(() => resolve(reply));
            })
          : reply;
      };
      const call = open({ ...head, 'grpc-timeout': '1500m' });
      call.stream.pause();
      call.stream.write(
        Buffer.concat([request('late'), ...Array.from({ length: 200 }, (_, index) => request(`${index}`))]),
      );
      await eventually(() => expect(late).toHaveLength(1));
      await sleep(1_700);
      late[0]!();
      await new Promise(setImmediate);
      call.stream.resume();
      await eventually(() =>
        expect({ grpcStatus: call.headers['grpc-status'], message: messageOf(call) }).toEqual({
          grpcStatus: '4',
          message: 'Deadline exceeded',
        }),
      );
      call.stream.close(constants.NGHTTP2_CANCEL);
    });
  });
});
