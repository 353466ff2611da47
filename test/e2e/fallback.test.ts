/** Over node:http, users lose speed and nothing else. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { head, sendRaw } from '../support/raw-http.ts';

const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
const TOKEN = 'crawler-token-0123456789-0123456789-0123';

let gateway: TestGateway;
describe('fallback', () => {
  beforeAll(async () => {
    gateway = await startTestGateway({ env: { SVC_HTTP_ENGINE: 'node' } });
    await gateway.call('POST', '/svc.governance.v1.AgentService/RegisterAgent', {
      agent: AGENT,
      credentialToken: TOKEN,
    });
  });
  afterAll(async () => {
    await gateway.stop();
  });

  const check = (traceId: string, resource: string) =>
    gateway.call(
      'POST',
      '/svc.governance.v1.PolicyService/CheckAction',
      { agent: AGENT, credentialToken: TOKEN, traceId, spanId: 's', action: 'tool.call', resource },
      null,
    );

  test('the start says that it was chosen', () => {
    expect(gateway.output.stdout).toContain('  HTTP core  node:http, by SVC_HTTP_ENGINE\n');
  });

  test('checks are allowed and denied, and problems are reported as usual', async () => {
    expect((await check('f1', 'web_search')).body).toMatchObject({
      decision: 'DECISION_ALLOW',
      opState: 'OP_STATE_RUNNING',
    });
    expect((await check('f2', 'launch_rocket')).body).toMatchObject({ decision: 'DECISION_DENY' });
    expect(await gateway.call('GET', '/nowhere')).toMatchObject({ status: 404, body: { code: 'not_found' } });
    expect(await gateway.call('PUT', '/api/v1/ops')).toMatchObject({ status: 405 });
    expect(await gateway.call('GET', '/api/v1/ops', undefined, 'wrong')).toMatchObject({
      status: 401,
      body: { code: 'unauthenticated' },
    });
    const tooLarge = await fetch(`${gateway.url}/api/v1/ops`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
      body: 'x'.repeat(2_000_000),
    });
    expect(tooLarge.status).toBe(413);
  });

  test('the log is exported whole, and the dashboard is served', async () => {
    const exported = await gateway.call('GET', '/api/v1/logs/export');
    expect(String(exported.body).trim().split('\n').length).toBeGreaterThanOrEqual(3);
    const page = await fetch(`${gateway.url}/`, { method: 'HEAD' });
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
  });

  test('a dashboard sees an operation pause; without a credential it is refused', async () => {
    const refused = new WebSocket(`${gateway.url.replace('http', 'ws')}/api/v1/stream`);
    expect(
      await new Promise((resolve) =>
        refused.once('unexpected-response', (_request, response) => resolve(response.statusCode)),
      ),
    ).toBe(401);
    await check('f3', 'web_search');
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/api/v1/stream`, {
      headers: { authorization: `Bearer ${ADMIN_KEY}` },
    });
    const paused = new Promise<unknown>((resolve, reject) =>
      socket.on('message', (message, isBinary) => {
        if (isBinary) reject(new Error('a frame is text, or a browser cannot read it'));
        const frame = JSON.parse(String(message)) as { payload: { op_id: string; state: string } };
        if (frame.payload.state === 'paused') resolve(frame.payload);
      }),
    );
    await new Promise((resolve) => socket.once('open', resolve));
    await gateway.call('POST', '/api/v1/ops/f3:s/pause');
    expect(await paused).toMatchObject({ op_id: 'f3:s', state: 'paused' });
    socket.close();
  });

  test('a client offering another protocol is answered in this one, its body read', async () => {
    const offer = { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABkAAQAAP__' };
    const health = await sendRaw(gateway, [head('GET /healthz HTTP/1.1', offer), head('GET /nowhere HTTP/1.1')], {
      answers: 2,
    });
    expect(health.statuses).toEqual([200, 404]);
    const body = JSON.stringify({
      agent: AGENT,
      credentialToken: TOKEN,
      traceId: 'f4',
      spanId: 's',
      action: 'tool.call',
      resource: 'web_search',
    });
    const path = '/svc.governance.v1.PolicyService/CheckAction';
    const checked = await sendRaw(gateway, [
      head(`POST ${path} HTTP/1.1`, {
        ...offer,
        'Content-Type': 'application/json',
        'Content-Length': String(body.length),
      }),
      { waitMs: 50 },
      body,
    ]);
    expect({ statuses: checked.statuses, text: checked.text }).toEqual({
      statuses: [200],
      text: expect.stringContaining('DECISION_ALLOW'),
    });
  });

  test('a stream opens also for a client that sends a content length', async () => {
    const offer = {
      Authorization: `Bearer ${ADMIN_KEY}`,
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'Sec-WebSocket-Version': '13',
      'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'Content-Length': '0',
    };
    expect((await sendRaw(gateway, [head('GET /api/v1/stream HTTP/1.1', offer)])).statuses).toEqual([101]);
  });

  test('no offered subprotocol is chosen, so that no credential is echoed', async () => {
    const offer = {
      Authorization: `Bearer ${ADMIN_KEY}`,
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'Sec-WebSocket-Version': '13',
      'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'Sec-WebSocket-Protocol': 'bearer-secret, other',
    };
    const { text } = await sendRaw(gateway, [head('GET /api/v1/stream HTTP/1.1', offer)]);
    expect(text).toMatch(/^HTTP\/1\.1 101 /);
    expect(text).not.toMatch(/sec-websocket-protocol|bearer-secret/i);
  });

  test('an incomplete handshake gets an answer that names the protocol', async () => {
    const auth = {
      Authorization: `Bearer ${ADMIN_KEY}`,
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'Sec-WebSocket-Version': '13',
    };
    for (const key of ['', 'short']) {
      const { statuses } = await sendRaw(gateway, [
        head('GET /api/v1/stream HTTP/1.1', { ...auth, 'Sec-WebSocket-Key': key }),
      ]);
      expect(statuses).toEqual([426]);
    }
  });

  test("a refused handshake's connection closes also if its client never closes it", async () => {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(gateway.url).port), allowHalfOpen: true });
    onTestFinished(() => void socket.destroy());
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    socket.on('error', () => undefined);
    socket.write(
      head('GET /api/v1/stream HTTP/1.1', {
        Connection: 'Upgrade',
        Upgrade: 'websocket',
        'Sec-WebSocket-Version': '13',
        'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
      }),
    );
    await once(socket, 'end');
    expect(text).toMatch(/^HTTP\/1\.1 401 /);
    // A write to a connection whose other end is gone is answered with a reset.
    await expect
      .poll(() => {
        socket.write('x');
        return socket.destroyed;
      })
      .toBe(true);
  });

  test('nothing is done that arrives behind a request that ends the connection', async () => {
    const body = '{"op_id":"smuggled:op","agent":{"team_id":"search","agent_id":"crawler"}}';
    const inner =
      head('POST /api/v1/ops HTTP/1.1', {
        Authorization: `Bearer ${ADMIN_KEY}`,
        'Content-Type': 'application/json',
        'Content-Length': String(body.length),
      }) + body;
    const { statuses, isClosed } = await sendRaw(gateway, [
      `${head('POST /nope HTTP/1.1', { 'Transfer-Encoding': 'gzip, chunked' })}0\r\n\r\n${inner}`,
    ]);
    expect({ statuses, isClosed }).toEqual({ statuses: [], isClosed: true });
    expect((await gateway.call('GET', '/api/v1/ops/smuggled:op')).status).toBe(404);
  });

  test('SIGTERM exits with 0 over node:http, too', async () => {
    const other = await startTestGateway({ env: { SVC_HTTP_ENGINE: 'node' } });
    expect(await other.stop('SIGTERM')).toBe(0);
  });

  test.each(['node', 'auto'])('a second signal ends it at once, and by itself (SVC_HTTP_ENGINE=%s)', async (engine) => {
    const other = await startTestGateway({ env: { SVC_HTTP_ENGINE: engine } });
    other.process.kill('SIGTERM');
    // Either may come first. 0: it was done already.
    expect(['SIGINT', 'SIGTERM', 0]).toContain(await other.stop('SIGINT'));
    expect(other.output.stderr).not.toContain('open handles');
  });
});
