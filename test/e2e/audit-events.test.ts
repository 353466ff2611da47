/** Every event that the contract names really happens, and can be found by its name (docs/spec.md, Audit). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditEvent } from '../../src/core/audit/audit.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';
import { ALLOW_ALL } from '../support/policies.ts';
import { withPostgres } from '../support/postgres.ts';

const PASSWORD = 'a horse that nobody corrects';
const TOKEN = 'crawler-token-0123456789-0123456789-0123';
const HOOK = { url: 'https://example.com/secret-path', events: ['violation'], org_id: 'acme' };
const AGENT = { org_id: 'acme', team_id: 'search', agent_id: 'crawler' };
const CHECKPOINT = {
  id: 7,
  hash: 'a'.repeat(64),
  first_id: 1,
  timestamp: '2026-03-01T12:00:00.000Z',
  signature: 'b'.repeat(86),
};

const folder = mkdtempSync(join(tmpdir(), 'svc-events-'));
const newDatabase = withPostgres();
const policies = `${ALLOW_ALL}  - { id: never, actions: ["process.exec"], resources: ["*"], effect: deny, reason: never }\n  - { id: ask, actions: [pay], effect: require_approval }\n  - { id: brief, actions: [brief], effect: require_approval, approval: { expires: 1s } }\nbudget: { agent_daily_limit_usd: 10 }\n`;

const mails: string[] = [];
const relay = new SMTPServer({
  authOptional: true,
  disabledCommands: ['STARTTLS'],
  logger: false,
  onData: (stream, _session, done) => {
    let raw = '';
    stream
      .setEncoding('utf8')
      .on('data', (text: string) => (raw += text))
      .on('end', () => (mails.push(raw.replaceAll('=\r\n', '').replaceAll('=3D', '=')), done()));
  },
});

let gateway: GatewayHere;
describe('audit events', () => {
  beforeAll(async () => {
    writeFileSync(join(folder, 'policies.yaml'), policies);
    await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
    gateway = await startGatewayHere({
      dataDir: folder,
      env: {
        SVC_POLICY_PATH: join(folder, 'policies.yaml'),
        SVC_DATABASE_URL: await newDatabase(),
        SVC_ARGON2_MEMORY_KIB: '64',
        SVC_SHUTDOWN_SECS: '1',
        SVC_SMTP_HOST: '127.0.0.1',
        SVC_SMTP_PORT: String((relay.server.address() as AddressInfo).port),
      },
    });
    await post('/api/v1/agents', { agent: AGENT, credential_token: TOKEN });
    await post('/api/v1/auth/register', { email: 'owner@example.com', password: PASSWORD });
  });
  afterAll(async () => {
    await gateway?.stop();
    await new Promise<void>((resolve) => relay.close(() => resolve()));
    rmSync(folder, { recursive: true, force: true });
  });

  const shadow = (method: 'PUT' | 'DELETE', body?: unknown) => gateway.call(method, '/api/v1/policies/shadow', body);

  async function post(path: string, body: unknown = {}, bearer: string | null = ADMIN_KEY) {
    const reply = await gateway.call('POST', path, body, bearer);
    if (reply.status >= 300) throw new Error(`${path} answered ${reply.status}: ${JSON.stringify(reply.body)}`);
    return reply;
  }

  let made = 0;
  const fresh = (): string => `n${(made += 1)}`;

  const check = async (more: object = {}): Promise<string> => {
    const { body } = await post(
      '/svc.governance.v1.PolicyService/CheckAction',
      {
        agent: AGENT,
        credentialToken: TOKEN,
        traceId: fresh(),
        spanId: 's',
        action: 'tool.call',
        resource: 'web',
        ...more,
      },
      null,
    );
    return body.opId;
  };
  /** A check that waits for an approval, and the same again. */
  const asked = async (action = 'pay') => {
    const ask = async () => {
      const subject = { agent: AGENT, credentialToken: TOKEN, traceId: fresh(), spanId: 's', action, attributes };
      return (await post('/svc.governance.v1.PolicyService/CheckAction', subject, null)).body;
    };
    const attributes = { of: fresh() };
    return { approvalId: (await ask()).approvalId as string, again: ask };
  };
  const decide = ({ approvalId }: { readonly approvalId: string }, verb: string) =>
    post(`/api/v1/approvals/${approvalId}/${verb}`, verb === 'cancel' ? {} : { reason: 'seen' });
  const control = async (...triggers: readonly string[]): Promise<void> => {
    const opId = await check();
    for (const trigger of triggers) await post(`/api/v1/ops/${opId}/${trigger}`);
  };
  const login = (email: string, password: string) =>
    gateway.call('POST', '/api/v1/auth/login', { email, password }, null);
  const createKey = async () =>
    (await post('/api/v1/iam/api-keys', { name: 'k', scopes: ['read'], org_id: 'acme' })).body;

  async function invited(): Promise<{ id: string; email: string }> {
    const { invite_token } = (await post('/api/v1/auth/invite', { email: `${fresh()}@example.com`, role: 'viewer' }))
      .body;
    return (await post('/api/v1/auth/invite/accept', { invite_token, password: PASSWORD }, null)).body.account;
  }

  async function resetPassword(): Promise<void> {
    const { email } = await invited();
    await post('/api/v1/auth/password/reset', { email }, null);
    const token = await eventually(() => {
      const found = /reset-password\/([\w-]+)/.exec(mails.find((mail) => mail.includes(email)) ?? '')?.[1];
      if (found === undefined) throw new Error(`no mail for ${email}: ${mails.join('\n')}`);
      return found;
    });
    await post('/api/v1/auth/password/reset/confirm', { reset_token: token, new_password: `${PASSWORD} again` }, null);
  }

  async function signOut(): Promise<void> {
    const cookie = (await login('owner@example.com', PASSWORD)).headers.get('set-cookie')?.split(';')[0] ?? '';
    await fetch(`${gateway.url}/api/v1/auth/logout`, { method: 'POST', headers: { cookie } });
  }

  type Row = {
    readonly provoke: () => Promise<unknown>;
    /** The expected newest entry. */
    readonly entry: object;
  };
  const OF_AGENT = { lineage: AGENT };
  const BY_AGENT = { ...OF_AGENT, actor: 'agent:acme/search/crawler' };
  const BY_KEY = { actor: expect.stringMatching(/^key:/) };

  /** All but those of a cluster and of a start, which have tests of their own. */
  const ROWS: Readonly<Record<Exclude<AuditEvent, 'GatewayForgotten' | 'SettingsChanged'>, Row>> = {
    ActionAllowed: {
      provoke: check,
      entry: {
        ...BY_AGENT,
        decision: 'allow',
        policy: 'everything',
        rule_id: 'all',
        op_id: expect.stringMatching(/:s$/),
        payload: { action: 'tool.call', resource: 'web' },
      },
    },
    ActionDenied: {
      provoke: () => check({ action: 'process.exec' }),
      entry: { ...BY_AGENT, decision: 'deny', rule_id: 'never', reason: expect.stringContaining('never') },
    },
    A2ACallIntercepted: {
      provoke: () => check({ caller: { ...AGENT, agent_id: 'planner' } }),
      entry: { ...BY_AGENT, decision: 'allow', payload: { caller: { ...AGENT, agent_id: 'planner' } } },
    },
    A2AImpersonationAttempted: {
      provoke: () => check({ agent: { ...AGENT, org_id: 'globex' } }),
      entry: {
        ...OF_AGENT,
        decision: 'deny',
        reason: expect.stringContaining('registered to a different agent'),
        payload: { claimed_org_id: 'globex' },
      },
    },
    BudgetLimitExceeded: {
      provoke: () => check({ estimatedCostUsd: 11 }),
      entry: { ...BY_AGENT, decision: 'deny', payload: { tier: 'agent', period: 'daily', limit_usd: 10 } },
    },
    OpRegistered: {
      provoke: () => post('/api/v1/ops', { op_id: `${fresh()}:s`, agent: AGENT }),
      entry: { ...OF_AGENT, ...BY_KEY },
    },
    OpPaused: { provoke: () => control('pause'), entry: { ...OF_AGENT, ...BY_KEY } },
    OpResumed: { provoke: () => control('pause', 'resume'), entry: { ...OF_AGENT, ...BY_KEY } },
    OpTerminated: { provoke: () => control('terminate'), entry: { ...OF_AGENT, ...BY_KEY } },
    OpCompleted: {
      provoke: async () =>
        post(`/api/v1/ops/${await check()}/complete`, { outcome: 'OUTCOME_FAILURE', error: 'no such page' }),
      entry: { ...OF_AGENT, ...BY_KEY, payload: { outcome: 'failure', error: 'no such page' } },
    },
    AgentRegistered: {
      provoke: () => post('/api/v1/agents', { agent: { ...AGENT, agent_id: 'late' }, parent: AGENT }),
      entry: {
        ...BY_KEY,
        lineage: { ...AGENT, agent_id: 'late' },
        payload: { rotated: false, parent: 'acme/search/crawler' },
      },
    },
    AgentDeregistered: {
      provoke: async () => {
        await post('/api/v1/agents', { agent: { ...AGENT, agent_id: 'gone' } });
        await gateway.call('DELETE', '/api/v1/agents/acme/search/gone');
      },
      entry: { ...BY_KEY, lineage: { ...AGENT, agent_id: 'gone' } },
    },
    ApiKeyCreated: {
      provoke: createKey,
      entry: {
        ...BY_KEY,
        lineage: { org_id: 'acme', team_id: null, agent_id: null },
        payload: { name: 'k', scopes: ['read'] },
      },
    },
    ApiKeyRevoked: {
      provoke: async () => post(`/iam/api-keys/${(await createKey()).id}/revoke`),
      entry: { ...BY_KEY, lineage: { org_id: 'acme', team_id: null, agent_id: null } },
    },
    TokenIssued: {
      provoke: async () => post('/api/v1/auth/token', undefined, (await createKey()).key),
      entry: { ...BY_KEY, lineage: { org_id: 'acme', team_id: null, agent_id: null } },
    },
    AccountRegistered: {
      provoke: async () => undefined,
      entry: { payload: { email: 'owner@example.com', role: 'owner' } },
    },
    LoginSucceeded: {
      provoke: () => login('owner@example.com', PASSWORD),
      entry: { actor: expect.stringMatching(/^account:/) },
    },
    LoginFailed: {
      provoke: () => login('nobody@example.com', 'not the password'),
      entry: { payload: { email: 'nobody@example.com' } },
    },
    AccountLocked: {
      provoke: async () => {
        const { email } = await invited();
        for (let attempt = 0; attempt < 5; attempt += 1) await login(email, 'not the password');
      },
      entry: { payload: { email: expect.stringContaining('@example.com') } },
    },
    InviteCreated: {
      provoke: () => post('/api/v1/auth/invite', { email: 'guest@example.com', role: 'viewer' }),
      entry: { ...BY_KEY, payload: { email: 'guest@example.com', role: 'viewer' } },
    },
    InviteAccepted: { provoke: invited, entry: { actor: expect.stringMatching(/^account:/) } },
    InviteRevoked: {
      provoke: async () => {
        await post('/api/v1/auth/invite', { email: 'never@example.com', role: 'viewer', org_id: 'acme' });
        const { invites } = (await gateway.call('GET', '/api/v1/auth/invites')).body;
        await post(
          `/api/v1/auth/invites/${invites.find(({ email }: { email: string }) => email === 'never@example.com').id}/revoke`,
        );
      },
      entry: {
        ...BY_KEY,
        lineage: { org_id: 'acme', team_id: null, agent_id: null },
        payload: { email: 'never@example.com', role: 'viewer' },
      },
    },
    PasswordResetRequested: {
      provoke: () => post('/api/v1/auth/password/reset', { email: 'owner@example.com' }, null),
      entry: {},
    },
    PasswordResetCompleted: { provoke: resetPassword, entry: { actor: expect.stringMatching(/^account:/) } },
    SessionRevoked: { provoke: signOut, entry: { actor: expect.stringMatching(/^account:/) } },
    AccountRoleChanged: {
      provoke: async () => post(`/api/v1/accounts/${(await invited()).id}/role`, { role: 'developer' }),
      entry: BY_KEY,
    },
    AccountDisabled: { provoke: async () => post(`/api/v1/accounts/${(await invited()).id}/disable`), entry: BY_KEY },
    AccountEnabled: {
      provoke: async () => {
        const { id } = await invited();
        await post(`/api/v1/accounts/${id}/disable`);
        await post(`/api/v1/accounts/${id}/enable`);
      },
      entry: BY_KEY,
    },
    AccountUnlocked: {
      provoke: async () => {
        const { id, email } = await invited();
        for (let attempt = 0; attempt < 5; attempt += 1) await login(email, 'not the password');
        await post(`/api/v1/accounts/${id}/unlock`);
      },
      entry: BY_KEY,
    },
    HaltCreated: {
      provoke: () => post('/api/v1/halts', { scope: 'org:globex', reason: 'drill' }),
      entry: { ...BY_KEY, reason: 'drill', lineage: { org_id: 'globex', team_id: null, agent_id: null } },
    },
    HaltReleased: {
      provoke: async () => {
        const made = await post('/api/v1/halts', { scope: 'org:globex', reason: 'drill' });
        await post(`/api/v1/halts/${made.body.halt.id}/release`, { reason: 'over' });
      },
      entry: { ...BY_KEY, reason: 'over', payload: { scope: 'org:globex', mode: 'terminate' } },
    },
    WebhookCreated: {
      provoke: () => post('/api/v1/webhooks', HOOK),
      entry: { ...BY_KEY, lineage: { org_id: 'acme' }, payload: { host: 'example.com', events: ['violation'] } },
    },
    WebhookDeleted: {
      provoke: async () => {
        const made = await post('/api/v1/webhooks', HOOK);
        await gateway.call('DELETE', `/api/v1/webhooks/${made.body.id}`);
      },
      entry: { ...BY_KEY, lineage: { org_id: 'acme' }, payload: { host: 'example.com' } },
    },
    WebhookTakenOver: {
      provoke: async () => {
        const key = await post('/api/v1/iam/api-keys', { name: 'hooks', scopes: ['admin'] });
        const made = await gateway.call('POST', '/api/v1/webhooks', HOOK, key.body.key);
        await post(`/api/v1/webhooks/${made.body.id}/take-over`);
      },
      entry: {
        ...BY_KEY,
        lineage: { org_id: 'acme' },
        payload: { host: 'example.com', events: ['violation'], from: expect.stringMatching(/^key:/) },
      },
    },
    CheckpointWitnessed: {
      provoke: () => post('/api/v1/audit/witness', CHECKPOINT),
      entry: { ...BY_KEY, lineage: { org_id: null, team_id: null, agent_id: null }, reason: null, payload: CHECKPOINT },
    },
    ApprovalRequested: {
      provoke: () => asked(),
      entry: { actor: 'agent:acme/search/crawler', policy: 'everything', rule_id: 'ask', decision: null },
    },
    ApprovalApproved: { provoke: async () => decide(await asked(), 'approve'), entry: { ...BY_KEY, reason: 'seen' } },
    ApprovalDenied: { provoke: async () => decide(await asked(), 'deny'), entry: { ...BY_KEY, reason: 'seen' } },
    ApprovalExpired: {
      provoke: () => asked('brief'),
      entry: { actor: 'gateway', rule_id: 'brief', decision: null },
    },
    ApprovalCancelled: { provoke: async () => decide(await asked(), 'cancel'), entry: BY_KEY },
    ApprovalUsed: {
      provoke: async () => {
        const { approvalId, again } = await asked();
        await decide({ approvalId }, 'approve');
        await again();
      },
      entry: { actor: 'agent:acme/search/crawler', rule_id: 'ask' },
    },
    PolicyShadowStarted: {
      provoke: () => shadow('PUT', { files: [], expires_in_secs: 60 }),
      entry: { ...BY_KEY, lineage: { org_id: null, team_id: null, agent_id: null }, payload: { documents: 0 } },
    },
    PolicyShadowEnded: {
      provoke: async () => {
        await shadow('PUT', { files: [] });
        await shadow('DELETE');
      },
      entry: { ...BY_KEY, lineage: { org_id: null, team_id: null, agent_id: null }, payload: { ending: 'stopped' } },
    },
    PolicyReloaded: {
      provoke: () => post('/api/v1/policies/reload'),
      entry: { ...BY_KEY, lineage: { org_id: null, team_id: null, agent_id: null } },
    },
  };

  test.each(Object.keys(ROWS) as (keyof typeof ROWS)[])(
    '%s is recorded once it has happened, and found by its name',
    async (event) => {
      const { provoke, entry } = ROWS[event];
      const before = new Date(Date.now() - (event === 'AccountRegistered' ? 60_000 : 5)).toISOString();
      await provoke();
      const find = async () =>
        (await gateway.call('GET', `/api/v1/logs?event_type=${event}&since=${before}`)).body.entries;
      const entries = await eventually(async () => {
        const found = await find();
        expect(found.length).toBeGreaterThan(0);
        return found;
      });
      expect(entries[0]).toMatchObject({ event_type: event, ...entry });
      expect(Object.keys(entries[0])).toEqual([
        'id',
        'timestamp',
        'event_type',
        'lineage',
        'op_id',
        'decision',
        'reason',
        'policy',
        'rule_id',
        'cause',
        'actor',
        'payload',
        'prev_hash',
        'hash',
      ]);
    },
  );

  test('no secret, presented or issued, is in the log', async () => {
    const text = await (
      await fetch(`${gateway.url}/api/v1/logs/export`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
    ).text();
    for (const secret of [PASSWORD, TOKEN, ADMIN_KEY, 'eyJ']) expect(text).not.toContain(secret);
  });
});
