import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { connectAgent, type TestAgent } from '../support/agent.ts';
import { ARRANGEMENTS } from '../support/arrangements.ts';
import { fastestMs } from '../support/fastest.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';

let gateway: TestGateway;
let agent: TestAgent;
let name: string;
let made = 0;
const opened: TestAgent[] = [];

describe.each(ARRANGEMENTS)('control, $arrangement', ({ env }) => {
  beforeAll(async () => {
    gateway = await startTestGateway({ env });
  });
  afterAll(async () => {
    await gateway.stop();
  });
  beforeEach(async () => {
    name = `agent-${(made += 1)}`;
    agent = await registered(name);
  });
  afterEach(() => {
    for (const each of opened.splice(0)) each.close();
  });

  const identity = (agentId: string) => ({ orgId: 'acme', teamId: 'search', agentId });
  const tokenOf = (agentId: string, generation = 1) => `token-${generation}-of-${agentId}-0123456789-0123456789`;

  function connect(agentId: string, token = tokenOf(agentId), bearer?: string): TestAgent {
    const connected = connectAgent(gateway.grpc, identity(agentId), token, bearer);
    opened.push(connected);
    return connected;
  }

  const register = (agentId: string, generation = 1) =>
    gateway.call('POST', '/api/v1/agents', {
      agent: { org_id: 'acme', team_id: 'search', agent_id: agentId },
      credential_token: tokenOf(agentId, generation),
    });

  async function registered(agentId: string): Promise<TestAgent> {
    expect((await register(agentId)).status).toBe(201);
    return connect(agentId);
  }

  /** Starts an operation of the agent, which is allowed to run. */
  async function running(trace: string, by = agent): Promise<string> {
    const { opId, opState } = await by.check(`${name}-${trace}`);
    expect(opState).toBe('running');
    return opId;
  }

  async function control(opId: string, trigger: string) {
    const { status, body } = await gateway.call('POST', `/api/v1/ops/${opId}/${trigger}`);
    expect(status).toBe(200);
    return body;
  }
  const acknowledgedAt = async (opId: string) =>
    (await gateway.call('GET', `/api/v1/ops/${encodeURIComponent(opId)}`)).body.acknowledged_at;

  test('controls over HTTP reach the owning agent alone, in numbered order', async () => {
    const other = await registered(`${name}-other`);
    const [mine, theirs] = [await agent.control(), await other.control()];
    const opId = await running('a');
    const quiet = await running('b', other);
    for (const trigger of ['pause', 'resume', 'terminate']) await control(opId, trigger);
    await control(quiet, 'pause');
    const signals = await mine.received(3);
    expect(signals.map((message) => [message.opId, message.signal])).toEqual([
      [opId, 'pause'],
      [opId, 'resume'],
      [opId, 'terminate'],
    ]);
    const [first, second, third] = signals.map(({ sequence }) => sequence);
    expect(first! < second! && second! < third!).toBe(true);
    expect((await theirs.received(1)).map((message) => [message.opId, message.signal])).toEqual([[quiet, 'pause']]);
    expect(mine.signals).toHaveLength(3);
  });

  test('every stream of the agent gets a signal', async () => {
    const [one, two] = [await agent.control(), await connect(name).control()];
    const opId = await running('a');
    await control(opId, 'pause');
    expect({ one: (await one.received(1))[0]!.opId, two: (await two.received(1))[0]!.opId }).toEqual({
      one: opId,
      two: opId,
    });
  });

  test('an acknowledged signal is shown on the operation until the next', async () => {
    const feed = await agent.control();
    const opId = await running('a');
    expect(await control(opId, 'pause')).toMatchObject({ state: 'paused', acknowledged_at: null });
    const [pause] = await feed.received(1);
    await agent.acknowledge(opId, pause!.sequence);
    expect(await acknowledgedAt(opId)).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    await agent.acknowledge(opId, pause!.sequence); // said twice: no error
    expect(await control(opId, 'resume')).toMatchObject({ state: 'running', acknowledged_at: null });
    await expect(agent.acknowledge(opId, pause!.sequence + 1_000_000)).rejects.toMatchObject({
      details: `signal ${pause!.sequence + 1_000_000} for operation ${opId} not found`,
    });
    expect(await acknowledgedAt(opId)).toBe(null);
  });

  test('only the owner can acknowledge', async () => {
    const other = await registered(`${name}-other`);
    const feed = await agent.control();
    const opId = await running('a');
    await control(opId, 'pause');
    const [pause] = await feed.received(1);
    await expect(other.acknowledge(opId, pause!.sequence)).rejects.toMatchObject({
      details: `operation ${opId} belongs to another agent`,
    });
    expect(await acknowledgedAt(opId)).toBe(null);
  });

  test("an agent that connects late or again gets each operation's latest open signal", async () => {
    const [done, changed, open] = [await running('done'), await running('changed'), await running('open')];
    const first = await agent.control();
    for (const opId of [done, changed, open]) await control(opId, 'pause');
    const [pause] = await first.received(3);
    await agent.acknowledge(done, pause!.sequence);
    first.cancel();
    await first.ended;
    await control(changed, 'resume'); // nobody listens
    const again = await agent.control();
    expect((await again.received(2)).map((message) => [message.opId, message.signal])).toEqual([
      [open, 'pause'],
      [changed, 'resume'],
    ]);
    const rest = await agent.control(again.signals[0]!.sequence);
    expect((await rest.received(1)).map((message) => [message.opId, message.signal])).toEqual([[changed, 'resume']]);
  });

  test('the record of an operation says what it does, and how it ended', async () => {
    const opId = await running('said');
    const { body: before } = await gateway.call('GET', `/api/v1/ops/${opId}`);
    expect(before).toMatchObject({ action: 'tool.call', resource: 'web_search', approval_id: null, ended: null });
    expect(before).toMatchObject({
      policy: expect.any(String),
      rule_id: expect.any(String),
      spent_usd: 0,
      error: null,
    });
    const complete = (body: object) => gateway.call('POST', `/api/v1/ops/${opId}/complete`, body);
    for (const [body, field] of [
      [{ outcome: 'OUTCOME_SUCCESS', error: 'x' }, 'error'],
      [{ outcome: 'OUTCOME_FAILURE', error: 'ä'.repeat(513) }, 'error'],
      [{ outcome: 'perhaps' }, 'outcome'],
    ] as const)
      expect(await complete(body)).toMatchObject({ status: 400, body: { field } });
    expect((await complete({ outcome: 'perhaps' })).body.detail).toBe(
      'outcome: must be one of OUTCOME_SUCCESS, OUTCOME_FAILURE',
    );
    const error = 'ä'.repeat(512);
    expect((await complete({ outcome: 'OUTCOME_FAILURE', error })).body).toMatchObject({
      state: 'completing',
      ended: 'failed',
      error,
    });
  });

  test('a complete operation sends no more signals', async () => {
    const opId = await running('a');
    await control(opId, 'pause');
    await control(opId, 'resume');
    await control(opId, 'complete');
    const feed = await agent.control();
    const other = await running('b');
    await control(other, 'pause');
    expect((await feed.received(1)).map((message) => message.opId)).toEqual([other]);
  });

  test('signal numbers keep growing over restarts, so a resuming agent misses nothing', async () => {
    const before = await agent.control();
    const opId = await running('a');
    await control(opId, 'pause');
    const [last] = await before.received(1);
    const next = await startTestGateway({ env });
    await next.call('POST', '/api/v1/agents', {
      agent: { org_id: 'acme', team_id: 'search', agent_id: name },
      credential_token: tokenOf(name),
    });
    const there = connectAgent(next.grpc, identity(name), tokenOf(name));
    opened.push(there);
    const { opId: newOp } = await there.check('after-restart');
    const feed = await there.control(last!.sequence);
    await next.call('POST', `/api/v1/ops/${newOp}/pause`);
    expect((await feed.received(1))[0]!.opId).toBe(newOp);
    await next.stop();
  });

  test('replacing or removing a token closes its streams', async () => {
    const feed = await agent.control();
    expect((await register(name, 2)).status).toBe(200);
    expect(await feed.ended).toBe('UNAUTHENTICATED');
    expect(await (await agent.control()).ended).toBe('UNAUTHENTICATED');
    const renewed = connect(name, tokenOf(name, 2));
    const second = await renewed.control();
    expect((await gateway.call('DELETE', `/api/v1/agents/acme/search/${name}`)).status).toBe(204);
    expect(await second.ended).toBe('UNAUTHENTICATED');
    expect(await (await renewed.control()).ended).toBe('UNAUTHENTICATED');
  });

  test('revoking a key closes its control streams within 100 ms, and no others', async () => {
    const own = await agent.control();
    const closedAfterMs = async (): Promise<number> => {
      const { body } = await gateway.call('POST', '/api/v1/iam/api-keys', {
        name: 'sidecar',
        scopes: ['write'],
        org_id: 'acme',
      });
      const { body: exchanged } = await gateway.call('POST', '/api/v1/auth/token', {}, body.key);
      const feeds = await Promise.all(
        [connect(name, '', body.key), connect(name, '', exchanged.token)].map((vouched) => vouched.control()),
      );
      const ended = Promise.all(feeds.map(async (feed) => ({ status: await feed.ended, atMs: performance.now() })));
      expect((await gateway.call('POST', `/api/v1/iam/api-keys/${body.id}/revoke`)).status).toBe(204);
      const revokedAtMs = performance.now();
      expect((await ended).map(({ status }) => status)).toEqual(['UNAUTHENTICATED', 'UNAUTHENTICATED']);
      return Math.max(...(await ended).map(({ atMs }) => atMs)) - revokedAtMs;
    };
    expect(await fastestMs(100, closedAfterMs)).toBeLessThan(100);
    const opId = await running('a');
    await control(opId, 'pause');
    await own.received(1);
  });

  test('an expiring key ends its control streams', async () => {
    const { body } = await gateway.call('POST', '/api/v1/iam/api-keys', {
      name: 'for a moment',
      scopes: ['write'],
      org_id: 'acme',
      expires_at: new Date(Date.now() + 5_000).toISOString(),
    });
    const feed = await connect(name, '', body.key).control();
    const opId = await running('a');
    await control(opId, 'pause');
    await feed.received(1);
    expect(await feed.ended).toBe('UNAUTHENTICATED');
  });

  test('an agent gets the signals of operators of its own org only', async () => {
    const { body } = await gateway.call('POST', '/api/v1/iam/api-keys', {
      name: 'stranger',
      scopes: ['write'],
      org_id: 'globex',
    });
    expect(await (await connect(name, '', body.key).control()).ended).toBe('PERMISSION_DENIED');
    const opId = await running('a');
    expect((await gateway.call('POST', `/api/v1/ops/${opId}/pause`, undefined, body.key)).status).toBe(404);
  });

  test('a late agent gets thousands of signals on one stream, and those after them', async () => {
    const many = Array.from({ length: 1_500 }, (_, at) => `${name}-op-${at}`);
    for (let at = 0; at < many.length; at += 1_000) {
      const requests = many.slice(at, at + 1_000).map((traceId) => ({
        agent: identity(name),
        credentialToken: tokenOf(name),
        traceId,
        spanId: 's',
        action: 'tool.call',
        resource: 'web_search',
      }));
      expect(
        (await gateway.call('POST', '/svc.governance.v1.PolicyService/BatchCheckActions', { requests }, null)).status,
      ).toBe(200);
    }
    for (let at = 0; at < many.length; at += 100)
      await Promise.all(many.slice(at, at + 100).map((traceId) => control(`${traceId}:s`, 'pause')));
    const feed = await agent.control();
    await feed.received(1_500);
    await control(`${many[0]}:s`, 'resume');
    const signals = await feed.received(1_501);
    expect(new Set(signals.slice(0, 1_500).map(({ opId, signal }) => `${signal} ${opId}`))).toEqual(
      new Set(many.map((traceId) => `pause ${traceId}:s`)),
    );
    expect(signals.at(-1)).toMatchObject({ opId: `${many[0]}:s`, signal: 'resume' });
  });
});
