/** agentgateway's ExtMcp against the real command, in both generations of its messages. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { field } from '../../../src/doors/proto/fields.ts';
import { type DoorAgent, newestEntries, registerAgent } from '../../support/door-agent.ts';
import { type ForeignClient, foreignClient } from '../../support/foreign-grpc.ts';
import { ADMIN_KEY } from '../../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../../support/gateway-here.ts';
import { policyFile } from '../../support/policies.ts';

const COMMON = `syntax = "proto3";
message Value { oneof kind { int32 null_value = 1; double number_value = 2; string string_value = 3; bool bool_value = 4;
  Struct struct_value = 5; ListValue list_value = 6; } }
message Struct { map<string, Value> fields = 1; }
message ListValue { repeated Value values = 1; }
message Pass {} enum Code { UNKNOWN = 0; PERMISSION_DENIED = 1; RESOURCE_EXHAUSTED = 2; INVALID = 3; }
message AuthorizationError { Code code = 1; string reason = 2; }
message McpHeader { string key = 1; bytes value = 2; }
`;
const NEW = `${COMMON}
message McpRequest { repeated string service_names = 1; string method = 2; Struct metadata_context = 3; optional bytes mcp_request = 4;
  repeated McpHeader headers = 5; }
message McpResponse { repeated string service_names = 1; string method = 2; Struct metadata_context = 3; bytes mcp_response = 4; }
message Result { oneof result { Pass pass = 1; bytes mutated = 2; AuthorizationError error = 3; } }`;
const OLD = `${COMMON}
message McpRequest { string service_name = 1; string method = 2; Struct metadata_context = 3; Struct mcp_request = 4; repeated McpHeader headers = 5; }
message McpResponse { string service_name = 1; string method = 2; Struct metadata_context = 3; Struct mcp_response = 4; }
message Result { oneof result { Pass pass = 1; Struct mutated = 2; AuthorizationError error = 3; } }`;

const POLICIES = `
name: mcp
scope: global
rules:
  - id: small
    actions: [mcp.call]
    resources: ["files/read"]
    when: attributes.path.startsWith("/tmp/")
    effect: allow
    reason: scratch files
  - id: weather
    actions: [mcp.prompt]
    when: attributes.topic == "weather"
    effect: allow
    reason: the weather may be asked
  - { id: echo, actions: [mcp.call], resources: ["files/echo"], effect: allow, reason: harmless }
`;
const REQUEST = '/agentgateway.dev.ext_mcp.ExtMcp/CheckRequest';
const RESPONSE = '/agentgateway.dev.ext_mcp.ExtMcp/CheckResponse';

let gateway: GatewayHere;
let agent: DoorAgent;
let current: ForeignClient;
let former: ForeignClient;
beforeAll(async () => {
  const { path } = policyFile(POLICIES, afterAll);
  gateway = await startGatewayHere({ env: { SVC_POLICY_PATH: path, SVC_RATE_LIMIT_API: '200' } });
  agent = await registerAgent(gateway, 'acme/code/coder');
  current = foreignClient(gateway.grpc, NEW);
  former = foreignClient(gateway.grpc, OLD);
});
afterAll(async () => {
  current?.close();
  former?.close();
  await gateway?.stop();
});

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const json = (value: unknown): string => base64(JSON.stringify(value));
const headersOf = (headers: Readonly<Record<string, string>>) =>
  Object.entries(headers).map(([key, value]) => ({ key, value: base64(value) }));

const own = () => ({ authorization: `Bearer ${agent.token}` });
const call = (name: string, args: object, { headers = own() as Record<string, string>, more = {} } = {}) =>
  current.call(REQUEST, 'McpRequest', 'Result', {
    service_names: ['files'],
    method: 'tools/call',
    mcp_request: json({ name, arguments: args }),
    headers: headersOf(headers),
    ...more,
  });
const text = (value: string) => ({ string_value: value });

describe('CheckRequest', () => {
  test("becomes a check of mcp.call on the server's tool, and a completed operation", async () => {
    expect(await call('read', { path: '/tmp/x' })).toEqual({ pass: {}, result: 'pass' });
    const [completed, allowed] = await newestEntries(gateway, 2);
    expect(completed).toMatchObject({ event_type: 'OpCompleted', op_id: allowed.op_id });
    expect(allowed.payload).toEqual({ action: 'mcp.call', resource: 'files/read', attributes: { path: '/tmp/x' } });
  });

  test('denies with PERMISSION_DENIED and the reason', async () => {
    const { error } = await call('delete', {});
    expect(error).toEqual({ code: 'PERMISSION_DENIED', reason: (await newestEntries(gateway, 1))[0].reason });
    expect((await call('read', { path: '/etc/passwd' })).error.code).toBe('PERMISSION_DENIED');
  });

  test('has its parameters as a Struct in 1.3', async () => {
    const old = (path: string) =>
      former.call(REQUEST, 'McpRequest', 'Result', {
        service_name: 'files',
        method: 'tools/call',
        mcp_request: {
          fields: { name: text('read'), arguments: { struct_value: { fields: { path: text(path) } } } },
        },
        headers: headersOf(own()),
      });
    expect((await old('/tmp/x')).result).toBe('pass');
    expect((await old('/etc/x')).error.code).toBe('PERMISSION_DENIED');
  });

  test('finds who asks in the headers, the metadata of gRPC, or the context', async () => {
    const message = { service_names: ['files'], method: 'tools/call', mcp_request: json({ name: 'echo' }) };
    const ask = (more: object, metadata?: Record<string, string>) =>
      current.call(REQUEST, 'McpRequest', 'Result', { ...message, ...more }, metadata);
    expect((await ask({ headers: headersOf(own()) })).result).toBe('pass');
    expect((await ask({}, own())).result).toBe('pass');
    const key = { authorization: `Bearer ${ADMIN_KEY}`, 'x-svc-agent': agent.name };
    expect((await ask({}, key)).result).toBe('pass');
    const context = { fields: { authorization: text(key.authorization), 'x-svc-agent': text(agent.name) } };
    expect((await ask({ metadata_context: context })).result).toBe('pass');
  });

  test('without a credential, or with one of nobody or of another, is denied', async () => {
    for (const headers of [
      {},
      { authorization: 'Bearer nonsense' },
      { authorization: `Bearer ${ADMIN_KEY}` },
      { ...own(), 'x-svc-agent': 'acme/code/other' },
    ] as const)
      expect((await call('echo', {}, { headers })).error.code).toBe('PERMISSION_DENIED');
    expect((await newestEntries(gateway, 1))[0].event_type).toBe('A2AImpersonationAttempted');
  });

  test.each([
    ['no parameters', { mcp_request: undefined }],
    ['half of them', { mcp_request: base64('{"name":') }],
    ['a list', { mcp_request: base64('[]') }],
    ['no name', { mcp_request: json({ arguments: {} }) }],
    ['arguments that are text', { mcp_request: json({ name: 'echo', arguments: 'x' }) }],
    ['no server', { service_names: [] }],
    ['two servers', { service_names: ['files', 'mail'] }],
    ['no method', { method: '' }],
    ['a resource by steps', { method: 'resources/read', mcp_request: json({ uri: 'file:///a/../b' }) }],
    ['a resource with a blank behind it', { method: 'resources/read', mcp_request: json({ uri: 'file:///a/.. ' }) }],
    ['a file without slashes', { method: 'resources/read', mcp_request: json({ uri: 'file:../etc/passwd' }) }],
    ['a method in capitals', { method: 'Tools/Call' }],
    ['a method that nobody knows', { method: 'resources/readAll', mcp_request: json({ uri: 'file:///a' }) }],
    ['the result of a task', { method: 'tasks/result', mcp_request: json({ taskId: 't' }) }],
    [
      'a subscription to resources by the way',
      {
        method: 'subscriptions/listen',
        mcp_request: json({ notifications: { toolsListChanged: true, resourceSubscriptions: ['file:///a'] } }),
      },
    ],
    ['a number that is not exact', { mcp_request: base64('{"name":"echo","arguments":{"n":9007199254740993}}') }],
  ])('%s is INVALID, and on record', async (_name, more) => {
    const before = (await newestEntries(gateway, 1))[0].id;
    expect((await call('echo', {}, { more })).error.code).toBe('INVALID');
    const [entry] = await newestEntries(gateway, 1);
    expect({ id: entry.id, decision: entry.decision }).toEqual({ id: before + 1, decision: 'deny' });
  });

  test('bytes that are no message are INVALID, and no error of gRPC', async () => {
    for (const path of [REQUEST, RESPONSE])
      expect((await current.raw(path, 'Result', Buffer.from([0xff, 0xff]))).error.code).toBe('INVALID');
  });

  test('setting up and listing pass for who is known', async () => {
    for (const method of ['initialize', 'tools/list', 'ping', 'notifications/initialized', 'resources/templates/list'])
      expect((await call('', {}, { more: { method, mcp_request: undefined } })).result).toBe('pass');
    const listen = { method: 'subscriptions/listen', mcp_request: json({ notifications: { toolsListChanged: true } }) };
    expect((await call('', {}, { more: listen })).result).toBe('pass');
  });

  // Each has up to two million fields: none is built before somebody is known.
  test.each([
    ['headers', '2a00', 'message: has field 5 more than 200 times'],
    ['entries of metadata', '1a020a00', 'message: has field 3 more than 200 times'],
    ['fields that nobody reads', '7800', 'message: has more than 32768 fields'],
  ])('a message of nothing but %s is INVALID, in both directions', async (_name, hex, reason) => {
    const flood = Buffer.alloc(4_000_000, Buffer.from(hex, 'hex'));
    for (const path of [REQUEST, RESPONSE])
      expect((await current.raw(path, 'Result', flood)).error).toEqual({ code: 'INVALID', reason });
  });

  test('metadata is read for the credential alone', async () => {
    const value = Buffer.alloc(100_000, Buffer.from('1a02c3a9', 'hex'));
    const entry = field(1, Buffer.concat([field(1, 'note'), field(2, value)]));
    const { error } = await current.raw(REQUEST, 'Result', field(3, entry));
    expect(error.code).toBe('PERMISSION_DENIED');
    const large = field(3, field(1, Buffer.alloc(128 * 1024)));
    expect((await current.raw(REQUEST, 'Result', large)).error.reason).toBe(
      'message: has more than 131072 bytes besides its content',
    );
  });

  test('a completion is judged with what was typed', async () => {
    const complete = (argument: object | undefined) =>
      current.call(REQUEST, 'McpRequest', 'Result', {
        service_names: ['files'],
        method: 'completion/complete',
        mcp_request: json({ ref: { type: 'ref/prompt', name: 'report' }, argument }),
        headers: headersOf(own()),
      });
    const [weather, secrets, none] = await Promise.all([
      complete({ name: 'topic', value: 'weather' }),
      complete({ name: 'topic', value: 'secrets' }),
      complete(undefined),
    ]);
    expect(weather).toMatchObject({ result: 'pass' });
    expect(secrets).toMatchObject({ error: { code: 'PERMISSION_DENIED' } });
    expect(none).toMatchObject({
      error: { code: 'INVALID', reason: 'params.ref and params.argument: must be objects' },
    });
  });
});

describe('CheckResponse', () => {
  const tools = { tools: [{ name: 'echo', description: 'é' }, { name: 'delete' }, { name: 'read' }], nextCursor: 'c' };
  const listed = (metadata?: Record<string, string>) =>
    current.call(
      RESPONSE,
      'McpResponse',
      'Result',
      { service_names: ['files'], method: 'tools/list', mcp_response: json(tools) },
      metadata,
    );

  test('leaves in a list what the agent could call', async () => {
    const { mutated } = await listed(own());
    const { tools: left, ...rest } = JSON.parse(Buffer.from(mutated).toString());
    expect({ names: left.map(({ name }: any) => name), ...rest }).toMatchObject({ nextCursor: 'c' });
    expect(left).toContainEqual({ name: 'echo', description: 'é' });
    expect(left).not.toContainEqual({ name: 'delete' });
  });

  test('answers 1.3 with a Struct', async () => {
    const tool = (name: string) => ({ struct_value: { fields: { name: text(name) } } });
    const answer = await former.call(
      RESPONSE,
      'McpResponse',
      'Result',
      {
        service_name: 'files',
        method: 'tools/list',
        mcp_response: { fields: { tools: { list_value: { values: [tool('echo'), tool('delete')] } } } },
      },
      own(),
    );
    expect(answer.mutated.fields.tools.list_value.values).toEqual([
      { kind: 'struct_value', struct_value: { fields: { name: { kind: 'string_value', string_value: 'echo' } } } },
    ]);
  });

  test('passes where nobody is known, and is refused for a credential of nobody', async () => {
    expect((await listed()).result).toBe('pass');
    expect((await listed({ authorization: 'Bearer nonsense' })).error.code).toBe('PERMISSION_DENIED');
  });

  test('refuses a list of more questions than it could ask in a moment', async () => {
    const many = Array.from({ length: 60 }, (_, nth) => ({ name: `t${nth}` }));
    const services = Array.from({ length: 200 }, (_, nth) => `s${nth}`);
    const list = { service_names: services, method: 'tools/list', mcp_response: json({ tools: many }) };
    const { error } = await current.call(RESPONSE, 'McpResponse', 'Result', list, own());
    expect(error).toEqual({ code: 'INVALID', reason: 'result.tools: times the services must be at most 10000' });
  });

  test('passes results of calls unread, however large', async () => {
    for (const content of [[], Array.from({ length: 20_000 }, (_, nth) => ({ [`k${nth}`]: 'x' }))]) {
      const result = { service_names: ['files'], method: 'tools/call', mcp_response: json({ content }) };
      expect((await current.call(RESPONSE, 'McpResponse', 'Result', result, own())).result).toBe('pass');
    }
  });

  test('takes the list of a server with a thousand tools that have schemas', async () => {
    const property = (nth: number) => [`p${nth}`, { type: 'integer', description: 'x', maximum: 2 ** 64 }] as const;
    const properties = Object.fromEntries(Array.from({ length: 10 }, (_, nth) => property(nth)));
    const many = Array.from({ length: 1_000 }, (_, nth) => ({
      name: nth === 500 ? 'echo' : `t${nth}`,
      inputSchema: { type: 'object', properties },
    }));
    const list = { service_names: ['files'], method: 'tools/list', mcp_response: json({ tools: many }) };
    const { mutated } = await current.call(RESPONSE, 'McpResponse', 'Result', list, own());
    expect(JSON.parse(Buffer.from(mutated).toString()).tools).toEqual([
      { name: 'echo', inputSchema: { type: 'object', properties } },
    ]);
  });

  test('refuses a list that is nothing but brackets, and has it on record', async () => {
    for (const payload of [`{"tools":[${'{},'.repeat(1_000_000)}{}]}`, `{"tools":${'['.repeat(3_000_000)}`]) {
      const list = { service_names: ['files'], method: 'tools/list', mcp_response: base64(payload) };
      const { error } = await current.call(RESPONSE, 'McpResponse', 'Result', list, own());
      expect(error).toEqual({
        code: 'INVALID',
        reason: 'body: has more values than the limits on attributes allow',
      });
      expect((await newestEntries(gateway, 1))[0].decision).toBe('deny');
    }
  });

  test('counts forged tokens before their signatures cost anything', async () => {
    const forged = Array.from({ length: 230 }, (_, nth) => listed({ authorization: `Bearer a.${nth}.c` }));
    const codes = (await Promise.all(forged)).map(({ error }) => error.code);
    expect(new Set(codes)).toEqual(new Set(['PERMISSION_DENIED', 'RESOURCE_EXHAUSTED']));
    expect((await listed(own())).result).not.toBe('error'); // an agent's own token is looked up, not verified
  });
});
