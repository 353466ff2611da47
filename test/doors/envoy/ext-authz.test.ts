/** Envoy's ext_authz against the real command, with the messages of envoy.service.auth.v3 written out. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { field } from '../../../src/doors/proto/fields.ts';
import { type DoorAgent, newestEntries, registerAgent } from '../../support/door-agent.ts';
import { type ForeignClient, foreignClient } from '../../support/foreign-grpc.ts';
import { ADMIN_KEY } from '../../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../../support/gateway-here.ts';
import { policyFile } from '../../support/policies.ts';

const PROTO = `syntax = "proto3";
message HeaderValue { string key = 1; string value = 2; bytes raw_value = 3; }
message HeaderMap { repeated HeaderValue headers = 1; }
message HttpRequest { string id = 1; string method = 2; map<string, string> headers = 3; string path = 4; string host = 5;
  string scheme = 6; string query = 7; string body = 11; HeaderMap header_map = 13; }
message Request { HttpRequest http = 2; }
message AttributeContext { Request request = 4; }
message CheckRequest { AttributeContext attributes = 1; }
message Status { int32 code = 1; string message = 2; }
message HttpStatus { int32 code = 1; }
message HeaderValueOption { HeaderValue header = 1; }
message DeniedHttpResponse { HttpStatus status = 1; repeated HeaderValueOption headers = 2; string body = 3; }
message OkHttpResponse { repeated HeaderValueOption headers = 2; repeated string headers_to_remove = 5; }
message CheckResponse { Status status = 1; oneof http_response { DeniedHttpResponse denied_response = 2; OkHttpResponse ok_response = 3; } }`;

const PATH = '/envoy.service.auth.v3.Authorization/Check';

const POLICIES = `
name: egress
scope: global
rules:
  - id: api
    actions: [net.connect]
    resources: ["https://api.example/v1/*"]
    when: attributes.method == "GET"
    effect: allow
    reason: reading is free
  - { id: admin, actions: [net.connect], resources: ["*/admin*"], effect: deny, reason: not for agents }
`;

let gateway: GatewayHere;
let agent: DoorAgent;
let envoy: ForeignClient;
beforeAll(async () => {
  const { path } = policyFile(POLICIES, afterAll);
  gateway = await startGatewayHere({ env: { SVC_POLICY_PATH: path, SVC_RATE_LIMIT_API: '200' } });
  agent = await registerAgent(gateway, 'acme/web/browser');
  envoy = foreignClient(gateway.grpc, PROTO);
});
afterAll(async () => {
  envoy?.close();
  await gateway?.stop();
});

const http = (fields: object = {}, headers: object = {}) => ({
  method: 'GET',
  scheme: 'https',
  host: 'api.example',
  path: '/v1/items?token=hunter2',
  headers: { ':path': '/v1/items?token=hunter2', authorization: `Bearer ${agent.token}`, ...headers },
  ...fields,
});
const check = (request: object) =>
  envoy.call(PATH, 'CheckRequest', 'CheckResponse', { attributes: { request: { http: request } } });

describe('ext_authz', () => {
  test('lets a request pass without the credential, as a completed operation', async () => {
    const headers = { cookie: 'session=hunter2', 'x-svc-agent': agent.name, 'x-svc-note': 'x', 'user-agent': 'curl/8' };
    const answer = await check(http({}, headers));
    expect(answer.status).toEqual({});
    expect(answer.ok_response.headers_to_remove.sort()).toEqual(['authorization', 'x-svc-agent', 'x-svc-note']);
    const [completed, allowed] = await newestEntries(gateway, 2);
    expect(completed).toMatchObject({ event_type: 'OpCompleted', op_id: allowed.op_id });
    expect(allowed).toMatchObject({ event_type: 'ActionAllowed', lineage: { agent_id: 'browser' } });
    expect(allowed.payload).toEqual({
      action: 'net.connect',
      resource: 'https://api.example/v1/items',
      attributes: { method: 'GET', headers: { 'user-agent': 'curl/8' } },
    });
    expect(JSON.stringify([completed, allowed])).not.toContain('hunter2');
    expect((await gateway.call('GET', '/api/v1/ops?state=running')).body.ops).toEqual([]);
  });

  test('denies with 7 and 403, and says why', async () => {
    const answer = await check(http({ method: 'POST' }));
    expect(answer.http_response).toBe('denied_response');
    expect(answer.status.code).toBe(7);
    expect(answer.denied_response.status.code).toBe(403);
    expect(JSON.parse(answer.denied_response.body).reason).toBe(answer.status.message);
    expect(JSON.parse(answer.denied_response.body).audit_id).toBe((await newestEntries(gateway, 1))[0].id);
  });

  test.each([
    ['none', undefined],
    ['one that nobody knows', 'Bearer nonsense'],
    ['one of another kind', 'Basic YTpi'],
  ])('a credential: %s is 16 and 401', async (_name, authorization) => {
    const answer = await check(http({ headers: authorization === undefined ? {} : { authorization } }));
    expect({ code: answer.status.code, status: answer.denied_response.status.code }).toEqual({ code: 16, status: 401 });
    expect(answer.denied_response.headers.map(({ header }: any) => [header.key, header.value])).toContainEqual([
      'www-authenticate',
      'Bearer',
    ]);
  });

  test('two credentials in one request are none', async () => {
    const listed = ['Bearer nonsense', `Bearer ${agent.token}`].map((value) => ({ key: 'Authorization', value }));
    expect((await check(http({ headers: {}, header_map: { headers: listed } }))).status.code).toBe(16);
  });

  test('headers that come as a list of bytes are read', async () => {
    const headers = [{ key: 'authorization', raw_value: Buffer.from(`Bearer ${agent.token}`).toString('base64') }];
    expect((await check(http({ headers: {}, header_map: { headers } }))).http_response).toBe('ok_response');
  });

  test("a key names the agent; another agent's token is an impersonation", async () => {
    const key = `Bearer ${ADMIN_KEY}`;
    expect((await check(http({}, { authorization: key, 'x-svc-agent': agent.name }))).http_response).toBe(
      'ok_response',
    );
    expect((await check(http({}, { authorization: key }))).status.code).toBe(7);
    expect((await check(http({}, { 'x-svc-agent': 'acme/web/other' }))).status.code).toBe(7);
    expect((await newestEntries(gateway, 1))[0].event_type).toBe('A2AImpersonationAttempted');
  });

  test.each([
    '/v1/../admin',
    '/v1/%2e%2e/admin',
    '/v1/..%2fadmin',
    '/v1/.%2E\\admin',
    '/v1/%61dmin',
    '//admin',
    '/v1/./x',
    'v1',
    '/v1//x',
    '/v1/admin%2fusers',
    '/v1/admin%5Cusers',
    '/v1/admin\\users',
    '/v1/admin;x=1/users',
    '/v1/;/admin/users',
    '/v1/admin%3bx/users',
    '/v1/admin%00/users',
    '/v1/..%00/admin/users',
    '/v1/%2561dmin/users',
    '/v1/x#/admin',
    '/v1/%23/admin',
    '/v1/%0a/admin',
    '/v1/%7F/admin',
    '/v1/%c0%afadmin',
    '/v1/100%',
  ])('does not let %s around a rule, and has it on record', async (path) => {
    const before = (await newestEntries(gateway, 1))[0].id;
    expect((await check(http({ path }))).status.code).toBe(7);
    const [entry] = await newestEntries(gateway, 1);
    expect({ id: entry.id, decision: entry.decision }).toEqual({ id: before + 1, decision: 'deny' });
  });

  test('an escaped blank or letter beyond ASCII leads around nothing, and passes', async () => {
    expect((await check(http({ path: '/v1/a%20b/%C3%A9' }))).http_response).toBe('ok_response');
  });

  test.each(['https://api.example/v1/x?', 'ftp', 'https:', 'constructor'])(
    'the scheme %s is refused, and on record',
    async (scheme) => {
      expect((await check(http({ scheme, host: 'evil.example' }))).status).toEqual({
        code: 7,
        message: 'scheme: must be http or https',
      });
      expect((await newestEntries(gateway, 1))[0].decision).toBe('deny');
    },
  );

  test.each(['api.example:443', 'API.example.', 'api.example.:443'])(
    'the host %s is the one that rules know',
    async (host) => {
      expect((await check(http({ host }))).http_response).toBe('ok_response');
      expect((await newestEntries(gateway, 1))[0].payload.resource ?? '').toBe('');
      expect((await newestEntries(gateway, 2))[1].payload.resource).toBe('https://api.example/v1/items');
    },
  );

  test('a host of nothing but a port is no host', async () => {
    for (const host of [':443', '.', ''])
      expect((await check(http({ host }))).status.message).toBe('host: is missing or malformed');
  });

  // Each has millions of fields: none is built, and none is needed to see that nobody is known.
  test.each([
    ['headers', '1a00', 'message: has field 3 more than 200 times'],
    ['header maps', '6a00', 'message: has field 13 more than 200 times'],
    ['fields that nobody reads', '5a00', 'message: has more than 32768 fields'],
  ])('a message of nothing but %s is refused', async (_name, hex, reason) => {
    const flood = Buffer.alloc(2_000_000, Buffer.from(hex, 'hex'));
    const answer = await envoy.raw(PATH, 'CheckResponse', field(1, field(4, field(2, flood))));
    expect({ code: answer.status.code, reason: answer.status.message }).toEqual({ code: 7, reason });
  });

  test('a head beyond 128 KiB is refused, a body of 3 MiB is passed over', async () => {
    const large = await check(http({}, { cookie: 'x'.repeat(128 * 1024) }));
    expect(large.status.message).toBe('message: has more than 131072 bytes besides its content');
    expect((await check(http({ body: 'x'.repeat(3 * 1024 * 1024) }))).http_response).toBe('ok_response');
  });

  test('a resource that is too long is denied', async () => {
    expect((await check(http({ path: `/v1/${'x'.repeat(2_048)}` }))).status.code).toBe(7);
  });

  test('answers malformed requests all the same, and never passes them', async () => {
    for (const bytes of [Buffer.alloc(0), Buffer.from([0xff]), Buffer.from([0x0a, 0x7f]), Buffer.from('{}')]) {
      const answer = await envoy.raw(PATH, 'CheckResponse', bytes);
      expect(answer.http_response).toBe('denied_response');
      expect(answer.status.code).toBeGreaterThan(0);
    }
  });

  test('counts forged tokens before their signatures cost anything', async () => {
    const forged = Array.from({ length: 230 }, (_, nth) => check(http({}, { authorization: `Bearer a.${nth}.c` })));
    const statuses = (await Promise.all(forged)).map(({ denied_response }) => denied_response.status.code);
    const limited = statuses.filter((status) => status === 429).length;
    expect(new Set(statuses)).toEqual(new Set([401, 429]));
    expect(limited).toBeGreaterThanOrEqual(25);
    expect((await check(http())).status).toEqual({}); // an agent's own token is looked up, not verified
  });
});
