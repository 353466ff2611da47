/** Sends a real gateway requests that are almost right, over HTTP and gRPC: each must get an answer, and no defect. */
import { Agent, request } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import { field } from '../../src/doors/proto/fields.ts';
import { ADMIN_KEY, type TestGateway } from '../support/gateway.ts';
import { framed } from '../support/grpc-frames.ts';
import { randomOf } from '../support/random.ts';
import { ROWS } from '../support/routes.ts';
import { type Json, Mutator } from './mutate.ts';

const AGENT = { org_id: 'acme', team_id: 'search', agent_id: 'crawler' };
const RPC_AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
const TOKEN = 'crawler-token-0123456789-0123456789-0123';
const LANES = 8;
/** A request that takes longer counts as never answered. A machine that is busy with other things may take long. */
const HANG_MS = 30_000;

const RPC_BODIES: Readonly<Record<string, Json>> = {
  'PolicyService/CheckAction': {
    agent: RPC_AGENT,
    credentialToken: TOKEN,
    traceId: 't',
    spanId: 's',
    action: 'tool.call',
    resource: 'web',
    attributes: { a: [1, { b: null }] },
    dryRun: true,
  },
  'PolicyService/BatchCheckActions': { requests: [{ agent: RPC_AGENT, traceId: 't', spanId: 's', action: 'a' }] },
  'AgentService/CompleteOp': { agent: RPC_AGENT, credentialToken: TOKEN, opId: 't:s', costUsd: 1 },
  'AgentService/RecordUsage': { agent: RPC_AGENT, credentialToken: TOKEN, costUsd: 0.01, usageId: 'u' },
  'AgentService/RegisterAgent': { agent: { ...RPC_AGENT, agentId: 'other' }, credentialToken: `${TOKEN}-2` },
  'ApprovalService/CancelApproval': { agent: RPC_AGENT, credentialToken: TOKEN, approvalId: 'a' },
};
/** Fields of the bodies that the HTTP API takes, in one: each route finds some of its own, and some too many. */
const REST_BODIES: readonly Json[] = [
  { agent: AGENT, trace_id: 't', span_id: 's' },
  { agent: AGENT, cost_usd: 0.01, usage_id: 'u' },
  { name: 'k', scopes: ['read'], org_id: 'acme' },
  {
    scope: 'agent:acme/search/nobody',
    mode: 'pause',
    actions: ['x.*'],
    reason: 'r',
    expires_at: '2030-01-01T00:00:00Z',
  },
  { email: 'a@example.org', password: 'a long enough passphrase', role: 'viewer' },
  { agent: 'acme/search/crawler', action: 'a', resource: 'r', attributes: {} },
  { subject: { type: 'agent', id: 'acme/search/crawler' }, action: { name: 'a' }, resource: { type: 't', id: 'r' } },
  { input: { agent: 'acme/search/crawler', action: 'a', resource: 'r' } },
  {
    session_id: 's',
    hook_event_name: 'PreToolUse',
    tool_use_id: 'i',
    tool_name: 'Bash',
    tool_input: { command: 'ls' },
  },
  { outcome: 'failure', error: 'e', reason: 'r' },
  { agent: AGENT, action: 'a', attributes: { n: 9_007_199_254_740_992, ['\u0315\u0300'.repeat(2_000)]: 1 } },
];
const QUERIES = [
  '',
  'per_page=5&cursor=abc',
  'org_id=acme&state=running',
  'since=2026-01-01T00:00:00Z&decision=deny',
  'format=csv',
];
/** They wait on purpose, or end what the others need. */
const LEFT_OUT = /\/(?:reload|wait)$|stream/;

const routes = ROWS.filter(({ path }) => !LEFT_OUT.test(path));
const GRPC_PATHS = [
  ...Object.keys(RPC_BODIES).map((name) => `/svc.governance.v1.${name}`),
  '/envoy.service.auth.v3.Authorization/Check',
  '/agentgateway.dev.ext_mcp.ExtMcp/CheckRequest',
  '/agentgateway.dev.ext_mcp.ExtMcp/CheckResponse',
  '/grpc.health.v1.Health/Check',
];
/** Many of each in a row once held the gateway up: parts of messages, texts beyond ASCII, groups, unknown fields. */
const HOSTILE_FIELDS = ['0a00', '1a00', '2a00', '6a00', '1a020a00', '1a02c3a9', '3a00', '7800', '7b7b7c7c'];
/** As the HTTP request of a CheckRequest of Envoy. */
const inEnvoy = (http: Buffer): Buffer => field(1, field(4, field(2, http)));
const GRPC_BYTES = [
  Buffer.from('0a180a0461636d6512067365617263681a07637261776c6572', 'hex'),
  Buffer.from('0a20221e121c1203474554220161' + '2a0b6578616d706c652e6f7267', 'hex'),
  Buffer.from('0a0573657276120a746f6f6c732f63616c6c22107b226e616d65223a22736561726368227d', 'hex'),
  ...HOSTILE_FIELDS.map((hex) => Buffer.alloc(4_000, Buffer.from(hex, 'hex'))),
  ...HOSTILE_FIELDS.map((hex) => inEnvoy(Buffer.alloc(4_000, Buffer.from(hex, 'hex')))),
];

/** The declared answer of a gateway without accounts to a sign-in (docs/errors.md). */
const DECLARED = /"code":"account_store_unavailable"/;

export type FuzzedDoors = { readonly statuses: ReadonlyMap<string, number>; readonly slowestMs: number };

type Sent = { readonly what: string; readonly status: string; readonly tookMs: number; readonly body: string };

/** Throws the first answer that no honest gateway gives, with the request's number: `seed` and it bring it back. */
export async function fuzzDoors(gateway: TestGateway, seed: number, requests: number): Promise<FuzzedDoors> {
  const agent = new Agent({ keepAlive: true, maxSockets: LANES });
  const session = connect(`http://${gateway.grpc}`);
  const statuses = new Map<string, number>();
  let [next, slowestMs] = [0, 0];
  const lane = async (): Promise<void> => {
    while (next < requests) {
      next += 1;
      const own = (seed + next * 0x9e37_79b1) >>> 0;
      const mutator = new Mutator(randomOf(own));
      const sent = await (mutator.isOdds(0.2) ? overGrpc(session, mutator) : overHttp(gateway, agent, mutator));
      statuses.set(sent.status, (statuses.get(sent.status) ?? 0) + 1);
      slowestMs = Math.max(slowestMs, sent.tookMs);
      if (/^(?:5\d\d|grpc 13|grpc 2|none)$/.test(sent.status) && !DECLARED.test(sent.body))
        throw new Error(`request ${own}, ${sent.what}: ${sent.status} ${sent.body.slice(0, 300)}`);
    }
  };
  try {
    await Promise.all(Array.from({ length: LANES }, lane));
  } finally {
    agent.destroy();
    session.destroy();
  }
  return { statuses, slowestMs };
}

/** Characters that may stand in a request line. */
const wellFormed = (text: string): string => text.replaceAll(/\p{Cs}/gu, '\ufffd');
const encoded = (text: string): string =>
  wellFormed(text).replaceAll(/[^\x21-\x7e]|#/gu, (character) => encodeURIComponent(character));

function overHttp(gateway: TestGateway, agent: Agent, mutator: Mutator): Promise<Sent> {
  const isRpc = mutator.isOdds(0.4);
  const [name, example] = mutator.of(Object.entries(RPC_BODIES));
  const route = mutator.of(routes);
  const path = isRpc
    ? `/svc.governance.v1.${name}`
    : route.path.replaceAll(/:\w+/g, () => encodeURIComponent(wellFormed(mutator.text(['acme', 't:s', 'abc']))));
  const query = isRpc ? '' : encoded(mutator.text(QUERIES, ['&', '=', '%', 'per_page=', 'cursor=']));
  const value = mutator.isOdds(0.2) ? mutator.of(REST_BODIES) : mutator.tree(isRpc ? [example] : REST_BODIES);
  const body = mutator.isOdds(0.8) ? JSON.stringify(value) : mutator.text([JSON.stringify(value)]);
  const method = isRpc ? 'POST' : mutator.isOdds(0.95) ? route.method.toUpperCase() : 'PUT';
  const bearer = mutator.isOdds(0.8) ? ADMIN_KEY : encoded(mutator.text([ADMIN_KEY, 'a.b.c', TOKEN]));
  const hasBody = method !== 'GET' && body.length < 500_000;
  const startMs = performance.now();
  return new Promise((resolve) => {
    const done = (status: string, answer = ''): void =>
      resolve({ what: `${method} ${path}?${query}`, status, tookMs: performance.now() - startMs, body: answer });
    const sending = request(
      `${gateway.url}${path}${query === '' ? '' : `?${query}`}`,
      {
        method,
        agent,
        timeout: HANG_MS,
        headers: {
          authorization: `Bearer ${bearer}`,
          'x-svc-agent': encoded(mutator.text(['acme/search/crawler'])),
          ...(hasBody ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) } : {}),
        },
      },
      (answer) => {
        const pieces: Buffer[] = [];
        answer.on('data', (piece: Buffer) => pieces.push(piece));
        answer.on('end', () => done(String(answer.statusCode), Buffer.concat(pieces).toString()));
        answer.on('error', (error) => done('cut off', error.message));
      },
    );
    sending.on('timeout', () => sending.destroy(new Error('no answer in time')));
    sending.on('error', (error) => done(error.message === 'no answer in time' ? 'none' : 'cut off', error.message));
    sending.end(hasBody ? body : undefined);
  });
}

function overGrpc(session: ClientHttp2Session, mutator: Mutator): Promise<Sent> {
  const path = mutator.of(GRPC_PATHS);
  const message = mutator.bytes(GRPC_BYTES);
  const startMs = performance.now();
  return new Promise((resolve) => {
    const call = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...(mutator.isOdds(0.5) ? { authorization: `Bearer ${ADMIN_KEY}`, 'x-svc-agent': 'acme/search/crawler' } : {}),
    });
    let status = 'none';
    const note = (headers: Record<string, unknown>): void => {
      if (headers['grpc-status'] !== undefined) status = `grpc ${headers['grpc-status']}`;
    };
    call.on('response', note);
    call.on('trailers', note);
    call.on('error', () => undefined); // `close` follows
    call.setTimeout(HANG_MS, () => call.close());
    call.on('close', () => resolve({ what: path, status, tookMs: performance.now() - startMs, body: '' }));
    call.resume();
    call.end(framed(message));
  });
}
