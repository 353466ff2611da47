/** Hostile requests: each gets a clear error or a closed connection, and nothing stays behind. */
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { auditEntries } from '../support/audit-log.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { residentMib } from '../support/memory.ts';
import { head, openSocket, sendRaw } from '../support/raw-http.ts';
import { AGENT, AUTH, badConnections, CHECK, JSON_TYPE, TOKEN } from './bad-connections.ts';

let gateway: TestGateway;
let residentAtStart: number;

describe('bad input', () => {
  beforeAll(async () => {
    gateway = await startTestGateway({ env: { SVC_BODY_TIMEOUT_SECS: '2', SVC_LOG_LEVEL: 'info' } });
    await gateway.call('POST', '/svc.governance.v1.AgentService/RegisterAgent', {
      agent: AGENT,
      credentialToken: TOKEN,
    });
    // Warm, so that what is measured at the end is not the first use of something.
    for (let round = 0; round < 200; round += 1) await check({ dryRun: true });
    residentAtStart = residentMib(gateway.process.pid);
  });
  afterAll(async () => {
    await gateway?.stop();
  });

  const check = (fields: object = {}) =>
    gateway.call(
      'POST',
      CHECK,
      {
        agent: AGENT,
        credentialToken: TOKEN,
        traceId: 't',
        spanId: 's',
        action: 'tool.call',
        resource: 'web_search',
        dryRun: true,
        ...fields,
      },
      null,
    );
  const ops = async (): Promise<unknown[]> => (await gateway.call('GET', '/api/v1/ops')).body.ops;
  const postOp = (fields: object) =>
    gateway.call('POST', '/api/v1/ops', {
      agent: { org_id: 'acme', team_id: 'search', agent_id: 'crawler' },
      ...fields,
    });

  // The first of the file: what was set aside for bodies, the allocator keeps for the next ones, and all else is
  // measured from there.
  test('hundreds of stalled bodies stay within their memory, which is freed', async () => {
    const almost = 1024 * 1024 - 1;
    const bytes = Buffer.concat([
      Buffer.from(head('POST /api/v1/ops HTTP/1.1', { 'Content-Length': String(almost + 1) })),
      Buffer.alloc(almost),
    ]);
    const stall = () =>
      new Promise<Socket>((resolve) => {
        const socket = openSocket(gateway);
        socket.on('error', () => undefined); // cut off: that is what is wanted
        socket.on('connect', () => socket.write(bytes, () => resolve(socket)));
        socket.on('close', () => resolve(socket));
      });
    const flood = async (): Promise<number> => {
      const sockets = await Promise.all(Array.from({ length: 400 }, stall));
      expect((await check()).status).toBe(200);
      const taken = residentMib(gateway.process.pid);
      await eventually(() => expect(sockets.every((socket) => socket.destroyed)).toBe(true));
      return taken;
    };
    const before = residentMib(gateway.process.pid);
    const first = await flood();
    expect(first - before).toBeLessThan(300);
    // Not as much again. The first may be over before its memory is looked at.
    expect((await flood()) - Math.max(first, before + 200)).toBeLessThan(100);
    expect(
      (
        await fetch(`${gateway.url}/api/v1/ops`, {
          method: 'POST',
          headers: { ...AUTH, ...JSON_TYPE },
          body: 'x'.repeat(900_000),
        })
      ).status,
    ).toBe(400);
    residentAtStart = residentMib(gateway.process.pid);
  });

  describe('ids', () => {
    test.each([
      ['an empty trace', '', 's'],
      ['an empty span', 't', ''],
      ['a colon in the trace', 'a:b', 's'],
      ['a colon in the span', 't', 'a:b'],
      ['a control character', 't\u0000', 's'],
      ['a line feed', 't', 's\n'],
      ['a delete character', 't\u007f', 's'],
      ['a C1 control character', 't\u0085', 's'],
      ['a character that turns the writing direction', 't\u202e', 's'],
      ['half a surrogate pair', 't\ud800', 's'],
      ['white space', 'a b', 's'],
      ['257 bytes', 't'.repeat(257), 's'],
      ['257 bytes in 129 characters', `${'ä'.repeat(128)}t`, 's'],
    ])('%s is refused by a check, by a registration and in a path', async (_what, traceId, spanId) => {
      const refused = await check({ traceId, spanId, dryRun: false });
      expect({ status: refused.status, code: refused.body.code }).toEqual({ status: 400, code: 'invalid_argument' });
      const posted = await postOp({ trace_id: traceId, span_id: spanId });
      expect({ status: posted.status, code: posted.body.code }).toEqual({ status: 400, code: 'invalid_argument' });
      const path = `/api/v1/ops/${encodeURIComponent(`${traceId.replace('\ud800', '\ufffd')}:${spanId}`)}`;
      // As UTF-8, half a surrogate pair is the replacement character: an id like any other, of no operation.
      expect((await gateway.call('GET', path)).status).toBe(traceId.endsWith('\ud800') ? 404 : 400);
      expect(await ops()).toEqual([]);
    });

    test('256 bytes of any visible characters are an id, raw and percent-encoded', async () => {
      const traceId = `${'ä'.repeat(127)}/?`;
      expect((await check({ traceId, spanId: '%#&', dryRun: false })).body).toMatchObject({
        decision: 'DECISION_ALLOW',
        opId: `${traceId}:%#&`,
      });
      const id = encodeURIComponent(`${traceId}:%#&`);
      expect((await gateway.call('GET', `/api/v1/ops/${id}`)).body).toMatchObject({
        op_id: `${traceId}:%#&`,
        state: 'running',
      });
      expect((await gateway.call('GET', `/api/v1/ops/${id.replace('%3A', ':')}`)).body).toMatchObject({
        op_id: `${traceId}:%#&`,
      });
      expect((await gateway.call('POST', `/api/v1/ops/${id}/complete`)).status).toBe(200);
    });

    test.each([
      ['trace_id', 'a b', 's'],
      ['span_id', 't', 'a:b'],
      ['trace_id', '', ''],
    ])('the refusal of a registration names %s where %j and %j are the halves', async (field, trace_id, span_id) => {
      const { status, body } = await postOp({ trace_id, span_id });
      expect({ status, body }).toMatchObject({
        status: 400,
        body: {
          field,
          detail: `${field}: must be 1 to 256 bytes without whitespace, control or invisible characters, or ":"`,
        },
      });
    });

    test.each([
      ['no colon', 'plain'],
      ['a second colon', 'a:b:c'],
      ['only a colon', ':'],
      ['nothing before the colon', ':s'],
      ['nothing after it', 't:'],
    ])('an op_id with %s is refused', async (_what, op_id) => {
      expect((await postOp({ op_id })).body).toMatchObject({ code: 'invalid_argument', field: 'op_id' });
      expect((await gateway.call('POST', `/api/v1/ops/${op_id}/pause`)).status).toBe(400);
    });

    test.each([
      ['team_id', ''],
      ['team_id', 'a/b'],
      ['agent_id', 'a b'],
      ['agent_id', 'a\u0007'],
      ['org_id', 'o'.repeat(257)],
      ['org_id', '\u200b'],
    ])('%s %j is not a name', async (field, name) => {
      const posted = await gateway.call('POST', '/api/v1/ops', {
        op_id: 't:s',
        agent: { org_id: 'acme', team_id: 'search', agent_id: 'crawler', [field]: name },
      });
      expect(posted.body).toMatchObject({ status: 400, field: `agent.${field}` });
      const camel = field.replace('_id', 'Id');
      expect((await check({ agent: { ...AGENT, [camel]: name } })).status).toBe(400);
    });
  });

  describe('JSON', () => {
    test.each([
      ['an unknown field', { dry_run: true, nope: 1 }, /nope/],
      ['__proto__', JSON.parse('{"__proto__": {"dryRun": false}}'), /__proto__/],
      ['a number for a text', { traceId: 7 }, /trace_id/],
      ['a list for an object', { agent: [] }, /agent/],
      ['a text for a number', { estimatedCostUsd: 'much' }, /estimated_cost_usd/],
      ['a number beyond all numbers', { estimatedCostUsd: '1e999' }, /estimated_cost_usd/],
      ['a text for a flag', { dryRun: 'yes' }, /dry_run/],
      ['a list for attributes', { attributes: [1] }, /attributes/],
      ['a field under both of its names', { trace_id: 'a', traceId: 'b' }, /trace_id/],
    ])('%s in a check is refused by its name', async (_what, fields, message) => {
      const body = JSON.stringify({
        agent: AGENT,
        credentialToken: TOKEN,
        traceId: 'bad',
        spanId: 's',
        action: 'tool.call',
        resource: 'web_search',
        ...fields,
      }).replace(/}$/, Object.hasOwn(fields, '__proto__') ? ',"__proto__":{}}' : '}');
      const response = await fetch(gateway.url + CHECK, { method: 'POST', headers: JSON_TYPE, body });
      expect(response.status).toBe(400);
      expect(((await response.json()) as { message: string }).message).toMatch(message);
    });

    test.each([
      ['an unknown field', '{"op_id":"t:s","agent":{"team_id":"a","agent_id":"b"},"state":"running"}', 'state'],
      ['__proto__', '{"op_id":"t:s","agent":{"team_id":"a","agent_id":"b"},"__proto__":{"x":1}}', '__proto__'],
      [
        '__proto__ one level down',
        '{"op_id":"t:s","agent":{"team_id":"a","agent_id":"b","__proto__":{}}}',
        'agent.__proto__',
      ],
      ['a wrong type', '{"op_id":7,"agent":{"team_id":"a","agent_id":"b"}}', 'op_id'],
      ['a missing field', '{"op_id":"t:s"}', 'agent'],
      ['null', 'null', 'body'],
      ['a list', '[]', 'body'],
      ['no JSON', '{"op_id":', 'body'],
      ['two documents', '{} {}', 'body'],
      ['invalid UTF-8', '{"op_id":"\xff:s"}', 'body'],
    ])('%s in an operation is refused by its name', async (_what, body, field) => {
      const response = await fetch(`${gateway.url}/api/v1/ops`, {
        method: 'POST',
        headers: { ...AUTH, ...JSON_TYPE },
        body: Buffer.from(body, 'latin1'),
      });
      expect(response.status).toBe(400);
      expect(response.headers.get('content-type')).toBe('application/problem+json');
      expect(await response.json()).toMatchObject({ code: 'invalid_argument', field });
      expect(await ops()).not.toContainEqual(expect.objectContaining({ op_id: 't:s' }));
    });

    const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
    test('10,000 nested lists are refused, as a body and in attributes', async () => {
      const response = await fetch(`${gateway.url}/api/v1/ops`, {
        method: 'POST',
        headers: { ...AUTH, ...JSON_TYPE },
        body: nested(10_000),
      });
      expect(response.status).toBe(400);
      for (const attributes of [`{"a":${nested(10_000)}}`, `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`]) {
        const body = `{"agent":${JSON.stringify(AGENT)},"credentialToken":"${TOKEN}","traceId":"deep","spanId":"s","action":"tool.call","resource":"web_search","attributes":${attributes}}`;
        const refused = await fetch(gateway.url + CHECK, { method: 'POST', headers: JSON_TYPE, body });
        expect(refused.status).toBe(400);
        expect(((await refused.json()) as { message: string }).message).toMatch(/attributes/);
      }
    });

    test('attributes of 5,000 keys are refused or accepted whole, never in part', async () => {
      const attributes = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`key-${index}`, index]));
      const { status, body } = await check({ attributes });
      expect({ status, outcome: body.code ?? body.decision }).toEqual({ status: 400, outcome: 'invalid_argument' });
    });

    test('a name with a lone surrogate is refused, not stored as another name', async () => {
      const response = await fetch(`${gateway.url}/api/v1/iam/api-keys`, {
        method: 'POST',
        headers: { ...AUTH, ...JSON_TYPE },
        body: '{"name":"half \\ud800","scopes":["read"]}',
      });
      expect({ status: response.status, body: await response.json() }).toEqual({
        status: 400,
        body: expect.objectContaining({ field: 'body', detail: 'body: has a string with an unpaired surrogate' }),
      });
    });

    test('a compressed body is refused as such, and never read as uncompressed', async () => {
      for (const body of [gzipSync('{"op_id":"zip:s"}'), '{"op_id":"zip:s","agent":{"team_id":"a","agent_id":"b"}}']) {
        const response = await fetch(`${gateway.url}/api/v1/ops`, {
          method: 'POST',
          headers: { ...AUTH, ...JSON_TYPE, 'content-encoding': 'gzip' },
          body,
        });
        expect({ status: response.status, body: await response.json() }).toEqual({
          status: 415,
          body: expect.objectContaining({
            code: 'unsupported_media_type',
            detail: 'send the body as uncompressed application/json',
          }),
        });
      }
      const plain = await fetch(`${gateway.url}/api/v1/ops`, {
        method: 'POST',
        headers: { ...AUTH, ...JSON_TYPE, 'content-encoding': 'identity' },
        body: '{"op_id":"zip:s"}',
      });
      expect(await plain.json()).toMatchObject({ field: 'agent', detail: 'agent: is required' });
    });

    test('an attribute cannot replace a prototype', async () => {
      const body = `{"agent":${JSON.stringify(AGENT)},"credentialToken":"${TOKEN}","traceId":"proto","spanId":"s","action":"tool.call","resource":"web_search","dryRun":true,"attributes":{"__proto__":{"polluted":true}}}`;
      expect((await fetch(gateway.url + CHECK, { method: 'POST', headers: JSON_TYPE, body })).status).toBe(400);
      expect((await check({ attributes: { constructor: 1, hasOwnProperty: 2 } })).body).toMatchObject({
        decision: 'DECISION_ALLOW',
      });
    });
  });

  describe('sizes', () => {
    const large = 'x'.repeat(2 * 1024 * 1024);

    test.each([
      ['/api/v1/ops', 'code', 'payload_too_large'],
      [CHECK, 'code', 'resource_exhausted'],
    ])('a body of 2 MiB to %s is 413, with a length and in chunks', async (path, field, word) => {
      for (const framing of [{ 'Content-Length': String(large.length) }, { 'Transfer-Encoding': 'chunked' }]) {
        const isChunked = 'Transfer-Encoding' in framing;
        const body = isChunked ? `${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n` : large;
        const { statuses, text } = await sendRaw(gateway, [
          head(`POST ${path} HTTP/1.1`, { ...AUTH, ...JSON_TYPE, ...framing }),
          body,
        ]);
        expect(statuses).toEqual([413]);
        expect(JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4))).toMatchObject({ [field]: word });
      }
    });

    test('after a body that was too large the next request on the connection is answered', async () => {
      const { statuses, isClosed } = await sendRaw(
        gateway,
        [
          head('POST /api/v1/ops HTTP/1.1', { ...AUTH, ...JSON_TYPE, 'Content-Length': String(large.length) }),
          large,
          { answered: 1 },
          { waitMs: 500 },
          head('GET /nope HTTP/1.1'),
        ],
        { answers: 2 },
      );
      expect({ statuses, isClosed }).toEqual({ statuses: [413, 404], isClosed: false });
    });

    test.skipIf(spawnSync('curl', ['--version']).error !== undefined)('curl sees the 413 and its problem', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'svc-large-'));
      writeFileSync(join(folder, 'body'), large);
      for (const more of [[], ['-H', 'Expect:'], ['-H', 'Transfer-Encoding: chunked']]) {
        const out = await new Promise<string>((resolve) =>
          execFile(
            'curl',
            [
              '-s',
              '-m',
              '60',
              '-w',
              ' %{http_code}',
              ...more,
              '-H',
              `Authorization: Bearer ${ADMIN_KEY}`,
              '--data-binary',
              `@${folder}/body`,
              `${gateway.url}/api/v1/ops`,
            ],
            { env: { PATH: process.env.PATH } },
            (error, stdout) => resolve(error === null ? stdout : String(error)),
          ),
        );
        expect(out).toMatch(/"code":"payload_too_large".* 413$/);
      }
      rmSync(folder, { recursive: true });
    });

    test('a body of exactly 1 MiB is read', async () => {
      const padding = 'x'.repeat(1024 * 1024 - '{"op_id":""}'.length);
      const response = await fetch(`${gateway.url}/api/v1/ops`, {
        method: 'POST',
        headers: { ...AUTH, ...JSON_TYPE },
        body: `{"op_id":"${padding}"}`,
      });
      expect(response.status).toBe(400);
    });

    test('headers without end are refused or cut off', async () => {
      const { statuses, isClosed } = await sendRaw(gateway, [
        head('GET /api/v1/ops HTTP/1.1', { ...AUTH, 'X-Padding': 'x'.repeat(1_000_000) }),
      ]);
      expect(isClosed || (statuses[0] ?? 0) >= 400).toBe(true);
      const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`X-${index}`, 'y']));
      const crowd = await sendRaw(gateway, [head('GET /api/v1/ops HTTP/1.1', { ...AUTH, ...many })]);
      expect(crowd.isClosed || (crowd.statuses[0] ?? 0) >= 400).toBe(true);
    });
  });

  describe('paths and methods', () => {
    test.each([
      '/%',
      '/api/v1/ops/%zz',
      '/api/v1/ops/%C3%28',
      '/api/v1/ops/%',
      '/nope',
      '//api/v1/ops',
      '/api/v1/OPS',
      '/api/v1/ops/t:s/explode',
      '/../etc/passwd',
      '/svc.governance.v1.PolicyService/Nope',
    ])('%s is 404', async (path) => {
      const { text, statuses } = await sendRaw(gateway, [head(`GET ${path} HTTP/1.1`, AUTH)]);
      expect(statuses).toEqual([404]);
      expect(text).toContain('"code":"not_found"');
    });

    test('a known path with a wrong method is 405 and names the right ones', async () => {
      const wrong = await gateway.call('DELETE', '/api/v1/ops');
      expect({ status: wrong.status, allow: wrong.headers.get('allow'), code: wrong.body.code }).toEqual({
        status: 405,
        allow: 'POST, GET, HEAD',
        code: 'method_not_allowed',
      });
      const connect = await gateway.call('GET', CHECK);
      expect({ status: connect.status, allow: connect.headers.get('allow') }).toEqual({ status: 405, allow: 'POST' });
    });

    test('HEAD answers what GET would, without the body', async () => {
      const { text, statuses } = await sendRaw(
        gateway,
        [head('HEAD /api/v1/ops HTTP/1.1', AUTH), { answered: 1 }, head('GET /nope HTTP/1.1')],
        { answers: 2 },
      );
      expect(statuses).toEqual([200, 404]);
      expect(text).toMatch(/content-length: [1-9]/i);
      expect(text.slice(0, text.indexOf('HTTP/1.1 404'))).not.toContain('{');
    });

    test('HEAD of a POST-only path has no body either, so that answers stay in step', async () => {
      for (const path of [CHECK, '/svc.governance.v1.AgentService/OpControlStream', '/api/v1/usage']) {
        const { text, statuses } = await sendRaw(
          gateway,
          [head(`HEAD ${path} HTTP/1.1`), { answered: 1 }, head('GET /healthz HTTP/1.1')],
          { answers: 2 },
        );
        expect({ path, statuses }).toEqual({ path, statuses: [405, 200] });
        expect(text.slice(0, text.indexOf('HTTP/1.1 200'))).toMatch(/\r\n\r\n$/);
      }
    });

    test.each([
      ['GET', '/api/v1/ops'],
      ['POST', CHECK],
      ['GET', '/api/v1/stream'],
      ['GET', '/api/v1/auth/methods'],
    ])('%s %s with two Authorization headers is refused, whichever of them would do', async (method, path) => {
      const good = `Authorization: Bearer ${ADMIN_KEY}`;
      const body = JSON.stringify({
        agent: AGENT,
        traceId: 't',
        spanId: 'twice',
        action: 'tool.call',
        resource: 'web_search',
        dryRun: true,
      });
      const framing =
        method === 'POST'
          ? `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
          : 'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
      for (const pair of [
        [good, 'Authorization: Bearer wrong'],
        ['authorization: Bearer wrong', good],
        ['Authorization:', good],
        [good, good],
      ]) {
        const { statuses, text } = await sendRaw(gateway, [
          `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${framing}${pair.join('\r\n')}\r\n\r\n${method === 'POST' ? body : ''}`,
        ]);
        expect({ pair, statuses }).toEqual({ pair, statuses: [400] });
        expect(text).toMatch(/Authorization: must not be sent more than once/);
      }
    });

    test('OPTIONS gives a foreign page no permission', async () => {
      const response = await fetch(`${gateway.url}/api/v1/ops`, {
        method: 'OPTIONS',
        headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
      });
      expect({ status: response.status, allowedOrigin: response.headers.get('access-control-allow-origin') }).toEqual({
        status: 204,
        allowedOrigin: null,
      });
      expect((await fetch(`${gateway.url}/api/v1/ops`, { method: 'OPTIONS' })).status).toBe(405);
    });

    test.each(['0', '-1', '1001', '1e9', '1e2', '0x10', 'NaN', 'Infinity', '1.5', '', '%2050', '50%00', '٥'])(
      'per_page=%s is refused',
      async (perPage) => {
        for (const path of [
          '/api/v1/ops',
          '/api/v1/agents',
          '/api/v1/budgets',
          '/api/v1/policies',
          '/api/v1/iam/api-keys',
          '/api/v1/logs',
        ]) {
          const { status, body } = await gateway.call('GET', `${path}?per_page=${perPage}`);
          expect({ path, status, field: body.field }).toEqual({ path, status: 400, field: 'per_page' });
        }
      },
    );

    test.each(['-1', 'abc', '1e3', '%00', 'x'.repeat(100), '99999999999999999999'])(
      'cursor=%s is refused',
      async (cursor) => {
        for (const path of ['/api/v1/ops', '/api/v1/agents'])
          expect((await gateway.call('GET', `${path}?cursor=${cursor}`)).body).toMatchObject({
            status: 400,
            field: 'cursor',
          });
      },
    );

    test.each([
      ['GET', '/api/v1/logs?orgid=acme', 'orgid', 'did you mean org_id?'],
      ['GET', '/api/v1/ops?colour=red', 'colour', 'this route takes org_id, state, team_id, agent_id, action, '],
      ['GET', '/api/v1/ops/t:s?per_page=1', 'per_page', 'this route takes org_id'],
      ['POST', '/api/v1/ops/t:s/terminate?orgId=acme', 'orgId', 'did you mean org_id?'],
      ['POST', '/api/v1/ops?dry_run=true', 'dry_run', 'this route takes no parameters'],
      ['GET', '/api/v1/stream?type=ops_change', 'type', 'did you mean types?'],
      ['GET', '/api/v1/auth/methods?x', 'x', 'this route takes no parameters'],
      ['GET', '/openapi.json?v=2', 'v', 'this route takes no parameters'],
      ['POST', '/api/v1/auth/token?scope=read', 'scope', 'this route takes no parameters'],
      ['GET', `/api/v1/ops?${'x'.repeat(300)}=1`, 'x'.repeat(64), 'this route takes org_id'],
    ])('%s %s is refused, as nothing reads its parameter', async (method, path, field, problem) => {
      expect((await gateway.call(method, path)).body).toMatchObject({
        status: 400,
        code: 'invalid_argument',
        field,
        detail: expect.stringContaining(`${field}: unknown parameter; ${problem}`),
      });
      // A stranger does not even learn what there is.
      const isPublic = path.includes('auth/methods') || path.includes('openapi');
      if (!isPublic) expect((await gateway.call(method, path, undefined, 'svc_nobody')).status).toBe(401);
    });

    test.each(['/healthz?probe=1', '/readyz?verbose', '/metrics?x=1', '/?utm=1'])('%s is answered', async (path) => {
      expect((await gateway.call('GET', path)).status).toBe(200);
    });

    test.each([
      ['/api/v1/ops?ended=finished', 'ended'],
      ['/api/v1/logs?cause=because', 'cause'],
      ['/api/v1/ops?action=', 'action'],
      [`/api/v1/logs?resource=${'*'.repeat(513)}`, 'resource'],
    ])('%s names what it cannot look for', async (path, field) => {
      expect((await gateway.call('GET', path)).body).toMatchObject({ status: 400, field });
    });

    test.each([
      ['/api/v1/agents', 'org_id=acme&org_id=nobody', 'org_id'],
      ['/api/v1/ops', 'state=running&state=paused', 'state'],
      ['/api/v1/logs', 'event_type=ActionAllowed&event_type=ActionDenied', 'event_type'],
      ['/api/v1/logs', 'per_page=5&cursor=&cursor=', 'cursor'],
    ])('%s?%s is refused, as an answer would ignore one of the two', async (path, query, field) => {
      expect((await gateway.call('GET', `${path}?${query}`)).body).toMatchObject({
        status: 400,
        code: 'invalid_argument',
        field,
        detail: `${field}: is given more than once`,
      });
    });
  });

  badConnections(() => gateway, check);

  // The last of the file: what all of the above has left behind.
  test('the gateway then still answers, has recorded nothing, and has not grown', async () => {
    expect((await check()).body).toMatchObject({ decision: 'DECISION_ALLOW' });
    const left = (await ops()) as { op_id: string; state: string }[];
    expect(left.map(({ state }) => state)).toEqual(left.map(() => 'completing'));
    expect(left.length).toBeLessThanOrEqual(1); // the one of 256 bytes, unless it is swept already
    const unexpected = auditEntries(gateway.dataDir).filter(
      ({ event_type, payload }) =>
        !['ApiKeyCreated', 'AgentRegistered', 'OpCompleted'].includes(event_type) && payload.dry_run !== true,
    );
    expect(unexpected.map(({ event_type, op_id }) => [event_type, op_id?.slice(-4)])).toEqual([
      ['ActionAllowed', ':%#&'],
    ]);
    expect(gateway.output.stderr.split('\n').filter((line) => /"level":"?(error|fatal|50|60)/.test(line))).toEqual([]);
    await eventually(() => expect(residentMib(gateway.process.pid) - residentAtStart).toBeLessThan(128));
    const descriptors = async () => (await import('node:fs')).readdirSync(`/proc/${gateway.process.pid}/fd`).length;
    await eventually(async () => expect(await descriptors()).toBeLessThan(200));
  });
});
