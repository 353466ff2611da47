/**
 * Two orgs with the same team and agent names. Everything is asked with a credential of acme. Three promises:
 * what is asked without an id is the same whatever goes on in globex; what names a thing of globex is answered as if
 * there were no globex; and globex never hears that it was asked.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { QUERY, type QueryName } from '../../src/doors/engine/route.ts';
import { binaryCodec, emptyMessage } from '../../src/doors/proto/binary.ts';
import { messageShape, methodShapes } from '../../src/doors/proto/schema.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';
import { ALLOW_ALL } from '../support/policies.ts';
import { withPostgres } from '../support/postgres.ts';
import { nameOf, ROWS } from '../support/routes.ts';
import { openStream } from '../support/stream.ts';

const newDatabase = withPostgres();

/** `nowher` stands for an org that does not exist; its name is as long, so that answers are. */
const ORGS = ['acme', 'globex'] as const;
const NOWHERE = 'nowher';

const folder = mkdtempSync(join(tmpdir(), 'svc-isolation-'));
let gateway: GatewayHere;
const admins: Record<string, string> = {};
const tokens: Record<string, string> = { [NOWHERE]: `token-of-${NOWHERE}-0123456789-0123456789-0123456789` };
const keyIds: Record<string, string> = { [NOWHERE]: '0000000000000000' };
const inviteIds: Record<string, string> = { [NOWHERE]: '00000000-0000-4000-8000-000000000000' };
const haltIds: Record<string, string> = { [NOWHERE]: '00000000-0000-4000-8000-000000000000' };
const hookIds: Record<string, string> = { [NOWHERE]: '11111111-1111-4111-8111-111111111111' };
let made = 0;

const agentOf = (org: string) => ({ org_id: org, team_id: 'search', agent_id: 'crawler' });
const rpcAgentOf = (org: string) => ({ orgId: org, teamId: 'search', agentId: 'crawler' });
const opOf = (org: string): string => `trace-${org}:span`;

async function call(service: string, method: string, body: object, bearer: string | null = ADMIN_KEY) {
  return gateway.call('POST', `/svc.governance.v1.${service}/${method}`, body, bearer);
}

/** Things happen in an org: of every kind that leaves a trace. */
async function live(org: string): Promise<void> {
  made += 1;
  const token = tokens[org]!;
  const check = (traceId: string, more: object = {}) =>
    call(
      'PolicyService',
      'CheckAction',
      {
        agent: rpcAgentOf(org),
        credentialToken: token,
        traceId,
        spanId: 'span',
        action: 'llm.call',
        resource: `${org}-resource`,
        estimatedCostUsd: 1,
        ...more,
      },
      null,
    );
  await check(`trace-${org}`);
  await check(`more-${org}-${made}`);
  await check(`refused-${org}-${made}`, { action: 'forbidden' });
  await gateway.call('POST', `/api/v1/ops/more-${org}-${made}:span/pause`);
  await gateway.call('POST', '/api/v1/usage', { agent: agentOf(org), cost_usd: 2, usage_id: `usage-${org}-${made}` });
  await gateway.call('POST', '/api/v1/agents', {
    agent: { ...agentOf(org), agent_id: `helper-${made}` },
    parent: agentOf(org),
  });
  await gateway.call('POST', '/api/v1/iam/api-keys', { name: `${org}-key`, scopes: ['read'], org_id: org });
  await gateway.call('POST', '/api/v1/auth/invite', {
    email: `guest-${made}@${org}.example`,
    role: 'viewer',
    org_id: org,
  });
}

describe('isolation', () => {
  beforeAll(async () => {
    const policyPath = join(folder, 'policies.yaml');
    const policies = [
      ALLOW_ALL.replace('actions: ["*"]', 'actions: ["llm.call", "tool.call"]'),
      'budget: { org_daily_limit_usd: 1000 }\n',
      ...ORGS.map(
        (org) =>
          `---\nname: ${org}-policy\nscope: org:${org}\nrules: [{ id: ${org}-rule, effect: deny, actions: [never] }]\nlimits: [{ id: few, per: session, calls: 100000 }]\n`,
      ),
    ];
    writeFileSync(policyPath, policies.join(''));
    gateway = await startGatewayHere({
      env: {
        SVC_POLICY_PATH: policyPath,
        SVC_OPS_TTL_SECS: '3600',
        SVC_DATABASE_URL: await newDatabase(),
        SVC_ARGON2_MEMORY_KIB: '64',
        SVC_WEBHOOKS_ALLOW_PRIVATE: '1',
      },
    });
    for (const org of ORGS) {
      const { key, id } = (
        await gateway.call('POST', '/api/v1/iam/api-keys', { name: `${org}-admin`, scopes: ['admin'], org_id: org })
      ).body;
      admins[org] = key;
      keyIds[org] = id;
      tokens[org] = (await gateway.call('POST', '/api/v1/agents', { agent: agentOf(org) })).body.credential_token;
      await live(org);
      // The halt covers an agent that asks nothing: the activity of this org must not stop.
      const halt = { scope: `agent:${org}/search/idle`, reason: 'test' };
      haltIds[org] = (await gateway.call('POST', '/api/v1/halts', halt)).body.halt.id;
      const hook = { url: 'http://127.0.0.1:9/', events: ['violation'], org_id: org };
      hookIds[org] = (await gateway.call('POST', '/api/v1/webhooks', hook)).body.id;
      inviteIds[org] = (await gateway.call('GET', `/api/v1/auth/invites?org_id=${org}`)).body.invites[0].id;
    }
  });
  afterAll(async () => {
    await gateway.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  type Shown = { readonly status: number; readonly body: unknown };

  /** Returns an answer without its mentions of the requested name, and of its own place in the log. */
  async function shown(
    method: string,
    path: string,
    body: unknown,
    bearer: string | null,
    org: string,
  ): Promise<Shown> {
    const { status, body: answered } = await gateway.call(method.toUpperCase(), path, body, bearer);
    const text = JSON.stringify(answered)
      .replaceAll(keyIds[org]!, '<key>')
      .replaceAll(haltIds[org]!, '<halt>')
      .replaceAll(hookIds[org]!, '<hook>')
      .replaceAll(org, '<org>')
      .replaceAll(/"auditId":"\d+"/g, '"auditId":"<id>"')
      .replaceAll(/"to":"[^"]+"/g, '"to":"<now>"')
      .replaceAll(/"audit_id":\d+/g, '"audit_id":"<id>"');
    return { status, body: JSON.parse(text) };
  }

  // ---- What is asked without naming anything of another org ----

  /** Rows that tell of the gateway as a whole, which is no org's. */
  const OF_THE_GATEWAY = [
    'get /.well-known/jwks.json',
    'get /.well-known/authzen-configuration',
    'get /api/v1/auth/methods',
    'get /healthz',
    'get /readyz',
    'get /metrics',
    'get /openapi.json',
  ];
  const LISTINGS = ROWS.filter(
    (row) => row.method === 'get' && !row.path.includes('/:') && !OF_THE_GATEWAY.includes(nameOf(row)),
  );

  const FILTERS: Readonly<Partial<Record<QueryName, string>>> = {
    shadow: 'differs',
    // Whose key has made all others, of both orgs.
    made_by: 'gateway:environment',
    org_id: 'acme',
    team_id: 'search',
    agent_id: 'crawler',
    state: 'running',
    event_type: 'ActionAllowed',
    window: '1h',
    decision: 'allow',
    op_id: opOf('acme'),
    actor: 'agent:acme/search/crawler',
    since: '2020-01-01T00:00:00Z',
    until: '2100-01-01T00:00:00Z',
    format: 'csv',
    policy: 'acme-policy',
    per: 'session',
    limit: 'few',
    rule_id: 'all',
    cause: 'no_rule',
    action: 'llm.*',
    resource: '*-resource',
    ended: 'denied',
    per_page: '1000',
    types: 'ops_change',
    snapshot: 'true',
    lineage: 'true',
  };
  const UNFILTERED: readonly QueryName[] = [
    'from',
    'to',
    'active',
    'cascade',
    'cursor',
    'model',
    'provider',
    'op_home',
    'ticket',
    'wait',
  ];

  const questions = (): readonly string[] =>
    LISTINGS.flatMap(({ path, query = [] }) => [
      path,
      ...(query.includes('per_page') ? [`${path}?per_page=1`] : []),
      ...query.flatMap((name) =>
        FILTERS[name] === undefined
          ? []
          : [
              `${path}?${new URLSearchParams({
                [name]: FILTERS[name],
                ...(query.includes('per_page') && { per_page: '1000' }),
              })}`,
            ],
      ),
    ]);
  /** Few at once: of searches of the log an org may have only so many. */
  async function askAll(): Promise<readonly (readonly [string, unknown])[]> {
    const answers: (readonly [string, unknown])[] = [];
    const left = questions().values();
    const askSome = async (): Promise<void> => {
      for (const path of left) answers.push([path, await shown('get', path, undefined, admins.acme!, NOWHERE)]);
    };
    await Promise.all(Array.from({ length: 4 }, askSome));
    return answers.sort(([one], [other]) => (one < other ? -1 : 1));
  }

  test('every filter of the API is tried', () => {
    expect([...Object.keys(FILTERS), ...UNFILTERED].sort()).toEqual(Object.keys(QUERY).sort());
  });

  test('nothing that happens in globex changes a byte of what acme sees', async () => {
    const before = await askAll();
    expect(JSON.stringify(before)).toContain(opOf('acme'));
    expect(JSON.stringify(before)).not.toContain('globex');
    await live('globex');
    await gateway.call('DELETE', `/api/v1/agents/globex/search/helper-${made}`);
    expect(await askAll()).toEqual(before);
  });

  // ---- What names a thing of another org ----

  /**
   * Alike are also two answers that are about no org at all, because nobody was let in or something broke: such prove
   * nothing.
   */
  const DECIDED: readonly number[] = [200, 400, 403, 404, 426];

  type Probe = (org: string) => { readonly path: string; readonly body?: unknown };

  const evaluationOf = (org: string) => ({
    subject: { type: 'agent', id: `${org}/search/crawler` },
    action: { name: 'llm.call' },
    resource: { type: 'model', id: 'm' },
  });

  /** Every row that takes an id or an org, asked for those of another. */
  const PROBES: Readonly<Record<string, readonly Probe[]>> = {
    'post /api/v1/iam/api-keys': [
      (org) => ({ path: '/api/v1/iam/api-keys', body: { name: 'k', scopes: ['read'], org_id: org } }),
    ],
    'post /iam/api-keys': [(org) => ({ path: '/iam/api-keys', body: { name: 'k', scopes: ['read'], org_id: org } })],
    'post /api/v1/iam/api-keys/:id/revoke': [(org) => ({ path: `/api/v1/iam/api-keys/${keyIds[org]}/revoke` })],
    'post /iam/api-keys/:id/revoke': [(org) => ({ path: `/iam/api-keys/${keyIds[org]}/revoke` })],
    'post /api/v1/auth/invite': [
      (org) => ({ path: '/api/v1/auth/invite', body: { email: `guest@${org}.example`, role: 'viewer', org_id: org } }),
    ],
    'post /api/v1/auth/invites/:id/revoke': [(org) => ({ path: `/api/v1/auth/invites/${inviteIds[org]}/revoke` })],
    'post /api/v1/ops': [(org) => ({ path: '/api/v1/ops', body: { op_id: 'probe:s', agent: agentOf(org) } })],
    'get /api/v1/ops/:id': [(org) => ({ path: `/api/v1/ops/${opOf(org)}` })],
    ...Object.fromEntries(
      ['pause', 'resume', 'terminate', 'complete'].map((trigger): [string, readonly Probe[]] => [
        `post /api/v1/ops/:id/${trigger}`,
        [(org) => ({ path: `/api/v1/ops/${opOf(org)}/${trigger}` })],
      ]),
    ),
    'post /api/v1/agents': [
      (org) => ({ path: '/api/v1/agents', body: { agent: agentOf(org) } }),
      (org) => ({
        path: '/api/v1/agents',
        body: { agent: { ...agentOf('acme'), agent_id: 'orphan' }, parent: agentOf(org) },
      }),
    ],
    'delete /api/v1/agents/:org/:team/:agent': [(org) => ({ path: `/api/v1/agents/${org}/search/crawler` })],
    'post /api/v1/usage': [
      (org) => ({ path: '/api/v1/usage', body: { agent: agentOf(org), cost_usd: 1 } }),
      (org) => ({ path: '/api/v1/usage', body: { agent: agentOf('acme'), cost_usd: 0, op_id: opOf(org) } }),
    ],
    'post /api/v1/halts': [(org) => ({ path: '/api/v1/halts', body: { scope: `org:${org}`, reason: 'test' } })],
    'post /api/v1/halts/:id/release': [
      (org) => ({ path: `/api/v1/halts/${haltIds[org]}/release`, body: { reason: 'test' } }),
    ],
    'post /api/v1/webhooks': [
      (org) => ({
        path: '/api/v1/webhooks',
        body: { url: 'https://example.com/', events: ['violation'], org_id: org },
      }),
    ],
    'get /api/v1/webhooks/:id': [(org) => ({ path: `/api/v1/webhooks/${hookIds[org]}` })],
    'delete /api/v1/webhooks/:id': [(org) => ({ path: `/api/v1/webhooks/${hookIds[org]}` })],
    'post /api/v1/webhooks/:id/test': [(org) => ({ path: `/api/v1/webhooks/${hookIds[org]}/test` })],
    'post /api/v1/webhooks/:id/take-over': [(org) => ({ path: `/api/v1/webhooks/${hookIds[org]}/take-over` })],
    'get /api/v1/policies/rules': [(org) => ({ path: `/api/v1/policies/rules?policy=${org}-policy` })],
    'post /api/v1/policies/explain': [
      (org) => ({ path: '/api/v1/policies/explain', body: { agent: agentOf(org), action: 'llm.call' } }),
      (org) => ({
        path: '/api/v1/policies/explain',
        body: { agent: agentOf('acme'), caller: agentOf(org), action: 'llm.call' },
      }),
    ],
    'post /access/v1/evaluation': [(org) => ({ path: '/access/v1/evaluation', body: evaluationOf(org) })],
    'post /access/v1/evaluations': [
      (org) => ({ path: '/access/v1/evaluations', body: { ...evaluationOf(org), evaluations: [{}] } }),
    ],
    'get /api/v1/topology/team/:team_id': [(org) => ({ path: `/api/v1/topology/team/search?org_id=${org}` })],
    'get /api/v1/topology/lineage/:agent_id': [(org) => ({ path: `/api/v1/topology/lineage/crawler?org_id=${org}` })],
    ...Object.fromEntries(
      LISTINGS.filter(({ query }) => query?.includes('org_id')).map((row): [string, readonly Probe[]] => [
        nameOf(row),
        [
          (org) => ({ path: `${row.path}?org_id=${org}` }),
          ...(row.query?.includes('op_id')
            ? [
                (org: string) => ({ path: `${row.path}?op_id=${encodeURIComponent(opOf(org))}` }),
                (org: string) => ({ path: `${row.path}?actor=${encodeURIComponent(`agent:${org}/search/crawler`)}` }),
              ]
            : []),
        ],
      ]),
    ),
  };

  /**
   * Rows that take nothing that could be another org's, or whose ids are those of accounts, which the default workspace
   * shares.
   */
  const WITHOUT_IDS = [
    ...OF_THE_GATEWAY,
    'post /api/v1/auth/token',
    'post /api/v1/iam/signing-keys/rotate',
    'post /api/v1/auth/register',
    'post /api/v1/auth/login',
    'post /api/v1/auth/refresh',
    'post /api/v1/auth/logout',
    'post /api/v1/auth/invite/accept',
    'post /api/v1/auth/password/reset',
    'post /api/v1/auth/password/reset/confirm',
    'get /api/v1/auth/me',
    'get /api/v1/iam/api-keys/self',
    'get /api/v1/agents/self',
    // An agent's name comes in a header; a foreign one is denied (hooks.test.ts).
    ...ROWS.map(nameOf).filter((row) => row.startsWith('post /api/v1/hooks/')),
    'post /api/v1/auth/sessions/revoke',
    // Kept in the org of the credential, and compared with what this one has stated.
    'post /api/v1/audit/witness',
    // Refused to a credential of one org: routes.test.ts.
    ...ROWS.filter(({ path }) => path.startsWith('/api/v1/audit/sinks')).map(nameOf),
    'post /api/v1/policies/reload',
    'post /api/v1/policies',
    'get /api/v1/policies',
    // Refused to a credential of one org, whatever it names: routes.test.ts.
    ...ROWS.filter(({ path }) => /^\/api\/v1\/policies\/(versions|diff|shadow|replay)\b/.test(path)).map(nameOf),
    'get /api/v1/prices',
    'get /api/v1/halts',
    'get /api/v1/cluster',
    'post /api/v1/cluster/forget',
    // Approvals have tests of their own: test/e2e/approvals.test.ts.
    ...ROWS.filter(({ path }) => /^\/api\/v1\/approvals\/:id\b/.test(path)).map(nameOf),
    'post /api/v1/auth/ws-ticket',
    // The agent is named by a header, which the tests of these doors send.
    'post /v1/data/svc/authz/decision',
    'post /v1/agent-hooks/intercept',
    'post /api/v1/agents/self/refusals',
    ...ROWS.filter(({ path }) => path.startsWith('/api/v1/accounts/:id')).map(nameOf),
  ];

  test('every row of the API is probed, or accepts nothing of another org', () => {
    expect([...Object.keys(PROBES), ...WITHOUT_IDS].sort()).toEqual(ROWS.map(nameOf).sort());
  });

  test.each(Object.entries(PROBES))(
    '%s does not reveal whether something of another org exists',
    async (name, probes) => {
      const [method] = name.split(' ') as [string];
      for (const probe of probes) {
        const there = probe('globex');
        const nowhere = probe(NOWHERE);
        const answer = await shown(method, there.path, there.body, admins.acme!, 'globex');
        expect(DECIDED).toContain(answer.status);
        expect(answer).toEqual(await shown(method, nowhere.path, nowhere.body, admins.acme!, NOWHERE));
        expect(JSON.stringify(answer)).not.toContain('globex');
      }
    },
  );

  // ---- gRPC and Connect ----

  type RpcProbe = readonly [method: string, body: (org: string) => object];

  const check = (org: string, more: object = {}) => ({
    agent: rpcAgentOf(org),
    traceId: 'probe',
    spanId: 's',
    action: 'llm.call',
    resource: 'r',
    ...more,
  });
  const RPC_PROBES: readonly RpcProbe[] = [
    ['PolicyService/CheckAction', (org) => check(org)],
    ['PolicyService/CheckAction', (org) => check(org, { credentialToken: tokens.acme })],
    ['PolicyService/CheckAction', (org) => check('acme', { caller: rpcAgentOf(org), dryRun: true })],
    [
      'PolicyService/BatchCheckActions',
      (org) => ({ requests: [check(org), check(org, { credentialToken: tokens.acme })] }),
    ],
    ['AgentService/RegisterAgent', (org) => ({ agent: rpcAgentOf(org) })],
    [
      'AgentService/RegisterAgent',
      (org) => ({ agent: { ...rpcAgentOf('acme'), agentId: 'orphan' }, parent: rpcAgentOf(org) }),
    ],
    ['AgentService/DeregisterAgent', (org) => ({ agent: rpcAgentOf(org) })],
    ['AgentService/CompleteOp', (org) => ({ agent: rpcAgentOf(org), opId: opOf(org) })],
    [
      'AgentService/CompleteOp',
      (org) => ({ agent: rpcAgentOf('acme'), credentialToken: tokens.acme, opId: opOf(org) }),
    ],
    ['AgentService/RecordUsage', (org) => ({ agent: rpcAgentOf(org), costUsd: 1 })],
    [
      'AgentService/RecordUsage',
      (org) => ({ agent: rpcAgentOf('acme'), credentialToken: tokens.acme, costUsd: 0, opId: opOf(org) }),
    ],
    [
      'AgentService/AckOpControl',
      (org) => ({ agent: rpcAgentOf('acme'), credentialToken: tokens.acme, opId: opOf(org), sequence: '1' }),
    ],
    ['AgentService/AckOpControl', (org) => ({ agent: rpcAgentOf(org), opId: opOf(org), sequence: '1' })],
  ];
  const STREAMS = ['PolicyService/StreamCheckActions', 'AgentService/OpControlStream'];
  const UNIMPLEMENTED = ['ApprovalService/WaitApproval', 'ApprovalService/CancelApproval'];

  test('every method of both services is probed', () => {
    const methods = methodShapes.map(({ path }) => path.replace('/svc.governance.v1.', ''));
    const probed = [...RPC_PROBES.map(([method]) => method), ...STREAMS, ...UNIMPLEMENTED];
    expect([...new Set(probed)].sort()).toEqual(methods.sort());
  });

  test.each(RPC_PROBES)('%s reveals nothing of another org', async (method, body) => {
    const path = `/svc.governance.v1.${method}`;
    const there = await shown('post', path, body('globex'), admins.acme!, 'globex');
    expect(DECIDED).toContain(there.status);
    expect(there).toEqual(await shown('post', path, body(NOWHERE), admins.acme!, NOWHERE));
    expect(JSON.stringify(there)).not.toContain('globex');
  });

  test("a control stream for another org's agent is refused as for an unknown org", async () => {
    const client = new Client(gateway.grpc, credentials.createInsecure());
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${admins.acme}`);
    const open = (org: string): Promise<readonly [number, string]> =>
      new Promise((resolve, reject) => {
        const request = { ...emptyMessage(messageShape('OpControlStreamRequest')), agent: rpcAgentOf(org) };
        const stream = client.makeServerStreamRequest(
          '/svc.governance.v1.AgentService/OpControlStream',
          (message: never) => Buffer.from(binaryCodec('OpControlStreamRequest').encode(message)),
          (bytes) => bytes,
          request as never,
          metadata,
        );
        stream.on('data', () => reject(new Error('a signal of another org')));
        stream.on('error', ({ code, details }: ServiceError) => resolve([code, details.replaceAll(org, '<org>')]));
      });
    expect(await open('globex')).toEqual(await open(NOWHERE));
    client.close();
  });

  test('a dashboard of acme sees no event of globex and cannot request any', async () => {
    const dashboard = await openStream(gateway, '?snapshot=true', { bearer: admins.acme! });
    await live('globex');
    await live('acme');
    await dashboard.next(
      (frame) =>
        frame.event_type === 'ops_change' &&
        (frame.payload.op_id as string) === `more-acme-${made}:span` &&
        frame.payload.state === 'paused',
    );
    expect(JSON.stringify(dashboard.frames)).not.toContain('globex');
    expect(new Set(dashboard.frames.map(({ org_id }) => org_id))).toEqual(new Set(['acme']));
    await dashboard.close();
    const refused = async (org: string) =>
      (await openStream(gateway, `?org_id=${org}`, { bearer: admins.acme! }).then(() => 'let in', String)).replaceAll(
        org,
        '<org>',
      );
    expect(await refused('globex')).toBe(await refused(NOWHERE));
  });

  test('an id that globex uses is as free for acme as any other, at every door', async () => {
    const path = (org: string) => `/api/v1/ops/${opOf(org)}`;
    const before = (await gateway.call('GET', path('globex'))).body;
    const subject = { traceId: '', spanId: 'span', action: 'llm.call', resource: 'r' };
    const asked = async (org: string) => {
      const named = { ...subject, traceId: `trace-${org}` };
      const agent = { type: 'agent', id: 'acme/search/crawler' };
      const evaluation = {
        subject: agent,
        action: { name: 'llm.call' },
        resource: { type: 'model', id: 'r' },
        context: { trace_id: `trace-${org}`, span_id: 'span' },
      };
      const answers = [
        await gateway.call('POST', '/api/v1/ops', { op_id: opOf(org), agent: agentOf('acme') }, admins.acme),
        await call('PolicyService', 'CheckAction', { agent: rpcAgentOf('acme'), ...named }, admins.acme ?? null),
        await gateway.call('POST', '/access/v1/evaluation', evaluation, tokens.acme),
        await call(
          'AgentService',
          'CompleteOp',
          { agent: rpcAgentOf('acme'), credentialToken: tokens.acme, opId: opOf(org) },
          null,
        ),
        await gateway.call('GET', path(org), undefined, admins.acme),
      ];
      return answers.map(({ status, body }) =>
        [status, JSON.stringify(body)]
          .join(' ')
          .replaceAll(org, '<org>')
          .replaceAll(/\d{4}-\d\d-\d\dT[^"]*/g, '<time>')
          .replaceAll(/"(auditId|audit_id)":"?\d+"?/g, '<entry>'),
      );
    };
    const taken = await asked('globex');
    expect(taken.map((answer) => answer.slice(0, 3))).toEqual(['201', '200', '200', '200', '200']);
    expect(taken).toEqual(await asked(NOWHERE));
    expect((await gateway.call('GET', `${path('globex')}?org_id=globex`)).body).toEqual(before);
    expect((await gateway.call('GET', path('globex'), undefined, admins.globex)).body).toEqual(before);
    expect(await gateway.call('POST', `${path('globex')}/terminate`)).toMatchObject({
      status: 409,
      body: { code: 'ambiguous', org_ids: expect.arrayContaining(['acme', 'globex']) },
    });
  });

  test('globex receives nothing of what acme has tried', async () => {
    const { body } = await gateway.call('GET', '/api/v1/logs/export', undefined, admins.globex);
    expect(body).not.toContain('acme');
    expect(body).not.toContain(keyIds.acme);
    const mine = await gateway.call('GET', '/api/v1/logs?event_type=A2AImpersonationAttempted', undefined, admins.acme);
    expect(mine.body.entries[0]).toMatchObject({
      lineage: { org_id: 'acme' },
      decision: 'deny',
      payload: { claimed_org_id: expect.any(String) },
    });
  });

  test("a token presented for another org's agent is denied and reported to its own org", async () => {
    const mine = await openStream(gateway, '?types=violation', { bearer: admins.acme! });
    const theirs = await openStream(gateway, '', { bearer: admins.globex! });
    const countOf = async () => (await gateway.call('GET', '/api/v1/topology/stats')).body.ops;
    const before = await countOf();
    const { body } = await call(
      'PolicyService',
      'CheckAction',
      {
        agent: rpcAgentOf('globex'),
        credentialToken: tokens.acme,
        traceId: 'stolen',
        spanId: 's',
        action: 'llm.call',
        resource: 'r',
      },
      null,
    );
    expect(body).toMatchObject({
      decision: 'DECISION_DENY',
      reason: 'the credential token is registered to a different agent',
    });
    const violation = await mine.next(
      (frame) => frame.event_type === 'violation' && frame.payload.claimed_org_id === 'globex',
    );
    expect(violation).toMatchObject({ org_id: 'acme', agent_id: 'crawler' });
    const { entries } = (await gateway.call('GET', '/api/v1/logs?event_type=A2AImpersonationAttempted&per_page=1'))
      .body;
    expect(entries[0]).toMatchObject({
      lineage: { org_id: 'acme' },
      op_id: 'stolen:s',
      decision: 'deny',
      reason: 'the credential token is registered to a different agent',
      payload: { claimed_org_id: 'globex', claimed_team_id: 'search', claimed_agent_id: 'crawler' },
    });
    expect(await countOf()).toEqual(before);
    expect((await gateway.call('GET', '/api/v1/ops/stolen:s')).status).toBe(404);
    await live('globex');
    await theirs.next(
      (frame) => frame.event_type === 'ops_change' && frame.payload.op_id === `more-globex-${made}:span`,
    );
    expect(theirs.frames.filter(({ event_type }) => event_type === 'violation')).toEqual([]);
    await Promise.all([mine.close(), theirs.close()]);
  });
});
