/** The client over HTTP alone, against a real gateway, and against what stands in its place. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type AgentClient, type AgentClientOptions, createAgentClient } from 'svc-gateway-sdk/fetch';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';
import { policyFile } from '../support/policies.ts';

const POLICY = `
name: p
scope: global
rules:
  - { id: open, actions: ["*"], effect: allow }
  - { id: never, resources: [rm], effect: deny, reason: too dangerous }
  - { id: ask, resources: [pay], effect: require_approval }
  - id: refunds
    resources: [refund]
    effect: allow
    obligations: [{ id: little, type: cap, path: amount, max: 100 }]
`;

let gateway: GatewayHere;
let agents = 0;

function connect(options: AgentClientOptions = {}): AgentClient {
  agents += 1;
  const credential = options.credentialToken === undefined ? { apiKey: ADMIN_KEY } : {};
  const client = createAgentClient({
    url: gateway.url,
    agent: `acme/web/agent-${agents}`,
    ...credential,
    onWarning: () => {},
    ...options,
    deadlines: { signalMs: 50, outageMs: 0, ...options.deadlines },
  } as AgentClientOptions);
  onTestFinished(() => client.close());
  return client;
}

/** Answers every request so. */
async function answering(status: number, body: string, headers: Record<string, string> = {}): Promise<string> {
  const server = createServer((_request, response) => response.writeHead(status, headers).end(body));
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

beforeAll(async () => {
  gateway = await startGatewayHere({ env: { SVC_POLICY_PATH: policyFile(POLICY, afterAll).path } });
});
afterAll(() => gateway.stop());

describe('a client over HTTP', () => {
  test('registers its agent, checks, and says how each call ends', async () => {
    const client = connect();
    await client.ready();
    expect(client.state).toBe('connected');
    const refund = client.guard('refund', (order: { amount: number }) => order.amount);
    expect(await refund({ amount: 500 })).toBe(100);
    await expect(client.guard('rm', () => 1)()).rejects.toMatchObject({ cause: 'rule', ruleId: 'never' });
    const failing = client.guard('search', () => {
      throw new Error('no network');
    });
    await expect(failing()).rejects.toThrow('no network');
    const { ops } = (await gateway.call('GET', `/api/v1/ops?agent_id=agent-${agents}`)).body;
    expect(ops.map(({ resource, ended }: Record<string, string>) => `${resource} ${ended}`).sort()).toEqual([
      'refund completed',
      'rm denied',
      'search failed',
    ]);
    expect(await client.recordUsage({ costUsd: 0.01 })).toEqual({ status: 'ok' });
  });

  test('waits for people, and runs once they approve', async () => {
    const client = connect();
    const paid = client.guard('pay', (order: object) => order)({ amount: 5 });
    const { id } = await eventually(async () => {
      const { approvals } = (await gateway.call('GET', '/api/v1/approvals?state=pending')).body;
      expect(approvals).toHaveLength(1);
      return approvals[0];
    });
    const own = await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'approver', scopes: ['admin'] });
    await gateway.call('POST', `/api/v1/approvals/${id}/approve`, { reason: 'fine' }, own.body.key);
    expect(await paid).toEqual({ amount: 5 });
  });

  test('obeys operators, whom it asks for while a body runs', async () => {
    const client = connect();
    const states: string[] = [];
    const run = client.run({ action: 'tool.call', resource: 'long' }, async (op) => {
      await gateway.call('POST', `/api/v1/ops/${op.opId}/pause`, { reason: 'look' });
      await expect.poll(() => op.state).toBe('paused');
      await gateway.call('POST', `/api/v1/ops/${op.opId}/resume`, { reason: 'go' });
      await op.checkpoint();
      states.push(op.state);
      await gateway.call('POST', `/api/v1/ops/${op.opId}/terminate`, { reason: 'stop' });
      await new Promise((resolve) => op.signal.addEventListener('abort', resolve));
    });
    await expect(run).rejects.toMatchObject({ name: 'OpTerminatedError' });
    expect(states).toEqual(['running']);
  });

  test('is refused with an unknown token, and says so', async () => {
    const client = connect({ credentialToken: 'svcagent_made_up' });
    await expect(client.ready()).rejects.toMatchObject({ code: 'unauthenticated' });
    expect(client.state).toBe('refused');
    expect(await client.check({ action: 'tool.call' })).toMatchObject({ decision: 'deny', cause: 'credential' });
  });

  test('denies while nobody listens', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const client = connect({ url, credentialToken: 'token' });
    expect(await client.check({ action: 'tool.call' })).toMatchObject({
      decision: 'deny',
      unreachable: true,
      reason: `cannot reach the gateway: no connection to ${url}: the connection was refused`,
    });
    expect(client.state).toBe('reconnecting');
  });

  test.each([
    [502, '<html>bad gateway</html>', 'cannot reach the gateway: URL has answered with the status 502'],
    [200, '<html>welcome</html>', 'cannot reach the gateway: URL is not a gateway: its answer cannot be read'],
    [200, '[]', 'cannot reach the gateway: URL is not a gateway: its answer cannot be read'],
    [302, '', 'cannot reach the gateway: URL has answered with the status 302'],
  ])('denies where something else answers %i %s', async (status, body, reason) => {
    const url = await answering(status, body, { location: gateway.url });
    const answer = await connect({ url, credentialToken: 'token' }).check({ action: 'tool.call' });
    expect({ ...answer, reason: answer.reason.replace(url, 'URL') }).toMatchObject({
      decision: 'deny',
      unreachable: true,
      reason,
    });
  });

  test('reads an answer without a decision, or with one of the future, as a deny', async () => {
    for (const body of ['{}', '{"decision":"DECISION_MAYBE"}', '{"decision":1}']) {
      const client = connect({ url: await answering(200, body), credentialToken: 'token' });
      expect(await client.check({ action: 'tool.call' })).toMatchObject({ decision: 'deny', unreachable: false });
    }
  });

  test('gives up a check that is not answered in time', async () => {
    const server = createServer(() => {});
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = connect({ url, credentialToken: 'token', deadlines: { checkMs: 100, callMs: 100 } });
    expect(await client.check({ action: 'tool.call' })).toMatchObject({
      decision: 'deny',
      unreachable: true,
      reason: 'cannot reach the gateway: no answer within 100 ms',
    });
    server.closeAllConnections();
  });
});

describe('the options of a client over HTTP', () => {
  const ENV = { ...process.env };
  const withEnv = (env: Record<string, string>): void => {
    Object.assign(process.env, env);
    onTestFinished(() => {
      for (const name of Object.keys(env)) delete process.env[name];
      Object.assign(process.env, ENV);
    });
  };

  test('come from the environment where they are not given', async () => {
    withEnv({ SVC_GATEWAY_URL: `${gateway.url}/`, SVC_AGENT: 'acme/web/from-env', SVC_API_KEY: ADMIN_KEY });
    const client = createAgentClient();
    onTestFinished(() => client.close());
    expect(await client.guard('search', () => 'found')()).toBe('found');
  });

  test.each([
    [{ address: '127.0.0.1:1' }, /^address is that of gRPC/],
    [{ url: '127.0.0.1:8080' }, /^url must be that of the gateway's HTTP port/],
    [{ url: 'ftp://127.0.0.1' }, /^url must be that of the gateway's HTTP port/],
    [{ url: 'http://user:secret@127.0.0.1' }, /^url must be that of the gateway's HTTP port/],
    [{ agent: 'acme/web' }, /^agent must be <org>\/<team>\/<agent>, with - for no organization$/],
    [{ agent: undefined }, /^agent is missing/],
    [{ tls: {} }, /^tls applies to gRPC only/],
    [{ fetch: 'fetch' }, /^fetch must be a function/],
    [{ credentialToken: '' }, /^credentialToken is empty/],
    [{ apiKey: 'key' }, /^set only one of credentialToken and apiKey/],
  ])('are checked before anything is sent: %j', (options, message) => {
    const given = { agent: 'acme/web/a', credentialToken: 'token', ...options } as AgentClientOptions;
    expect(() => createAgentClient(given)).toThrow(message);
  });
});
