/** Answers as they go out over a real socket of either engine. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { fail, ok, type Result } from '../../../src/core/base/result.ts';
import { explain, type Fault } from '../../../src/core/fault.ts';
import { serveRoutes } from '../../../src/doors/api/server.ts';
import { DoorState } from '../../../src/doors/engine/door-state.ts';
import type { Engine } from '../../../src/doors/engine/engine.ts';
import type { HttpReply, HttpResponse, Route } from '../../../src/doors/engine/route.ts';
import type { Link } from '../../../src/use-cases/use-cases.ts';
import { createNode, ENGINES } from '../../support/engines.ts';
import { askWithoutReading, head, openSocket, sendRaw } from '../../support/raw-http.ts';

type Pieces = AsyncGenerator<Result<Uint8Array, Fault>>;

const NO_LINK = {} as Link; // the row below asks nothing
const door = new DoorState(Infinity);

const REQUEST = head('GET /export HTTP/1.1');

/** Serves one row. The gateway's log of its requests goes to `said`. */
const serve = (
  http: Engine,
  handle: () => Promise<HttpReply>,
  said: string[] = [],
): Promise<{ readonly url: string }> =>
  serveRow(http, { method: 'get', path: '/export', access: 'public', limit: 'none', summary: '', handle }, said);

async function serveRow(http: Engine, row: Route, said: string[] = []): Promise<{ readonly url: string }> {
  serveRoutes(http, {
    door,
    ports: { link: NO_LINK, authenticate: async () => fail({ kind: 'internal' }) } as never,
    routes: [row],
    corsOrigins: [],
    own: { origins: [], hosts: undefined },
    bodyTimeoutMs: 60_000,
    onError: (error, doing) => said.push(`defect at ${doing}: ${String(error)}`),
    onCut: (fault, doing) => said.push(`cut ${doing}: ${explain(fault)}`),
  });
  const port = await http.listen('127.0.0.1', 0, false);
  onTestFinished(() => http.close());
  return { url: `http://127.0.0.1:${port}` };
}

/** Sends a body that is made of these pieces; returns the client's answer and the gateway's log. */
async function answerOf(http: Engine, pieces: () => Pieces) {
  const said: string[] = [];
  const gateway = await serve(
    http,
    async () => ok({ status: 200, stream: { type: 'text/plain', chunks: pieces() } }),
    said,
  );
  const { text, isClosed } = await sendRaw(gateway, [REQUEST]);
  return { isWhole: text.endsWith('\r\n0\r\n\r\n'), isClosed, said };
}

const first = ok(Buffer.from('first'));
describe('exchange', () => {
  test.each(ENGINES)('over %s a body ends without a report', async (_, create) => {
    async function* pieces(): Pieces {
      yield first;
    }
    expect(await answerOf(create(), pieces)).toEqual({ isWhole: true, isClosed: false, said: [] });
  });

  test.each(ENGINES)('over %s a body that may not continue is cut, with the reason', async (_, create) => {
    async function* pieces(): Pieces {
      yield first;
      yield fail({ kind: 'unauthenticated', detail: 'the key was revoked' });
    }
    expect(await answerOf(create(), pieces)).toEqual({
      isWhole: false,
      isClosed: true,
      said: ['cut GET /export: the key was revoked'],
    });
  });

  test.each(ENGINES)('over %s a body that meets a defect is cut, with the defect reported', async (_, create) => {
    async function* pieces(): Pieces {
      yield first;
      throw new Error('a defect');
    }
    expect(await answerOf(create(), pieces)).toEqual({
      isWhole: false,
      isClosed: true,
      said: ['defect at an HTTP request: Error: a defect'],
    });
  });

  test.each(ENGINES)('over %s the query is what follows the question mark, or empty', async (_, create) => {
    const http = create();
    const queries: string[] = [];
    http.serve('/ask', (answer, request) => {
      queries.push(request.query);
      answer.send(200, 'text/plain', [], '');
    });
    const port = await http.listen('127.0.0.1', 0, false);
    onTestFinished(() => http.close());
    for (const path of ['/ask', '/ask?', '/ask?a=1&b']) await (await fetch(`http://127.0.0.1:${port}${path}`)).text();
    expect(queries).toEqual(['', '', 'a=1&b']);
  });

  const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

  test.each(ENGINES)('over %s a chunked body is read as sent, wherever it is cut', async (_, create) => {
    const gateway = await serveRow(create(), {
      method: 'post',
      path: '/read',
      access: 'public',
      limit: 'none',
      summary: '',
      body: z.object({ text: z.string() }),
      handle: async ({ body }) => ok({ status: 200, body: digestOf(JSON.stringify(body)) }),
    });
    const sent = JSON.stringify({ text: Array.from({ length: 20_000 }, (_number, at) => at).join('é') });
    const bytes = Buffer.from(sent);
    for (const cuts of [[1], [16_384], [10, 16_384, 16_385, 40_000], [50_000, 50_001, 120_000]]) {
      const pieces = [0, ...cuts].map((from, nth) => bytes.subarray(from, cuts[nth]));
      for (const isChunked of [false, true]) {
        const framed = pieces.map((piece) =>
          isChunked
            ? Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')])
            : piece,
        );
        if (isChunked) framed.push(Buffer.from('0\r\n\r\n'));
        const framing: Record<string, string> = isChunked
          ? { 'Transfer-Encoding': 'chunked' }
          : { 'Content-Length': String(bytes.length) };
        const { text } = await sendRaw(gateway, [
          head('POST /read HTTP/1.1', { 'Content-Type': 'application/json', ...framing }),
          ...framed.flatMap((piece) => [piece, { waitMs: 20 }]),
        ]);
        expect([cuts, isChunked, text.slice(0, 15), text.slice(text.indexOf('\r\n\r\n') + 4)]).toEqual([
          cuts,
          isChunked,
          'HTTP/1.1 200 OK',
          `"${digestOf(sent)}"`,
        ]);
      }
    }
  });

  /** The answers to two requests on one connection. */
  async function answersTo(http: Engine, response: HttpResponse, method: 'GET' | 'HEAD'): Promise<readonly string[]> {
    const gateway = await serve(http, async () => ok(response));
    const { text } = await sendRaw(
      gateway,
      [head(`${method} /export HTTP/1.1`), { answered: 1 }, head('GET /nowhere HTTP/1.1')],
      { answers: 2 },
    );
    return text.split(/(?=HTTP\/1\.1 )/);
  }

  test.each(ENGINES)(
    'over %s a 204 has no length, as HTTP wants it, and the connection continues',
    async (_, create) => {
      const [empty, next] = await answersTo(create(), { status: 204 }, 'GET');
      expect(empty).toMatch(/^HTTP\/1\.1 204 No Content\r\n/);
      expect(empty).not.toMatch(/content-length|transfer-encoding/i);
      expect(next).toMatch(/^HTTP\/1\.1 404 /);
    },
  );

  test.each(ENGINES)('over %s HEAD of a chunked body gives its type without a length', async (_, create) => {
    async function* pieces(): Pieces {
      yield first;
    }
    const [headOnly, next] = await answersTo(
      create(),
      { status: 200, stream: { type: 'text/csv', chunks: pieces() } },
      'HEAD',
    );
    expect(headOnly).toMatch(/\r\nContent-Type: text\/csv\r\n/);
    expect(headOnly).not.toMatch(/content-length|first/i);
    expect(next).toMatch(/^HTTP\/1\.1 404 /);
  });

  test.each(ENGINES)('over %s a large answer arrives whole at a slow reader', async (_, create) => {
    const content = 'é'.repeat(4_000_000);
    const gateway = await serve(create(), async () =>
      ok({ status: 200, text: { type: 'text/plain; charset=utf-8', content } }),
    );
    const socket = openSocket(gateway);
    onTestFinished(() => void socket.destroy());
    socket.write(head('GET /export HTTP/1.1', { Connection: 'close' }));
    await sleep(300);
    const pieces: Buffer[] = [];
    for await (const piece of socket as AsyncIterable<Buffer>) pieces.push(piece);
    const [top, body] = Buffer.concat(pieces).toString().split('\r\n\r\n');
    expect([/content-length: (\d+)/i.exec(top!)?.[1], body === content]).toEqual(['8000000', true]);
  });

  const LONG = 'x'.repeat(16_000_000);
  async function* longPieces(): Pieces {
    for (let nth = 0; nth < 16; nth += 1) {
      yield ok(Buffer.from(LONG.slice(0, 1_000_000)));
      await new Promise((resolve) => setImmediate(resolve)); // as if the next one were asked for
    }
  }

  test.each(ENGINES)(
    'over %s an answer counts as unwritten until it is read, or its reader has gone',
    async (_, create) => {
      let asked = 0;
      const gateway = await serve(create(), async () => {
        asked += 1;
        return ok(
          asked % 2 === 0
            ? { status: 200, text: { type: 'text/plain', content: LONG } }
            : { status: 200, stream: { type: 'text/plain', chunks: longPieces() } },
        );
      });
      for (const leave of ['resume', 'resume', 'destroy', 'destroy'] as const) {
        expect(door.unwritten).toBe(0);
        const socket = openSocket(gateway);
        onTestFinished(() => void socket.destroy());
        socket.write(REQUEST);
        await once(socket, 'readable');
        expect({ unwritten: door.unwritten, isBusy: door.isBusy }).toEqual({ unwritten: 1, isBusy: true });
        socket[leave]();
        await expect.poll(() => door.unwritten).toBe(0);
      }
    },
  );

  test.each(ENGINES)('over %s little is computed for a client that sends and does not read', async (_, create) => {
    let answered = 0;
    const gateway = await serve(create(), async () => {
      answered += 1;
      return ok({ status: 200, text: { type: 'text/plain', content: 'x'.repeat(1_000_000) } });
    });
    await askWithoutReading(gateway, REQUEST, () => answered, 100);
    // The system keeps some 6 MB for a connection.
    expect(answered).toBeLessThan(20);
  });

  test.each([
    ['204', head('GET /export HTTP/1.1'), { status: 204 }],
    ['202', head('GET /export HTTP/1.1'), { status: 202 }],
    [
      'the head of a file',
      head('HEAD /export HTTP/1.1'),
      { status: 200, text: { type: 'text/plain', content: 'a file' } },
    ],
  ] as const)('a client that floods %s and does not read is cut off', async (_, request, response) => {
    for (const [name, create] of ENGINES) {
      let answered = 0;
      const gateway = await serve(create(), async () => {
        answered += 1;
        return ok(response);
      });
      await askWithoutReading(gateway, request, () => answered, 5_000);
      // node:http reads no more than it is read, which is after some 6 MB, and so after more answers than are asked for
      // here.
      // The native library still serves the requests that had come together with the last one.
      expect(answered).toBeLessThanOrEqual(name === 'native' ? 2_048 : 5_000);
    }
  });

  test.each(ENGINES)('over %s a reader learns which answer ends the connection', async (name, create) => {
    const http = create();
    const gateway = await serve(http, async () => ok({ status: 204 }));
    const statuses: number[] = [];
    let closed = 0;
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    for (let asked = 0; asked < 1_500; asked += 1) {
      const answer = await new Promise<IncomingMessage>((resolve, reject) => {
        get(`${gateway.url}/export`, { agent }, resolve).on('error', reject);
      });
      answer.resume();
      statuses.push(answer.statusCode!);
      if (answer.headers.connection === 'close') closed += 1;
      await once(answer, 'end');
    }
    expect(statuses).toEqual(Array.from({ length: 1_500 }, () => 204));
    expect(closed).toBeLessThanOrEqual(3);
    expect(closed > 0).toBe(name === 'native');
  });

  test.each(ENGINES)('over %s pipelined requests in one packet do not hold up others', async (name, create) => {
    let answered = 0;
    const http = create();
    const gateway = await serve(http, async () => {
      answered += 1;
      return ok({ status: 200, body: {} });
    });
    const { isClosed } = await sendRaw(gateway, [REQUEST.repeat(1_000)], { answers: 1_000 });
    // The native engine starts only the first. node:http answers what it has read, 64 KB at most, and reads on when
    // others have had their turn.
    expect([isClosed, answered]).toEqual(name === 'native' ? [true, 1] : [false, 1_000]);
  });

  test("over node:http a request notices its client's end behind an unanswered one", async () => {
    const http = createNode();
    const gone: string[] = [];
    const arrived: string[] = [];
    http.serve('/*', (answer, { path }) => {
      arrived.push(path);
      answer.listener = { gone: () => gone.push(path), left: () => undefined, writable: () => undefined };
    });
    const port = await http.listen('127.0.0.1', 0, false);
    onTestFinished(() => http.close());
    const socket = openSocket({ url: `http://127.0.0.1:${port}` });
    socket.write(
      head('GET /first HTTP/1.1') +
        head('GET /second HTTP/1.1') +
        head('POST /third HTTP/1.1', { 'Content-Length': '10' }),
    );
    await expect.poll(() => arrived).toEqual(['/first', '/second', '/third']);
    socket.destroy();
    await expect.poll(() => gone).toEqual(['/first', '/second', '/third']);
  });

  test.each(ENGINES)('over %s the reason phrase is that of the problem', async (_, create) => {
    const [refused] = await answersTo(create(), { status: 413 }, 'GET');
    expect(refused).toMatch(/^HTTP\/1\.1 413 Content Too Large\r\n/);
  });
});
