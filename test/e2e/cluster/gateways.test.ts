/** Gateways that act as one: who takes part, what holds everywhere, and what a replaced gateway does. */
import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { withPostgres } from '../../support/postgres.ts';
import { throughProxy } from '../../support/proxy.ts';

const newDatabase = withPostgres();
const SHARED_KEY = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const ENV = { SVC_JWT_PRIVATE_KEY: SHARED_KEY, SVC_ARGON2_MEMORY_KIB: '1024', SVC_IO_THREADS: '1', SVC_CLUSTER: 'on' };

const startMember = (url: string, name: string, env: Readonly<Record<string, string>> = {}): Promise<TestGateway> =>
  startTestGateway({ env: { ...ENV, SVC_DATABASE_URL: url, SVC_NODE_NAME: name, ...env } });

describe('gateways of a cluster', () => {
  let url: string;
  let one: TestGateway;
  let two: TestGateway;
  let three: TestGateway;

  beforeAll(async () => {
    url = await newDatabase();
    one = await startMember(url, 'one');
    [two, three] = await Promise.all([startMember(url, 'two'), startMember(url, 'three')]);
  });
  afterAll(() => Promise.all([one, two, three].map((gateway) => gateway?.stop('SIGKILL'))));

  const membersAt = async (gateway: TestGateway) =>
    (await gateway.call('GET', '/api/v1/cluster')).body.members as { name: string; state: string; run: string }[];
  const newKey = async () =>
    (await one.call('POST', '/api/v1/iam/api-keys', { name: 'k', scopes: ['read', 'write'] })).body;
  const revoke = (id: string) => one.call('POST', `/api/v1/iam/api-keys/${id}/revoke`);
  const usedAt = async (gateway: TestGateway, key: string) =>
    (await gateway.call('GET', '/api/v1/ops', undefined, key)).status;

  test('are listed with their leases at each of them', async () => {
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
        audit_head: null,
        unconfirmed: 0,
        stranded_usd: 0,
      });
    });
    expect((await two.call('GET', '/readyz')).body).toMatchObject({ status: 'ready', cluster: 'reachable' });
  });

  test('refuse a key at once when its revocation at one of them is answered', async () => {
    for (let round = 0; round < 10; round += 1) {
      const { id, key } = await newKey();
      expect(await Promise.all([usedAt(two, key), usedAt(three, key)])).toEqual([200, 200]);
      const revoked = await revoke(id);
      expect([revoked.status, revoked.headers.get('svc-unconfirmed')]).toEqual([204, null]);
      expect(await Promise.all([usedAt(two, key), usedAt(three, key)])).toEqual([401, 401]);
    }
  });

  test('name who has not confirmed a revocation; it acts by it before it serves again', async () => {
    const { id, key } = await newKey();
    expect(await usedAt(three, key)).toBe(200);
    three.process.kill('SIGSTOP');
    try {
      const revoked = await revoke(id);
      expect([revoked.status, revoked.headers.get('svc-unconfirmed')]).toEqual([204, 'three']);
      await eventually(async () => expect((await membersAt(one))[1]).toMatchObject({ state: 'suspect' }), 15_000);
    } finally {
      three.process.kill('SIGCONT');
    }
    expect(await usedAt(three, key)).toBe(401);
    await eventually(async () => expect((await membersAt(one))[1]).toMatchObject({ state: 'live', unconfirmed: 0 }));
  });

  const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
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
  const UNKNOWN = 'DECISION_CAUSE_CREDENTIAL';

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
      expect(body.agents.length).toBe(20);
    });
  });

  test('refuse a token at once that was rotated or deregistered at another of them', async () => {
    const first = (await register(one, 'rotated')).body.credential_token;
    expect((await checkAt(two, 'rotated', first)).cause).not.toBe(UNKNOWN);
    const again = await register(three, 'rotated');
    expect([again.status, again.headers.get('svc-unconfirmed')]).toEqual([200, null]);
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

  test('end when another takes their name', async () => {
    const older = await startMember(url, 'four');
    const before = (await membersAt(one)).find(({ name }) => name === 'four');
    const newer = await startMember(url, 'four');
    onTestFinished(async () => void (await newer.stop()));
    await eventually(() => expect(older.process.exitCode).toBe(1));
    expect(older.output.stderr).toContain('another gateway has taken the name of this one');
    const after = (await membersAt(one)).filter(({ name }) => name === 'four');
    expect(after.map(({ state }) => state)).toEqual(['live']);
    expect(after[0]?.run).not.toBe(before?.run);
  });

  test('are forgotten only once they cannot run any more', async () => {
    const running = await one.call('POST', '/api/v1/cluster/forget', { name: 'two' });
    expect([running.status, running.body.code]).toEqual([409, 'conflict']);
    expect((await one.call('POST', '/api/v1/cluster/forget', { name: 'nobody' })).status).toBe(404);
  });

  test('deny every check soon after they lost the database, where that is asked for', async () => {
    const { url: behind, proxy } = await throughProxy(url);
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
    await eventually(async () => expect(await check()).toMatchObject(denied), 15_000);
    expect((await cutOff.call('GET', '/readyz')).body).toMatchObject({ status: 'degraded', cluster: 'unreachable' });
    proxy.thaw();
    await eventually(async () => expect((await check()).reason).not.toContain('database'));
  });

  test('do not start on a database of their own, or with a signing key of their own', async () => {
    await expect(startMember('embedded', 'six', { SVC_JWT_PRIVATE_KEY: '' })).rejects.toThrow(
      /SVC_CLUSTER requires SVC_DATABASE_URL .*\n.*SVC_CLUSTER requires SVC_JWT_PRIVATE_KEY/,
    );
  });
});
