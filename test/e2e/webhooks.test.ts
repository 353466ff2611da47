/** Webhooks of a real gateway, with real receivers (docs/webhooks.md). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { ALLOW_ALL, type PolicyFile, policyFile } from '../support/policies.ts';
import { answered, isSigned, type Receiver, startReceiver } from '../support/receiver.ts';

const POLICIES = `${ALLOW_ALL}  - { id: ask, actions: [pay], effect: require_approval }
budget: { org_daily_limit_usd: 10 }
`;
const folder = mkdtempSync(join(tmpdir(), 'svc-webhooks-'));
let policies: PolicyFile;
let gateway: TestGateway;
let tokens: Record<string, string>;
let org = 0;

const start = (): Promise<TestGateway> =>
  startTestGateway({
    dataDir: folder,
    env: { SVC_POLICY_PATH: policies.path, SVC_WEBHOOKS_ALLOW_PRIVATE: '1', SVC_IO_THREADS: '1' },
  });

/** Each test has an org of its own: an agent, and what happens to it. */
async function newOrg() {
  const orgId = `org-${(org += 1)}`;
  const agent = { org_id: orgId, team_id: 'team', agent_id: 'agent' };
  tokens[orgId] = (await gateway.call('POST', '/api/v1/agents', { agent })).body.credential_token;
  let spans = 0;
  return {
    orgId,
    agent,
    check: async (fields: object = {}) =>
      (
        await gateway.call(
          'POST',
          '/svc.governance.v1.PolicyService/CheckAction',
          {
            agent: { orgId, teamId: 'team', agentId: 'agent' },
            credentialToken: tokens[orgId],
            traceId: orgId,
            spanId: `s${(spans += 1)}`,
            action: 'tool.call',
            resource: 'web',
            ...fields,
          },
          null,
        )
      ).body,
    halt: (reason = 'drill') =>
      gateway.call('POST', '/api/v1/halts', { scope: `org:${orgId}`, reason, actions: ['never'] }),
    use: (costUsd: number) => gateway.call('POST', '/api/v1/usage', { agent, cost_usd: costUsd }),
  };
}

async function newReceiver(port?: number): Promise<Receiver> {
  const receiver = await startReceiver(port);
  onTestFinished(() => receiver.close());
  return receiver;
}

const hook = async (url: string, events: readonly string[], orgId?: string) => {
  const made = await gateway.call('POST', '/api/v1/webhooks', { url, events, ...(orgId && { org_id: orgId }) });
  expect(made.status).toBe(201);
  return made.body;
};

describe('webhooks', () => {
  beforeAll(async () => {
    policies = policyFile(POLICIES, afterAll);
    tokens = {};
    gateway = await start();
  });
  afterAll(async () => {
    await gateway.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('are created with a secret that is shown once, tested, listed and deleted', async () => {
    const receiver = await newReceiver();
    const { orgId } = await newOrg();
    const { secret, ...made } = await hook(receiver.url, ['violation', 'violation'], orgId);
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(made).toEqual({
      id: expect.any(String),
      url: receiver.url,
      events: ['violation'],
      org_id: orgId,
      created_by: expect.stringMatching(/^key:/),
      created_at: expect.stringMatching(/Z$/),
      waiting: 0,
      dropped: 0,
      failing_since: null,
      last_error: null,
      disabled_at: null,
    });
    const tested = await gateway.call('POST', `/api/v1/webhooks/${made.id}/test`);
    expect(tested).toMatchObject({ status: 202, body: { message_id: expect.stringMatching(/^msg_/) } });
    const [call] = await eventually(() => (expect(receiver.received.length).toBe(1), receiver.received));
    expect(isSigned(call!, secret)).toBe(true);
    expect(call!.id).toBe(tested.body.message_id);
    expect(Math.abs(Number(call!.timestamp) - Date.now() / 1000)).toBeLessThan(30);
    expect(JSON.parse(call!.body)).toEqual({
      type: 'webhook.test',
      timestamp: expect.stringMatching(/Z$/),
      data: { webhook_id: made.id, org_id: orgId },
    });
    const listed = await eventually(async () => {
      const answer = await gateway.call('GET', `/api/v1/webhooks?org_id=${orgId}`);
      expect(answer.body).toEqual({ webhooks: [made], next_cursor: null });
      return answer;
    });
    expect(JSON.stringify(listed.body)).not.toContain(secret.slice('whsec_'.length));
    expect((await gateway.call('DELETE', `/api/v1/webhooks/${made.id}`)).status).toBe(204);
    expect((await gateway.call('GET', `/api/v1/webhooks/${made.id}`)).status).toBe(404);
  });

  test('end with the key that made them, unless an admin has taken them over', async () => {
    const { orgId } = await newOrg();
    const newKey = async (org_id: string, bearer?: string) =>
      (await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'k', scopes: ['admin'], org_id }, bearer)).body;
    const body = { url: 'https://example.com/hook', events: ['violation'] };
    const create = async (bearer: string) => (await gateway.call('POST', '/api/v1/webhooks', body, bearer)).body.id;
    const leaked = await newKey(orgId);
    const child = await newKey(orgId, leaked.key);
    const stranger = await newKey('elsewhere');
    const colleague = await newKey(orgId);
    const [own, ofChild, taken] = [await create(leaked.key), await create(child.key), await create(leaked.key)];
    const idsOf = async (query: string) =>
      (await gateway.call('GET', `/api/v1/webhooks?${query}`)).body.webhooks.map(({ id }: { id: string }) => id);
    const refused = await gateway.call('POST', `/api/v1/webhooks/${taken}/take-over`, undefined, stranger.key);
    expect([refused.status, refused.body.code]).toEqual([404, 'not_found']);
    const { status, body: answer } = await gateway.call(
      'POST',
      `/api/v1/webhooks/${taken}/take-over`,
      undefined,
      colleague.key,
    );
    expect([status, answer.webhook]).toMatchObject([200, { id: taken, created_by: `key:${colleague.id}` }]);
    expect(await idsOf(`made_by=key:${leaked.id}`)).toEqual([ofChild, own]);

    const kept = await gateway.call('POST', `/api/v1/iam/api-keys/${leaked.id}/revoke?cascade=false`);
    expect(kept.headers.get('svc-kept-webhooks')).toBe(own);
    const revoked = await gateway.call('POST', `/api/v1/iam/api-keys/${leaked.id}/revoke`);
    expect(revoked.headers.get('svc-deleted-webhooks')?.split(', ').sort()).toEqual([own, ofChild].sort());
    expect(await idsOf(`org_id=${orgId}`)).toEqual([taken]);
    const changes = (await gateway.call('GET', `/api/v1/changes?org_id=${orgId}`)).body.changes;
    expect(changes.flatMap(({ kind, summary }: any) => (kind === 'webhook' ? [summary] : []))).toEqual([
      `webhook to example.com deleted of org ${orgId}`,
      `webhook to example.com deleted of org ${orgId}`,
      `webhook to example.com of org ${orgId} taken over from key:${leaked.id}`,
      `webhook to example.com created of org ${orgId}`,
      `webhook to example.com created of org ${orgId}`,
      `webhook to example.com created of org ${orgId}`,
    ]);
  });

  test.each([
    [{ url: 'http://127.0.0.1/', events: [] }, 'events'],
    [{ url: 'http://127.0.0.1/', events: ['everything'] }, 'events.0'],
    [{ url: 'gopher://example.com/', events: ['violation'] }, 'url'],
    [{ events: ['violation'] }, 'url'],
    [{ url: 'http://127.0.0.1/', events: ['violation'], secret: 'whsec_mine' }, 'secret'],
  ])('%j is refused', async (body, field) => {
    expect(await gateway.call('POST', '/api/v1/webhooks', body)).toMatchObject({
      status: 400,
      body: { code: 'invalid_argument', field },
    });
  });

  test('report approvals, halts, budgets and violations', async () => {
    const receiver = await newReceiver();
    const { orgId, check, use, halt } = await newOrg();
    const other = await newOrg();
    const events = ['approval.requested', 'approval.decided', 'halt.created', 'halt.released', 'violation'];
    await hook(receiver.url, [...events, 'budget.threshold', 'budget.exceeded'], orgId);
    const { approvalId } = await check({ action: 'pay', attributes: { to: 'bob', api_key: 'hidden' } });
    await gateway.call('POST', `/api/v1/approvals/${approvalId}/approve`, { reason: 'known' });
    const { id } = (await halt()).body.halt;
    await gateway.call('POST', `/api/v1/halts/${id}/release`, { reason: 'over' });
    await use(8.5);
    await check({ estimatedCostUsd: 5 });
    await check({ estimatedCostUsd: 5 });
    await use(2);
    await other.check({ credentialToken: tokens[orgId] });
    await other.halt();
    const bodies = await eventually(() => {
      expect(receiver.received.length).toBe(7);
      return receiver.received.map(({ body }) => JSON.parse(body));
    });
    expect(bodies).toMatchObject([
      {
        type: 'approval.requested',
        data: { id: approvalId, state: 'pending', action: 'pay', agent: { org_id: orgId }, rule_id: 'ask' },
      },
      { type: 'approval.decided', data: { id: approvalId, state: 'approved', decisions: [{ reason: 'known' }] } },
      { type: 'halt.created', data: { id, scope: `org:${orgId}` } },
      { type: 'halt.released', data: { id, release_reason: 'over' } },
      { type: 'budget.threshold', data: { tier: 'org', org_id: orgId, percent: 80, spent_usd: 8.5, limit_usd: 10 } },
      { type: 'budget.exceeded', data: { tier: 'org', org_id: orgId, period: 'daily', limit_usd: 10 } },
      { type: 'violation', data: { org_id: orgId, agent_id: 'agent', claimed_org_id: other.orgId } },
    ]);
    expect(bodies[0].data.attributes).toMatchObject({ to: 'bob' });
    expect(receiver.received[0]!.body).not.toContain('hidden');
  });

  test('report a failed reload of the policies', async () => {
    const receiver = await newReceiver();
    const { id } = await hook(receiver.url, ['policy.reload_failed']);
    policies.write('name: [');
    await gateway.call('POST', '/api/v1/policies/reload');
    policies.write(POLICIES);
    const { body } = await eventually(() => (expect(receiver.received[0]).toBeDefined(), receiver.received[0]!));
    expect(JSON.parse(body)).toMatchObject({ type: 'policy.reload_failed', data: { reason: expect.any(String) } });
    await gateway.call('DELETE', `/api/v1/webhooks/${id}`);
  });

  test('arrive after kill -9, all of them and in order', async () => {
    const { orgId, halt } = await newOrg();
    const closed = await startReceiver();
    await closed.close();
    const { secret } = await hook(closed.url, ['halt.created'], orgId);
    for (const reason of ['1', '2', '3']) expect((await halt(reason)).status).toBe(201);
    await gateway.stop('SIGKILL');
    const receiver = await newReceiver(closed.port);
    gateway = await start();
    await eventually(() => expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(3));
    const reasons = receiver.received.map(({ body }) => JSON.parse(body).data.reason);
    expect([...new Set(reasons)]).toEqual(['1', '2', '3']);
    expect(receiver.received.every((call) => isSigned(call, secret))).toBe(true);
  });

  test('call again soon after an error or a redirect', async () => {
    const receiver = await newReceiver();
    const { orgId, halt } = await newOrg();
    receiver.answer = (request, response) => answered(receiver.received.length === 1 ? 500 : 204)(request, response);
    const { id } = await hook(receiver.url, ['halt.created'], orgId);
    await halt();
    await eventually(async () =>
      expect((await gateway.call('GET', `/api/v1/webhooks/${id}`)).body.webhook).toMatchObject({
        waiting: 1,
        failing_since: expect.any(String),
        last_error: 'answered 500',
      }),
    );
    await eventually(() => expect(receiver.received.length).toBe(2));
    const [first, second] = receiver.received;
    expect(second!.atMs - first!.atMs).toBeGreaterThan(1_000);
    expect(second!.id).toBe(first!.id);
  });

  test('a receiver that hangs holds up neither checks nor other webhooks', async () => {
    const [hanging, lively] = await Promise.all([newReceiver(), newReceiver()]);
    const { orgId, check, halt } = await newOrg();
    hanging.answer = () => undefined;
    const { id } = await hook(hanging.url, ['halt.created', 'violation'], orgId);
    await hook(lively.url, ['halt.created'], orgId);
    for (let count = 0; count < 20; count += 1) await halt(String(count));
    await eventually(() => expect(lively.received.length).toBe(20));
    expect(hanging.received.length).toBe(1);
    const startedMs = performance.now();
    for (let count = 0; count < 20; count += 1) expect(await check()).toMatchObject({ decision: 'DECISION_ALLOW' });
    expect(performance.now() - startedMs).toBeLessThan(9_000); // the call that hangs takes ten
    expect((await gateway.call('GET', `/api/v1/webhooks/${id}`)).body.webhook.waiting).toBe(20);
    expect((await gateway.call('DELETE', `/api/v1/webhooks/${id}`)).status).toBe(204);
  });

  test('count their messages for Prometheus', async () => {
    const { body } = await gateway.call('GET', '/metrics');
    expect(body).toMatch(/^svc_webhooks\{state="active"\} [1-9]/m);
    expect(body).toMatch(/^svc_webhook_messages_total\{result="delivered"\} [1-9]/m);
    expect(body).toMatch(/^svc_webhook_messages_waiting \d/m);
  });
});
