/** Connections that strangers hold and do not use, until there is a place for nobody else. */
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from 'node:http2';
import { connect as connectTcp, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createGrpcDoor, type GrpcDoor } from '../../../src/doors/grpc/door.ts';
import { binaryCodec } from '../../../src/doors/proto/binary.ts';
import { type GrpcListener, listenForGrpc } from '../../../src/doors/shared/listener.ts';
import { eventually } from '../../support/eventually.ts';
import { fakeGateway } from '../../support/fake-ports.ts';
import { framed } from '../../support/grpc-frames.ts';
import { END_HEADERS, END_STREAM, FRAME, h2, literal, START } from '../../support/http2-frames.ts';
import { check, POLICY } from './harness.ts';

const PLACES = 16;
const GOAWAY = 7;

let door: GrpcDoor;
let listener: GrpcListener;
let made: number;
const sessions: ClientHttp2Session[] = [];
const sockets: Socket[] = [];

describe('crowd', () => {
  beforeEach(async () => {
    const gateway = fakeGateway();
    const onDefect = (error: unknown): void => expect.unreachable(String(error));
    made = 0;
    door = createGrpcDoor({
      ports: gateway,
      control: gateway.control,
      limits: { timeoutMs: 30_000, maxBytes: 128 * 1024 * 1024, maxStreams: 1_000 },
      onDefect,
    });
    listener = await listenForGrpc({
      host: '127.0.0.1',
      port: 0,
      isShared: false,
      maxConnections: PLACES,
      makeRoom: (count) => {
        made += door.makeRoom(count);
      },
      onConnection: door.serve,
      onError: onDefect,
    });
  });
  afterEach(async () => {
    for (const session of sessions.splice(0)) session.destroy();
    for (const socket of sockets.splice(0)) socket.destroy();
    door.drain(0);
    await listener.close();
    vi.useRealTimers();
  });

  /** A connection that sends these bytes, and then nothing. */
  async function hold(bytes: Buffer | string): Promise<Socket> {
    const socket = connectTcp(listener.port, '127.0.0.1');
    sockets.push(socket);
    socket.on('error', () => undefined).resume();
    socket.write(bytes);
    await new Promise((resolve) => socket.once('connect', resolve));
    return socket;
  }

  function openSession(): ClientHttp2Session {
    const session = connect(`http://127.0.0.1:${listener.port}`);
    session.on('error', () => undefined);
    sessions.push(session);
    return session;
  }

  const openCall = (session: ClientHttp2Session, method: string) =>
    session
      .request({
        ':method': 'POST',
        ':path': `${POLICY}/${method}`,
        'content-type': 'application/grpc',
        te: 'trailers',
      })
      .on('error', () => undefined);

  /** The status of a check. */
  function ask(session: ClientHttp2Session): Promise<unknown> {
    const call = openCall(session, 'CheckAction');
    call.end(framed(binaryCodec('CheckActionRequest').encode(check()) as Buffer));
    call.resume();
    return new Promise((resolve) => {
      call.on('trailers', (trailers: IncomingHttpHeaders) => resolve(trailers['grpc-status']));
      call.on('close', () => resolve('closed'));
    });
  }

  test.each([
    ['send nothing', ''],
    ['send half a preface', 'PRI * HTTP/2.0\r\n'],
    ['speak HTTP/2 and call nothing', START],
  ])('a newcomer finds a place among connections that %s', async (_, bytes) => {
    const used = openSession();
    expect(await ask(used)).toBe('0');
    const streaming = openCall(openSession(), 'StreamCheckActions');
    let answers = 0;
    streaming.on('data', () => {
      answers += 1;
    });
    const say = (): boolean =>
      streaming.write(framed(binaryCodec('StreamCheckActionsRequest').encode(check()) as Buffer));
    say();
    await eventually(() => expect(answers).toBe(1));
    const held: Socket[] = [];
    for (let nth = 0; nth < 3 * PLACES; nth += 1) held.push(await hold(bytes));
    for (let nth = 0; nth < PLACES; nth += 1) {
      const session = openSession();
      expect(await ask(session)).toBe('0');
      session.close();
    }
    // Active connections are not the ones that have to go.
    expect(await ask(used)).toBe('0');
    say();
    await eventually(() => expect(answers).toBe(2));
    expect(made).toBeGreaterThan(2 * PLACES);
    await eventually(() => expect(held.filter(({ closed }) => closed).length).toBeGreaterThan(2 * PLACES));
  });

  test('ends the connection that has been without calls for longest, and tells it', async () => {
    const [first, second] = [openSession(), openSession()];
    const told = new Set<string>();
    first.on('goaway', (code) => told.add(`first: ${code}`));
    second.on('goaway', (code) => told.add(`second: ${code}`));
    expect([await ask(second), await ask(first), await ask(second)]).toEqual(['0', '0', '0']);
    expect(door.makeRoom(1)).toBe(1);
    await eventually(() => expect(first.closed).toBe(true));
    expect([...told]).toEqual(['first: 0']);
    expect(await ask(second)).toBe('0');
  });

  test('a client that is asked to leave and stays is cut', async () => {
    const stubborn = connectTcp({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true });
    sockets.push(stubborn);
    let received = Buffer.alloc(0);
    stubborn
      .on('error', () => undefined)
      .on('data', (piece: Buffer) => {
        received = Buffer.concat([received, piece]);
      });
    const head = Object.entries({
      ':method': 'POST',
      ':scheme': 'http',
      ':authority': 'gateway',
      ':path': '/grpc.health.v1.Health/Check',
      'content-type': 'application/grpc',
      te: 'trailers',
    }).map(([name, value]) => literal(name, value));
    stubborn.write(
      Buffer.concat([
        START,
        h2(FRAME.HEADERS, END_HEADERS, 1, Buffer.concat(head)),
        h2(FRAME.DATA, END_STREAM, 1, framed(Buffer.alloc(0))),
      ]),
    );
    await eventually(() => expect(received.includes(framed(Buffer.from([8, 1])))).toBe(true));
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    await eventually(() => expect(door.makeRoom(1)).toBe(1)); // once the call is over
    await eventually(() => expect(received.includes(h2(GOAWAY, 0, 0, Buffer.alloc(8)).subarray(2, 9))).toBe(true));
    vi.advanceTimersByTime(1_000);
    await eventually(() => {
      stubborn.write(h2(FRAME.PING, 0, 0, Buffer.alloc(8)));
      expect(stubborn.destroyed).toBe(true);
    });
  });
});
