/** Clients that send a body only once the gateway has asked for it (RFC 9110, 10.1.1). */
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { findNativeBuild } from '../../src/doors/engine/native-builds.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';
import { head, openSocket } from '../support/raw-http.ts';

const CHECK = '/svc.governance.v1.PolicyService/CheckAction';
const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };

/** The native engine asks where the value is in lower case only: docs/native-library.md, Workarounds. */
const NATIVE = findNativeBuild().kind === 'found';

describe.each([
  ['the engine of this machine', 'auto', !NATIVE],
  ['node:http', 'node', true],
])('over %s', (_what, engine, asksInAnyCase) => {
  let gateway: GatewayHere;
  beforeAll(async () => {
    gateway = await startGatewayHere({ env: { SVC_HTTP_ENGINE: engine } });
  });
  afterAll(async () => {
    await gateway.stop();
  });

  test.each([
    [
      '100-continue',
      CHECK,
      {
        message: { agent: AGENT, traceId: 't', spanId: 'a', action: 'tool.call', resource: 'web_search' },
        status: 200,
        content: '"decision":"DECISION_ALLOW"',
      },
    ],
    [
      '100-Continue',
      CHECK,
      {
        message: { agent: AGENT, traceId: 't', spanId: 'b', action: 'tool.call', resource: 'web_search' },
        status: 200,
        content: '"decision":"DECISION_ALLOW"',
      },
    ],
    ['100-Continue', CHECK, { message: { agent: AGENT }, status: 400, content: '"trace_id: ' }],
    [
      '100-Continue',
      '/api/v1/auth/token',
      { message: { scopes: ['read'] }, status: 200, content: '"scopes":["read"]' },
    ],
    [
      '100-Continue',
      '/api/v1/auth/token',
      { message: { scopes: ['everything'] }, status: 400, content: '"code":"invalid_argument"' },
    ],
    [
      '100-Continue',
      '/api/v1/iam/api-keys/unknown/revoke',
      { message: {}, status: 404, content: '"code":"not_found"' },
    ],
  ])(
    'Expect: %s at %s gets its answer or, where nobody can ask, none',
    async (expectation, path, { message, status, content }) => {
      const socket = openSocket(gateway);
      onTestFinished(() => {
        socket.destroy();
      });
      let text = '';
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      await once(socket, 'connect');
      const isAsked = asksInAnyCase || expectation === '100-continue';
      const body = JSON.stringify(message);
      for (const expected of [expectation, undefined]) {
        text = '';
        const framing = {
          Authorization: `Bearer ${ADMIN_KEY}`,
          'Content-Type': 'application/json',
          'Content-Length': String(body.length),
        };
        socket.write(
          head(`POST ${path} HTTP/1.1`, expected === undefined ? framing : { ...framing, Expect: expected }),
        );
        if (!isAsked) return void (await once(socket, 'close').then(() => expect(text).toBe('')));
        if (expected !== undefined) await eventually(() => expect(text).toBe('HTTP/1.1 100 Continue\r\n\r\n'));
        text = '';
        socket.write(body);
        await eventually(() => expect(text).toContain(content));
        const [statusLine, ...fields] = text.slice(0, text.indexOf('\r\n\r\n')).split('\r\n');
        expect(statusLine).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
        expect(fields.filter((field) => !/^[\w-]+: \S/.test(field))).toEqual([]);
        expect(text.length - text.indexOf('\r\n\r\n') - 4).toBe(Number(/content-length: (\d+)/i.exec(text)?.[1]));
      }
    },
  );

  // Java 17 waits for ever when anything else is the first answer.
  test.each([
    ['POST /nope', '', 404],
    ['GET /healthz', '', 200],
    ['DELETE /healthz', '', 405],
    [`POST ${CHECK}`, 'Authorization: Bearer other\r\n', 400],
    [`OPTIONS ${CHECK}`, '', 204],
  ])('%s, answered without its body, still asks for it', async (request, more, status) => {
    const socket = openSocket(gateway);
    onTestFinished(() => {
      socket.destroy();
    });
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    await once(socket, 'connect');
    socket.write(
      `${request} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${ADMIN_KEY}\r\n${more}Expect: ${asksInAnyCase ? '100-Continue' : '100-continue'}\r\n\r\n`,
    );
    await eventually(() => expect(text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 \d/));
    expect(text.match(/HTTP\/1\.1 (?!100)\d+/g)).toEqual([`HTTP/1.1 ${status}`]);
    text = '';
    socket.write(head('GET /healthz HTTP/1.1', {}));
    await eventually(() => expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/));
  });
});
