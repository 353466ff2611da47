/** Streams whose callers have shown no valid credential: how long they may stay, and how many. */
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createGrpcDoor, type GrpcDoor } from '../../../src/doors/grpc/door.ts';
import { binaryCodec } from '../../../src/doors/proto/binary.ts';
import { type GrpcListener, listenForGrpc } from '../../../src/doors/shared/listener.ts';
import { eventually } from '../../support/eventually.ts';
import { type FakeGateway, fakeGateway, WRITE_KEY } from '../../support/fake-ports.ts';
import { framed } from '../../support/grpc-frames.ts';
import { check, POLICY } from './harness.ts';

const TIMEOUT_MS = 400;
const STREAM = `${POLICY}/StreamCheckActions`;
const WATCH = '/grpc.health.v1.Health/Watch';
const UNAUTHENTICATED = '16';
const RESOURCE_EXHAUSTED = '8';

let gateway: FakeGateway;
let door: GrpcDoor;
let listener: GrpcListener;
const sessions: ClientHttp2Session[] = [];

describe('unauthenticated callers', () => {
  // Time passes when a test lets it: a machine that stands still makes no client late.
  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    gateway = fakeGateway();
  });
  afterEach(async () => {
    for (const session of sessions.splice(0)) session.destroy();
    door.drain(0);
    await listener.close();
    vi.useRealTimers();
  });

  async function start(maxStreams: number, maxBytes = 128 * 1024 * 1024): Promise<void> {
    const onDefect = (error: unknown): void => expect.unreachable(String(error));
    door = createGrpcDoor({
      ports: gateway,
      control: gateway.control,
      limits: { timeoutMs: TIMEOUT_MS, maxBytes, maxStreams },
      onDefect,
    });
    listener = await listenForGrpc({
      host: '127.0.0.1',
      port: 0,
      isShared: false,
      maxConnections: 100,
      onConnection: door.serve,
      onError: onDefect,
    });
  }

  /** On Linux, all of 127.0.0.0/8 are addresses of this machine. */
  function openSession(localAddress = '127.0.0.1'): ClientHttp2Session {
    const session = connect('http://gateway', {
      createConnection: () => connectTcp({ host: '127.0.0.1', port: listener.port, localAddress }),
    });
    session.on('error', () => undefined);
    sessions.push(session);
    return session;
  }

  type Open = { readonly stream: ClientHttp2Stream; readonly head: IncomingHttpHeaders; answers: number };

  function open(session: ClientHttp2Session, path = STREAM, fields: Record<string, string> = {}): Open {
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...fields,
    });
    const call: Open = { stream, head: {}, answers: 0 };
    const note = (head: IncomingHttpHeaders): void => void Object.assign(call.head, head);
    stream
      .on('response', note)
      .on('trailers', note)
      .on('error', () => undefined);
    stream.on('data', () => {
      call.answers += 1;
    });
    return call;
  }
  const statusOf = ({ head }: Open): unknown => head['grpc-status'];
  const checkWith = (credentialToken?: string): Buffer =>
    framed(
      binaryCodec('StreamCheckActionsRequest').encode(
        check(credentialToken === undefined ? {} : { credentialToken }),
      ) as Buffer,
    );
  /** Waits until all earlier frames have come. */
  const ping = (session: ClientHttp2Session) => new Promise<void>((resolve) => void session.ping(() => resolve()));
  const pass = (ms: number): void => void vi.advanceTimersByTime(ms);

  test('a silent stream is ended in time, and one with a valid credential is not', async () => {
    await start(1_000);
    const session = openSession();
    const silent = open(session, STREAM, { authorization: `Bearer ${WRITE_KEY}` });
    const byToken = open(session);
    byToken.stream.write(checkWith());
    const byBearer = open(session, STREAM, { authorization: `Bearer ${WRITE_KEY}` });
    byBearer.stream.write(checkWith(''));
    const wrongToken = open(session);
    wrongToken.stream.write(checkWith('x'.repeat(40)));
    const noCredential = open(session);
    noCredential.stream.write(checkWith(''));
    const others = [byToken, byBearer, wrongToken, noCredential];
    await eventually(() => expect(others.map(({ answers }) => answers)).toEqual([1, 1, 1, 1]));
    pass(TIMEOUT_MS * 2);
    const strangers = [silent, wrongToken, noCredential];
    await eventually(() => expect(strangers.map(statusOf)).toEqual(strangers.map(() => UNAUTHENTICATED)));
    expect(decodeURIComponent(String(silent.head['grpc-message']))).toBe(
      'no message with a valid credential has come in time; open a stream when there is something to send',
    );
    pass(TIMEOUT_MS * 10);
    await ping(session);
    expect([byToken, byBearer].map(statusOf)).toEqual([undefined, undefined]);
  });

  test('a load balancer that watches the health needs no credential', async () => {
    await start(1_000);
    const session = openSession();
    const watch = open(session, WATCH);
    watch.stream.end(framed(Buffer.alloc(0)));
    await eventually(() => expect(watch.answers).toBe(1));
    pass(TIMEOUT_MS * 10);
    await ping(session);
    expect(statusOf(watch)).toBe(undefined);
  });

  test('get 1,024 streams for each address, and others still have theirs', async () => {
    await start(40_000);
    const mine = Array.from({ length: 5 }, () => openSession()).flatMap((session) =>
      Array.from({ length: 205 }, () => open(session)),
    );
    await eventually(() => expect(mine.filter((call) => statusOf(call) === RESOURCE_EXHAUSTED)).toHaveLength(1));
    const refused = mine.find((call) => statusOf(call) === RESOURCE_EXHAUSTED)!;
    expect(decodeURIComponent(String(refused.head['grpc-message']))).toBe(
      'the number of streams without a valid credential is at its limit; try again in 1 second',
    );
    const other = open(openSession('127.0.0.2'));
    other.stream.write(checkWith());
    await eventually(() => expect(other.answers).toBe(1));
    mine.find((call) => statusOf(call) === undefined)!.stream.close();
    await eventually(async () => {
      const again = open(sessions[0]!);
      again.stream.end(checkWith());
      await eventually(() => expect(statusOf(again)).toBeDefined());
      expect(statusOf(again)).toBe('0');
    });
  });

  test('strangers take an eighth of all streams at most', async () => {
    await start(80);
    const silent = Array.from({ length: 12 }, (_, index) => open(openSession(`127.0.0.${index + 1}`)));
    await eventually(() => expect(silent.filter((call) => statusOf(call) === RESOURCE_EXHAUSTED)).toHaveLength(2));
  });

  test('the credential that a silent stream brings along counts as memory', async () => {
    await start(1_000, 200_000);
    const session = openSession();
    const authorization = `Bearer ${'x'.repeat(10_000)}`;
    const silent = Array.from({ length: 20 }, () => open(session, STREAM, { authorization }));
    await eventually(() => expect(silent.filter((call) => statusOf(call) === RESOURCE_EXHAUSTED)).toHaveLength(10));
  });

  test('the head of a stream is not kept with it', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    await start(10_000);
    const session = openSession();
    const openMany = async (): Promise<number> => {
      for (let index = 0; index < 100; index += 1)
        open(session, STREAM, { 'x-baggage': String(index).padStart(14_000, 'x') });
      await ping(session);
      await new Promise((resolve) => setTimeout(resolve, 200));
      collect();
      return process.memoryUsage().external;
    };
    const before = await openMany();
    // In the second hundred there are 1.4 MB, outside the heap as Node.js hands them over.
    expect((await openMany()) - before).toBeLessThan(300_000);
  });
});
