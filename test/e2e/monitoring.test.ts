import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { readiness } from '../../src/doors/api/shapes.ts';
import { statsAnswer } from '../../src/doors/api/stats-shapes.ts';
import { createCliHome } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startGatewayHere } from '../support/gateway-here.ts';
import { ALLOW_ALL } from '../support/policies.ts';
import { withPostgres } from '../support/postgres.ts';

const newDatabase = withPostgres();

const folder = mkdtempSync(join(tmpdir(), 'svc-operations-'));
const policyPath = join(folder, 'policies.yaml');
writeFileSync(policyPath, `${ALLOW_ALL}budget: { agent_daily_limit_usd: 10 }\n`);

let gateway: TestGateway;
describe('monitoring', () => {
  beforeAll(async () => {
    gateway = await startTestGateway({ env: { SVC_POLICY_PATH: policyPath, SVC_IO_THREADS: '1' } });
  });
  afterAll(async () => {
    await gateway.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const get = (path: string, bearer: string | null = null) => gateway.call('GET', path, undefined, bearer);
  const valuesOf = (text: string): Map<string, number> =>
    new Map(
      text
        .split('\n')
        .filter((line) => line !== '' && !line.startsWith('#'))
        .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
    );

  test('a probe needs no credential for liveness and readiness', async () => {
    expect(await get('/healthz')).toMatchObject({ status: 200, body: { status: 'ok' } });
    const { status, body } = await get('/readyz');
    expect(status).toBe(200);
    expect(readiness.parse(body)).toEqual({ status: 'ready', audit: 'writable', database: 'not_configured' });
  });

  test('metrics count checks, operations, agents, and spend against its caps', async () => {
    const check = (n: number, estimatedCostUsd: number) =>
      gateway.call('POST', '/svc.governance.v1.PolicyService/CheckAction', {
        agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
        traceId: `t${n}`,
        spanId: 's',
        action: 'llm.call',
        resource: 'gpt',
        estimatedCostUsd,
      });
    await gateway.call('POST', '/api/v1/agents', { agent: { org_id: 'acme', team_id: 'search', agent_id: 'crawler' } });
    await check(1, 1);
    await check(2, 2);
    await check(3, 50);
    await gateway.call('POST', '/api/v1/usage', {
      agent: { org_id: 'acme', team_id: 'search', agent_id: 'crawler' },
      cost_usd: 8.5,
    });
    await eventually(async () => {
      const { status, headers, body } = await get('/metrics');
      expect({ status, contentType: headers.get('content-type') }).toEqual({
        status: 200,
        contentType: 'text/plain; version=0.0.4; charset=utf-8',
      });
      const values = valuesOf(body);
      const expected = {
        'svc_checks_total{decision="allow"}': 2,
        'svc_checks_total{decision="deny"}': 1,
        'svc_ops{state="running"}': 2,
        'svc_ops{state="terminated"}': 1,
        svc_agents_registered: 1,
        svc_orgs: 1,
        svc_audit_writable: 1,
        svc_audit_write_failures_total: 0,
        svc_budget_exceeded_total: 1,
        'svc_budget_alerts_total{percent="80"}': 1,
        svc_budget_reservations: 2,
        svc_budget_reserved_usd: 3,
        svc_threads_restarted_total: 0,
        svc_door_defects_total: 0,
        'svc_requests_total{door="connect"}': 3,
        svc_check_duration_seconds_count: 3,
        'svc_check_duration_seconds_bucket{le="+Inf"}': 3,
        svc_database_reachable: undefined,
      };
      expect(Object.fromEntries(Object.keys(expected).map((name) => [name, values.get(name)]))).toEqual(expected);
      expect(values.get('svc_audit_entries_total')).toBeGreaterThanOrEqual(5);
      expect(values.has('nodejs_eventloop_lag_p99_seconds')).toBe(true);
      const within = [...values]
        .filter(([name]) => name.startsWith('svc_check_duration_seconds_bucket'))
        .map(([, count]) => count);
      expect(within).toHaveLength(15);
      expect(within).toEqual([...within].sort((a, b) => a - b));
      expect(values.get('svc_check_duration_seconds_sum')).toBeGreaterThan(0);
      for (const thread of ['main', 'audit', 'io-0'])
        expect(values.get(`svc_thread_busy_seconds_total{thread="${thread}"}`)).toBeGreaterThan(0);
    });
  });

  test('statistics count the same, minute by minute, and `svc stats` shows them', async () => {
    const { status, body } = await gateway.call('GET', '/api/v1/stats');
    expect(status).toBe(200);
    const counts = { allow: 2, deny: 1, pending: 0 };
    expect(statsAnswer.parse(body)).toMatchObject({
      checks: counts,
      denies: {
        by_cause: [{ cause: 'budget', count: 1 }],
        by_rule: [],
        by_agent: [{ org_id: 'acme', team_id: 'search', agent_id: 'crawler', count: 1 }],
        by_org: [{ org_id: 'acme', count: 1 }],
      },
      orgs: [{ org_id: 'acme', ...counts, spend_usd: 8.5 }],
      spend_usd: 8.5,
      incomplete: false,
    });
    expect(body.minutes.reduce((sum: number, { allow, deny }: any) => sum + allow + deny, 0)).toBe(3);
    await eventually(async () =>
      expect((await gateway.call('GET', '/api/v1/stats')).body.latency_ms).toMatchObject({ p50: expect.any(Number) }),
    );
    const { key } = (
      await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'k', scopes: ['read'], org_id: 'globex' })
    ).body;
    expect((await get('/api/v1/stats', key)).body).toMatchObject({
      checks: { allow: 0, deny: 0, pending: 0 },
      orgs: [],
      minutes: [],
      latency_ms: null,
    });
    expect((await get('/api/v1/stats?org_id=acme', key)).status).toBe(403);
    const ofAll = (await get('/metrics', ADMIN_KEY)).body;
    expect(ofAll).toMatch(/^svc_denies_total\{cause="budget"\} 1$/m);
    expect(ofAll).toMatch(/^svc_spend_usd_total 8\.5$/m);
    expect(ofAll).toMatch(/^svc_org_checks_total\{org_id="acme",decision="deny"\} 1$/m);
    expect(ofAll).toMatch(/^svc_org_spend_usd_total\{org_id="acme"\} 8\.5$/m);
    expect(ofAll).toMatch(/^# TYPE svc_rule_denies_total counter$/m);
    // Without a credential, and with one that is bound to an org, nobody is named.
    for (const other of [null, key]) {
      const { body: numbers } = await get('/metrics', other);
      expect(numbers).toMatch(/^svc_denies_total\{cause="budget"\} 1$/m);
      expect(numbers).not.toMatch(/acme|svc_org_|svc_rule_/);
    }
    const cli = createCliHome();
    onTestFinished(() => cli.remove());
    const { stdout } = await cli.start(['stats', '--api-url', gateway.url], { env: { SVC_CLI_API_KEY: ADMIN_KEY } });
    expect(stdout).toContain('2 allowed, 1 denied, 0 left to people; $8.50 spent.');
    expect(stdout).toMatch(/^1 +acme\/search\/crawler$/m);
  });

  test('refusals for full queues are counted, so that an alert can be set', async () => {
    const small = await startGatewayHere({ env: { SVC_MAX_PENDING: '4', SVC_IO_THREADS: '1' } });
    onTestFinished(() => small.stop());
    const call = () =>
      small.call('POST', '/svc.governance.v1.PolicyService/CheckAction', {
        agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
        traceId: 't',
        spanId: 's',
        action: 'tool.call',
      });
    const answers = await Promise.all(Array.from({ length: 300 }, call));
    const refused = answers.filter(({ status, body }) => status === 429 && body.code === 'resource_exhausted').length;
    expect(refused).toBeGreaterThan(0);
    await eventually(async () =>
      expect(valuesOf((await small.call('GET', '/metrics')).body).get('svc_requests_refused_total')).toBe(refused),
    );
  });

  test('every metric has a help text and a name by the conventions', async () => {
    const { body } = await get('/metrics', ADMIN_KEY);
    const types = [...body.matchAll(/^# TYPE (\S+) (\S+)$/gm)].filter(([, name]) => name!.startsWith('svc_'));
    expect(types.length).toBeGreaterThan(20);
    for (const [, name, type] of types) {
      expect(body).toMatch(new RegExp(`^# HELP ${name} \\S`, 'm'));
      expect({ name, isTotal: name!.endsWith('_total') }).toEqual({ name, isTotal: type === 'counter' });
    }
  });

  test('metrics beyond this machine need a credential that sees every org', async () => {
    const open = await startGatewayHere({ env: { SVC_HTTP_ADDR: '0.0.0.0:0' } });
    onTestFinished(() => open.stop());
    const call = (bearer?: string | null) => open.call('GET', '/metrics', undefined, bearer);
    expect((await call(null)).status).toBe(401);
    expect((await call()).status).toBe(200);
    const { key } = (
      await open.call('POST', '/api/v1/iam/api-keys', { name: 'acme', scopes: ['admin'], org_id: 'acme' })
    ).body;
    expect((await call(key)).status).toBe(403);
  });

  test('a gateway shutting down reports not ready while it answers what is in flight', async () => {
    const leaving = await startTestGateway({
      env: { SVC_DATABASE_URL: await newDatabase(), SVC_ARGON2_ITERATIONS: '40', SVC_SHUTDOWN_SECS: '60' },
    });
    onTestFinished(async () => {
      await leaving.stop('SIGKILL');
    });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ready = (): Promise<readonly [number, string, string | undefined]> =>
      new Promise((resolve, reject) => {
        request(`${leaving.url}/readyz`, { agent }, (response) => {
          let text = '';
          response.on('data', (chunk: Buffer) => {
            text += chunk.toString();
          });
          response.on('end', () => resolve([response.statusCode ?? 0, text, response.headers.connection]));
        })
          .on('error', reject)
          .end();
      });
    expect((await ready())[0]).toBe(200);
    const login = leaving.call('POST', '/api/v1/auth/login', {
      email: 'nobody@example.com',
      password: 'a horse that nobody corrects',
    });
    await eventually(async () =>
      expect((await leaving.call('GET', '/metrics')).body).toMatch(/svc_crypto_pending\{lane="passwords"\} 1/),
    );
    const stopped = leaving.stop('SIGTERM');
    await eventually(() => expect(leaving.output.stderr).toContain('SIGTERM received; finishing requests in flight'));
    const [status, text, connection] = await ready();
    expect(status).toBe(503);
    expect(text).toContain('shutting_down');
    expect(connection).toBe('close'); // whatever is asked next should be asked elsewhere
    expect((await login).status).toBe(401);
    expect(await stopped).toBe(0);
    agent.destroy();
  });

  test('the API description is served', async () => {
    const { status, body } = await get('/openapi.json');
    expect({ status, openapi: body.openapi }).toEqual({ status: 200, openapi: '3.1.0' });
    expect(body.paths).toHaveProperty('/api/v1/ops/{id}/pause');
  });

  test('a failing audit log denies checks and readiness, and recovery is automatic', async () => {
    const crowded = await startTestGateway({ env: { SVC_POLICY_PATH: policyPath } });
    onTestFinished(async () => {
      await crowded.stop('SIGKILL');
    });
    let checks = 0;
    const decision = async () => {
      checks += 1;
      const { body } = await crowded.call('POST', '/svc.governance.v1.PolicyService/CheckAction', {
        agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
        traceId: `t${checks}`,
        spanId: 's',
        action: 'llm.call',
        resource: 'gpt',
      });
      return body.decision;
    };
    const ready = async () => await crowded.call('GET', '/readyz', undefined, null);
    // No file of the process may grow any more: what a full disk does, without filling one.
    const limitFiles = (bytes: string): void =>
      void execFileSync('prlimit', ['--pid', String(crowded.process.pid), `--fsize=${bytes}:`]);
    expect(await decision()).toBe('DECISION_ALLOW');
    limitFiles('1');
    expect(await decision()).toBe('DECISION_DENY');
    // The answer to a check does not come by way of the thread that knows whether it is ready.
    await eventually(async () =>
      expect(await ready()).toMatchObject({ status: 503, body: { code: 'audit_unavailable' } }),
    );
    expect((await crowded.call('GET', '/healthz', undefined, null)).status).toBe(200);
    expect((await crowded.call('GET', '/metrics', undefined, null)).body).toMatch(/^svc_audit_writable 0$/m);
    limitFiles('unlimited');
    await eventually(async () => expect((await ready()).status).toBe(200));
    expect(await decision()).toBe('DECISION_ALLOW');
  });
});
