/** What a proxy of MCP keeps for its callers, most of whom it does not know yet. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Gateway } from '../../src/mcp/gateway.ts';
import { type Credential, GatewayCalls } from '../../src/mcp/gateway-calls.ts';
import { Bodies, type Body } from '../../src/mcp/http/body.ts';
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

  test('gives a credential half of all sessions, and ends its channel with the last', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-proxy-'));
    const calls = new GatewayCalls('http://127.0.0.1:9');
    const signals = new SignalPool({ address: '127.0.0.1:9', tls: false });
    const sessions = new Sessions(() => undefined, 4);
    const opened = async (credential: string): Promise<number> => {
      serve = (request, response) => {
        if (!sessions.hasRoomFor(credential)) return void response.writeHead(503).end();
        const options = {
          gateway: new Gateway(calls, CREDENTIAL),
          lease: signals.of(CREDENTIAL),
          pins: new PinStore(join(folder, 'pins.json')),
          log: () => undefined,
          servers: [],
          isPrefixed: true,
        };
        const body = { jsonrpc: '2.0', id: 1, method: 'initialize', params: HELLO };
        void sessions.open(options, { path: '/mcp', binding: credential, credential }, request, response, body);
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
});
