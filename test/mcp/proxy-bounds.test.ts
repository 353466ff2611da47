/** Limits of an MCP proxy on callers, most of whom it does not know yet. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Credential, GatewayCalls } from '../../src/client/calls.ts';
import { Gateway } from '../../src/mcp/gateway.ts';
import { Bodies, type Body } from '../../src/mcp/http/body.ts';
import { Callers } from '../../src/mcp/http/identity.ts';
import { Sessions } from '../../src/mcp/http/sessions.ts';
import { SignalPool } from '../../src/mcp/http/signal-pool.ts';
import { PinStore } from '../../src/mcp/pin-store.ts';
import { HELLO } from './messages.ts';

const KIB = 1024;
const CREDENTIAL: Credential = {
  agent: { orgId: 'acme', teamId: 'mcp', agentId: 'bot' },
  secret: 'token-0123456789-0123456789-0123456789',
  kind: 'token',
};

describe('svc mcp proxy', () => {
  let server: Server;
  let port: number;
  let serve: (request: IncomingMessage, response: ServerResponse) => void;
  const sockets: Socket[] = [];

  beforeEach(async () => {
    server = createServer((request, response) => serve(request, response));
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    port = (server.address() as AddressInfo).port;
  });
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
    server.close();
    server.closeAllConnections();
  });

  describe('reads a body', () => {
    /** Resolves with the first bodies that were read, so many of them. */
    const read = (bodies: Bodies, requests: readonly string[], wanted = requests.length): Promise<readonly Body[]> =>
      new Promise((resolve) => {
        const found: Body[] = [];
        serve = async (request) => {
          found.push(await bodies.read(request, 64 * KIB));
          if (found.length === wanted) resolve(found);
        };
        for (const request of requests) {
          const socket = connect(port, '127.0.0.1').on('error', () => undefined);
          sockets.push(socket);
          socket.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${request}`);
        }
      });
    const chunked = (body: string) =>
      `transfer-encoding: chunked\r\n\r\n${[...body].map((byte) => `1\r\n${byte}\r\n`).join('')}`;

    test('in pieces of a byte each, and refuses what is no JSON', async () => {
      const requests = [`${chunked('{"a":"b"}')}0\r\n\r\n`, `${chunked('{"a":')}0\r\n\r\n`];
      const bodies = await read(new Bodies(), requests);
      expect(bodies).toContainEqual({ value: { a: 'b' } });
      expect(bodies).toContainEqual({ status: 400, problem: 'the body is not JSON' });
    });

    test('up to its limit, whether or not its length is declared', async () => {
      const tooLarge = { status: 413, problem: 'the body has more than 65536 bytes' };
      const long = 'x'.repeat(64 * KIB + 1);
      const requests = [
        'content-length: 65537\r\n\r\n',
        `transfer-encoding: chunked\r\n\r\n${long.length.toString(16)}\r\n${long}\r\n`,
      ];
      expect(await read(new Bodies(), requests)).toEqual([tooLarge, tooLarge]);
    });

    test('with no more values, and no deeper, than a call can have', async () => {
      const refused = { status: 413, problem: 'the body has more than 24000 values, or they are nested too deep' };
      const declared = (body: string) => `content-length: ${body.length}\r\n\r\n${body}`;
      const flat = `[${'1,'.repeat(24_001)}1]`;
      const deep = `${'['.repeat(201)}${']'.repeat(201)}`;
      const text = JSON.stringify({ a: '[,'.repeat(25_000) });
      const bodies = new Bodies();
      for (const body of [flat, deep]) expect(await read(bodies, [declared(body)])).toEqual([refused]);
      expect(await read(bodies, [declared(text)])).toEqual([{ value: { a: '[,'.repeat(25_000) } }]);
    });

    test('as long as all together have room, which those that are over give back', async () => {
      const bodies = new Bodies(48 * KIB);
      const half = `content-length: ${20 * KIB}\r\n\r\n${'x'.repeat(18 * KIB)}`;
      const busy = { status: 503, problem: 'too many requests are on their way' };
      expect(await read(bodies, [half, half, half], 1)).toEqual([busy]);
      for (const socket of sockets.splice(0)) socket.destroy();
      const whole = `content-length: ${20 * KIB}\r\n\r\n"${'x'.repeat(20 * KIB - 2)}"`;
      await expect.poll(async () => read(bodies, [whole])).toEqual([{ value: 'x'.repeat(20 * KIB - 2) }]);
    });
  });

  describe('asks the gateway whose a token is', () => {
    const agent = { orgId: 'acme', teamId: 'mcp', agentId: 'bot' };
    const fallback = { orgId: 'acme', teamId: 'mcp', agentId: 'of-the-proxy' };
    const bearing = (secret: string) => ({ authorization: `Bearer ${secret}` });
    /** Plays a gateway with these answers to secrets; returns the agents it was asked about. */
    const gateway = (answers: Readonly<Record<string, readonly [number, object]>>): readonly string[] => {
      const asked: string[] = [];
      serve = (request, response) => {
        const secret = request.headers.authorization?.slice('Bearer '.length) ?? '';
        asked.push(`${request.method} ${request.url} ${secret}`);
        const [status, body] = answers[secret] ?? [401, { code: 'unauthenticated', detail: 'unknown' }];
        response.writeHead(status, status === 429 ? { 'retry-after': '30' } : {}).end(JSON.stringify(body));
      };
      return asked;
    };
    const owner = [200, { agent: { org_id: 'acme', team_id: 'mcp', agent_id: 'bot' } }] as const;
    const key = [404, { code: 'not_found', detail: 'not found' }] as const;

    test('once, also when many requests come at the same time', async () => {
      const asked = gateway({ own: owner });
      const calls = new GatewayCalls({ apiUrl: `http://127.0.0.1:${port}/behind`, proxy: undefined });
      const callers = new Callers(calls, fallback);
      const claims = await Promise.all(Array.from({ length: 50 }, () => callers.callerIn(bearing('own'))));
      claims.push(await callers.callerIn(bearing('own')));
      expect(new Set(claims.map((claim) => JSON.stringify(claim)))).toEqual(
        new Set([JSON.stringify({ secret: 'own', agent })]),
      );
      expect(asked).toEqual(['GET /behind/api/v1/agents/self own']);
      calls.close();
    });

    test('and lets a key speak for the agent of the proxy, if it has one', async () => {
      const asked = gateway({ chosen: key });
      const calls = new GatewayCalls({ apiUrl: `http://127.0.0.1:${port}`, proxy: undefined });
      for (const secret of ['chosen', 'svc_id_secret']) {
        expect(await new Callers(calls, fallback).callerIn(bearing(secret))).toEqual({ secret, agent: fallback });
        expect(await new Callers(calls, undefined).callerIn(bearing(secret))).toMatchObject({ status: 403 });
      }
      // By its form alone: a key goes where it has to be known.
      expect(asked.filter((line) => line.includes('svc_id_secret'))).toEqual([]);
      calls.close();
    });

    test("once for each stranger's token, a few at a time, and without waiting for long", async () => {
      const asked = gateway({ often: [429, { code: 'rate_limited', detail: 'too many requests' }] });
      const calls = new GatewayCalls({ apiUrl: `http://127.0.0.1:${port}`, proxy: undefined });
      const callers = new Callers(calls, fallback);
      for (const _ of [1, 2]) expect(await callers.callerIn(bearing('who'))).toMatchObject({ status: 401 });
      expect(asked).toHaveLength(2);
      expect(await callers.callerIn(bearing('often'))).toMatchObject({ status: 503, detail: 'too many requests' });
      const many = await Promise.all(Array.from({ length: 40 }, (_, n) => callers.callerIn(bearing(`who-${n}`))));
      expect(many.map((claim) => 'status' in claim && claim.status).sort()).toEqual([
        ...Array(16).fill(401),
        ...Array(24).fill(503),
      ]);
      calls.close();
    });

    test('and is unavailable while it cannot ask', async () => {
      const calls = new GatewayCalls({ apiUrl: 'http://127.0.0.1:9', proxy: undefined });
      const refused = await new Callers(calls, fallback).callerIn(bearing('own'));
      expect(refused).toMatchObject({ status: 503, detail: expect.stringContaining('cannot be reached') });
      calls.close();
    });
  });

  test('gives a credential half of all sessions, and ends its channel with the last', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-proxy-'));
    const calls = new GatewayCalls({ apiUrl: 'http://127.0.0.1:9', proxy: undefined });
    const signals = new SignalPool({ address: '127.0.0.1:9', tls: false });
    const sessions = new Sessions(() => undefined, { sessions: 4 });
    const opened = async (credential: string): Promise<number> => {
      serve = (request, response) => {
        if (sessions.crowding({ credential, processes: 0 }) !== undefined) return void response.writeHead(503).end();
        const options = {
          gateway: new Gateway(calls, CREDENTIAL),
          lease: signals.of(CREDENTIAL),
          pins: new PinStore(join(folder, 'pins.json')),
          log: () => undefined,
          servers: [],
          isPrefixed: true,
          tellsWithheld: false,
        };
        const body = { jsonrpc: '2.0', id: 1, method: 'initialize', params: HELLO };
        const place = { path: '/mcp', binding: credential, credential, processes: 0 };
        void sessions.open(options, place, request, response, body);
      };
      const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
      const { status, body } = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: '{}' });
      await body?.cancel();
      return status;
    };
    expect([await opened('one'), await opened('one'), await opened('one')]).toEqual([200, 200, 503]);
    expect([await opened('two'), signals.size]).toEqual([200, 1]);
    await sessions.closeAll();
    expect([await opened('one'), signals.size]).toEqual([200, 1]);
    await sessions.closeAll();
    expect(signals.size).toBe(0);
    calls.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test('starts so many servers for a credential, and so many for all', async () => {
    const limits = { processes: 5, processesOfCredential: 3 };
    const sessions = new Sessions(() => undefined, limits);
    const calls = new GatewayCalls({ apiUrl: 'http://127.0.0.1:9', proxy: undefined });
    const signals = new SignalPool({ address: '127.0.0.1:9', tls: false });
    const folder = mkdtempSync(join(tmpdir(), 'svc-proxy-'));
    const opened = async (credential: string, processes: number): Promise<string | undefined> => {
      const crowding = sessions.crowding({ credential, processes });
      if (crowding !== undefined) return crowding;
      serve = (request, response) => {
        const options = {
          gateway: new Gateway(calls, CREDENTIAL),
          lease: signals.of(CREDENTIAL),
          pins: new PinStore(join(folder, 'pins.json')),
          log: () => undefined,
          servers: [],
          isPrefixed: true,
          tellsWithheld: false,
        };
        const body = { jsonrpc: '2.0', id: 1, method: 'initialize', params: HELLO };
        void sessions.open(
          options,
          { path: '/mcp', binding: credential, credential, processes },
          request,
          response,
          body,
        );
      };
      const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
      const { body } = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: '{}' });
      await body?.cancel();
      return undefined;
    };
    expect([await opened('one', 2), await opened('one', 1)]).toEqual([undefined, undefined]);
    expect(await opened('one', 1)).toContain('have started 3 servers, and may have 3');
    expect(await opened('one', 0)).toBeUndefined();
    expect(await opened('two', 2)).toBeUndefined();
    expect(await opened('three', 1)).toContain('all sessions have started 5 servers, and may have 5');
    await sessions.closeAll();
    // A session that needs more than its share is opened while it is the first.
    expect(await opened('one', 4)).toBeUndefined();
    expect(await opened('one', 1)).toContain('have started 4 servers');
    await sessions.closeAll();
    calls.close();
    rmSync(folder, { recursive: true, force: true });
  });
});
