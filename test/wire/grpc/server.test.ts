import { execFile } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { Client, credentials, Metadata, status, type ClientDuplexStream, type ServiceError } from '@grpc/grpc-js';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { fail } from '../../../src/core/result.ts';
import { listenForGrpc, type GrpcListener } from '../../../src/wire/grpc/listener.ts';
import { createGrpcServer, type GrpcServer } from '../../../src/wire/grpc/server.ts';
import { ControlSwitch } from '../../../src/wire/control-switch.ts';
import type { WirePorts } from '../../../src/wire/ports.ts';
import { binaryCodec, emptyMessage } from '../../../src/wire/proto/binary.ts';
import type { CheckActionRequest, MessageName, Messages, StreamCheckActionsResponse } from '../../../src/wire/proto/messages.ts';
import { messageShape } from '../../../src/wire/proto/schema.ts';
import { fakeGateway, READ_KEY, TOKEN, until, WRITE_KEY, type FakeGateway } from '../fake-ports.ts';

const POLICY = '/svc.governance.v1.PolicyService';
const AGENT = '/svc.governance.v1.AgentService';
const crawler = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };

let gateway: FakeGateway;
let defects: unknown[];
let control: ControlSwitch;
const closedStreams: number[] = [];
let server: GrpcServer;
let listener: GrpcListener;
let client: Client;
let address: string;

beforeAll(async () => {
  control = new ControlSwitch((stream) => closedStreams.push(stream));
  // One server for all tests, with a gateway that each test gets anew.
  const ports: WirePorts = {
    link: {
      ask: ((command: never) => gateway.link.ask(command)) as WirePorts['link']['ask'],
      call: ((name: never, input: never) => gateway.link.call(name, input)) as WirePorts['link']['call'],
    },
    authenticate: (bearer) => gateway.authenticate(bearer),
  };
  server = createGrpcServer({ ports, control, messageTimeoutMs: 30_000, onDefect: (error) => defects.push(error) });
  listener = await listenForGrpc({ host: '127.0.0.1', port: 0, isShared: false, maxConnections: 1_000, onConnection: server.serve, onError: (error) => defects.push(error) });
  address = `127.0.0.1:${listener.port}`;
  client = new Client(address, credentials.createInsecure());
});
beforeEach(() => {
  gateway = fakeGateway();
  defects = [];
});
afterAll(async () => {
  client.close();
  server.drain(100);
  await listener.close();
});

const check = (fields: Partial<CheckActionRequest> = {}): CheckActionRequest => ({
  ...(emptyMessage(messageShape('CheckActionRequest')) as CheckActionRequest),
  agent: crawler, credentialToken: TOKEN, traceId: 'trace', spanId: 'span', action: 'tool.call', resource: 'web_search', ...fields,
});

const bearer = (key: string): Metadata => {
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${key}`);
  return metadata;
};

function unary<Q extends MessageName, R extends MessageName>(path: string, q: Q, r: R, request: Messages[Q] | Buffer, metadata = new Metadata(), options = {}): Promise<Messages[R]> {
  const { decode } = binaryCodec(r);
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(path, (message: Messages[Q] | Buffer) => (Buffer.isBuffer(message) ? message : binaryCodec(q).encode(message)), (bytes) => {
      const message = decode(bytes);
      if (!message.ok) throw new Error(JSON.stringify(message.fault));
      return message.value;
    }, request, metadata, options, (error, value) => (error === null ? resolve(value as Messages[R]) : reject(error)));
  });
}
const checkAction = (request: CheckActionRequest | Buffer, metadata?: Metadata, options?: object) =>
  unary(`${POLICY}/CheckAction`, 'CheckActionRequest', 'CheckActionResponse', request, metadata, options);

const refusal = async (call: Promise<unknown>) => {
  const error = await call.then(() => { throw new Error('it was not refused'); }, (reason: ServiceError) => reason);
  return { code: status[error.code], details: error.details, word: error.metadata.get('svc-code')[0], retryAfter: error.metadata.get('retry-after')[0] };
};

test('a check is answered with the decision, its reason and its place in the audit log', async () => {
  expect(await checkAction(check({ correlationId: 'c-1', estimatedCostUsd: 0.25, attributes: { size: 12, tags: ['a'] } }))).toEqual({
    decision: 'allow', reason: 'web tools only', policy: 'search-team', ruleId: 'web-only', opId: 'trace:span', opState: 'running', auditId: 7, correlationId: 'c-1',
  });
  expect(gateway.asked).toEqual([{
    type: 'check', agent: crawler, credential: 'J1I7Bo4n-PTHj7WoXqFlhx6fEt_wUrBivB5oHKDaec4', principal: undefined, opId: 'trace:span', action: 'tool.call',
    resource: 'web_search', attributes: { size: 12, tags: ['a'] }, estimatedCostMicroUsd: 250_000, caller: undefined, dryRun: false,
  }]);
});

test('an agent without a token is vouched for by a bearer with write scope, and by no other', async () => {
  await checkAction(check({ credentialToken: '' }), bearer(WRITE_KEY));
  expect(gateway.asked[0]).toMatchObject({ credential: undefined, principal: { subject: 'key:w' } });
  expect(await refusal(checkAction(check({ credentialToken: '' }), bearer(READ_KEY)))).toEqual({
    code: 'PERMISSION_DENIED', details: 'this needs the write scope; the credential holds read', word: 'insufficient_scope', retryAfter: undefined,
  });
  expect(await refusal(checkAction(check({ credentialToken: '' }), bearer('wrong')))).toMatchObject({ code: 'UNAUTHENTICATED' });
  // With a token the bearer is not looked at; without either, the governor denies.
  await checkAction(check(), bearer('wrong'));
  await checkAction(check({ credentialToken: '' }));
  expect(gateway.asked.slice(1)).toMatchObject([{ principal: undefined }, { credential: undefined, principal: undefined }]);
});

test('of two credentials none is picked', async () => {
  for (const pair of [[WRITE_KEY, 'wrong'], ['wrong', WRITE_KEY], [WRITE_KEY, WRITE_KEY]]) {
    const metadata = new Metadata();
    metadata.set('authorization', pair.map((key) => `Bearer ${key}`).join(', '));
    expect(await refusal(checkAction(check({ credentialToken: '' }), metadata))).toMatchObject({ code: 'UNAUTHENTICATED', details: expect.stringContaining('the word Bearer and a credential') });
  }
  expect(gateway.asked).toEqual([]);
});

test.each([
  ['no agent', { agent: undefined }, 'agent: is required'],
  ['an empty team', { agent: { ...crawler, teamId: '' } }, 'agent.team_id: must be 1 to 256 bytes without white space, control characters or "/", and not . or ..'],
  ['an empty trace', { traceId: '' }, 'trace_id: must be 1 to 256 bytes without white space, control characters or ":"'],
  ['a colon in the span', { spanId: 'a:b' }, 'span_id: must be 1 to 256 bytes without white space, control characters or ":"'],
  ['a control character', { spanId: 'a\u0007' }, 'span_id: must be 1 to 256 bytes without white space, control characters or ":"'],
  ['a trace of 257 bytes', { traceId: 'x'.repeat(257) }, 'trace_id: must be 1 to 256 bytes without white space, control characters or ":"'],
  ['no action', { action: '' }, 'action: is required'],
  ['an action of 258 bytes in 129 characters', { action: 'ä'.repeat(129) }, 'action: must be at most 256 bytes'],
  ['a huge resource', { resource: 'x'.repeat(2049) }, 'resource: must be at most 2048 bytes'],
  ['a huge token', { credentialToken: 'x'.repeat(1025) }, 'credential_token: must be at most 1024 bytes'],
  ['a negative cost', { estimatedCostUsd: -1 }, 'estimated_cost_usd: must be a number from 0 to 1000000'],
  ['a cost that is no number', { estimatedCostUsd: NaN }, 'estimated_cost_usd: must be a number from 0 to 1000000'],
  ['an absurd cost', { estimatedCostUsd: 1_000_001 }, 'estimated_cost_usd: must be a number from 0 to 1000000'],
  ['a caller with a slash', { caller: { ...crawler, agentId: 'a/b' } }, 'caller.agent_id: must be 1 to 256 bytes without white space, control characters or "/", and not . or ..'],
])('a check with %s is refused before anything is asked', async (_what, fields, details) => {
  expect(await refusal(checkAction(check(fields)))).toEqual({ code: 'INVALID_ARGUMENT', details, word: 'invalid_argument', retryAfter: undefined });
  expect(gateway.asked).toEqual([]);
});

test('bytes that are no message, or too large a one, are refused as the caller\'s fault', async () => {
  expect(await refusal(checkAction(Buffer.from([0x0a, 0x7f, 0x01])))).toMatchObject({ code: 'INVALID_ARGUMENT', details: 'message: is truncated or has a wrong length' });
  expect(await refusal(checkAction(check({ resource: 'x'.repeat(2 * 1024 * 1024) })))).toMatchObject({ code: 'RESOURCE_EXHAUSTED', word: 'payload_too_large' });
  expect(await refusal(checkAction(check({ resource: 'x'.repeat(5 * 1024 * 1024) })))).toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
  await checkAction(check());
});

test('an overloaded gateway says when to come back, and a lost audit log that nothing is allowed', async () => {
  gateway.answer = () => ({ reply: fail({ kind: 'overloaded', retryAfterSecs: 3, what: 'the gateway' }), auditId: undefined });
  expect(await refusal(checkAction(check()))).toEqual({ code: 'RESOURCE_EXHAUSTED', details: 'the gateway is at its limit; try again in 3 seconds', word: 'overloaded', retryAfter: '3' });
  gateway.answer = () => ({ reply: fail({ kind: 'audit_unavailable' }), auditId: undefined });
  expect(await refusal(checkAction(check()))).toMatchObject({ code: 'UNAVAILABLE', word: 'audit_unavailable' });
});

test('a defect behind the door is told as internal, without its message, and reported', async () => {
  gateway.answer = () => { throw new Error('secret detail'); };
  expect(await refusal(checkAction(check()))).toMatchObject({ code: 'INTERNAL', details: 'the gateway failed to answer; the cause is in its log' });
  expect(defects).toEqual([new Error('secret detail')]);
});

test('a deadline ends the call although the gateway has not answered, and its late answer harms nobody', async () => {
  let release = (): void => undefined;
  gateway.answer = () => new Promise((resolve) => { release = () => resolve({ reply: fail({ kind: 'internal' }), auditId: undefined }); });
  expect(await refusal(checkAction(check(), undefined, { deadline: Date.now() + 50 }))).toMatchObject({ code: 'DEADLINE_EXCEEDED' });
  release();
  gateway.answer = undefined;
  expect(await checkAction(check())).toMatchObject({ decision: 'allow' });
  expect(defects).toEqual([]);
});

test('a batch is answered in order, and a malformed item fails it as a whole with nothing asked', async () => {
  const batch = (requests: CheckActionRequest[]) => unary(`${POLICY}/BatchCheckActions`, 'BatchCheckActionsRequest', 'BatchCheckActionsResponse', { requests });
  const requests = Array.from({ length: 1000 }, (_, index) => check({ spanId: `s${index}`, correlationId: String(index), action: index % 2 === 0 ? 'tool.call' : 'other' }));
  const { responses } = await batch(requests);
  expect(responses.map(({ correlationId }) => Number(correlationId))).toEqual(requests.map((_, index) => index));
  expect(responses.slice(0, 2)).toMatchObject([{ decision: 'allow', opId: 'trace:s0' }, { decision: 'deny', opId: 'trace:s1' }]);
  gateway.asked.length = 0;
  expect(await refusal(batch([check(), check({ traceId: '' })]))).toMatchObject({ code: 'INVALID_ARGUMENT', details: 'requests[1].trace_id: must be 1 to 256 bytes without white space, control characters or ":"' });
  expect(await refusal(batch([]))).toMatchObject({ details: 'requests: must have 1 to 1000 items' });
  expect(await refusal(batch([...requests, check()]))).toMatchObject({ details: 'requests: must have 1 to 1000 items' });
  expect(gateway.asked).toEqual([]);
});

type CheckClient = ClientDuplexStream<CheckActionRequest | Buffer, StreamCheckActionsResponse>;
function openChecks(metadata = new Metadata()): { call: CheckClient; answers: StreamCheckActionsResponse[]; ended: Promise<{ code: string; details: string }> } {
  const { encode } = binaryCodec('StreamCheckActionsRequest');
  const { decode } = binaryCodec('StreamCheckActionsResponse');
  const call = client.makeBidiStreamRequest(`${POLICY}/StreamCheckActions`, (message: CheckActionRequest | Buffer) => (Buffer.isBuffer(message) ? message : encode(message)), (bytes) => {
    const message = decode(bytes);
    return message.ok ? message.value : (undefined as never);
  }, metadata);
  const answers: StreamCheckActionsResponse[] = [];
  call.on('data', (answer: StreamCheckActionsResponse) => answers.push(answer));
  call.on('error', () => undefined); // the status says it too
  const ended = new Promise<{ code: string; details: string }>((resolve) => { call.on('status', ({ code, details }) => resolve({ code: status[code], details })); });
  return { call, answers, ended };
}

test('checks are pipelined on a stream: answers carry the correlation id, and half-close drains them', async () => {
  const { call, answers, ended } = openChecks();
  for (let index = 0; index < 5000; index++) call.write(check({ spanId: `s${index}`, correlationId: `c${index}` }));
  call.end();
  expect(await ended).toEqual({ code: 'OK', details: 'OK' });
  expect(new Set(answers.map(({ correlationId }) => correlationId)).size).toBe(5000);
  expect(answers[0]).toEqual({
    decision: 'allow', reason: 'web tools only', policy: 'search-team', ruleId: 'web-only', opId: 'trace:s0', opState: 'running', auditId: 7, correlationId: 'c0', error: undefined,
  });
});

test('what is wrong with one check of a stream is told in its answer, and the others go on', async () => {
  const { call, answers, ended } = openChecks();
  call.write(check({ correlationId: 'bad', traceId: '' }));
  call.write(Buffer.concat([binaryCodec('CheckActionRequest').encode(check({ correlationId: 'worse' })), Buffer.from([0x3a, 0x05, 0x0a, 0x03, 0x0a, 0x01, 0x61])]));
  call.write(check({ correlationId: 'good' }));
  call.end();
  expect(await ended).toMatchObject({ code: 'OK' });
  expect(answers.map(({ correlationId, decision, error }) => [correlationId, decision, error?.code, error?.message]).sort()).toEqual([
    ['bad', 'unspecified', 'invalid_argument', 'trace_id: must be 1 to 256 bytes without white space, control characters or ":"'],
    ['good', 'allow', undefined, undefined],
    ['worse', 'unspecified', 'invalid_argument', 'attributes.a: has no value'],
  ]);
});

test('a frame that is no message at all ends the stream, after the answers that are due', async () => {
  const { call, answers, ended } = openChecks();
  call.write(check({ correlationId: 'good' }));
  call.write(Buffer.from([0x0a, 0x7f]));
  expect(await ended).toEqual({ code: 'INVALID_ARGUMENT', details: 'message: is truncated or has a wrong length' });
  expect(answers).toMatchObject([{ correlationId: 'good', decision: 'allow' }]);
});

test('a stream whose bearer is no longer valid is closed', async () => {
  const { call, ended } = openChecks(bearer('revoked'));
  call.write(check({ credentialToken: '' }));
  expect(await ended).toMatchObject({ code: 'UNAUTHENTICATED' });
});

test('revoking a bearer closes the streams of checks it has opened, idle or not', async () => {
  const { call, answers, ended } = openChecks(bearer(WRITE_KEY));
  const other = openChecks();
  call.write(check({ credentialToken: '', correlationId: 'before' }));
  other.call.write(check());
  await until(() => answers.length === 1 && other.answers.length === 1);
  server.recheckBearers();
  await checkAction(check());
  const { authenticate } = gateway;
  gateway = { ...gateway, authenticate: async () => authenticate('revoked') };
  server.recheckBearers();
  expect(await ended).toEqual({ code: 'UNAUTHENTICATED', details: 'the key is unknown or revoked' });
  other.call.end();
  expect(await other.ended).toMatchObject({ code: 'OK' });
});

test('a bearer that is not in force closes no stream whose agents present credentials of their own', async () => {
  const { call, answers, ended } = openChecks(bearer('of a proxy'));
  call.write(check({ correlationId: 'before' }));
  await until(() => answers.length === 1);
  server.recheckBearers();
  await checkAction(check());
  call.write(check({ correlationId: 'after' }));
  call.end();
  expect(await ended).toMatchObject({ code: 'OK' });
  expect(answers).toMatchObject([{ correlationId: 'before', decision: 'allow' }, { correlationId: 'after', decision: 'allow' }]);
});

test('a stream is read no further while too many of its checks wait, and goes on when they are answered', async () => {
  const waiting: (() => void)[] = [];
  gateway.answer = () => new Promise((resolve) => { waiting.push(() => resolve(undefined as never)); });
  const { call, answers, ended } = openChecks();
  for (let index = 0; index < 3000; index++) call.write(check({ spanId: `s${index}`, correlationId: `c${index}` }));
  call.end();
  await until(() => waiting.length >= 1024);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(waiting.length).toBe(1024);
  gateway.answer = undefined;
  for (const release of waiting) release();
  expect(await ended).toMatchObject({ code: 'OK' });
  expect(answers.length).toBe(3000);
});

test('a client that breaks off leaves nothing behind, and late answers go nowhere', async () => {
  let release = (): void => undefined;
  gateway.answer = () => new Promise((resolve) => { release = () => resolve(undefined as never); });
  const { call, ended } = openChecks();
  call.write(check());
  await until(() => gateway.asked.length === 1);
  call.cancel();
  expect(await ended).toMatchObject({ code: 'CANCELLED' });
  release();
  gateway.answer = undefined;
  await checkAction(check());
  expect(defects).toEqual([]);
});

test('registering needs the write scope; a token is minted once, or brought along', async () => {
  const register = (request: Partial<Messages['RegisterAgentRequest']>, metadata?: Metadata) =>
    unary(`${AGENT}/RegisterAgent`, 'RegisterAgentRequest', 'RegisterAgentResponse', { agent: crawler, credentialToken: '', parent: undefined, ...request }, metadata);
  expect(await register({}, bearer(WRITE_KEY))).toEqual({ agent: crawler, credentialToken: expect.stringMatching(/^svcagent_[\w-]{43}$/) as string, rotated: false });
  expect(await register({ credentialToken: TOKEN, parent: { ...crawler, agentId: 'boss' } }, bearer(WRITE_KEY))).toMatchObject({ credentialToken: '' });
  expect(gateway.asked[1]).toMatchObject({ type: 'register-agent', principal: { subject: 'key:w' }, parent: { agentId: 'boss' } });
  expect(await refusal(register({}))).toMatchObject({ code: 'UNAUTHENTICATED' });
  expect(await refusal(register({}, bearer(READ_KEY)))).toMatchObject({ code: 'PERMISSION_DENIED' });
  expect(await refusal(register({ credentialToken: 'short' }, bearer(WRITE_KEY)))).toMatchObject({ details: 'credential_token: must be 32 to 1024 visible ASCII characters; leave it out to get a fresh one' });
  expect(await refusal(register({ parent: { ...crawler, orgId: 'evil' } }, bearer(WRITE_KEY)))).toMatchObject({ details: 'parent.org_id: must be the org of the agent' });
  expect(await refusal(unary(`${AGENT}/DeregisterAgent`, 'DeregisterAgentRequest', 'DeregisterAgentResponse', { agent: { ...crawler, agentId: 'nobody' } }, bearer(WRITE_KEY)))).toMatchObject({ code: 'NOT_FOUND' });
});

test('completing an operation records what it did cost under a name of its own', async () => {
  expect(await unary(`${AGENT}/CompleteOp`, 'CompleteOpRequest', 'CompleteOpResponse', { agent: crawler, credentialToken: TOKEN, opId: 't:s', costUsd: 0.5 })).toEqual({ opId: 't:s', opState: 'completing' });
  expect(gateway.asked).toMatchObject([{ type: 'record-usage', agent: crawler, costMicroUsd: 500_000, opId: 't:s', usageId: 'complete:t:s' }, { type: 'complete-op', opId: 't:s' }]);
  expect(await refusal(unary(`${AGENT}/CompleteOp`, 'CompleteOpRequest', 'CompleteOpResponse', { agent: crawler, credentialToken: TOKEN, opId: 'x', costUsd: undefined }))).toMatchObject({ details: 'op_id: must be <trace_id>:<span_id>' });
});

test('usage is answered with the first limit it exceeds', async () => {
  const record = (costUsd: number | undefined) => unary(`${AGENT}/RecordUsage`, 'RecordUsageRequest', 'RecordUsageResponse', { agent: crawler, credentialToken: TOKEN, costUsd, opId: undefined, usageId: undefined });
  expect(await record(1)).toEqual({ status: 'ok', tier: 'unspecified', period: 'unspecified' });
  expect(await record(6)).toEqual({ status: 'limit_exceeded', tier: 'team', period: 'daily' });
  expect(await refusal(record(undefined))).toMatchObject({ details: 'cost_usd: is required' });
  expect(await refusal(record(-1))).toMatchObject({ details: 'cost_usd: must be a number from 0 to 1000000' });
});

function openControl(request: Partial<Messages['OpControlStreamRequest']> = {}) {
  const { encode } = binaryCodec('OpControlStreamRequest');
  const { decode } = binaryCodec('OpControlStreamResponse');
  const call = client.makeServerStreamRequest(`${AGENT}/OpControlStream`, encode, (bytes) => {
    const message = decode(bytes);
    return message.ok ? message.value : (undefined as never);
  }, { agent: crawler, credentialToken: TOKEN, resumeAfter: undefined, ...request });
  const signals: unknown[] = [];
  call.on('data', (signal) => signals.push(signal));
  call.on('error', () => undefined);
  const ended = new Promise<{ code: string; details: string }>((resolve) => { call.on('status', ({ code, details }) => resolve({ code: status[code], details })); });
  return { call, signals, ended };
}

test('a control stream sends what is pending, then every signal once, until it is closed', async () => {
  gateway.answer = (command) => {
    // Given while the stream is being opened: part of the pending ones already.
    if (command.type === 'open-control') control.deliver(command.stream, { opId: 't:2' as never, signal: 'terminate', sequence: 3 });
    return undefined;
  };
  const { signals, ended } = openControl();
  await until(() => signals.length === 2);
  control.deliver((gateway.asked[0] as { stream: number }).stream, { opId: 't:1' as never, signal: 'resume', sequence: 4 });
  await until(() => signals.length === 3);
  expect(signals).toEqual([
    { opId: 't:1', signal: 'pause', sequence: 1 }, { opId: 't:2', signal: 'terminate', sequence: 3 }, { opId: 't:1', signal: 'resume', sequence: 4 },
  ]);
  control.revokeSubject('key:w');
  control.revokeAgent('acme/search/other' as never);
  expect(control.size).toBe(1);
  control.revokeAgent('acme/search/crawler' as never);
  expect(await ended).toEqual({ code: 'UNAUTHENTICATED', details: 'the credential token of the agent is no longer valid' });
  expect(control.size).toBe(0);
  expect(closedStreams).toEqual([(gateway.asked[0] as { stream: number }).stream]);
});

test('a control stream goes on after the last signal that was delivered, and a cancelled one is forgotten', async () => {
  const { call, signals } = openControl({ resumeAfter: 1 });
  await until(() => signals.length === 1);
  expect(signals).toEqual([{ opId: 't:2', signal: 'terminate', sequence: 3 }]);
  call.cancel();
  await until(() => control.size === 0);
});

test('a control stream that is refused says so, and listens to nothing', async () => {
  gateway.answer = () => ({ reply: fail({ kind: 'unauthenticated', detail: 'the credential token is not registered' }), auditId: undefined });
  expect(await openControl().ended).toEqual({ code: 'UNAUTHENTICATED', details: 'the credential token is not registered' });
  expect(control.size).toBe(0);
  expect(await openControl({ agent: undefined }).ended).toEqual({ code: 'INVALID_ARGUMENT', details: 'agent: is required' });
});

test('a signal is acknowledged by its number', async () => {
  const acknowledge = (sequence: number) => unary(`${AGENT}/AckOpControl`, 'AckOpControlRequest', 'AckOpControlResponse', { agent: crawler, credentialToken: TOKEN, opId: 't:1', sequence });
  expect(await acknowledge(4)).toEqual({});
  expect(gateway.asked).toMatchObject([{ type: 'ack-signal', opId: 't:1', sequence: 4, agent: crawler }]);
  expect(await refusal(acknowledge(0))).toMatchObject({ details: 'sequence: is required' });
});

/** buf's own client: another implementation of gRPC, protobuf and reflection. */
function bufCurl(method: string, data: string, ...flags: string[]): Promise<{ out: string; error: string }> {
  const buf = join(import.meta.dirname, '../../../node_modules/.bin/buf');
  return new Promise((resolve) => {
    execFile(buf, ['curl', '--protocol', 'grpc', '--http2-prior-knowledge', ...flags, '-d', data, `http://${address}${method}`], (_failed, out, error) => resolve({ out, error }));
  });
}

test('a generic client finds its way by reflection alone', async () => {
  const request = JSON.stringify({ agent: crawler, credential_token: TOKEN, trace_id: 'trace', span_id: 'span', action: 'tool.call', attributes: { size: 12, deep: [{ a: null }] } });
  const { out, error } = await bufCurl(`${POLICY}/CheckAction`, request);
  expect(error).toBe('');
  expect(JSON.parse(out)).toEqual({
    decision: 'DECISION_ALLOW', reason: 'web tools only', policy: 'search-team', ruleId: 'web-only', opId: 'trace:span', opState: 'OP_STATE_RUNNING', auditId: '7',
  });
  expect(gateway.asked).toMatchObject([{ attributes: { size: 12, deep: [{ a: null }] } }]);
  const refused = await bufCurl(`${POLICY}/CheckAction`, '{}');
  expect(JSON.parse(refused.error)).toMatchObject({ code: 'invalid_argument', message: 'agent: is required' });
});

test('the health service says that all is well, and is found by reflection too', async () => {
  const { out, error } = await bufCurl('/grpc.health.v1.Health/Check', '{"service":"svc.governance.v1.PolicyService"}');
  expect(error).toBe('');
  expect(JSON.parse(out)).toEqual({ status: 'SERVING' });
});

test('draining answers what is in flight, sends streams elsewhere and lets the connections go', async () => {
  const draining = createGrpcServer({ ports: gateway, control, messageTimeoutMs: 30_000, onDefect: (error) => defects.push(error) });
  const other = await listenForGrpc({ host: '127.0.0.1', port: 0, isShared: false, maxConnections: 1_000, onConnection: draining.serve, onError: (error) => defects.push(error) });
  const kept = client;
  client = new Client(`127.0.0.1:${other.port}`, credentials.createInsecure());
  try {
    let release = (): void => undefined;
    const signals = openControl();
    await until(() => signals.signals.length === 2);
    const stream = openChecks();
    stream.call.write(check({ correlationId: 'last' }));
    await until(() => stream.answers.length === 1);
    gateway.answer = () => new Promise((resolve) => { release = () => resolve(undefined as never); });
    const inFlight = checkAction(check());
    await until(() => gateway.asked.filter(({ type }) => type === 'check').length === 2);
    draining.drain(5_000);
    const closed = other.close();
    expect(await signals.ended).toEqual({ code: 'UNAVAILABLE', details: 'this gateway is shutting down; connect again' });
    expect(await stream.ended).toMatchObject({ code: 'UNAVAILABLE' });
    release();
    expect(await inFlight).toMatchObject({ decision: 'allow' });
    await closed;
    expect(draining.calls()).toBe(3);
  } finally {
    client.close();
    client = kept;
  }
});

test('connections that speak no HTTP/2, or break off at once, do no harm', async () => {
  const sockets: Socket[] = [];
  for (let index = 0; index < 200; index++) {
    const socket = connect(listener.port, '127.0.0.1');
    socket.resume();
    socket.on('error', () => undefined);
    socket.on('connect', () => (index % 2 === 0 ? socket.destroy() : socket.write('GET / HTTP/1.1\r\n\r\n')));
    sockets.push(socket);
  }
  await until(() => sockets.every((socket) => socket.destroyed || socket.readableEnded));
  expect(await checkAction(check())).toMatchObject({ decision: 'allow' });
  expect(defects).toEqual([]);
});
