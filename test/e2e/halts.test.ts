/** A halt, over every door, until it is released (docs/spec.md, Halts). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createAgentClient } from '../../sdk/typescript/src/index.ts';
import { eventually } from '../support/eventually.ts';
import { type GatewayOptions, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { grpcClient } from '../support/grpc-client.ts';
import { LOAD_AGENT, LOAD_TOKEN, registerLoadAgent } from '../support/load.ts';
import { ALLOW_ALL, policyFile } from '../support/policies.ts';

const POLICIES = policyFile(ALLOW_ALL, afterAll).path;

async function started(options: GatewayOptions = {}): Promise<TestGateway> {
  const gateway = await startTestGateway({ ...options, env: { SVC_POLICY_PATH: POLICIES, ...options.env } });
  await registerLoadAgent(gateway);
  return gateway;
}

async function start(options: GatewayOptions = {}): Promise<TestGateway> {
  const gateway = await started(options);
  onTestFinished(async () => void (await gateway.stop('SIGKILL')));
  return gateway;
}

const ORG = LOAD_AGENT.orgId;
const SEARCH = { action: 'tool.call', resource: 'web' };
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

/** Whether a new operation is allowed, by each way in which an agent can ask. */
function openDoors(gateway: TestGateway): [door: string, ask: (spanId: string) => Promise<boolean>][] {
  const post = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${LOAD_TOKEN}`, ...headers },
      body: JSON.stringify(body),
    });
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as any;
  };
  const unary = grpcClient(gateway.grpc);
  const sdk = createAgentClient({ address: gateway.grpc, agent: LOAD_AGENT, credentialToken: LOAD_TOKEN });
  onTestFinished(async () => {
    unary.close();
    await sdk.close();
  });
  const rpc = (spanId: string) => ({
    agent: LOAD_AGENT,
    credentialToken: LOAD_TOKEN,
    traceId: 'doors',
    spanId,
    action: 'tool.call',
    resource: 'web',
  });
  const item = {
    subject: { type: 'user', id: 'u' },
    action: { name: 'tool.call' },
    resource: { type: 't', id: 'web' },
  };
  return [
    ['Connect', async (spanId) => (await check(gateway, spanId, { traceId: 'connect' })).decision === 'DECISION_ALLOW'],
    [
      'a batch',
      async (spanId) => {
        const { responses } = await post('/svc.governance.v1.PolicyService/BatchCheckActions', {
          requests: [{ ...rpc(spanId), traceId: 'batch' }],
        });
        return responses[0].decision === 'DECISION_ALLOW';
      },
    ],
    ['gRPC', async (spanId) => (await unary.call('CheckAction', rpc(spanId))).message?.decision === 'allow'],
    [
      'a gRPC stream',
      async (spanId) => (await sdk.check({ ...SEARCH, traceId: 'stream', spanId })).decision === 'allow',
    ],
    [
      'AuthZEN',
      async (spanId) =>
        (await post('/access/v1/evaluation', { ...item, context: { trace_id: 'authzen', span_id: spanId } })).decision,
    ],
    ['OPA', async () => (await post('/v1/data/svc/authz/decision', { input: SEARCH })).result.decision === 'allow'],
    [
      'hooks',
      async (spanId) =>
        !(
          'hookSpecificOutput' in
          (await post('/api/v1/hooks/claude-code', {
            session_id: 'hooks',
            transcript_path: '/tmp/transcript.jsonl',
            cwd: '/repo',
            permission_mode: 'default',
            hook_event_name: 'PreToolUse',
            tool_name: 'Bash',
            tool_input: { command: 'ls' },
            tool_use_id: spanId,
          }))
        ),
    ],
  ];
}

describe('halts', () => {
  let shared: TestGateway;
  beforeAll(async () => {
    shared = await started();
  });
  afterAll(async () => void (await shared?.stop('SIGKILL')));

  test('stops what runs and what begins, until it is released', async () => {
    const gateway = shared;
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

  test('ends by itself at its time, released by the gateway', async () => {
    const gateway = shared;
    const expiresAt = new Date(Date.now() + 1_500).toISOString();
    const made = await halt(gateway, { expires_at: expiresAt });
    expect(made.status).toBe(201);
    await eventually(async () => {
      const { halts } = (await gateway.call('GET', '/api/v1/halts')).body;
      expect(halts.find(({ id }: { id: string }) => id === made.body.halt.id)).toMatchObject({
        released_by: 'gateway',
        release_reason: 'expired',
      });
    });
    expect((await check(gateway, 'x')).decision).toBe('DECISION_ALLOW');
  });

  test('are over before it serves if their end passed while it was down', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'svc-halts-'));
    onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
    const first = await start({ dataDir });
    const made = await halt(first, { expires_at: new Date(Date.now() + 500).toISOString() });
    expect(made.body).toMatchObject({ agents_matched: 1, nearest_scope: null });
    await first.stop('SIGKILL');
    await new Promise((resolve) => setTimeout(resolve, 500));
    const second = await start({ dataDir });
    const { halts } = (await second.call('GET', '/api/v1/halts')).body;
    expect(halts).toMatchObject([{ id: made.body.halt.id, released_by: 'gateway', release_reason: 'expired' }]);
    expect((await check(second, 'at-once')).decision).toBe('DECISION_ALLOW');
    const { entries } = (await second.call('GET', '/api/v1/logs?event_type=HaltReleased')).body;
    expect(entries.length).toBe(1);
  });

  test('are refused if invalid, with the reason', async () => {
    const gateway = shared;
    for (const [body, field] of [
      [{ scope: 'org:' }, 'scope'],
      [{ reason: ' ' }, 'reason'],
      [{ reason: undefined }, 'reason'],
      [{ mode: 'stop' }, 'mode'],
      [{ actions: [] }, 'actions'],
      [{ expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
      [{ extra: 1 }, 'extra'],
    ] as const) {
      const refused = await halt(gateway, body);
      expect({ body, status: refused.status, field: refused.body.field }).toEqual({ body, status: 400, field });
    }
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

  test('stop all that is sent after the answer, with 64 clients at all doors', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'svc-halts-'));
    onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
    const gateway = await start({ dataDir });
    const doors = openDoors(gateway);
    const answers: { readonly door: string; readonly sentAtMs: number; readonly isAllowed: boolean }[] = [];
    let isOver = false;
    const clients = Array.from({ length: 64 }, async (_, client) => {
      const [door, ask] = doors[client % doors.length]!;
      for (let nth = 0; !isOver; nth += 1) {
        const sentAtMs = performance.now();
        const isAllowed = await ask(`c${client}-${nth}`);
        answers.push({ door, sentAtMs, isAllowed });
      }
    });
    const names = doors.map(([door]) => door);
    const doorsOf = (wanted: (answer: (typeof answers)[number]) => boolean) =>
      names.filter((name) => answers.some((answer) => answer.door === name && wanted(answer)));
    await expect.poll(() => doorsOf(({ isAllowed }) => isAllowed)).toEqual(names);
    await halt(gateway);
    const answeredAtMs = performance.now();
    await expect.poll(() => doorsOf(({ sentAtMs }) => sentAtMs > answeredAtMs)).toEqual(names);
    isOver = true;
    await Promise.all(clients);
    expect(doorsOf(({ sentAtMs, isAllowed }) => sentAtMs > answeredAtMs && isAllowed)).toEqual([]);
    await gateway.stop('SIGKILL');
    const again = openDoors(await start({ dataDir }));
    expect(await Promise.all(again.map(async ([door, ask]) => [door, await ask('again')]))).toEqual(
      names.map((door) => [door, false]),
    );
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
});
