import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { budgetPage } from '../../src/doors/api/shapes.ts';
import { auditEntries } from '../support/audit-log.ts';
import { createCliHome } from '../support/cli.ts';
import { ADMIN_KEY, type ServingGateway, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';
import { ALLOW_ALL, policyFile } from '../support/policies.ts';

const agent = (n = 1, org = 'acme') => ({ org_id: org, team_id: 'search', agent_id: `crawler-${n}` });
const withBudget = (budget: string): string => `${ALLOW_ALL}budget: { ${budget} }\n`;

async function start(policyPath: string): Promise<GatewayHere> {
  const gateway = await startGatewayHere({ env: { SVC_POLICY_PATH: policyPath } });
  onTestFinished(() => gateway.stop());
  return gateway;
}

async function startMortal(dataDir: string): Promise<TestGateway> {
  const gateway = await startTestGateway({ dataDir });
  onTestFinished(async () => void (await gateway.stop('SIGKILL')));
  return gateway;
}

const spend = (gateway: ServingGateway, cost_usd: number, more: object = {}) =>
  gateway.call('POST', '/api/v1/usage', { agent: agent(), cost_usd, ...more });
const rowOf = async (gateway: ServingGateway, tier: string, query = '') =>
  (await gateway.call('GET', `/api/v1/budgets${query}`)).body.budgets.find(
    (row: { tier: string }) => row.tier === tier,
  );

describe('budgets', () => {
  test('spend counts in every tier, and the answer names the first cap exceeded', async () => {
    const { path } = policyFile(withBudget('daily_limit_usd: 100, org_daily_limit_usd: 10, timezone: Europe/Berlin'));
    const gateway = await start(path);
    expect((await spend(gateway, 4.5)).body).toEqual({ status: 'ok' });
    expect((await spend(gateway, 6)).body).toEqual({ status: 'limit_exceeded', tier: 'org', period: 'daily' });

    const { body } = await gateway.call('GET', '/api/v1/budgets');
    expect(budgetPage.safeParse(body).error).toBeUndefined();
    expect(
      body.budgets.map(({ tier, org_id, team_id, agent_id, daily }: any) => [
        tier,
        org_id,
        team_id,
        agent_id,
        daily.spent_usd,
        daily.limit_usd,
      ]),
    ).toEqual([
      ['global', null, null, null, 10.5, 100],
      ['org', 'acme', null, null, 10.5, 10],
      ['team', 'acme', 'search', null, 10.5, null],
      ['agent', 'acme', 'search', 'crawler-1', 10.5, null],
    ]);
    const { daily, monthly } = body.budgets[0];
    expect([22, 23]).toContain(new Date(daily.period_start).getUTCHours()); // midnight in Berlin
    expect(Date.parse(daily.reset) - Date.parse(daily.period_start)).toBeGreaterThanOrEqual(23 * 3_600_000);
    expect(Date.parse(monthly.period_start)).toBeLessThanOrEqual(Date.parse(daily.period_start));
    // A cap that is used up denies even what is free, and who asks why is told that the budget decided.
    const free = { agent: agent(), action: 'file.read', resource: '/notes' };
    expect((await gateway.call('POST', '/api/v1/policies/explain', free)).body).toMatchObject({
      decision: { decision: 'allow', policy: 'everything', rule_id: 'all' },
      overruled_by: { cause: 'budget', reason: 'the daily budget of the org tier is exceeded' },
    });
    const cli = createCliHome();
    onTestFinished(() => cli.remove());
    const options = ['--api-url', gateway.url, '--api-key', ADMIN_KEY];
    const asked = ['check', '--explain', '--agent', 'acme/search/crawler-1', '--action', 'file.read', ...options];
    const { status, stdout } = await cli.start(asked);
    expect({ status, lines: stdout.split('\n').filter((line) => /budget/.test(line) && !/resets/.test(line)) }).toEqual(
      {
        status: 3,
        lines: [
          'deny  the daily budget of the org tier is exceeded',
          expect.stringMatching(/^policy +none decided, but a budget$/),
          expect.stringMatching(/^cause +budget$/),
          '  all  allow  matched: allow  <- overruled by a budget',
        ],
      },
    );
    const { documents, policies_decide } = JSON.parse((await cli.start([...asked, '-o', 'json'])).stdout);
    expect({ decided: documents[0].rules[0].decided, policies_decide }).toMatchObject({
      decided: false,
      policies_decide: { decision: 'allow', rule_id: 'all' },
    });

    expect((await gateway.call('GET', '/api/v1/budgets?org_id=other')).body.budgets).toEqual([]);
    expect((await gateway.call('GET', '/api/v1/budgets?per_page=3')).body.next_cursor).toEqual(expect.any(String));

    const entry = auditEntries(gateway.dataDir).find(({ event_type }) => event_type === 'BudgetLimitExceeded');
    expect(entry).toMatchObject({
      lineage: agent(),
      decision: 'deny',
      payload: { tier: 'org', period: 'daily', spent_usd: 10.5, limit_usd: 10, cost_usd: 6 },
    });
  });

  /** For tests that leave nothing to others but spend. */
  let shared: GatewayHere;
  beforeAll(async () => {
    shared = await startGatewayHere();
  });
  afterAll(() => shared?.stop());

  test('an invalid usage record is refused with the field that does not fit', async () => {
    const gateway = shared;
    for (const cost of [-1, 1_000_001, '5', null]) {
      const { status, body } = await gateway.call('POST', '/api/v1/usage', { agent: agent(), cost_usd: cost });
      expect({ cost, status, code: body.code, field: body.field }).toEqual({
        cost,
        status: 400,
        code: 'invalid_argument',
        field: 'cost_usd',
      });
    }
    expect((await spend(gateway, 1, { op_id: 'no-colon' })).body.field).toBe('op_id');
    expect((await gateway.call('POST', '/api/v1/usage', { cost_usd: 1 })).body.field).toBe('agent');
  });

  test('a usage name may have 256 bytes over HTTP as over Connect and gRPC', async () => {
    const gateway = shared;
    const record = (usageId: string) =>
      Promise.all([
        spend(gateway, 1, { usage_id: usageId }),
        gateway.call('POST', '/svc.governance.v1.AgentService/RecordUsage', { agent: agent(), costUsd: 1, usageId }),
      ]);
    for (const usageId of ['ü'.repeat(129), 'x'.repeat(257)]) {
      const [http, connect] = await record(usageId);
      expect({ status: http.status, detail: http.body.detail }).toEqual({
        status: 400,
        detail: 'usage_id: must be 1 to 256 bytes',
      });
      expect({ status: connect.status, message: connect.body.message }).toEqual({
        status: 400,
        message: 'usage_id: must be 1 to 256 bytes',
      });
    }
    for (const usageId of ['ü'.repeat(128), 'x'.repeat(256)])
      expect((await record(usageId)).map(({ status }) => status)).toEqual([200, 200]);
  });

  test('an answered record survives kill -9, and its retry counts once', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const first = await startMortal(folder);
    let answered = 0;
    const senders = Array.from({ length: 8 }, async (_, sender) => {
      for (let n = 0; ; n += 1) {
        const sent = await first
          .call('POST', '/api/v1/usage', { agent: agent(sender), cost_usd: 0.25, usage_id: `${sender}-${n}` })
          .catch(() => undefined);
        if (sent?.status !== 200) return;
        answered += 1;
        if (answered === 200) first.process.kill('SIGKILL');
      }
    });
    await Promise.all(senders);
    const second = await startMortal(folder);
    const { spent_usd } = (await rowOf(second, 'global')).daily;
    // At most one more of each sender was counted and not yet answered.
    expect(spent_usd).toBeGreaterThanOrEqual(answered * 0.25);
    expect(spent_usd).toBeLessThanOrEqual((answered + 8) * 0.25);
    expect(
      (await second.call('POST', '/api/v1/usage', { agent: agent(0), cost_usd: 0.25, usage_id: '0-0' })).body,
    ).toEqual({ status: 'ok' });
    expect((await rowOf(second, 'global')).daily.spent_usd).toBe(spent_usd);
  });

  test('a lowered cap applies at once after a reload, and spend stays', async () => {
    const policies = policyFile(withBudget('agent_daily_limit_usd: 50'));
    const gateway = await start(policies.path);
    expect((await spend(gateway, 20)).body).toEqual({ status: 'ok' });
    policies.write(withBudget('agent_daily_limit_usd: 15'));
    expect((await gateway.call('POST', '/api/v1/policies/reload')).status).toBe(200);
    expect((await rowOf(gateway, 'agent')).daily).toMatchObject({ spent_usd: 20, limit_usd: 15 });
    const { body } = await gateway.call('POST', '/svc.governance.v1.PolicyService/CheckAction', {
      agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler-1' },
      traceId: 't',
      spanId: 's',
      action: 'llm.call',
      resource: 'gpt',
    });
    expect(body).toMatchObject({ decision: 'DECISION_DENY', reason: 'the daily budget of the agent tier is exceeded' });
  });

  test('an org credential sees that the global cap is exceeded, and not its amounts', async () => {
    const { path } = policyFile(withBudget('daily_limit_usd: 100, org_daily_limit_usd: 20'));
    const gateway = await start(path);
    const { key } = (
      await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'acme', scopes: ['read'], org_id: 'acme' })
    ).body;
    await spend(gateway, 21); // Over the cap of the org, whose amounts are its own.
    await spend(gateway, 777, { agent: agent(1, 'globex') });
    await spend(gateway, 1);
    const seen = async (bearer?: string) =>
      (await gateway.call('GET', '/api/v1/logs?event_type=BudgetLimitExceeded&org_id=acme', undefined, bearer)).body
        .entries;
    const ofOrg = {
      cost_usd: 21,
      usage_id: null,
      tier: 'org',
      period: 'daily',
      spent_usd: 21,
      reserved_usd: 0,
      limit_usd: 20,
      resets_at: expect.stringMatching(/T00:00:00.000Z$/),
    };
    const limit = {
      cost_usd: 1,
      usage_id: null,
      tier: 'global',
      period: 'daily',
      resets_at: expect.stringMatching(/T00:00:00.000Z$/),
    };
    expect((await seen()).map(({ payload }: any) => payload)).toEqual([
      { ...limit, spent_usd: 799, reserved_usd: 0, limit_usd: 100 },
      ofOrg,
    ]);
    expect((await seen(key)).map(({ payload }: any) => payload)).toEqual([limit, ofOrg]);
    for (const format of ['ndjson', 'csv']) {
      const { status, body } = await gateway.call('GET', `/api/v1/logs/export?format=${format}`, undefined, key);
      expect({ format, status, hasTier: /global/.test(body), hasAmount: /spent_usd\W+799/.test(body) }).toEqual({
        format,
        status: 200,
        hasTier: true,
        hasAmount: false,
      });
    }
  });

  test('a thousand agents racing for the last dollars never exceed the cap', async () => {
    const { path } = policyFile(withBudget('daily_limit_usd: 100'));
    const gateway = await start(path);
    const decisions = await Promise.all(
      Array.from({ length: 1_000 }, async (_, n) => {
        const { body } = await gateway.call('POST', '/svc.governance.v1.PolicyService/CheckAction', {
          agent: { orgId: `org-${n % 10}`, teamId: 'race', agentId: `racer-${n}` },
          traceId: `race-${n}`,
          spanId: 's',
          action: 'llm.call',
          resource: 'gpt',
          estimatedCostUsd: 0.3,
        });
        return body.decision as string;
      }),
    );
    expect(decisions.filter((decision) => decision === 'DECISION_ALLOW')).toHaveLength(333); // 333 × 0.30 = 99.90
    expect((await rowOf(gateway, 'global')).reserved_usd).toBe(99.9);
  });
});
