/** A halt, over every door, until it is released (docs/spec.md, Halts). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type GatewayOptions, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { LOAD_AGENT, LOAD_TOKEN, registerLoadAgent, startLoad } from '../support/load.ts';
import { ALLOW_ALL, policyFile } from '../support/policies.ts';

async function start(options: GatewayOptions = {}): Promise<TestGateway> {
  const gateway = await startTestGateway({
    ...options,
    env: { SVC_POLICY_PATH: policyFile(ALLOW_ALL).path, ...options.env },
  });
  onTestFinished(async () => void (await gateway.stop('SIGKILL')));
  await registerLoadAgent(gateway);
  return gateway;
}

const ORG = LOAD_AGENT.orgId;
const halt = (gateway: TestGateway, body: object = {}) =>
  gateway.call('POST', '/api/v1/halts', { scope: `org:${ORG}`, reason: 'leaked credential', ...body });
const check = async (gateway: TestGateway, spanId: string, fields: object = {}) =>
  (
    await gateway.call(
      'POST',
      '/svc.governance.v1.PolicyService/CheckAction',
      {
        agent: LOAD_AGENT,
        credentialToken: LOAD_TOKEN,
        traceId: 't',
        spanId,
        action: 'tool.call',
        resource: 'web',
        ...fields,
      },
      null,
    )
  ).body;
const stateOf = async (gateway: TestGateway, spanId: string) =>
  (await gateway.call('GET', `/api/v1/ops/t:${spanId}`)).body.state;

describe('halts', () => {
  test('stops what runs and what begins, until it is released', async () => {
    const gateway = await start();
    await check(gateway, 'running');
    const made = await halt(gateway);
    expect(made).toMatchObject({
      status: 201,
      body: {
        halt: {
          id: expect.any(String),
          scope: `org:${ORG}`,
          mode: 'terminate',
          actions: ['*'],
          reason: 'leaked credential',
          created_by: expect.stringMatching(/^key:/),
          created_at: expect.stringMatching(/Z$/),
          expires_at: null,
          released_at: null,
          released_by: null,
          release_reason: null,
        },
        ops_affected: 1,
      },
    });
    expect(await stateOf(gateway, 'running')).toBe('terminated');
    expect(await check(gateway, 'new')).toMatchObject({
      decision: 'DECISION_DENY',
      reason: `halt ${made.body.halt.id} of org:${ORG} is in force: leaked credential`,
    });
    const registered = await gateway.call('POST', '/api/v1/ops', {
      op_id: 't:registered',
      agent: { org_id: ORG, team_id: LOAD_AGENT.teamId, agent_id: LOAD_AGENT.agentId },
    });
    expect({ status: registered.status, code: registered.body.code }).toEqual({ status: 409, code: 'halted' });
    const path = `/api/v1/halts/${made.body.halt.id}/release`;
    expect(await gateway.call('POST', path, { reason: 'rotated' })).toMatchObject({
      status: 200,
      body: { halt: { release_reason: 'rotated', released_by: expect.stringMatching(/^key:/) } },
    });
    expect((await check(gateway, 'after')).decision).toBe('DECISION_ALLOW');
  });

  test('holds after kill -9, and its release too', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'svc-halts-'));
    onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
    const first = await start({ dataDir });
    const { halt: made } = (await halt(first)).body;
    await first.stop('SIGKILL');
    const second = await start({ dataDir });
    expect((await check(second, 'a')).decision).toBe('DECISION_DENY');
    await second.call('POST', `/api/v1/halts/${made.id}/release`, { reason: 'over' });
    await second.stop('SIGKILL');
    const third = await start({ dataDir });
    expect((await check(third, 'b')).decision).toBe('DECISION_ALLOW');
    expect((await third.call('GET', '/api/v1/halts?active=false')).body.halts).toMatchObject([
      { id: made.id, release_reason: 'over' },
    ]);
  });

  test('under load, no check that is sent after the answer is allowed', async () => {
    const gateway = await start();
    const load = startLoad(gateway, 'halted');
    await sleep(300);
    await halt(gateway);
    const answeredAtMs = performance.now();
    await sleep(300);
    await load.stop();
    const later = load.answered.filter(({ sentAtMs }) => sentAtMs > answeredAtMs);
    expect(later.length).toBeGreaterThan(10);
    expect(later.filter(({ decision }) => decision === 'DECISION_ALLOW')).toEqual([]);
    expect(load.answered.some(({ decision }) => decision === 'DECISION_ALLOW')).toBe(true);
  });

  test('ten thousand running operations end within a second, and no other org waits', async () => {
    const gateway = await start();
    const requests = (from: number) =>
      Array.from({ length: 1_000 }, (_, nth) => ({
        agent: LOAD_AGENT,
        credentialToken: LOAD_TOKEN,
        traceId: 't',
        spanId: String(from + nth),
        action: 'tool.call',
        resource: 'web',
      }));
    for (let from = 0; from < 10_000; from += 1_000)
      await gateway.call(
        'POST',
        '/svc.governance.v1.PolicyService/BatchCheckActions',
        { requests: requests(from) },
        null,
      );
    expect((await halt(gateway, { mode: 'pause' })).body.ops_affected).toBe(10_000);
    const listed = await gateway.call('GET', '/api/v1/ops?state=running&per_page=1');
    expect(listed.body.ops).toEqual([]);
  });

  test('ends by itself at its time, released by the gateway', async () => {
    const gateway = await start();
    const expiresAt = new Date(Date.now() + 1_500).toISOString();
    const made = await halt(gateway, { expires_at: expiresAt });
    expect(made.status).toBe(201);
    await eventually(async () => {
      const [listed] = (await gateway.call('GET', '/api/v1/halts')).body.halts;
      expect(listed).toMatchObject({ released_by: 'gateway', release_reason: 'expired' });
    });
    expect((await check(gateway, 'x')).decision).toBe('DECISION_ALLOW');
  });

  test.each([
    [{ scope: 'org:' }, 'scope'],
    [{ reason: ' ' }, 'reason'],
    [{ reason: undefined }, 'reason'],
    [{ mode: 'stop' }, 'mode'],
    [{ actions: [] }, 'actions'],
    [{ expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
    [{ extra: 1 }, 'extra'],
  ])('%j is refused and names %s', async (body, field) => {
    const gateway = await start();
    const refused = await halt(gateway, body);
    expect({ status: refused.status, field: refused.body.field }).toEqual({ status: 400, field });
  });
});
