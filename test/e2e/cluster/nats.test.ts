/** Three gateways with NATS as their bus: what holds while it, or the database, or both are away. */
import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { connectAgent } from '../../support/agent.ts';
import { createCliHome } from '../../support/cli.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { NATS_SERVER, startNats, type TestNats } from '../../support/nats.ts';
import { policyFile } from '../../support/policies.ts';
import { withPostgres } from '../../support/postgres.ts';
import { startProxy, type TestProxy } from '../../support/proxy.ts';
import { openStream } from '../../support/stream.ts';

const newDatabase = withPostgres();
const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
const OF_AGENT = { org_id: 'acme', team_id: 'search', agent_id: 'crawler' };
const POLICY = 'name: p\nscope: global\nrules:\n  - { id: open, actions: ["tool.call"], effect: allow }\n';
const CLOSED = { decision: 'DECISION_DENY', cause: 'DECISION_CAUSE_OPERATION_STATE' };

describe.skipIf(NATS_SERVER === undefined)('gateways with NATS as their bus', () => {
  let nats: TestNats;
  let database: TestProxy;
  let one: TestGateway;
  let two: TestGateway;
  let three: TestGateway;
  let token: string;
  const env: Record<string, string> = {
    SVC_JWT_PRIVATE_KEY: generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    SVC_ARGON2_MEMORY_KIB: '1024',
    SVC_IO_THREADS: '1',
    SVC_CLUSTER: 'on',
  };
  const startMember = (name: string, more: Readonly<Record<string, string>> = {}): Promise<TestGateway> =>
    startTestGateway({ env: { ...env, SVC_NODE_NAME: name, ...more } });

  beforeAll(async () => {
    nats = await startNats('authorization { user: svc, password: secret, timeout: 30 }', afterAll);
    const url = new URL(await newDatabase());
    database = await startProxy(url.host);
    afterAll(() => database.close());
    url.host = database.address;
    env.SVC_DATABASE_URL = url.href;
    env.SVC_POLICY_PATH = policyFile(POLICY, afterAll).path;
    env.SVC_BUS_URL = `nats://svc:secret@127.0.0.1:${nats.port}`;
    one = await startMember('one');
    [two, three] = await Promise.all([startMember('two'), startMember('three')]);
    token = (await one.call('POST', '/api/v1/agents', { agent: OF_AGENT })).body.credential_token;
  });
  afterAll(async () => {
    await Promise.all([one, two, three].map((gateway) => gateway?.stop('SIGKILL')));
  });

  const checked = async (at: TestGateway, traceId: string) => {
    const subject = { traceId, spanId: 's', action: 'tool.call', resource: 'web_search' };
    const whole = { agent: AGENT, credentialToken: token, ...subject };
    return (await at.call('POST', '/svc.governance.v1.PolicyService/CheckAction', whole, null)).body;
  };
  const order = async (at: TestGateway, traceId: string, verb: string) => {
    const { status, body, headers } = await at.call('POST', `/api/v1/ops/${traceId}:s/${verb}`);
    return { status, is: body.state ?? body.code, unconfirmed: headers.get('svc-unconfirmed') };
  };
  const readiness = async (at: TestGateway) => (await at.call('GET', '/readyz')).body;
  const begin = async (at: TestGateway, traceId: string): Promise<void> =>
    expect(await checked(at, traceId)).toMatchObject({ decision: 'DECISION_ALLOW' });

  test('hold an order everywhere when it is answered, and say that the bus is there', async () => {
    await begin(one, 'ordered');
    expect(await order(two, 'ordered', 'pause')).toEqual({ status: 200, is: 'paused', unconfirmed: null });
    for (const at of [one, two, three]) expect(await checked(at, 'ordered')).toMatchObject(CLOSED);
    const ready = await readiness(one);
    expect([ready.status, ready.bus]).toEqual(['ready', undefined]);
    expect((await two.call('GET', '/metrics')).body).toContain('\nsvc_cluster_bus_connected 1\n');
  });

  test('take orders while the database is away, and nothing else that it has to keep', async () => {
    const connected = connectAgent(three.grpc, AGENT, token);
    onTestFinished(() => connected.close());
    const { signals } = await connected.control();
    for (const traceId of ['paused', 'ended']) await begin(one, traceId);
    database.refuse();
    onTestFinished(() => database.serve());
    expect(await order(two, 'paused', 'pause')).toEqual({ status: 200, is: 'paused', unconfirmed: 'database' });
    expect(await order(one, 'ended', 'terminate')).toEqual({ status: 200, is: 'terminated', unconfirmed: 'database' });
    for (const at of [one, two, three]) {
      expect(await checked(at, 'paused')).toMatchObject(CLOSED);
      expect(await checked(at, 'ended')).toMatchObject(CLOSED);
    }
    await eventually(() =>
      expect(signals.map(({ opId, signal }) => `${opId} ${signal}`)).toEqual(
        expect.arrayContaining(['paused:s pause', 'ended:s terminate']),
      ),
    );
    // Also once every gateway knows that it is cut off.
    await eventually(async () => expect((await readiness(one)).cluster).toBe('unreachable'), 15_000);
    expect(await order(three, 'paused', 'resume')).toEqual({ status: 200, is: 'running', unconfirmed: 'database' });
    for (const [path, body] of [
      ['agents', { agent: { ...OF_AGENT, agent_id: 'newcomer' } }],
      ['halts', { scope: 'org:other', reason: 'a test' }],
      ['iam/api-keys', { name: 'k', scopes: ['read'] }],
    ] as const)
      expect((await two.call('POST', `/api/v1/${path}`, body)).status).toBe(503);
    database.serve();
    await eventually(async () => expect((await readiness(one)).status).toBe('ready'), 15_000);
    for (const at of [one, two, three]) expect(await checked(at, 'ended')).toMatchObject(CLOSED);
    // Written once it is back: also the operation's gateway may end now.
    const late = await startMember('late');
    onTestFinished(async () => void (await late.stop('SIGKILL')));
    expect(await checked(late, 'ended')).toMatchObject(CLOSED);
  });

  test('start without the bus, but not with settings that can never be right', async () => {
    const nobody = await freePort();
    const alone = await startMember('alone', { SVC_BUS_URL: `nats://127.0.0.1:${nobody}` });
    onTestFinished(async () => void (await alone.stop()));
    expect(await readiness(alone)).toMatchObject({ status: 'degraded', bus: 'unreachable', cluster: 'reachable' });
    expect(alone.output.stderr).toContain('the bus of the cluster is cut off');
    await expect(startMember('wrong', { SVC_BUS_URL: `nats://svc:wrong@127.0.0.1:${nats.port}` })).rejects.toThrow(
      /cannot use the bus in SVC_BUS_URL: the credentials are refused by 127\.0\.0\.1:\d+/,
    );
    const contradicting = {
      ...{ SVC_CLUSTER: '', SVC_BUS_CA_FILE: '/ca.pem', SVC_BUS_CREDENTIALS_FILE: '/svc.creds' },
      SVC_BUS_CERT_FILE: '/cert.pem',
    };
    await expect(startMember('wrong', contradicting)).rejects.toThrow(
      /SVC_BUS_URL requires SVC_CLUSTER=on.*\n.*SVC_BUS_CA_FILE requires .*\n.*require each other.*\n.*SVC_BUS_CREDENTIALS_FILE requires/,
    );
  });

  test('go on without the bus, and have what they missed once it is back', async () => {
    const home = createCliHome();
    onTestFinished(() => home.remove());
    const stream = await openStream(three);
    onTestFinished(() => stream.close());
    await eventually(async () => {
      await begin(one, `seen-${stream.frames.length}-${Math.random()}`);
      await eventually(() => expect(stream.frames.length).toBeGreaterThan(0), 500);
    });
    for (const traceId of ['alone', 'left']) await begin(one, traceId);
    await nats.kill();
    for (const at of [one, two, three])
      await eventually(async () =>
        expect(await readiness(at)).toMatchObject({ status: 'degraded', bus: 'unreachable' }),
      );
    expect((await two.call('GET', '/metrics')).body).toContain('\nsvc_cluster_bus_connected 0\n');
    await eventually(async () => {
      const { stdout } = await home.run(['cluster', 'ls'], {
        env: { SVC_CLI_API_URL: one.url, SVC_CLI_API_KEY: ADMIN_KEY },
      });
      expect(stdout.split('\n').filter((line) => line.includes('cut off')).length).toBeGreaterThanOrEqual(3);
    });
    // The operation's own gateway takes the order; those that did not hear of it follow by themselves.
    const ordered = await order(one, 'alone', 'pause');
    expect([ordered.status, ordered.is, ordered.unconfirmed?.split(', ').sort()]).toEqual([
      200,
      'paused',
      expect.arrayContaining(['three', 'two']),
    ]);
    // Elsewhere it is left for the gateway where it lives.
    const left = await order(two, 'left', 'terminate');
    expect([left.status, left.is, left.unconfirmed?.split(', ').sort()]).toEqual([
      200,
      'terminated',
      expect.arrayContaining(['one', 'three']),
    ]);
    // Two readings, one after the other: the first has ended with all that there was before it.
    for (const scope of ['org:silent', 'org:quiet']) {
      const halted = await one.call('POST', '/api/v1/halts', { scope, reason: 'a test' });
      expect([halted.status, halted.headers.get('svc-unconfirmed')?.split(', ').sort()]).toEqual([
        201,
        expect.arrayContaining(['three', 'two']),
      ]);
      for (const at of [two, three])
        await eventually(async () => {
          const { body } = await at.call('GET', '/api/v1/halts');
          expect(body.halts.map((halt: { scope: string }) => halt.scope)).toContain(scope);
        });
    }
    for (const at of [two, three]) expect(await checked(at, 'alone')).toMatchObject(CLOSED);
    for (const at of [one, two, three]) expect(await checked(at, 'left')).toMatchObject(CLOSED);
    for (let nth = 0; nth < 3; nth += 1) await begin(one, `unseen-${nth}`);
    await nats.restart();
    for (const at of [one, two, three])
      await eventually(async () => expect((await readiness(at)).status).toBe('ready'));
    await eventually(async () => expect(await order(two, 'alone', 'resume')).toMatchObject({ status: 200 }));
    // Events from meanwhile are not shown any more, but counted.
    await eventually(async () => {
      await begin(one, `after-${Math.random()}`);
      expect(stream.frames.map(({ event_type }) => event_type)).toContain('lagged');
    });
  });
});
