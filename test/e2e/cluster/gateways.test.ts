/** Gateways that act as one: who takes part, what holds everywhere, and what a replaced gateway does. */
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { connectAgent } from '../../support/agent.ts';
import { eventually } from '../../support/eventually.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { grpcClient } from '../../support/grpc-client.ts';
import { policyFile } from '../../support/policies.ts';
import { withPostgres } from '../../support/postgres.ts';
import { throughProxy } from '../../support/proxy.ts';
import { describeApprovals } from './approvals.ts';
import { operationAt } from './away.ts';
import { describeEndedEverywhere } from './ended-everywhere.ts';
import { describePolicyLife } from './policy-life.ts';
import { describeShownTogether } from './shown-together.ts';

const newDatabase = withPostgres();
const signingKey = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const ENV: Record<string, string> = {
  SVC_JWT_PRIVATE_KEY: signingKey(),
  SVC_ARGON2_MEMORY_KIB: '1024',
  SVC_IO_THREADS: '1',
  SVC_CLUSTER: 'on',
};

const POLICY = `
name: p
scope: global
rules:
  - { id: open, actions: ["tool.call"], effect: allow }
  - { id: pay, actions: ["tool.call"], resources: ["pay*"], effect: require_approval }
`;

const startMember = (
  url: string,
  name: string,
  env: Readonly<Record<string, string>> = {},
  dataDir?: string,
): Promise<TestGateway> =>
  startTestGateway({
    ...(dataDir === undefined ? {} : { dataDir }),
    env: { ...ENV, SVC_DATABASE_URL: url, SVC_NODE_NAME: name, ...env },
  });

describe('gateways of a cluster', () => {
  let url: string;
  let one: TestGateway;
  let two: TestGateway;
  let three: TestGateway;
  let veteran: string;
  const folder = mkdtempSync(join(tmpdir(), 'svc-bygone-'));

  beforeAll(async () => {
    url = await newDatabase({ isEmpty: true });
    ENV.SVC_POLICY_PATH = policyFile(POLICY, afterAll).path;
    // It has been alone before.
    const alone = await startTestGateway({ dataDir: folder });
    const agent = { org_id: 'bygone', team_id: 'search', agent_id: 'veteran' };
    veteran = (await alone.call('POST', '/api/v1/agents', { agent })).body.credential_token;
    await alone.call('POST', '/api/v1/usage', { agent, cost_usd: 0.5 });
    await alone.stop();
    one = await startMember(url, 'one', {}, folder);
    [two, three] = await Promise.all([startMember(url, 'two'), startMember(url, 'three')]);
  });
  afterAll(async () => {
    await Promise.all([one, two, three].map((gateway) => gateway?.stop('SIGKILL')));
    rmSync(folder, { recursive: true, force: true });
  });

  const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
  const UNKNOWN = 'DECISION_CAUSE_CREDENTIAL';
  const membersAt = async (gateway: TestGateway) =>
    (await gateway.call('GET', '/api/v1/cluster')).body.members as { name: string; state: string; run: string }[];
  const newKey = async () =>
    (await one.call('POST', '/api/v1/iam/api-keys', { name: 'k', scopes: ['read', 'write'] })).body;
  const revoke = (id: string) => one.call('POST', `/api/v1/iam/api-keys/${id}/revoke`);
  const usedAt = async (gateway: TestGateway, key: string) =>
    (await gateway.call('GET', '/api/v1/ops', undefined, key)).status;

  test('keep what the first of them had when it was alone', async () => {
    const agent = { orgId: 'bygone', teamId: 'search', agentId: 'veteran' };
    const subject = { agent, credentialToken: veteran, traceId: 't', spanId: 's', action: 'tool.call', resource: 'x' };
    const checked = await three.call('POST', '/svc.governance.v1.PolicyService/CheckAction', subject, null);
    expect(checked.body.cause).not.toBe(UNKNOWN);
    await eventually(async () => {
      const { body } = await two.call('GET', '/api/v1/budgets?org_id=bygone');
      expect(body.budgets.map((row: any) => [row.tier, row.daily.spent_usd])).toEqual([
        ['org', 0.5],
        ['team', 0.5],
        ['agent', 0.5],
      ]);
    });
  });

  test('count a usage id once, at whichever of them it arrives', async () => {
    const agent = { org_id: 'umbrella', team_id: 'search', agent_id: 'crawler' };
    const record = (gateway: TestGateway, usage_id: string) =>
      gateway.call('POST', '/api/v1/usage', { agent, cost_usd: 0.25, usage_id });
    const ids = Array.from({ length: 20 }, (_, nth) => `usage-${nth}`);
    const answers = await Promise.all(ids.flatMap((id) => [one, two, three, two].map((at) => record(at, id))));
    // 503 where two arrive at the same moment and the machine is busy; every id was counted by somebody.
    for (const { status, body } of answers) if (status !== 503) expect([status, body]).toEqual([200, { status: 'ok' }]);
    for (const at of [one, two, three]) expect((await record(at, 'usage-0')).body).toEqual({ status: 'ok' });
    await eventually(async () => {
      const { body } = await three.call('GET', '/api/v1/budgets?org_id=umbrella');
      expect(body.budgets[0]).toMatchObject({ tier: 'org', daily: { spent_usd: 5 }, monthly: { spent_usd: 5 } });
    });
  });

  test('add up what was checked at all of them', async () => {
    const agent = { org_id: 'counted', team_id: 'search', agent_id: 'crawler' };
    const credentialToken = (await one.call('POST', '/api/v1/agents', { agent })).body.credential_token;
    const of = { orgId: 'counted', teamId: 'search', agentId: 'crawler' };
    for (const [nth, at] of [one, two, three].entries())
      await at.call(
        'POST',
        '/svc.governance.v1.PolicyService/CheckAction',
        { agent: of, credentialToken, traceId: `counted-${nth}`, spanId: 's', action: 'tool.call', resource: 'web' },
        null,
      );
    for (const at of [one, three])
      await eventually(async () => {
        const { body } = await at.call('GET', '/api/v1/stats?org_id=counted');
        expect([body.checks, body.incomplete]).toEqual([{ allow: 3, deny: 0, pending: 0 }, false]);
      });
  });

  test('are listed with their leases at each of them', async () => {
    expect(two.output.stdout).toMatch(
      / policies {3}1 from what is published to the cluster \(version [0-9a-f]{16}\)\n/,
    );
    await eventually(async () => {
      const members = await membersAt(three);
      expect(members.map(({ name, state }) => `${name} ${state}`)).toEqual(['one live', 'three live', 'two live']);
      expect(members[0]).toEqual({
        name: 'one',
        run: expect.stringMatching(/^[0-9a-f-]{36}$/),
        state: 'live',
        version: expect.stringMatching(/^\d+\.\d+\.\d+/),
        lease_until: expect.stringMatching(/Z$/),
        skew_ms: expect.any(Number),
        policy_version: expect.any(String),
        audit_head: { id: expect.any(Number), hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
        bus: 'connected',
        unconfirmed: 0,
        stranded_usd: 0,
      });
    });
    expect((await two.call('GET', '/readyz')).body).toMatchObject({ status: 'ready', cluster: 'reachable' });
  });

  describeEndedEverywhere(() => [one, two, three]);

  test('name who has not confirmed a revocation; it acts by it before it serves again', async () => {
    const { id, key } = await newKey();
    expect(await usedAt(three, key)).toBe(200);
    expect((await register(one, 'rotating')).status).toBe(201);
    const op = await operationAt(three);
    three.process.kill('SIGSTOP');
    try {
      const revoked = await revoke(id);
      expect([revoked.status, revoked.headers.get('svc-unconfirmed')]).toEqual([204, 'three']);
      const client = grpcClient(one.grpc);
      onTestFinished(() => client.close());
      const rotated = await client.call('RegisterAgent', { agent: { ...AGENT, agentId: 'rotating' } }, ADMIN_KEY);
      expect([rotated.code, rotated.trailers.get('svc-unconfirmed')]).toEqual(['OK', ['three']]);
      expect((await two.call('GET', '/api/v1/ops')).body.incomplete).toEqual(['three']);
      await eventually(async () => expect((await membersAt(one))[1]).toMatchObject({ state: 'suspect' }));
      await op.isTerminatedFrom(two, one);
    } finally {
      three.process.kill('SIGCONT');
    }
    expect([await usedAt(three, key), await op.isClosedThere()]).toEqual([401, undefined]);
    await eventually(async () => expect((await membersAt(one))[1]).toMatchObject({ state: 'live', unconfirmed: 0 }));
  });

  let made = 0;
  const register = async (gateway: TestGateway, agentId: string, parent?: string) => {
    const agent = { org_id: 'acme', team_id: 'search', agent_id: agentId };
    const of = parent === undefined ? {} : { parent: { ...agent, agent_id: parent } };
    return gateway.call('POST', '/api/v1/agents', { agent, ...of });
  };
  const checkAt = async (gateway: TestGateway, agentId: string, credentialToken: string) => {
    const subject = { traceId: `t${(made += 1)}`, spanId: 's', action: 'tool.call', resource: 'web_search' };
    const body = { agent: { ...AGENT, agentId }, credentialToken, ...subject };
    return (await gateway.call('POST', '/svc.governance.v1.PolicyService/CheckAction', body, null)).body;
  };

  test('know an agent at once that registered at another of them', async () => {
    for (let round = 0; round < 20; round += 1) {
      const { status, body } = await register(one, `agent-${round}`);
      expect(status).toBe(201);
      const causes = await Promise.all(
        [two, three].map(async (at) => (await checkAt(at, `agent-${round}`, body.credential_token)).cause),
      );
      expect(causes).not.toContain(UNKNOWN);
    }
    expect((await checkAt(two, 'agent-0', 'a token that nobody has, of 32 characters')).cause).toBe(UNKNOWN);
    await eventually(async () => {
      const { body } = await three.call('GET', '/api/v1/agents?per_page=1000');
      expect(body.agents.filter((row: unknown) => /"agent-\d+"/.test(JSON.stringify(row))).length).toBe(20);
    });
  });

  test('refuse a token at once that was rotated or deregistered at another of them', async () => {
    const first = (await register(one, 'rotated')).body.credential_token;
    expect((await checkAt(two, 'rotated', first)).cause).not.toBe(UNKNOWN);
    const again = await register(three, 'rotated'); // which may not know it yet, and then takes it for a new agent
    expect([again.status === 200 || again.status === 201, again.headers.get('svc-unconfirmed')]).toEqual([true, null]);
    for (const at of [one, two, three]) expect((await checkAt(at, 'rotated', first)).cause).toBe(UNKNOWN);
    const second = again.body.credential_token;
    for (const at of [one, two, three]) expect((await checkAt(at, 'rotated', second)).cause).not.toBe(UNKNOWN);
    expect((await two.call('DELETE', '/api/v1/agents/acme/search/rotated')).status).toBe(204);
    for (const at of [one, two, three]) expect((await checkAt(at, 'rotated', second)).cause).toBe(UNKNOWN);
  });

  test('agree on whose a token is, and on who descends from whom', async () => {
    const token = 'one-token-for-two-agents-of-32-characters';
    const claim = (gateway: TestGateway, agentId: string) =>
      gateway.call('POST', '/api/v1/agents', {
        agent: { org_id: 'acme', team_id: 'search', agent_id: agentId },
        credential_token: token,
      });
    const claims = await Promise.all([claim(one, 'claims-1'), claim(two, 'claims-2'), claim(three, 'claims-3')]);
    expect(claims.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
    await register(one, 'upper');
    await register(one, 'lower', 'upper');
    await eventually(async () => expect((await register(two, 'upper', 'lower')).status).toBeGreaterThanOrEqual(400));
  });

  const DENIED_AS_CLOSED = { decision: 'DECISION_DENY', cause: 'DECISION_CAUSE_OPERATION_STATE' };
  describe('have operations that live where they began', () => {
    let token: string;
    beforeAll(async () => {
      token = (await register(one, 'worker')).body.credential_token;
    });
    const agent = { ...AGENT, agentId: 'worker' };
    const asAgent = async (at: TestGateway, method: string, body: object) => {
      const service = method === 'CheckAction' ? 'PolicyService' : 'AgentService';
      const whole = { agent, credentialToken: token, ...body };
      return (await at.call('POST', `/svc.governance.v1.${service}/${method}`, whole, null)).body;
    };
    const checked = (at: TestGateway, traceId: string, more: object = {}) =>
      asAgent(at, 'CheckAction', { traceId, spanId: 's', action: 'tool.call', resource: 'web_search', ...more });
    const begin = async (at: TestGateway, traceId: string, more: object = {}): Promise<string> =>
      (await checked(at, traceId, more)).opHome;
    const opAt = async (at: TestGateway, traceId: string) => (await at.call('GET', `/api/v1/ops/${traceId}:s`)).body;

    test('and say where that is', async () => {
      const homes = await Promise.all([one, two, three].map((at, index) => begin(at, `home-${index}`)));
      for (const home of homes) expect(home).toMatch(/^[\w-]{11}$/);
      expect(new Set(homes).size).toBe(3);
      expect((await opAt(three, 'home-0')).op_home).toBe(homes[0]);
      const mine = await two.call('POST', '/api/v1/ops', {
        op_id: 'home-3:s',
        agent: { org_id: 'acme', team_id: 'search', agent_id: 'worker' },
      });
      expect([mine.status, mine.body.op_home]).toEqual([201, homes[1]]);
    });

    test('can be checked, completed and paid for at any of them', async () => {
      const opHome = await begin(one, 'work', { estimatedCostUsd: 2 });
      expect(await checked(two, 'work', { opHome })).toMatchObject({ opHome, opState: 'OP_STATE_RUNNING' });
      expect(Number((await checked(two, 'work', { opHome })).auditId)).toBeGreaterThan(0);
      const opId = 'work:s';
      expect(await asAgent(three, 'RecordUsage', { opId, costUsd: 0.5, opHome })).toEqual({
        status: 'BUDGET_STATUS_OK',
      });
      expect(await asAgent(two, 'RecordUsage', { opId, costUsd: 0.25 })).toEqual({ status: 'BUDGET_STATUS_OK' });
      expect(await opAt(three, 'work')).toMatchObject({ state: 'running', spent_usd: 0.75 });
      expect(await asAgent(three, 'CompleteOp', { opId })).toMatchObject({ opState: 'OP_STATE_COMPLETING' });
      expect(await opAt(one, 'work')).toMatchObject({ state: 'completing', ended: 'completed', op_home: opHome });
      expect(await asAgent(two, 'CompleteOp', { opId, opHome })).toMatchObject({ code: 'failed_precondition' });
      expect(await asAgent(two, 'CompleteOp', { opId: 'nobody:s' })).toMatchObject({ code: 'not_found' });
    });

    test('controlled and listed at any of them', async () => {
      await Promise.all([one, two, three].map((at, index) => begin(at, `many-${index}`)));
      const order = async (at: TestGateway, traceId: string, verb: string) => {
        const { status, body } = await at.call('POST', `/api/v1/ops/${traceId}:s/${verb}`);
        return `${status} ${body.state ?? body.code}`;
      };
      expect(await order(three, 'many-0', 'pause')).toBe('200 paused');
      expect(await order(two, 'many-0', 'resume')).toBe('200 running');
      expect(await order(one, 'many-2', 'terminate')).toBe('200 terminated');
      expect(await order(two, 'many-2', 'pause')).toBe('409 invalid_transition');
      expect(await order(two, 'many-9', 'pause')).toBe('404 not_found');
      const seen: string[] = [];
      for (let cursor = '', at = 0; at < 100; at += 1) {
        const from = [one, two, three][at % 3]!;
        const page = (await from.call('GET', `/api/v1/ops?agent_id=worker&per_page=2${cursor}`)).body;
        expect(page).toMatchObject({ incomplete: [] });
        seen.push(...page.ops.map((op: { op_id: string }) => op.op_id));
        if (page.next_cursor === null) break;
        cursor = `&cursor=${page.next_cursor}`;
      }
      expect(seen.filter((id) => id.startsWith('many-')).sort()).toEqual(['many-0:s', 'many-1:s', 'many-2:s']);
      expect(new Set(seen).size).toBe(seen.length);
    });

    test("get their agent's signals, and begin nowhere else while paused", async () => {
      const opHome = await begin(one, 'paused');
      const connected = connectAgent(three.grpc, agent, token);
      onTestFinished(() => connected.close());
      const feed = await connected.control();
      const before = feed.signals.length;
      const paused = await two.call('POST', '/api/v1/ops/paused:s/pause');
      expect([paused.status, paused.headers.get('svc-unconfirmed')]).toEqual([200, null]);
      for (const at of [one, two, three])
        expect(await checked(at, 'paused')).toMatchObject({
          ...DENIED_AS_CLOSED,
          reason: expect.stringContaining('paused'),
        });
      const { sequence } = (await feed.received(before + 1)).at(-1)!;
      expect(feed.signals.at(-1)).toMatchObject({ opId: 'paused:s', signal: 'pause' });
      expect((await (await connected.control()).received(1)).map(({ opId }) => opId)).toContain('paused:s');
      await connected.acknowledge('paused:s', sequence);
      expect(await opAt(two, 'paused')).toMatchObject({ op_home: opHome, acknowledged_at: expect.any(String) });
      await three.call('POST', '/api/v1/ops/paused:s/resume');
      expect(await checked(two, 'paused', { opHome })).toMatchObject({ decision: 'DECISION_ALLOW' });
    });

    test('and may have the same id at two of them', async () => {
      const homes = [await begin(one, 'twice'), await begin(two, 'twice')];
      const { ops } = await opAt(three, 'twice');
      expect(ops.map((op: { op_home: string }) => op.op_home).sort()).toEqual([...homes].sort());
      const one_ = await three.call('GET', `/api/v1/ops/twice:s?op_home=${homes[1]}`);
      expect(one_.body.op_home).toBe(homes[1]);
      await three.call('POST', '/api/v1/ops/twice:s/terminate');
      expect((await opAt(one, 'twice')).ops.map(({ state }: { state: string }) => state)).toEqual([
        'terminated',
        'terminated',
      ]);
    });
  });

  /** An agent of its own, which any gateway may ask for. */
  const newAgent = async (agentId: string) => {
    const { body } = await register(one, agentId);
    const of = { agent: { ...AGENT, agentId }, credentialToken: body.credential_token as string };
    const check = async (gateway: TestGateway, spanId: string, resource = 'web_search') => {
      const what = { traceId: agentId, spanId, action: 'tool.call', resource };
      return (await gateway.call('POST', '/svc.governance.v1.PolicyService/CheckAction', { ...of, ...what }, null))
        .body;
    };
    const opState = async (gateway: TestGateway, spanId: string) =>
      (await gateway.call('GET', `/api/v1/ops/${agentId}:${spanId}?org_id=acme`)).body;
    return { of, check, opState, scope: `agent:acme/search/${agentId}` };
  };
  const halt = (gateway: TestGateway, scope: string, more = {}) =>
    gateway.call('POST', '/api/v1/halts', { scope, reason: 'an incident', ...more });
  const ALLOWED = { decision: 'DECISION_ALLOW' };
  const HALTED = { decision: 'DECISION_DENY', cause: 'DECISION_CAUSE_HALT' };

  test('stop what runs at any of them for a halt at one, until it is released at another', async () => {
    const { check, opState, scope } = await newAgent('halted');
    for (const [at, gateway] of [one, two, three].entries())
      expect(await check(gateway, `s${at}`)).toMatchObject(ALLOWED);
    const made = await halt(two, scope, { mode: 'pause' });
    expect([made.status, made.body.ops_affected, made.headers.get('svc-unconfirmed')]).toEqual([201, 3, null]);
    for (const [at, gateway] of [one, two, three].entries()) {
      expect(await check(gateway, `t${at}`)).toMatchObject(HALTED);
      expect((await opState(gateway, `s${at}`)).state).toBe('paused');
      const { body } = await gateway.call('GET', '/api/v1/halts?active=true');
      expect(body.halts).toEqual([made.body.halt]);
    }
    const { id } = made.body.halt;
    const release = (gateway: TestGateway) =>
      gateway.call('POST', `/api/v1/halts/${id}/release`, { reason: 'it is over' });
    const [released, ...again] = await Promise.all([release(three), release(one), release(two)]);
    expect(released.status).toBe(200);
    for (const each of again) expect(each.body).toEqual(released.body);
    for (const [at, gateway] of [one, two, three].entries()) {
      expect(await check(gateway, `s${at}`)).toMatchObject(ALLOWED);
      expect((await gateway.call('GET', '/api/v1/halts?active=false')).body.halts).toEqual([released.body.halt]);
    }
    await eventually(async () => {
      const path = '/api/v1/logs?event_type=HaltReleased';
      const logged = await Promise.all([one, two, three].map(async (at) => (await at.call('GET', path)).body));
      // Incomplete where a busy machine takes longer than others wait for a log.
      expect(logged.map(({ entries, incomplete }) => [entries.length, incomplete])).toEqual(Array(3).fill([1, []]));
    });
  });

  describeShownTogether(() => [one, two, three]);

  describeApprovals(() => [one, two, three], newAgent);

  test('decide by what is published at one of them, at once, and by what was before', async () => {
    const { check } = await newAgent('governed');
    const version = async (gateway: TestGateway) => (await gateway.call('GET', '/api/v1/policies')).body.version;
    const first = await version(one);
    const publish = (gateway: TestGateway, body: object) => gateway.call('POST', '/api/v1/policies', body);
    const text = `${POLICY}  - { id: never, resources: ["secret*"], effect: deny, reason: closed }\n`;
    const published = await publish(two, { files: [{ name: 'p.yaml', text }] });
    expect([published.status, published.headers.get('svc-unconfirmed')]).toEqual([200, null]);
    expect(published.body).toMatchObject({ documents: 1, changed: true, warnings: [] });
    for (const gateway of [one, two, three]) {
      expect(await check(gateway, `s${(made += 1)}`, 'secret-1')).toMatchObject({ ruleId: 'never' });
      expect(await version(gateway)).toBe(published.body.version);
    }
    await eventually(async () => {
      const { members } = (await one.call('GET', '/api/v1/cluster')).body;
      const live = members.filter(({ state }: { state: string }) => state === 'live');
      expect(live.map((each: { policy_version: string }) => each.policy_version)).toEqual(
        live.map(() => published.body.version),
      );
    });
    const wrong = await publish(three, { files: [{ name: 'p.yaml', text: `${text}  - { id: odd }\n` }] });
    expect([wrong.status, wrong.body.code, wrong.body.problems]).toEqual([
      409,
      'policy_invalid',
      [expect.stringContaining('p.yaml:8:')],
    ]);
    const reloaded = await one.call('POST', '/api/v1/policies/reload');
    expect([reloaded.status, reloaded.body.code]).toEqual([409, 'use_publish']);
    expect((await publish(three, { version: 'none' })).status).toBe(404);
    expect((await publish(three, { version: first })).body).toMatchObject({ version: first, changed: true });
    for (const gateway of [one, two, three])
      expect(await check(gateway, `s${(made += 1)}`, 'secret-1')).toMatchObject(ALLOWED);
  });

  describePolicyLife(
    () => [one, two, three],
    newAgent,
    (dataDir) => startMember(url, 'fourth', {}, dataDir),
  );

  test('end when another takes their name', async () => {
    const older = await startMember(url, 'four');
    const before = (await membersAt(one)).find(({ name }) => name === 'four');
    const SVC_JWT_PRIVATE_KEY = signingKey();
    const newer = await startMember(url, 'four', { SVC_JWT_PRIVATE_KEY });
    onTestFinished(async () => void (await newer.stop()));
    await eventually(() => expect(older.process.exitCode).toBe(1));
    expect(older.output.stderr).toContain('another gateway has taken the name of this one');
    await eventually(() => expect(newer.output.stderr).toContain('sign tokens with a key that this one does not know'));
    expect(older.output.stderr).not.toContain('sign tokens');
    const after = (await membersAt(one)).filter(({ name }) => name === 'four');
    expect(after.map(({ state }) => state)).toEqual(['live']);
    expect(after[0]?.run).not.toBe(before?.run);
  });

  test('are forgotten only once they cannot run any more', async () => {
    const running = await one.call('POST', '/api/v1/cluster/forget', { name: 'two' });
    expect([running.status, running.body.code]).toEqual([409, 'conflict']);
    expect((await one.call('POST', '/api/v1/cluster/forget', { name: 'nobody' })).status).toBe(404);
    // A gateway that ended long ago, and has not returned its grants.
    const database = new pg.Client({ connectionString: url });
    await database.connect();
    onTestFinished(() => database.end());
    const gone = randomUUID();
    await database.query(`SELECT cluster_join($1, 'gone', 1, '1', '{1,1}', 'serve', NULL, '{}', '{}', '{}')`, [gone]);
    await database.query(`UPDATE cluster_node SET lease_until = now() - interval '11 minutes' WHERE epoch = $1`, [
      gone,
    ]);
    await database.query(
      `INSERT INTO budget_account (owner, period, out, ends_at) VALUES ('org/gone', 'd:2026-01-01', 700000, now())`,
    );
    await database.query(`INSERT INTO budget_grant VALUES ($1, 'org/gone', 'd:2026-01-01', 700000, 0)`, [gone]);
    const forgotten = await one.call('POST', '/api/v1/cluster/forget', { name: 'gone' });
    expect([forgotten.status, forgotten.body]).toEqual([200, { unspent_usd: 0.7 }]);
    expect((await membersAt(one)).map(({ name }) => name)).not.toContain('gone');
    const { body } = await one.call('GET', '/api/v1/logs?event_type=GatewayForgotten');
    expect(body.entries.map(({ payload }: any) => payload)).toEqual([{ gateway: 'gone', charged_usd: 0.7 }]);
    const { rows } = await database.query(`SELECT spent::int, out::int FROM budget_account WHERE owner = 'org/gone'`);
    expect(rows).toEqual([{ spent: 700_000, out: 0 }]);
  });

  test('wait with joining until their clock is right', async () => {
    const mark = join(folder, 'set-back');
    writeFileSync(mark, '');
    const NODE_OPTIONS = `--import=${new URL('../../support/clock-set-back.mjs', import.meta.url).href}`;
    const late = await startTestGateway({
      env: { ...ENV, SVC_DATABASE_URL: url, SVC_NODE_NAME: 'late', CLOCK_SET_BACK: mark, NODE_OPTIONS },
      meanwhile: (child) =>
        child.stderr!.on('data', (said: Buffer) => {
          if (said.toString().includes('waiting until it is right')) rmSync(mark, { force: true });
        }),
    });
    onTestFinished(async () => void (await late.stop()));
    expect(late.output.stderr).toMatch(/the clock of this gateway is 3600\.\d s behind/);
    expect((await membersAt(one)).map(({ name, state }) => `${name} ${state}`)).toContain('late live');
  });

  test('deny every check soon after they lost the database, where that is asked for', async () => {
    const { url: behind, proxy } = await throughProxy(url);
    proxy.cutAt('cluster_join', 'answered'); // it asks again
    const cutOff = await startMember(behind.href, 'five', { SVC_CLUSTER_ON_OUTAGE: 'deny' });
    onTestFinished(async () => void (await cutOff.stop('SIGKILL')));
    const agent = { org_id: 'acme', team_id: 'search', agent_id: 'crawler' };
    const registered = await cutOff.call('POST', '/api/v1/agents', { agent });
    let checks = 0;
    const check = async () =>
      (
        await cutOff.call(
          'POST',
          '/svc.governance.v1.PolicyService/CheckAction',
          {
            agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
            credentialToken: registered.body.credential_token,
            traceId: `t${(checks += 1)}`,
            spanId: 's',
            action: 'tool.call',
            resource: 'web_search',
          },
          null,
        )
      ).body;
    const denied = {
      decision: 'DECISION_DENY',
      cause: 'DECISION_CAUSE_CREDENTIAL',
      reason: expect.stringContaining('database'),
    };
    expect((await check()).reason).not.toContain('database');
    proxy.freeze();
    await eventually(async () => expect(await check()).toMatchObject(denied));
    expect((await cutOff.call('GET', '/readyz')).body).toMatchObject({ status: 'degraded', cluster: 'unreachable' });
    proxy.thaw();
    await eventually(async () => expect((await check()).reason).not.toContain('database'));
  });

  test('keep a halt whose gateway was killed, also one that was stopped meanwhile', async () => {
    const { check, scope } = await newAgent('outlived');
    const killed = await startMember(url, 'seven');
    onTestFinished(async () => void (await killed.stop('SIGKILL')));
    three.process.kill('SIGSTOP');
    try {
      const { headers, status } = await halt(killed, scope);
      expect([status, headers.get('svc-unconfirmed')]).toEqual([201, expect.stringMatching(/\bthree$/)]);
      await killed.stop('SIGKILL');
    } finally {
      three.process.kill('SIGCONT');
    }
    for (const gateway of [one, two]) expect(await check(gateway, 's')).toMatchObject(HALTED);
    await eventually(async () => expect(await check(three, `s${(made += 1)}`)).toMatchObject(HALTED));
  });

  test('keep operations closed whose home has died', async () => {
    const home = await startMember(url, 'eight');
    onTestFinished(async () => void (await home.stop('SIGKILL')));
    const { check } = await newAgent('orphan');
    const { opHome } = await check(home, 's'); // named, because those that were just killed cannot be asked
    expect((await one.call('POST', `/api/v1/ops/orphan:s/terminate?op_home=${opHome}`)).status).toBe(200);
    await home.stop('SIGKILL');
    for (const at of [two, three]) expect(await check(at, 's')).toMatchObject(DENIED_AS_CLOSED);
  });

  test('do not start on a database of their own, or with a signing key of their own', async () => {
    await expect(startMember('embedded', 'six', { SVC_JWT_PRIVATE_KEY: '' })).rejects.toThrow(
      /SVC_CLUSTER requires SVC_DATABASE_URL .*\n.*SVC_CLUSTER requires SVC_JWT_PRIVATE_KEY/,
    );
  });
});
