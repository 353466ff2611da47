import { execFile } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fail } from '../../../src/core/base/result.ts';
import type { explain } from '../../../src/core/fault.ts';
import type { ConnectReply } from '../../../src/doors/connect/connect.ts';
import { binaryCodec } from '../../../src/doors/proto/binary.ts';
import { methodShapes } from '../../../src/doors/proto/schema.ts';
import { READ_KEY, TOKEN, until, WRITE_KEY } from '../../support/fake-ports.ts';
import {
  BATCH,
  bodyOf,
  CHECK,
  call,
  defects,
  gateway,
  headOf,
  largeBatch,
  methods,
  partsOf,
  request,
  withMethods,
} from './harness.ts';

withMethods();

describe('connect', () => {
  test('a check is one POST of JSON', async () => {
    expect(await call(CHECK, JSON.stringify(request))).toEqual({
      status: 200,
      contentType: 'application/json',
      headers: [],
      content:
        '{"decision":"DECISION_ALLOW","reason":"web tools only","policy":"search-team","ruleId":"web-only","opId":"trace:span","opState":"OP_STATE_RUNNING","auditId":"7"}',
    });
    expect(
      await call(CHECK, JSON.stringify(request), {
        'content-type': 'application/json; charset=UTF-8',
        'connect-protocol-version': '1',
        'connect-timeout-ms': '1000',
      }),
    ).toMatchObject({ status: 200 });
    expect(
      await call(CHECK, JSON.stringify(request).padEnd(1024 * 1024), { 'content-encoding': 'identity' }),
    ).toMatchObject({ status: 200 });
  });

  test('a check is one POST of protobuf', async () => {
    const body = binaryCodec('CheckActionRequest').encode({
      ...request,
      resource: '',
      attributes: undefined,
      estimatedCostUsd: 0,
      caller: undefined,
      dryRun: false,
      correlationId: 'c',
      supportedObligations: [],
      opHome: '',
    });
    const reply = await call(CHECK, body, { 'content-type': 'application/proto' });
    expect(reply).toMatchObject({ status: 200, contentType: 'application/proto' });
    expect(binaryCodec('CheckActionResponse').decode(reply.content as Buffer)).toMatchObject({
      ok: true,
      value: { decision: 'allow', correlationId: 'c' },
    });
  });

  test("errors use Connect's own codes", async () => {
    expect(await call(CHECK, '{}')).toEqual({
      status: 400,
      contentType: 'application/json',
      content: '{"code":"invalid_argument","message":"agent: is required"}',
      headers: [['svc-code', 'invalid_argument']],
    });
    expect(bodyOf(await call(CHECK, '{"nope":1}'))).toEqual({
      status: 400,
      code: 'invalid_argument',
      message: 'nope: is not a field of CheckActionRequest',
    });
    expect(bodyOf(await call(CHECK, Buffer.from([0x0a, 0x7f]), { 'content-type': 'application/proto' }))).toEqual({
      status: 400,
      code: 'invalid_argument',
      message: 'message: is truncated or has a wrong length',
    });
  });

  test('the HTTP status follows the Connect code, with the retry time', async () => {
    const answers = async (fault: Parameters<typeof explain>[0]) => {
      gateway.answer = () => ({ reply: fail(fault), auditId: undefined });
      const { status, content, headers } = await call(CHECK, JSON.stringify(request));
      return [status, (JSON.parse(content.toString()) as { code: string }).code, Object.fromEntries(headers)];
    };
    expect(await answers({ kind: 'overloaded', retryAfterSecs: 3, what: 'the gateway' })).toEqual([
      429,
      'resource_exhausted',
      { 'svc-code': 'overloaded', 'retry-after': '3' },
    ]);
    expect(await answers({ kind: 'audit_unavailable' })).toEqual([
      503,
      'unavailable',
      { 'svc-code': 'audit_unavailable', 'retry-after': '1' },
    ]);
    expect(await answers({ kind: 'rate_limited', retryAfterSecs: 3, limit: 20 })).toEqual([
      429,
      'resource_exhausted',
      {
        'svc-code': 'rate_limited',
        'retry-after': '3',
        'RateLimit-Policy': '"default";q=20;w=60',
        RateLimit: '"default";r=0;t=3',
      },
    ]);
    expect(await answers({ kind: 'not_found', what: 'agent' })).toEqual([
      404,
      'not_found',
      { 'svc-code': 'not_found' },
    ]);
    expect(await answers({ kind: 'conflict', detail: 'taken' })).toEqual([
      409,
      'already_exists',
      { 'svc-code': 'conflict' },
    ]);
    expect(await answers({ kind: 'internal' })).toEqual([500, 'internal', { 'svc-code': 'internal' }]);
  });

  test('a missing bearer, a wrong one and one without the scope are distinguished', async () => {
    const body = JSON.stringify({ agent: request.agent });
    const path = '/svc.governance.v1.AgentService/RegisterAgent';
    expect(bodyOf(await call(path, body, { authorization: `Bearer ${WRITE_KEY}` }))).toMatchObject({
      status: 200,
      agent: request.agent,
      credentialToken: expect.stringMatching(/^svcagent_/) as string,
    });
    const missing = await call(path, body);
    expect(bodyOf(missing)).toMatchObject({ status: 401, code: 'unauthenticated' });
    expect(missing.headers).toContainEqual(['www-authenticate', 'Bearer']);
    expect(bodyOf(await call(path, body, { authorization: 'Bearer wrong' }))).toMatchObject({ status: 401 });
    expect(bodyOf(await call(path, body, { authorization: 'Basic dTpw' }))).toMatchObject({ status: 401 });
    expect(bodyOf(await call(path, body, { authorization: `Bearer ${READ_KEY}` }))).toMatchObject({
      status: 403,
      code: 'permission_denied',
    });
  });

  const unaryShapes = methodShapes.filter(({ requestStream, responseStream }) => !requestStream && !responseStream);

  /** Requests without a token of the agent. A method that is not here is asked with an empty one. */
  const UNVOUCHED: Readonly<Record<string, object>> = {
    CheckAction: { ...request, credentialToken: '' },
    BatchCheckActions: { requests: [{ ...request, credentialToken: '' }] },
    RegisterAgent: { agent: request.agent },
    DeregisterAgent: { agent: request.agent },
    CompleteOp: { agent: request.agent, opId: 'trace:span' },
    RecordUsage: { agent: request.agent, costUsd: 1 },
    AckOpControl: { agent: request.agent, opId: 'trace:span', sequence: 1 },
  };

  test('each method answers no, wrong, read-only and read-write bearers as listed', async () => {
    const answers: [string, readonly number[]][] = [];
    for (const { name, path } of unaryShapes) {
      const ask = async (bearer?: string) =>
        (
          await call(
            path,
            JSON.stringify(UNVOUCHED[name] ?? {}),
            bearer === undefined ? {} : { authorization: `Bearer ${bearer}` },
          )
        ).status;
      answers.push([name, [await ask(), await ask('wrong'), await ask(READ_KEY), await ask(WRITE_KEY)]]);
    }
    expect(Object.fromEntries(answers)).toEqual({
      // Without any, the agents' own calls are refused by the governor, which is told of nobody who vouches for them.
      CheckAction: [200, 401, 403, 200],
      BatchCheckActions: [200, 401, 403, 200],
      RegisterAgent: [401, 401, 403, 200],
      DeregisterAgent: [401, 401, 403, 404], // no such agent
      CompleteOp: [200, 401, 403, 200],
      RecordUsage: [200, 401, 403, 200],
      AckOpControl: [200, 401, 403, 200],
      WaitApproval: [400, 401, 403, 400],
      CancelApproval: [400, 401, 403, 400],
    });
    const vouchers = gateway.asked.map((command) => ('principal' in command ? command.principal?.subject : undefined));
    expect(vouchers).toEqual([
      undefined,
      'key:w',
      undefined,
      'key:w',
      'key:w',
      'key:w',
      undefined,
      'key:w',
      undefined,
      'key:w',
      undefined,
      'key:w',
    ]);
  });

  test("an agent's own token makes the bearer beside it irrelevant", async () => {
    // RegisterAgent takes the token that the agent is to have.
    const own = unaryShapes
      .filter(({ request, service }) => request.byName.has('credential_token') && !service.endsWith('ApprovalService'))
      .filter(({ name }) => name !== 'RegisterAgent')
      .map(({ name, path }) => [path, { ...UNVOUCHED[name], credentialToken: TOKEN }] as const);
    for (const [path, body] of [...own, [BATCH, { requests: [request] }] as const]) {
      const ask = async (bearer: string) =>
        (await call(path, JSON.stringify(body), { authorization: `Bearer ${bearer}` })).status;
      expect({ path, wrong: await ask('wrong'), readKey: await ask(READ_KEY), writeKey: await ask(WRITE_KEY) }).toEqual(
        { path, wrong: 200, readKey: 200, writeKey: 200 },
      );
    }
    expect(await call(BATCH, largeBatch('acme'), { authorization: 'Bearer wrong' })).toMatchObject({ status: 200 });
    expect(own.length).toBeGreaterThanOrEqual(4);
    expect(gateway.asked).toHaveLength(3 * (own.length + 1) + 100);
    expect(gateway.asked.filter((command) => !('principal' in command) || command.principal !== undefined)).toEqual([]);
  });

  test('operator calls count as on the HTTP API, and agent calls do not', async () => {
    const bearer = { authorization: `Bearer ${WRITE_KEY}` };
    const agentService = (method: string, body: object) =>
      call(`/svc.governance.v1.AgentService/${method}`, JSON.stringify({ agent: request.agent, ...body }), bearer);
    await agentService('RegisterAgent', {});
    await agentService('DeregisterAgent', {});
    expect(gateway.counted).toEqual(['key:w', 'key:w']);
    await call(CHECK, JSON.stringify({ ...request, credentialToken: '' }), bearer);
    await agentService('RecordUsage', { costUsd: 1 });
    await agentService('CompleteOp', { traceId: 'trace', spanId: 'span' });
    expect(gateway.counted).toEqual(['key:w', 'key:w']);
    gateway.isOverLimit = true;
    gateway.asked.length = 0;
    const refused = await agentService('RegisterAgent', {});
    expect({ status: refused.status, headers: Object.fromEntries(refused.headers) }).toEqual({
      status: 429,
      headers: {
        'svc-code': 'rate_limited',
        'retry-after': '3',
        'RateLimit-Policy': '"default";q=20;w=60',
        RateLimit: '"default";r=0;t=3',
      },
    });
    expect(gateway.asked).toEqual([]);
  });

  test.each(['json', 'proto'])('a client of streams in %s is referred to gRPC', async (format) => {
    for (const method of ['PolicyService/StreamCheckActions', 'AgentService/OpControlStream']) {
      const reply = await call(`/svc.governance.v1.${method}`, '\0\0\0\0\x02{}', {
        'content-type': `application/connect+${format}`,
      });
      expect({ status: reply.status, contentType: reply.contentType }).toEqual({
        status: 200,
        contentType: `application/connect+${format}`,
      });
      // A single envelope: the flag of the last one, 92 bytes of JSON in either format.
      expect(reply.content.toString()).toBe(
        '\x02\0\0\0\x5c{"error":{"code":"unimplemented","message":"this is a streaming method; call it over gRPC"}}',
      );
    }
  });

  test('other methods, types, versions and encodings are refused before the body is read', async () => {
    const body = JSON.stringify(request);
    const get = await call(CHECK, '', {}, 'GET');
    expect({ status: get.status, headers: get.headers }).toEqual({
      status: 405,
      headers: [
        ['svc-code', 'method_not_allowed'],
        ['allow', 'POST'],
      ],
    });
    const xml = await call(CHECK, body, { 'content-type': 'text/xml' });
    expect({ status: xml.status, headers: xml.headers }).toEqual({
      status: 415,
      headers: [
        ['svc-code', 'unsupported_media_type'],
        ['accept-post', 'application/json, application/proto'],
      ],
    });
    expect(await call(CHECK, body, { 'content-type': 'application/connect+json' })).toMatchObject({ status: 415 });
    expect(await call(CHECK, body, { 'content-type': 'application/json; charset=latin1' })).toMatchObject({
      status: 415,
    });
    expect(bodyOf(await call(CHECK, body, { 'connect-protocol-version': '2' }))).toMatchObject({
      status: 400,
      message: 'connect-protocol-version: must be 1',
    });
    expect(bodyOf(await call(`${CHECK}?dry_run=true`, body))).toMatchObject({
      status: 400,
      code: 'invalid_argument',
      message: 'dry_run: unknown parameter; this route takes no parameters',
    });
    const compressed = await call(CHECK, body, { 'content-encoding': 'gzip' });
    expect({ told: bodyOf(compressed), headers: compressed.headers }).toMatchObject({
      told: { status: 501, code: 'unimplemented' },
      headers: [['svc-code', 'unsupported_media_type']],
    });
    expect(bodyOf(await call(CHECK, body, { 'connect-timeout-ms': 'soon' }))).toMatchObject({ status: 400 });
    const stream = await call('/svc.governance.v1.PolicyService/StreamCheckActions', '{}');
    expect({ told: bodyOf(stream), headers: stream.headers }).toMatchObject({
      told: { status: 501, code: 'unimplemented' },
      headers: [['svc-code', 'unimplemented']],
    });
    const streamGot = await call('/svc.governance.v1.PolicyService/StreamCheckActions', '', {}, 'GET');
    expect({ status: streamGot.status, headers: streamGot.headers }).toEqual({
      status: 405,
      headers: [
        ['svc-code', 'method_not_allowed'],
        ['allow', 'POST'],
      ],
    });
    expect(gateway.asked).toEqual([]);
  });

  test('either the deadline or the answer is sent, whichever comes first', async () => {
    let release = (): void => undefined;
    gateway.answer = () =>
      new Promise((resolve) => {
        release = () => resolve({ reply: fail({ kind: 'internal' }), auditId: undefined });
      });
    const head = headOf({ 'content-type': 'application/json', 'connect-timeout-ms': '50' });
    const ask = (): ConnectReply[] => {
      const replies: ConnectReply[] = [];
      methods.get(CHECK)!.answer(head, Buffer.from(JSON.stringify(request)), (reply) => replies.push(reply));
      return replies;
    };
    const late = ask();
    await until(() => late.length > 0);
    release();
    const early = ask();
    await until(() => gateway.asked.length === 2);
    release();
    await sleep(150);
    expect([late, early].map((replies) => replies.map(({ status }) => status))).toEqual([[504], [500]]);
  });

  test('a deadline is kept, and a late answer is dropped', async () => {
    let release = (): void => undefined;
    gateway.answer = () =>
      new Promise((resolve) => {
        release = () => resolve({ reply: fail({ kind: 'internal' }), auditId: undefined });
      });
    const late = await call(CHECK, JSON.stringify(request), { 'connect-timeout-ms': '20' });
    expect({ told: bodyOf(late), headers: late.headers }).toMatchObject({
      told: { status: 504, code: 'deadline_exceeded' },
      headers: [['svc-code', 'deadline_exceeded']],
    });
    release();
  });

  test('a deadline may have ten digits, and is not passed before the answer', async () => {
    gateway.answer = () => sleep(50).then(() => undefined as never);
    for (const timeout of ['2147483648', '9999999999']) {
      expect(await call(CHECK, JSON.stringify(request), { 'connect-timeout-ms': timeout })).toMatchObject({
        status: 200,
      });
    }
    expect(bodyOf(await call(CHECK, JSON.stringify(request), { 'connect-timeout-ms': '10000000000' }))).toEqual({
      status: 400,
      code: 'invalid_argument',
      message: 'connect-timeout-ms: must be a whole number of at most 10 digits',
    });
  });

  test('a defect is reported as internal to the caller, with its message logged only', async () => {
    gateway.answer = () => {
      throw new Error('secret detail');
    };
    expect(bodyOf(await call(CHECK, JSON.stringify(request)))).toEqual({
      status: 500,
      code: 'internal',
      message: 'internal error; see the log of the gateway',
    });
    expect(defects).toEqual([new Error('secret detail')]);
  });

  /** A plain HTTP server around the methods, for a foreign client to talk to. */
  let http: Server;
  beforeAll(async () => {
    http = createServer((req, res) => {
      const chunks: Buffer[] = [];
      req.on('data', (chunk: Buffer) => chunks.push(chunk));
      req.on('end', () => {
        const head = headOf(req.headers as Record<string, string>, { method: req.method ?? '' });
        methods.get(req.url ?? '')?.answer(head, Buffer.concat(chunks), (reply) => {
          const { status, contentType, content, headers } = partsOf(reply);
          res.writeHead(status, { 'content-type': contentType, ...Object.fromEntries(headers) }).end(content);
        });
      });
    });
    await new Promise<void>((resolve) => {
      http.listen(0, '127.0.0.1', resolve);
    });
  });
  afterAll(() => {
    http.close();
  });

  test('a generic Connect client works', async () => {
    const root = join(import.meta.dirname, '../../..');
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}${CHECK}`;
    const curl = (data: string) =>
      new Promise<{ out: string; error: string }>((resolve) => {
        execFile(
          join(root, 'node_modules/.bin/buf'),
          ['curl', '--protocol', 'connect', '--schema', join(root, 'proto'), '-d', data, url],
          (_failed, out, error) => resolve({ out, error }),
        );
      });
    const { out, error } = await curl(JSON.stringify({ ...request, attributes: { deep: [{ a: null }] } }));
    expect(error).toBe('');
    expect(JSON.parse(out)).toMatchObject({ decision: 'DECISION_ALLOW', opState: 'OP_STATE_RUNNING', auditId: '7' });
    expect(JSON.parse((await curl('{}')).error)).toMatchObject({
      code: 'invalid_argument',
      message: 'agent: is required',
    });
  });
});
