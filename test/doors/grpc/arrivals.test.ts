/** Clients that begin a message and do not end it, or ask and do not take the answer. */
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants, type Settings } from 'node:http2';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { createGrpcDoor, type GrpcDoor } from '../../../src/doors/grpc/door.ts';
import { binaryCodec, emptyMessage } from '../../../src/doors/proto/binary.ts';
import type { CheckActionRequest } from '../../../src/doors/proto/messages.ts';
import { messageShape } from '../../../src/doors/proto/schema.ts';
import { type GrpcListener, listenForGrpc } from '../../../src/doors/shared/listener.ts';
import { eventually } from '../../support/eventually.ts';
import { type FakeGateway, fakeGateway, TOKEN } from '../../support/fake-ports.ts';
import { framed } from '../../support/grpc-frames.ts';

const TIMEOUT_MS = 400;
const CHECK = '/svc.governance.v1.PolicyService/CheckAction';
const BATCH = '/svc.governance.v1.PolicyService/BatchCheckActions';
const STREAM = '/svc.governance.v1.PolicyService/StreamCheckActions';
const REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
const CONTROL = '/svc.governance.v1.AgentService/OpControlStream';
const DEADLINE_EXCEEDED = '4';
const RESOURCE_EXHAUSTED = '8';
const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };

let gateway: FakeGateway;
let server: GrpcDoor;
let listener: GrpcListener;
let session: ClientHttp2Session;
const defects: unknown[] = [];

describe('arrivals', () => {
  // Time passes when a test lets it: a machine that stands still makes no client late.
  beforeAll(async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    gateway = fakeGateway();
    server = createGrpcDoor({
      ports: gateway,
      control: gateway.control,
      limits: { timeoutMs: TIMEOUT_MS, maxBytes: 300_000, maxStreams: 10_000 },
      onDefect: (error) => defects.push(error),
    });
    listener = await listenForGrpc({
      host: '127.0.0.1',
      port: 0,
      isShared: false,
      maxConnections: 100,
      onConnection: server.serve,
      onError: (error) => defects.push(error),
    });
  });
  afterAll(async () => {
    server.drain(0);
    await listener.close();
    vi.useRealTimers();
    expect(defects).toEqual([]);
  });
  beforeEach(() => {
    session = openSession();
  });
  afterEach(() => session.destroy());

  function openSession(port = listener.port, settings: Settings = {}): ClientHttp2Session {
    const session = connect(`http://127.0.0.1:${port}`, { settings });
    session.on('error', () => undefined); // what becomes of a stream is what counts
    return session;
  }

  type Call = {
    readonly stream: ClientHttp2Stream;
    readonly headers: Record<string, unknown>;
    answers: number;
    isClosed: boolean;
  };

  function begin(path: string, on = session): Call {
    const stream = on.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' });
    const call: Call = { stream, headers: {}, answers: 0, isClosed: false };
    stream.on('response', (headers) => Object.assign(call.headers, headers));
    stream.on('trailers', (headers) => Object.assign(call.headers, headers));
    stream.on('data', () => {
      call.answers += 1;
    });
    stream.on('error', () => undefined);
    stream.on('close', () => {
      call.isClosed = true;
    });
    return call;
  }

  const request = (fields: Partial<CheckActionRequest> = {}) =>
    binaryCodec('CheckActionRequest').encode({
      ...(emptyMessage(messageShape('CheckActionRequest')) as CheckActionRequest),
      agent: AGENT,
      credentialToken: TOKEN,
      traceId: 't',
      spanId: 's',
      action: 'tool.call',
      resource: 'web_search',
      correlationId: 'c',
      ...fields,
    }) as Buffer;
  const checkIsAnswered = async (on = session): Promise<void> => {
    const call = begin(CHECK, on);
    call.stream.end(framed(request()));
    await eventually(() =>
      expect({ grpcStatus: call.headers['grpc-status'], answers: call.answers }).toEqual({
        grpcStatus: '0',
        answers: 1,
      }),
    );
  };
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  const statusIs = (call: Call, status: string) => eventually(() => expect(call.headers['grpc-status']).toBe(status));
  /** Lets time pass until the expectation holds, in steps that are short beside any time-out here. */
  const inTime = (expectation: () => void) =>
    eventually(() => {
      vi.advanceTimersByTime(TIMEOUT_MS / 4);
      expectation();
    });
  /** Resolves when all of it has left for the gateway. */
  const sent = (call: Call, bytes: Buffer) => new Promise((resolve) => call.stream.write(bytes, resolve));

  test.each([
    ['nothing but its headers', CHECK, undefined],
    ['half the head of its message', CHECK, Buffer.from([0, 0])],
    ['half its message', CHECK, framed(request()).subarray(0, 30)],
    ['its message, and not that this is all', CHECK, framed(request())],
    ['half the request for a stream of signals', CONTROL, Buffer.from([0, 0, 0, 0, 9, 10])],
  ])('a call whose client sent %s is ended in time, and its connection continues', async (_what, path, bytes) => {
    const startMs = performance.now();
    const call = begin(path);
    if (bytes !== undefined) call.stream.write(bytes);
    await inTime(() => expect(call.headers['grpc-status']).toBe(DEADLINE_EXCEEDED));
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(TIMEOUT_MS);
    expect(decodeURIComponent(String(call.headers['grpc-message']))).toBe(
      'the rest of the message did not arrive in time',
    );
    // It never ends its own side, and still does not keep the stream, not even until the next sweep.
    await eventually(() =>
      expect({ isClosed: call.isClosed, rstCode: call.stream.rstCode }).toEqual({
        isClosed: true,
        rstCode: constants.NGHTTP2_NO_ERROR,
      }),
    );
    await checkIsAnswered();
  });

  test('a call answered before its whole message arrived is closed with its answer', async () => {
    const call = begin(CHECK);
    call.stream.write(framed(request(), { length: 5 * 1024 * 1024 }));
    await statusIs(call, RESOURCE_EXHAUSTED);
    await eventually(() =>
      expect({ isClosed: call.isClosed, rstCode: call.stream.rstCode }).toEqual({
        isClosed: true,
        rstCode: constants.NGHTTP2_NO_ERROR,
      }),
    );
    await checkIsAnswered();
  });

  test('a message that drips times out, however steadily', async () => {
    const call = begin(CHECK);
    const bytes = framed(request());
    const drops = 40;
    expect(drops).toBeLessThan(bytes.length);
    for (let at = 0; at < drops; at += 1) {
      await sent(call, bytes.subarray(at, at + 1));
      await checkIsAnswered(); // and so it has come
      vi.advanceTimersByTime((2 * TIMEOUT_MS) / drops);
    }
    await statusIs(call, DEADLINE_EXCEEDED);
  });

  test('a stream of checks may rest between messages, and not within one', async () => {
    const call = begin(STREAM);
    const control = begin(CONTROL);
    control.stream.end(
      framed(
        binaryCodec('OpControlStreamRequest').encode({
          ...(emptyMessage(messageShape('OpControlStreamRequest')) as object),
          agent: AGENT,
          credentialToken: TOKEN,
        } as never) as Buffer,
      ),
    );
    const bytes = framed(request());
    for (let round = 1; round <= 3; round += 1) {
      // In pieces, with the end of one message and the beginning of the next in one of them.
      call.stream.write(Buffer.concat([bytes, bytes.subarray(0, 3)]));
      await eventually(() => expect(call.answers).toBe(2 * round - 1));
      call.stream.write(bytes.subarray(3));
      await eventually(() => expect(call.answers).toBe(2 * round));
      vi.advanceTimersByTime(TIMEOUT_MS * 2);
    }
    await checkIsAnswered(); // what else was said before it has come by now
    expect({
      callStatus: call.headers['grpc-status'],
      controlStatus: control.headers['grpc-status'],
      controlIsClosed: control.isClosed,
    }).toEqual({ callStatus: undefined, controlStatus: undefined, controlIsClosed: false });
    call.stream.write(bytes.subarray(0, 10));
    await inTime(() => expect(call.headers['grpc-status']).toBe(DEADLINE_EXCEEDED));
    expect(control.isClosed).toBe(false);
  });

  test('a stream answered slowly is not blamed for what the gateway has not read', async () => {
    const patient = createGrpcDoor({
      ports: gateway,
      control: gateway.control,
      limits: { timeoutMs: TIMEOUT_MS, maxBytes: 128 * 1024 * 1024, maxStreams: 10_000 },
      onDefect: (error) => defects.push(error),
    });
    const other = await listenForGrpc({
      host: '127.0.0.1',
      port: 0,
      isShared: false,
      maxConnections: 100,
      onConnection: patient.serve,
      onError: (error) => defects.push(error),
    });
    const client = openSession(other.port);
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    gateway.answer = () => released as never;
    gateway.asked.length = 0;
    const call = begin(STREAM, client);
    const bytes = framed(request());
    // More than it takes before it has answered some, and half a message after them.
    call.stream.write(Buffer.concat([...Array.from({ length: 1_100 }, () => bytes), bytes.subarray(0, 10)]));
    await eventually(() => expect(gateway.asked.length).toBeGreaterThan(1_000));
    vi.advanceTimersByTime(TIMEOUT_MS * 1.5);
    gateway.answer = undefined;
    release();
    await eventually(() => expect(gateway.asked.length).toBeGreaterThanOrEqual(1_100));
    call.stream.end(bytes.subarray(10));
    await statusIs(call, '0');
    client.destroy();
    patient.drain(0);
    await other.close();
  });

  test('half-sent messages share a limit over all connections, freed when they go', async () => {
    const patient = createGrpcDoor({
      ports: gateway,
      control: gateway.control,
      limits: { timeoutMs: TIMEOUT_MS, maxBytes: 300_000, maxStreams: 10_000 },
      onDefect: (error) => defects.push(error),
    });
    const other = await listenForGrpc({
      host: '127.0.0.1',
      port: 0,
      isShared: false,
      maxConnections: 100,
      onConnection: patient.serve,
      onError: (error) => defects.push(error),
    });
    const [one, two, three] = [openSession(other.port), openSession(other.port), openSession(other.port)] as const;
    for (let round = 0; round < 2; round += 1) {
      const held = [begin(BATCH, one), begin(BATCH, two)];
      for (const piece of [framed(Buffer.alloc(0), { length: 1_000_000 }), Buffer.alloc(125_000)]) {
        for (const call of held) await sent(call, piece);
        for (const client of [one, two]) await checkIsAnswered(client); // and so it has come
      }
      expect(held.map((call) => call.headers['grpc-status'])).toEqual([undefined, undefined]);
      const tooMuch = begin(BATCH, three);
      tooMuch.stream.write(framed(Buffer.alloc(60_000), { length: 1_000_000 }));
      await statusIs(tooMuch, RESOURCE_EXHAUSTED);
      expect(decodeURIComponent(String(tooMuch.headers['grpc-message']))).toBe(
        'the size of incomplete messages is at its limit; try again in 1 second',
      );
      // A message that comes in one piece needs no room.
      await checkIsAnswered(three);
      for (const call of [...held, tooMuch]) await inTime(() => expect(call.isClosed).toBe(true));
    }
    const whole = begin(BATCH, three);
    whole.stream.end(framed(Buffer.alloc(250_000)));
    await statusIs(whole, '3');
    for (const client of [one, two, three]) client.destroy();
    patient.drain(0);
    await other.close();
  });

  test('a message in one-byte chunks takes no more room than its bytes', async () => {
    const patient = createGrpcDoor({
      ports: gateway,
      control: gateway.control,
      limits: { timeoutMs: 60_000, maxBytes: 100_000, maxStreams: 10_000 },
      onDefect: (error) => defects.push(error),
    });
    const other = await listenForGrpc({
      host: '127.0.0.1',
      port: 0,
      isShared: false,
      maxConnections: 100,
      onConnection: patient.serve,
      onError: (error) => defects.push(error),
    });
    const call = begin(BATCH, openSession(other.port));
    call.stream.write(framed(Buffer.alloc(0), { length: 1_000_000 }));
    for (let bytes = 0; bytes < 3_000 && !call.isClosed && call.headers['grpc-status'] === undefined; bytes += 1) {
      await sent(call, Buffer.alloc(1));
    }
    expect({ isClosed: call.isClosed, status: call.headers['grpc-status'] }).toEqual({
      isClosed: false,
      status: undefined,
    });
    call.stream.session?.destroy();
    patient.drain(0);
    await other.close();
  });

  /** A client with this takes no answer, however small. */
  const READS_NOTHING: Settings = { initialWindowSize: 0 };
  const batch = (size: number) =>
    framed(
      binaryCodec('BatchCheckActionsRequest').encode({
        requests: Array.from({ length: size }, (_, index) => ({
          ...(emptyMessage(messageShape('CheckActionRequest')) as CheckActionRequest),
          agent: AGENT,
          credentialToken: TOKEN,
          traceId: 't',
          spanId: `s${index}`,
          action: 'tool.call',
        })),
      } as never) as Buffer,
    );
  /** Asks for a file of some kilobytes. */
  const DESCRIBE = framed(Buffer.from('\x22\x1fsvc.governance.v1.PolicyService'));

  test.each([
    ['a batch', BATCH, batch(10), true],
    ['a batch of many pieces', BATCH, batch(1_000), true],
    ['a stream of checks', STREAM, framed(request()), false],
    ['a stream of checks that is half closed', STREAM, framed(request()), true],
    ['reflection', REFLECTION, DESCRIBE, false],
  ])('an untaken answer to %s is dropped in time, and its connection continues', async (_what, path, bytes, isAll) => {
    const deaf = openSession(listener.port, READS_NOTHING);
    const call = begin(path, deaf);
    call.stream.write(bytes);
    if (isAll) call.stream.end();
    await inTime(() =>
      expect({ isClosed: call.isClosed, rstCode: call.stream.rstCode }).toEqual({
        isClosed: true,
        rstCode: constants.NGHTTP2_CANCEL,
      }),
    );
    expect(call.answers).toBe(0);
    deaf.settings({ initialWindowSize: 65_535 });
    await checkIsAnswered(deaf);
    deaf.destroy();
  });

  test('a slow client that keeps reading gets every answer, however long it takes', async () => {
    const patient = createGrpcDoor({
      ports: gateway,
      control: gateway.control,
      limits: { timeoutMs: TIMEOUT_MS, maxBytes: 128 * 1024 * 1024, maxStreams: 10_000 },
      onDefect: (error) => defects.push(error),
    });
    const other = await listenForGrpc({
      host: '127.0.0.1',
      port: 0,
      isShared: false,
      maxConnections: 100,
      onConnection: patient.serve,
      onError: (error) => defects.push(error),
    });
    const answer = {
      reply: {
        ok: true,
        value: {
          decision: 'deny',
          reason: 'x'.repeat(2_000),
          policy: undefined,
          ruleId: undefined,
          cause: undefined,
          exceeded: undefined,
          opState: undefined,
        },
      },
      auditId: 1,
    } as const;
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    gateway.answer = () => released.then(() => answer);
    gateway.asked.length = 0;
    const slow = openSession(other.port);
    const stream = slow.request({
      ':method': 'POST',
      ':path': STREAM,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    // More than are asked at once, so that a thousand are answered at once, and the gateway stops reading within a
    // message.
    stream.end(Buffer.concat(Array.from({ length: 1_500 }, () => framed(request()))));
    await eventually(() => expect(gateway.asked.length).toBeGreaterThanOrEqual(1_024));
    release();
    let bytes = 0;
    const startMs = performance.now();
    // Three megabytes, evenly over four times as long as it may take to read nothing.
    for await (const piece of stream) {
      bytes += (piece as Buffer).length;
      vi.advanceTimersByTime(
        Math.max(0, Math.floor(startMs + (bytes / 3_000_000) * 4 * TIMEOUT_MS - performance.now())),
      );
      await new Promise((resolve) => setImmediate(resolve));
    }
    gateway.answer = undefined;
    expect(bytes).toBeGreaterThan(3_000_000);
    expect(performance.now() - startMs).toBeGreaterThan(2 * TIMEOUT_MS);
    slow.destroy();
    patient.drain(0);
    await other.close();
  });

  /** Longer than `inTime` lets pass: what is cut then is not cut for its age. */
  const A_DAY_MS = 24 * 3_600_000;

  test('untaken answers share a limit, and the oldest are dropped first', async () => {
    const patient = createGrpcDoor({
      ports: gateway,
      control: gateway.control,
      limits: { timeoutMs: A_DAY_MS, maxBytes: 100_000, maxStreams: 10_000 },
      onDefect: (error) => defects.push(error),
    });
    const other = await listenForGrpc({
      host: '127.0.0.1',
      port: 0,
      isShared: false,
      maxConnections: 100,
      onConnection: patient.serve,
      onError: (error) => defects.push(error),
    });
    const deaf = openSession(other.port, READS_NOTHING);
    gateway.answer = () => ({
      reply: {
        ok: true,
        value: {
          decision: 'deny',
          reason: 'x'.repeat(2_000),
          policy: undefined,
          ruleId: undefined,
          cause: undefined,
          exceeded: undefined,
          opState: undefined,
        },
      },
      auditId: 1,
    });
    gateway.asked.length = 0;
    const calls: Call[] = [];
    const ask = (times: number): void => {
      for (let asked = 0; asked < times; asked += 1) {
        const call = begin(BATCH, deaf);
        calls.push(call);
        call.stream.end(batch(20)); // whose answer has 41 KB
      }
    };
    ask(2);
    await eventually(() => expect(gateway.asked).toHaveLength(40));
    await checkIsAnswered();
    vi.advanceTimersByTime(2_500); // it is looked at them every second
    await checkIsAnswered();
    expect(calls.map(({ isClosed }) => isClosed)).toEqual([false, false]);
    ask(2);
    await inTime(() => expect(calls.map(({ isClosed }) => isClosed)).toEqual([true, true, false, false]));
    ask(2);
    await inTime(() => expect(calls.filter(({ isClosed }) => isClosed).length).toBe(4));
    gateway.answer = undefined;
    expect(calls.map(({ headers }) => [headers[':status'], headers['grpc-status']])).toEqual(
      calls.map(() => [200, undefined]),
    );
    deaf.destroy();
    patient.drain(0);
    await other.close();
  });

  test('a client that floods reflection without reading is no longer read', async () => {
    const patient = createGrpcDoor({
      ports: gateway,
      control: gateway.control,
      limits: { timeoutMs: 60_000, maxBytes: 128 * 1024 * 1024, maxStreams: 10_000 },
      onDefect: (error) => defects.push(error),
    });
    const other = await listenForGrpc({
      host: '127.0.0.1',
      port: 0,
      isShared: false,
      maxConnections: 100,
      onConnection: patient.serve,
      onError: (error) => defects.push(error),
    });
    const deaf = openSession(other.port, READS_NOTHING);
    const call = begin(REFLECTION, deaf);
    call.stream.write(Buffer.concat(Array.from({ length: 10_000 }, () => DESCRIBE)));
    await pause(1_000);
    expect(call.stream.writableLength).toBeGreaterThan(0);
    deaf.destroy();
    patient.drain(0);
    await other.close();
  });
});
