import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { templateOf } from '../../src/doors/api/openapi.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { withPostgres } from '../support/postgres.ts';
import { nameOf, ROWS } from '../support/routes.ts';

const newDatabase = withPostgres();

/** Who asks, in the order of the table's columns. `other`: an admin of another org than the things asked for. */
const CALLERS = ['none', 'garbage', 'expired', 'revoked', 'other', 'read', 'write', 'admin'] as const;

const PUBLIC = (status: number): readonly number[] => CALLERS.map(() => status);
const scoped = (other: number, read: number, write: number, admin: number): readonly number[] => [
  401,
  401,
  401,
  401,
  other,
  read,
  write,
  admin,
];

/** The answer of each row to each caller. A new row of the API has no place here yet, and fails the first test. */
const STATUS: Readonly<Record<string, readonly number[]>> = {
  'post /api/v1/auth/token': [401, 401, 401, 401, 200, 200, 200, 200],
  'get /api/v1/iam/api-keys/self': scoped(200, 200, 200, 200),
  'post /api/v1/iam/api-keys': scoped(403, 403, 403, 201),
  'get /api/v1/iam/api-keys': scoped(403, 403, 403, 200),
  'post /api/v1/iam/api-keys/:id/revoke': scoped(404, 403, 403, 204),
  'post /iam/api-keys': scoped(403, 403, 403, 201),
  'get /iam/api-keys': scoped(403, 403, 403, 200),
  'post /iam/api-keys/:id/revoke': scoped(404, 403, 403, 204),
  'post /api/v1/iam/signing-keys/rotate': scoped(403, 403, 403, 200),
  'get /.well-known/jwks.json': PUBLIC(200),
  'get /api/v1/auth/methods': PUBLIC(200),
  'post /api/v1/auth/register': PUBLIC(403), // closed: there is an owner
  'post /api/v1/auth/login': PUBLIC(200),
  'post /api/v1/auth/refresh': PUBLIC(401), // no cookie
  'post /api/v1/auth/logout': PUBLIC(204),
  'post /api/v1/auth/invite': scoped(403, 403, 403, 201),
  'post /api/v1/auth/invite/accept': PUBLIC(422), // no such invite
  'get /api/v1/auth/invites': scoped(200, 403, 403, 200),
  'post /api/v1/auth/invites/:id/revoke': scoped(404, 403, 403, 204),
  'post /api/v1/auth/password/reset': PUBLIC(202),
  'post /api/v1/auth/password/reset/confirm': PUBLIC(422), // no such token
  'get /api/v1/auth/me': scoped(404, 404, 404, 404), // a key is no account
  'post /api/v1/auth/sessions/revoke': scoped(404, 403, 403, 404), // likewise
  'get /api/v1/accounts': scoped(200, 403, 403, 200),
  'get /api/v1/accounts/:id': scoped(404, 403, 403, 200),
  'post /api/v1/accounts/:id/role': scoped(404, 403, 403, 200),
  'post /api/v1/accounts/:id/disable': scoped(404, 403, 403, 200),
  'post /api/v1/accounts/:id/enable': scoped(404, 403, 403, 200),
  'post /api/v1/accounts/:id/unlock': scoped(404, 403, 403, 200),
  'post /api/v1/accounts/:id/reset': scoped(404, 403, 403, 200),
  'post /api/v1/accounts/:id/sessions/revoke': scoped(404, 403, 403, 204),
  'post /api/v1/ops': scoped(403, 403, 201, 201),
  'get /api/v1/ops': scoped(403, 200, 200, 200),
  'get /api/v1/ops/:id': scoped(404, 200, 200, 200),
  'post /api/v1/ops/:id/pause': scoped(404, 403, 200, 200),
  'post /api/v1/ops/:id/resume': scoped(404, 403, 200, 200),
  'post /api/v1/ops/:id/terminate': scoped(404, 403, 200, 200),
  'post /api/v1/ops/:id/complete': scoped(404, 403, 200, 200),
  'post /api/v1/agents': scoped(403, 403, 201, 201),
  'get /api/v1/agents': scoped(403, 200, 200, 200),
  'get /api/v1/agents/self': scoped(404, 404, 404, 404), // a key is no agent
  'post /api/v1/agents/self/refusals': scoped(200, 403, 200, 200),
  'delete /api/v1/agents/:org/:team/:agent': scoped(404, 403, 204, 204),
  'post /api/v1/usage': scoped(403, 403, 200, 200),
  'get /api/v1/budgets': scoped(403, 200, 200, 200),
  'get /api/v1/limits': scoped(403, 200, 200, 200),
  'get /api/v1/prices': scoped(200, 200, 200, 200),
  'get /api/v1/approvals': scoped(200, 200, 200, 200),
  'get /api/v1/approvals/:id': scoped(404, 404, 404, 404),
  'post /api/v1/approvals/:id/approve': scoped(404, 404, 404, 404),
  'post /api/v1/approvals/:id/deny': scoped(404, 404, 404, 404),
  'post /api/v1/approvals/:id/cancel': scoped(404, 403, 404, 404),
  'get /api/v1/cluster': scoped(404, 404, 404, 404), // it is alone
  'post /api/v1/cluster/forget': scoped(404, 403, 403, 404),
  'post /api/v1/halts': scoped(403, 403, 403, 201),
  'get /api/v1/halts': scoped(200, 200, 200, 200),
  'post /api/v1/halts/:id/release': scoped(404, 403, 403, 200),
  'post /api/v1/webhooks': scoped(403, 403, 403, 201),
  'get /api/v1/webhooks': scoped(200, 403, 403, 200),
  'get /api/v1/webhooks/:id': scoped(404, 403, 403, 200),
  'delete /api/v1/webhooks/:id': scoped(404, 403, 403, 204),
  'post /api/v1/webhooks/:id/test': scoped(404, 403, 403, 202),
  'post /api/v1/webhooks/:id/take-over': scoped(404, 403, 403, 200),
  'get /api/v1/policies': scoped(200, 200, 200, 200),
  'get /api/v1/policies/rules': scoped(200, 200, 200, 200),
  'post /api/v1/policies/explain': scoped(403, 200, 200, 200),
  'post /api/v1/policies/reload': scoped(403, 403, 403, 200),
  'post /api/v1/policies': scoped(404, 403, 403, 404), // it is alone
  // A set of policies holds for every org.
  'get /api/v1/policies/versions': scoped(403, 200, 200, 200),
  'get /api/v1/policies/versions/:version': scoped(403, 404, 404, 404), // there is no such version
  'get /api/v1/policies/diff': scoped(403, 404, 404, 404), // likewise
  'put /api/v1/policies/shadow': scoped(403, 403, 403, 200),
  'get /api/v1/policies/shadow': scoped(403, 200, 200, 200),
  'delete /api/v1/policies/shadow': scoped(403, 403, 403, 204),
  'post /api/v1/policies/replay': scoped(403, 403, 403, 200),
  'post /api/v1/auth/ws-ticket': scoped(200, 200, 200, 200),
  'get /api/v1/stream': scoped(426, 426, 426, 426), // no handshake
  'get /api/v1/stats': scoped(403, 200, 200, 200),
  'get /api/v1/changes': scoped(403, 200, 200, 200),
  'get /api/v1/logs': scoped(403, 200, 200, 200),
  'get /api/v1/logs/export': scoped(403, 200, 200, 200),
  'post /api/v1/audit/witness': scoped(201, 403, 201, 201),
  'get /api/v1/audit/sinks': scoped(403, 200, 200, 200),
  'post /api/v1/audit/sinks/:name/test': scoped(403, 403, 403, 404), // there are none
  'post /api/v1/audit/sinks/:name/replay': scoped(403, 403, 403, 404),
  'get /api/v1/topology/overview': scoped(403, 200, 200, 200),
  'get /api/v1/topology/tree': scoped(403, 200, 200, 200),
  'get /api/v1/topology/stats': scoped(403, 200, 200, 200),
  'get /api/v1/topology/team/:team_id': scoped(404, 200, 200, 200),
  'get /api/v1/topology/lineage/:agent_id': scoped(404, 200, 200, 200),
  'get /healthz': PUBLIC(200),
  'get /readyz': PUBLIC(200),
  'get /metrics': PUBLIC(200), // on loopback
  // A key must say for which agent it speaks.
  'post /api/v1/hooks/claude-code': [401, 401, 401, 401, 400, 403, 400, 400],
  'post /api/v1/hooks/codex': [401, 401, 401, 401, 400, 403, 400, 400],
  'post /api/v1/hooks/cursor': [401, 401, 401, 401, 400, 403, 400, 400],
  'post /api/v1/hooks/copilot': [401, 401, 401, 401, 400, 403, 400, 400],
  'post /api/v1/hooks/gemini': [401, 401, 401, 401, 400, 403, 400, 400],
  'get /openapi.json': PUBLIC(200),
  'post /access/v1/evaluation': scoped(200, 403, 200, 200),
  'post /access/v1/evaluations': scoped(200, 403, 200, 200),
  'get /.well-known/authzen-configuration': PUBLIC(200),
  'post /v1/data/svc/authz/decision': scoped(200, 403, 200, 200),
  'post /v1/agent-hooks/intercept': scoped(200, 403, 200, 200),
};

let gateway: TestGateway;
/** `/openapi.json`. */
let api: any;
const bearers = {} as Record<(typeof CALLERS)[number], string | null>;
const AGENT = { org_id: 'acme', team_id: 'search', agent_id: 'crawler' };
const EVALUATION = {
  subject: { type: 'agent', id: 'acme/search/crawler' },
  action: { name: 'tool.call' },
  resource: { type: 'tool', id: 'web_search' },
};
let made = 0;
const fresh = (word: string): string => `${word}-${(made += 1)}`;

describe('routes', () => {
  beforeAll(async () => {
    gateway = await startTestGateway({ env: { SVC_DATABASE_URL: await newDatabase(), SVC_ARGON2_MEMORY_KIB: '64' } });
    const mint = async (more: object) =>
      (await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'test', scopes: ['admin'], ...more })).body;
    const expiring = await mint({ expires_at: new Date(Date.now() + 4_000).toISOString() });
    const revoked = await mint({});
    await gateway.call('POST', `/api/v1/iam/api-keys/${revoked.id}/revoke`);
    Object.assign(bearers, {
      none: null,
      garbage: 'svc_not_a_key',
      expired: expiring.key,
      revoked: revoked.key,
      other: (await mint({ org_id: 'globex' })).key,
      read: (await mint({ scopes: ['read'] })).key,
      write: (await mint({ scopes: ['write'] })).key,
      admin: ADMIN_KEY,
    });
    await gateway.call('POST', '/api/v1/auth/register', {
      email: 'owner@example.com',
      password: 'a horse that nobody corrects',
    });
    await gateway.call('POST', '/api/v1/agents', { agent: AGENT });
    api = (await gateway.call('GET', '/openapi.json')).body;
    await eventually(async () =>
      expect((await gateway.call('GET', '/api/v1/ops', undefined, expiring.key)).status).toBe(401),
    );
  });
  afterAll(async () => {
    await gateway.stop();
  });

  type Sample = { readonly path: string; readonly body?: unknown };

  async function op(...steps: readonly string[]): Promise<string> {
    const traceId = fresh('trace');
    if (steps.length === 0) {
      await gateway.call('POST', '/api/v1/ops', { op_id: `${traceId}:s`, agent: AGENT });
      return `${traceId}:s`;
    }
    const agent = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
    await gateway.call('POST', '/svc.governance.v1.PolicyService/CheckAction', {
      agent,
      traceId,
      spanId: 's',
      action: 'tool.call',
      resource: 'web_search',
    });
    for (const step of steps.slice(1)) await gateway.call('POST', `/api/v1/ops/${traceId}:s/${step}`);
    return `${traceId}:s`;
  }

  async function haltId(): Promise<string> {
    const halt = { scope: 'org:elsewhere', reason: 'test' };
    return (await gateway.call('POST', '/api/v1/halts', halt)).body.halt.id;
  }

  /** Each in an org of its own, which may have only so many. */
  const newHook = () => ({ url: 'https://example.com/', events: ['violation'], org_id: fresh('org') });

  async function hookPath(): Promise<string> {
    return `/api/v1/webhooks/${(await gateway.call('POST', '/api/v1/webhooks', newHook())).body.id}`;
  }

  async function keyId(): Promise<string> {
    return (await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'victim', scopes: ['read'], org_id: 'acme' }))
      .body.id;
  }

  async function accountId(): Promise<string> {
    const email = `${fresh('person')}@example.com`;
    const { invite_token } = (
      await gateway.call('POST', '/api/v1/auth/invite', { email, role: 'viewer', org_id: 'acme' })
    ).body;
    return (
      await gateway.call('POST', '/api/v1/auth/invite/accept', {
        invite_token,
        password: 'a horse that nobody corrects',
      })
    ).body.account.id;
  }

  async function inviteId(): Promise<string> {
    const email = `${fresh('guest')}@example.com`;
    await gateway.call('POST', '/api/v1/auth/invite', { email, role: 'viewer', org_id: 'acme' });
    return (await gateway.call('GET', '/api/v1/auth/invites?per_page=1000')).body.invites.find(
      (invite: { email: string }) => invite.email === email,
    ).id;
  }

  /** A request that each row accepts, about things of the org acme; made anew for every call. */
  const SAMPLES: Readonly<Record<string, () => Promise<Sample> | Sample>> = {
    'get /api/v1/iam/api-keys/self': () => ({ path: '/api/v1/iam/api-keys/self' }),
    'post /api/v1/iam/api-keys': () => ({
      path: '/api/v1/iam/api-keys',
      body: { name: 'k', scopes: ['read'], org_id: 'acme' },
    }),
    'get /api/v1/iam/api-keys': () => ({ path: '/api/v1/iam/api-keys?org_id=acme' }),
    'post /api/v1/iam/api-keys/:id/revoke': async () => ({ path: `/api/v1/iam/api-keys/${await keyId()}/revoke` }),
    'post /iam/api-keys': () => ({ path: '/iam/api-keys', body: { name: 'k', scopes: ['read'], org_id: 'acme' } }),
    'get /iam/api-keys': () => ({ path: '/iam/api-keys?org_id=acme' }),
    'post /iam/api-keys/:id/revoke': async () => ({ path: `/iam/api-keys/${await keyId()}/revoke` }),
    'post /api/v1/auth/register': () => ({
      path: '/api/v1/auth/register',
      body: { email: 'late@example.com', password: 'a horse that nobody corrects' },
    }),
    'post /api/v1/auth/login': () => ({
      path: '/api/v1/auth/login',
      body: { email: 'owner@example.com', password: 'a horse that nobody corrects' },
    }),
    'post /api/v1/auth/invite': () => ({
      path: '/api/v1/auth/invite',
      body: { email: `${fresh('guest')}@example.com`, role: 'viewer', org_id: 'acme' },
    }),
    'post /api/v1/auth/invite/accept': () => ({
      path: '/api/v1/auth/invite/accept',
      body: { invite_token: 'none', password: 'a horse that nobody corrects' },
    }),
    'get /api/v1/auth/invites': () => ({ path: '/api/v1/auth/invites' }),
    'post /api/v1/auth/invites/:id/revoke': async () => ({ path: `/api/v1/auth/invites/${await inviteId()}/revoke` }),
    'post /api/v1/auth/password/reset': () => ({
      path: '/api/v1/auth/password/reset',
      body: { email: 'nobody@example.com' },
    }),
    'post /api/v1/auth/password/reset/confirm': () => ({
      path: '/api/v1/auth/password/reset/confirm',
      body: { reset_token: 'none', new_password: 'a horse that nobody corrects' },
    }),
    'get /api/v1/accounts/:id': async () => ({ path: `/api/v1/accounts/${await accountId()}` }),
    'post /api/v1/accounts/:id/role': async () => ({
      path: `/api/v1/accounts/${await accountId()}/role`,
      body: { role: 'viewer' },
    }),
    'post /api/v1/accounts/:id/disable': async () => ({ path: `/api/v1/accounts/${await accountId()}/disable` }),
    'post /api/v1/accounts/:id/enable': async () => ({ path: `/api/v1/accounts/${await accountId()}/enable` }),
    'post /api/v1/accounts/:id/reset': async () => ({ path: `/api/v1/accounts/${await accountId()}/reset` }),
    'post /api/v1/accounts/:id/unlock': async () => ({ path: `/api/v1/accounts/${await accountId()}/unlock` }),
    'post /api/v1/accounts/:id/sessions/revoke': async () => ({
      path: `/api/v1/accounts/${await accountId()}/sessions/revoke`,
    }),
    'post /api/v1/ops': () => ({ path: '/api/v1/ops', body: { op_id: `${fresh('trace')}:s`, agent: AGENT } }),
    'get /api/v1/ops': () => ({ path: '/api/v1/ops?org_id=acme' }),
    'post /api/v1/approvals/:id/approve': async () => ({
      path: '/api/v1/approvals/none/approve',
      body: { reason: 'x' },
    }),
    'post /api/v1/approvals/:id/deny': async () => ({ path: '/api/v1/approvals/none/deny', body: { reason: 'x' } }),
    'post /api/v1/cluster/forget': () => ({ path: '/api/v1/cluster/forget', body: { name: 'none' } }),
    'post /api/v1/policies': () => ({ path: '/api/v1/policies', body: { files: [] } }),
    'get /api/v1/policies/versions/:version': () => ({ path: '/api/v1/policies/versions/none' }),
    'get /api/v1/policies/diff': () => ({ path: '/api/v1/policies/diff?from=none' }),
    'put /api/v1/policies/shadow': () => ({ path: '/api/v1/policies/shadow', body: { files: [] } }),
    'post /api/v1/policies/replay': () => ({ path: '/api/v1/policies/replay', body: { files: [] } }),
    'post /api/v1/halts': async () => ({ path: '/api/v1/halts', body: { scope: 'org:elsewhere', reason: 'test' } }),
    'post /api/v1/halts/:id/release': async () => ({
      path: `/api/v1/halts/${await haltId()}/release`,
      body: { reason: 'test' },
    }),
    'post /api/v1/webhooks': () => ({ path: '/api/v1/webhooks', body: newHook() }),
    'get /api/v1/webhooks/:id': async () => ({ path: await hookPath() }),
    'delete /api/v1/webhooks/:id': async () => ({ path: await hookPath() }),
    'post /api/v1/webhooks/:id/test': async () => ({ path: `${await hookPath()}/test` }),
    'post /api/v1/webhooks/:id/take-over': async () => ({ path: `${await hookPath()}/take-over` }),
    'get /api/v1/ops/:id': async () => ({ path: `/api/v1/ops/${await op()}` }),
    'post /api/v1/ops/:id/pause': async () => ({ path: `/api/v1/ops/${await op('check')}/pause` }),
    'post /api/v1/ops/:id/resume': async () => ({ path: `/api/v1/ops/${await op('check', 'pause')}/resume` }),
    'post /api/v1/ops/:id/terminate': async () => ({ path: `/api/v1/ops/${await op('check')}/terminate` }),
    'post /api/v1/ops/:id/complete': async () => ({ path: `/api/v1/ops/${await op('check')}/complete` }),
    'post /api/v1/agents': () => ({ path: '/api/v1/agents', body: { agent: { ...AGENT, agent_id: fresh('agent') } } }),
    'get /api/v1/agents': () => ({ path: '/api/v1/agents?org_id=acme' }),
    'delete /api/v1/agents/:org/:team/:agent': async () => {
      const agent_id = fresh('agent');
      await gateway.call('POST', '/api/v1/agents', { agent: { ...AGENT, agent_id } });
      return { path: `/api/v1/agents/acme/search/${agent_id}` };
    },
    'post /api/v1/usage': () => ({ path: '/api/v1/usage', body: { agent: AGENT, cost_usd: 0.01 } }),
    'get /api/v1/prices': () => ({ path: '/api/v1/prices?model=gpt-4o' }),
    'get /api/v1/limits': () => ({ path: '/api/v1/limits?org_id=acme' }),
    'get /api/v1/budgets': () => ({ path: '/api/v1/budgets?org_id=acme' }),
    'post /api/v1/policies/explain': () => ({
      path: '/api/v1/policies/explain',
      body: { agent: AGENT, action: 'tool.call', resource: 'web_search' },
    }),
    'get /api/v1/stats': () => ({ path: '/api/v1/stats?org_id=acme' }),
    'get /api/v1/changes': () => ({ path: '/api/v1/changes?org_id=acme' }),
    'get /api/v1/logs': () => ({ path: '/api/v1/logs?org_id=acme' }),
    'get /api/v1/logs/export': () => ({ path: '/api/v1/logs/export?org_id=acme' }),
    'post /api/v1/audit/witness': () => ({
      path: '/api/v1/audit/witness',
      body: { id: 7, hash: 'a'.repeat(64), timestamp: '2026-03-01T12:00:00.000Z', signature: 'b'.repeat(86) },
    }),
    'post /api/v1/audit/sinks/:name/replay': () => ({ path: '/api/v1/audit/sinks/none/replay', body: { from: 1 } }),
    'get /api/v1/topology/overview': () => ({ path: '/api/v1/topology/overview?org_id=acme' }),
    'get /api/v1/topology/tree': () => ({ path: '/api/v1/topology/tree?org_id=acme' }),
    'get /api/v1/topology/stats': () => ({ path: '/api/v1/topology/stats?org_id=acme' }),
    'get /api/v1/topology/team/:team_id': () => ({ path: '/api/v1/topology/team/search' }),
    'get /api/v1/topology/lineage/:agent_id': () => ({ path: '/api/v1/topology/lineage/crawler' }),
    'post /access/v1/evaluation': () => ({ path: '/access/v1/evaluation', body: EVALUATION }),
    'post /access/v1/evaluations': () => ({
      path: '/access/v1/evaluations',
      body: { ...EVALUATION, evaluations: [{}, { action: {} }] },
    }),
    'post /api/v1/agents/self/refusals': () => ({
      path: '/api/v1/agents/self/refusals',
      body: { action: 'mcp.call', resource: 'files/read', reason: 'params.arguments must be an object' },
    }),
    'post /v1/data/svc/authz/decision': () => ({
      path: '/v1/data/svc/authz/decision',
      body: { input: { tool: { name: 'web_search' } } },
    }),
    'post /v1/agent-hooks/intercept': () => ({
      path: '/v1/agent-hooks/intercept',
      body: {
        spec: 'agent-hooks/0.1',
        interception_point: 'pre_tool_call',
        timestamp: '2026-11-28T00:00:00Z',
        sequence: 1,
        agent: { id: 'a', framework: 'x' },
        session: { id: 's' },
        tool_call: { id: 'c', name: 'web_search', args: {} },
        target: {},
      },
    }),
  };

  const atReference = (part: any): any =>
    part.$ref === undefined
      ? part
      : part.$ref
          .slice(2)
          .split('/')
          .reduce((at: any, step: string) => at[step], api);

  test('the table covers every row of the API and each caller, and no others', () => {
    expect(Object.keys(STATUS).sort()).toEqual(ROWS.map(nameOf).sort());
  });

  test.each(ROWS.map((row) => ({ name: nameOf(row), row })))(
    '$name answers each caller as the table and its description say',
    async ({ name, row }) => {
      const { responses } = api.paths[templateOf(row.path)][row.method];
      const statuses: number[] = [];
      for (const caller of CALLERS) {
        const { path, body } = await (SAMPLES[name]?.() ?? { path: row.path });
        const reply = await gateway.call(row.method.toUpperCase(), path, body, bearers[caller]);
        statuses.push(reply.status);
        expect(Object.keys(responses)).toContain(String(reply.status));
        const response = atReference(responses[reply.status]);
        expect(Object.keys(response.headers ?? {})).toEqual(
          expect.arrayContaining(Object.keys(api.components.headers).filter((name) => reply.headers.has(name))),
        );
        const answer = row.answers?.[reply.status];
        if (answer !== undefined && typeof answer === 'object' && 'safeParse' in answer)
          expect((answer as z.ZodType).safeParse(reply.body).error).toBeUndefined();
        if (answer === 'empty') expect(reply.body).toBe('');
        if (reply.status >= 400 && row.failure !== undefined) expect(row.failure.parse(reply.body)).toBeDefined();
        else if (reply.status >= 400) {
          expect(reply.headers.get('content-type')).toBe('application/problem+json');
          expect(reply.body).toMatchObject({
            status: reply.status,
            code: expect.any(String),
            detail: expect.any(String),
          });
          expect(Object.keys(api.components.schemas.Problem.properties)).toEqual(
            expect.arrayContaining(Object.keys(reply.body)),
          );
        }
      }
      expect(statuses).toEqual(STATUS[name]);
    },
  );
});
