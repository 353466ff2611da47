import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  type AgentClient,
  type AgentClientOptions,
  type ClientState,
  createAgentClient,
  type Op,
} from '../../sdk/typescript/src/index.ts';
import { auditEntries } from '../support/audit-log.ts';
import { workForEver } from '../support/endless-body.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startProxy, type TestProxy } from '../support/proxy.ts';
import { scriptedGateway } from '../support/scripted-gateway.ts';

const SEARCH = { action: 'tool.call', resource: 'web_search' };
const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };

const cleanUp: (() => unknown)[] = [];
describe('outage', () => {
  afterEach(async () => {
    for (const undo of cleanUp.splice(0).reverse()) await undo();
  });

  /** For the tests in which it is never away, only not to be reached. */
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  /** The one that is killed: as it came back for one test, the next one finds it. */
  let mortal: TestGateway | undefined;
  let home: { readonly dataDir: string; readonly env: Readonly<Record<string, string>> } | undefined;
  afterAll(async () => {
    await Promise.all([gateway?.stop('SIGKILL'), mortal?.stop('SIGKILL')]);
    if (home !== undefined) rmSync(home.dataDir, { recursive: true, force: true });
  });

  /** A gateway that comes back on the same ports with the same data. */
  async function restartable(): Promise<{ gateway: TestGateway; restart: () => Promise<TestGateway> }> {
    home ??= {
      dataDir: mkdtempSync(join(tmpdir(), 'svc-sdk-')),
      env: { SVC_HTTP_ADDR: `127.0.0.1:${await freePort()}`, SVC_GRPC_ADDR: `127.0.0.1:${await freePort()}` },
    };
    const restart = async () => {
      mortal = undefined; // a test that failed leaves none
      mortal = await startTestGateway(home);
      return mortal;
    };
    const gateway = mortal ?? (await restart());
    return {
      gateway: { ...gateway, stop: (signal) => ((mortal = undefined), gateway.stop(signal)) },
      restart,
    };
  }

  function connect(address: string, options: Partial<AgentClientOptions> = {}): AgentClient {
    const client = createAgentClient({
      address,
      agent: AGENT,
      onWarning: () => {},
      ...('credentialToken' in options ? {} : { apiKey: ADMIN_KEY }),
      ...options,
    } as AgentClientOptions);
    cleanUp.push(() => client.close());
    return client;
  }

  /** Whom the audit log knows to have been registered, once for each time. */
  const registrationsIn = ({ dataDir }: TestGateway): string[] =>
    auditEntries(dataDir)
      .filter(({ event_type }) => event_type === 'AgentRegistered')
      .map(({ lineage }) => String(lineage.agent_id))
      .sort();

  const failureOf = (promise: Promise<unknown>): Promise<any> =>
    promise.then(
      () => {
        throw new Error('it did not fail');
      },
      (error: unknown) => error,
    );
  const isConnected = (agent: AgentClient) => eventually(() => expect(agent.state).toBe('connected'));

  test('a killed gateway finds its agent again: token, checks and signals', async () => {
    const { gateway, restart } = await restartable();
    const states: ClientState[] = [];
    const agent = connect(gateway.grpc, {
      agent: { ...AGENT, agentId: 'strict' },
      onStateChange: (state) => states.push(state),
      deadlines: { outageMs: 200, closeMs: 200 },
    });
    const lenient = connect(gateway.grpc, {
      agent: { ...AGENT, agentId: 'lenient' },
      onUnreachable: 'allow',
      deadlines: { outageMs: 0 },
    });
    await Promise.all([agent.ready(), lenient.ready()]);
    expect(await agent.check(SEARCH)).toMatchObject({ decision: 'allow', unreachable: false });
    await gateway.stop('SIGKILL');

    const denied = await agent.check(SEARCH);
    expect(denied).toMatchObject({ decision: 'deny', unreachable: true, opState: undefined });
    expect(denied.reason).toMatch(/^cannot reach the gateway: /);
    expect(await lenient.check(SEARCH)).toMatchObject({ decision: 'allow', unreachable: true });
    expect(await failureOf(agent.run(SEARCH, () => {}))).toMatchObject({
      name: 'ActionDeniedError',
      unreachable: true,
    });
    expect(await lenient.run(SEARCH, () => 'ungoverned')).toBe('ungoverned');

    const back = await restart();
    await isConnected(agent);
    expect(states).toEqual(['connected', 'reconnecting', 'connected']);
    expect(await agent.check(SEARCH)).toMatchObject({ decision: 'allow', unreachable: false });
    // It was registered once: the token is still valid.
    expect(registrationsIn(back).filter((name) => name !== AGENT.agentId)).toEqual(['lenient', 'strict']);
    let opId = '';
    const result = agent.run(SEARCH, async (op) => {
      opId = op.opId;
      return workForEver(op);
    });
    result.catch(() => {});
    await eventually(async () => expect((await back.call('POST', `/api/v1/ops/${opId}/terminate`)).status).toBe(200));
    expect(await failureOf(result)).toMatchObject({ name: 'OpTerminatedError', opId });
  });

  test('checks survive a restart shorter than the allowed outage', async () => {
    const { gateway, restart } = await restartable();
    const agent = connect(gateway.grpc, { deadlines: { outageMs: 100_000, checkMs: 100_000 } });
    await agent.ready();
    await gateway.stop('SIGKILL');
    const answers = Array.from({ length: 50 }, () => agent.check(SEARCH));
    await restart();
    for (const answer of await Promise.all(answers))
      expect(answer).toMatchObject({ decision: 'allow', unreachable: false });
  });

  test('usage and completions survive a restart for the call time-out', async () => {
    const { gateway, restart } = await restartable();
    const agent = connect(gateway.grpc, {
      agent: { ...AGENT, teamId: 'spending' },
      deadlines: { outageMs: 0, callMs: 30_000 },
    });
    await agent.ready();
    await gateway.stop('SIGKILL');
    expect(await agent.check(SEARCH)).toMatchObject({ unreachable: true });
    const spent = agent.recordUsage({ costUsd: 0.25 });
    const done = failureOf(agent.complete('trace:span'));
    const back = await restart();
    expect(await spent).toEqual({ status: 'ok' });
    expect(await done).toMatchObject({ code: 'not_found' });
    expect(
      (await back.call('GET', '/api/v1/budgets?org_id=acme')).body.budgets.map(
        (row: any) => `${row.tier} ${row.daily.spent_usd}`,
      ),
    ).toContain('agent 0.25');
  });

  test('a completion whose answer is lost succeeds once, unless it was terminated', async () => {
    const proxy = await startProxy(gateway.grpc);
    cleanUp.push(() => proxy.close());
    const agent = connect(proxy.address);
    await agent.ready();
    const { opId } = await agent.check(SEARCH);
    proxy.cutAt(opId, 'answered');
    await agent.complete(opId, { costUsd: 0.5 });
    expect((await gateway.call('GET', `/api/v1/ops/${opId}`)).body).toMatchObject({ state: 'completing' });
    expect(
      (await gateway.call('GET', '/api/v1/budgets?org_id=acme')).body.budgets.map(
        (row: any) => `${row.tier} ${row.daily.spent_usd}`,
      ),
    ).toContain('agent 0.5');
    // Completing it once more is the mistake that it was.
    expect(await failureOf(agent.complete(opId))).toMatchObject({
      code: 'failed_precondition',
      fault: 'invalid_transition',
    });

    const stopped = await agent.check(SEARCH);
    expect((await gateway.call('POST', `/api/v1/ops/${stopped.opId}/terminate`)).status).toBe(200);
    proxy.cutAt(stopped.opId, 'answered');
    expect(await failureOf(agent.complete(stopped.opId))).toMatchObject({
      code: 'failed_precondition',
      fault: 'invalid_transition',
      message: `cannot complete operation ${stopped.opId}: it is terminated`,
    });
  });

  test('checks in flight when the connection is cut all get their own answer', async () => {
    const proxy = await startProxy(gateway.grpc);
    cleanUp.push(() => proxy.close());
    const agent = connect(proxy.address, { deadlines: { checkMs: 100_000, outageMs: 100_000 } });
    await agent.ready();
    const answers = Array.from({ length: 2_000 }, (_, index) =>
      agent.check({
        action: 'tool.call',
        resource: index % 2 === 0 ? 'clock' : `unknown-${index}`,
        traceId: 'cut',
        spanId: String(index),
      }),
    );
    for (let cuts = 0; cuts < 3; cuts += 1) {
      await sleep(15);
      proxy.cut();
    }
    for (const [index, answer] of (await Promise.all(answers)).entries()) {
      expect(answer).toMatchObject({
        decision: index % 2 === 0 ? 'allow' : 'deny',
        opId: `cut:${index}`,
        unreachable: false,
      });
    }
    expect(proxy.accepted()).toBeGreaterThan(1);
  });

  test('a signal sent while the agent was away reaches it on return', async () => {
    const proxy = await startProxy(gateway.grpc);
    cleanUp.push(() => proxy.close());
    const agent = connect(proxy.address);
    await agent.ready();
    const result = agent.run(SEARCH, async (op) => {
      proxy.freeze();
      proxy.cut();
      expect((await gateway.call('POST', `/api/v1/ops/${op.opId}/pause`)).status).toBe(200);
      expect(op.state).toBe('running');
      proxy.thaw();
      proxy.cut();
      await eventually(() => expect(op.state).toBe('paused'));
      await gateway.call('POST', `/api/v1/ops/${op.opId}/resume`);
      await op.checkpoint();
      return 'resumed';
    });
    expect(await result).toBe('resumed');
  });

  test('a silent gateway is answered for at the deadline', async () => {
    const proxy = await startProxy(gateway.grpc);
    cleanUp.push(() => proxy.close());
    const agent = connect(proxy.address, { deadlines: { checkMs: 300, closeMs: 100 } });
    await agent.ready();
    await agent.check(SEARCH);
    proxy.freeze();
    const answer = await agent.check(SEARCH);
    expect(answer).toMatchObject({
      decision: 'deny',
      unreachable: true,
      reason: 'cannot reach the gateway: no answer within 300 ms',
    });
    // Allowed too late, nobody acts on it: it does not stay open at the gateway.
    proxy.thaw();
    await eventually(async () =>
      expect((await gateway.call('GET', `/api/v1/ops/${answer.opId}`)).body).toMatchObject({ state: 'completing' }),
    );
  });

  test('a resume during reconnection continues the agent without a false restart notice', async () => {
    // A gateway whose answer to the check overtakes the signal.
    const { address, opened } = await scriptedGateway();
    const warnings: string[] = [];
    const agent = connect(address, {
      credentialToken: 'any-token',
      onWarning: ({ message }) => warnings.push(message),
    });
    await agent.ready();
    await agent.run(SEARCH, async (op) => {
      opened[0]?.write({ opId: op.opId, signal: 'pause', sequence: 1 });
      await eventually(() => expect(op.state).toBe('paused'));
      opened[0]?.end();
      await eventually(() => expect(opened).toHaveLength(2));
      await sleep(300);
      opened[1]?.write({ opId: op.opId, signal: 'resume', sequence: 2 });
      await op.checkpoint();
    });
    expect(warnings).toEqual([]);
  });

  test('an operation allowed without the gateway is under its control once it answers', async () => {
    const proxy = await startProxy(gateway.grpc);
    cleanUp.push(() => proxy.close());
    const agent = connect(proxy.address, { onUnreachable: 'allow', deadlines: { checkMs: 300, closeMs: 100 } });
    await agent.ready();
    proxy.freeze();
    let opId = '';
    const stateOf = async () => (await gateway.call('GET', `/api/v1/ops/${opId}`)).body.state;
    const result = agent.run(SEARCH, async (op) => {
      opId = op.opId;
      expect(op.answer).toMatchObject({ decision: 'allow', unreachable: true });
      proxy.thaw();
      await eventually(async () => expect(await stateOf()).toBe('running'));
      await gateway.call('POST', `/api/v1/ops/${opId}/pause`);
      await eventually(() => expect(op.state).toBe('paused'));
      await gateway.call('POST', `/api/v1/ops/${opId}/resume`);
      await op.checkpoint();
      return 'done';
    });
    expect(await result).toBe('done');
    await eventually(async () => expect(await stateOf()).toBe('completing'));
  });

  test('an agent whose token was replaced registers again once, or says it is no use', async () => {
    const agent = connect(gateway.grpc);
    await agent.ready();
    const rotate = () => gateway.call('POST', '/svc.governance.v1.AgentService/RegisterAgent', { agent: AGENT });
    expect((await rotate()).body).toMatchObject({ rotated: true });
    expect(await agent.check(SEARCH)).toMatchObject({ decision: 'allow' });
    await isConnected(agent);
    await rotate();
    await eventually(() => expect(agent.state).toBe('refused'));
    expect(await failureOf(agent.check(SEARCH))).toMatchObject({
      name: 'GatewayError',
      code: 'unauthenticated',
      message:
        'the token of acme/search/crawler was replaced again right after it was renewed; is another process running as the same agent?',
    });
  });

  test('a client can be created before its gateway is up', async () => {
    const { gateway, restart } = await restartable();
    await gateway.stop('SIGKILL');
    const agent = connect(gateway.grpc, { deadlines: { outageMs: 100 } });
    expect(await agent.check(SEARCH)).toMatchObject({ decision: 'deny', unreachable: true });
    await restart();
    await agent.ready();
    expect(await agent.check(SEARCH)).toMatchObject({ decision: 'allow' });
  });

  test('operations that outlive a restart are announced and can be stopped', async () => {
    const { gateway, restart } = await restartable();
    const warnings: string[] = [];
    const agent = connect(gateway.grpc, { onWarning: ({ message }) => warnings.push(message) });
    const begin = () => {
      const begun = { op: undefined as Op | undefined, steps: 0 };
      const result = agent.run(SEARCH, async (op) => {
        begun.op = op;
        for (;;) {
          await op.checkpoint();
          begun.steps += 1;
          await sleep(5);
        }
      });
      result.catch(() => {});
      return { begun, result };
    };
    const overId = await agent.run(SEARCH, ({ opId }) => opId);
    const [running, paused] = [begin(), begin()];
    await eventually(() => expect(running.begun.steps * paused.begun.steps).toBeGreaterThan(0));
    const pausedId = paused.begun.op?.opId ?? '';
    await gateway.call('POST', `/api/v1/ops/${pausedId}/pause`);
    await eventually(() => expect(paused.begun.op?.state).toBe('paused'));
    await gateway.stop('SIGKILL');
    const back = await restart();

    const runningId = running.begun.op?.opId ?? '';
    await eventually(async () =>
      expect((await back.call('GET', `/api/v1/ops/${runningId}`)).body).toMatchObject({ state: 'running' }),
    );
    await back.call('POST', `/api/v1/ops/${runningId}/terminate`);
    expect(await failureOf(running.result)).toMatchObject({ name: 'OpTerminatedError', opId: runningId });

    // An operation that an operator has paused does not go on because a gateway has forgotten it.
    await eventually(() =>
      expect(warnings).toEqual([
        `operation ${pausedId} was paused when the gateway restarted, and still is; to let it continue, pause and resume it`,
      ]),
    );
    expect((await back.call('GET', `/api/v1/ops/${overId}`)).status).toBe(404);
    expect(paused.begun.op?.state).toBe('paused');
    await back.call('POST', `/api/v1/ops/${pausedId}/pause`);
    await back.call('POST', `/api/v1/ops/${pausedId}/resume`);
    const { steps } = paused.begun;
    await eventually(() => expect(paused.begun.steps).toBeGreaterThan(steps));
    await back.call('POST', `/api/v1/ops/${pausedId}/terminate`);
    expect(await failureOf(paused.result)).toMatchObject({ name: 'OpTerminatedError' });
  });

  test('a body that ends before the gateway is back is reported then', async () => {
    const proxy = await startProxy(gateway.grpc);
    cleanUp.push(() => proxy.close());
    const agent = connect(proxy.address, { deadlines: { outageMs: 100, callMs: 500 } });
    await agent.ready();
    let opId = '';
    const value = await agent.run(SEARCH, async (op) => {
      opId = op.opId;
      proxy.refuse();
      return 'the work is done';
    });
    expect(value).toBe('the work is done');
    expect((await gateway.call('GET', `/api/v1/ops/${opId}`)).body).toMatchObject({ state: 'running' });
    proxy.serve();
    await eventually(async () =>
      expect((await gateway.call('GET', `/api/v1/ops/${opId}`)).body).toMatchObject({ state: 'completing' }),
    );
  });

  test('a body that ends in an outage and is paused meanwhile completes on resume', async () => {
    const proxy = await startProxy(gateway.grpc);
    cleanUp.push(() => proxy.close());
    const agent = connect(proxy.address, { deadlines: { outageMs: 100, callMs: 500 } });
    await agent.ready();
    const opId = await agent.run(SEARCH, (op) => {
      proxy.refuse();
      return op.opId;
    });
    const control = async (signal: string) => (await gateway.call('POST', `/api/v1/ops/${opId}/${signal}`)).status;
    const opAtGateway = async () => (await gateway.call('GET', `/api/v1/ops/${opId}`)).body;
    expect(await control('pause')).toBe(200);
    proxy.serve();
    // It stands still: its body is over.
    await eventually(async () =>
      expect(await opAtGateway()).toMatchObject({ state: 'paused', acknowledged_at: expect.any(String) }),
    );
    expect(await control('resume')).toBe(200);
    await eventually(async () => expect(await opAtGateway()).toMatchObject({ state: 'completing' }));
  });

  /** An operation whose body is over, and which is paused at the gateway: the pause came while the body returned. */
  async function endedWhilePaused(
    agent: AgentClient,
    gateway: TestGateway,
    proxy: TestProxy,
  ): Promise<{ readonly op: Op; readonly result: Promise<string> }> {
    let begun: Op | undefined;
    const result = agent.run(SEARCH, async (op) => {
      begun = op;
      proxy.freeze();
      expect((await gateway.call('POST', `/api/v1/ops/${op.opId}/pause`)).status).toBe(200);
      return 'the work is done';
    });
    const op = await eventually(async () => {
      expect((await gateway.call('GET', `/api/v1/ops/${begun?.opId}`)).body.state).toBe('paused');
      return begun!;
    });
    proxy.thaw();
    await eventually(async () =>
      expect((await gateway.call('GET', `/api/v1/ops/${op.opId}`)).body.acknowledged_at).toEqual(expect.any(String)),
    );
    return { op, result };
  }

  test('a run held by a pause ends when the gateway that knew of the pause is gone', async () => {
    const { gateway, restart } = await restartable();
    const proxy = await startProxy(gateway.grpc);
    cleanUp.push(() => proxy.close());
    const { op, result } = await endedWhilePaused(connect(proxy.address), gateway, proxy);
    await gateway.stop('SIGKILL');
    const back = await restart();
    expect(await result).toBe('the work is done');
    expect((await back.call('GET', `/api/v1/ops/${op.opId}`)).status).toBe(404);
  });

  test('a run held by a pause ends at close', async () => {
    const proxy = await startProxy(gateway.grpc);
    cleanUp.push(() => proxy.close());
    const agent = connect(proxy.address, { deadlines: { closeMs: 50 } });
    const { result } = await endedWhilePaused(agent, gateway, proxy);
    await agent.close();
    expect(await result).toBe('the work is done');
  });

  test('an operation paused before a restart is closed at the gateway by close', async () => {
    const { gateway, restart } = await restartable();
    const warnings: string[] = [];
    const agent = connect(gateway.grpc, {
      onWarning: ({ message }) => warnings.push(message),
      deadlines: { closeMs: 50 },
    });
    let begun: Op | undefined;
    const result = failureOf(
      agent.run(SEARCH, async (op) => {
        begun = op;
        return workForEver(op);
      }),
    );
    await eventually(() => expect(begun?.state).toBe('running'));
    await gateway.call('POST', `/api/v1/ops/${begun?.opId}/pause`);
    await eventually(() => expect(begun?.state).toBe('paused'));
    await gateway.stop('SIGKILL');
    const back = await restart();
    await eventually(() =>
      expect(warnings).toEqual([expect.stringContaining('was paused when the gateway restarted, and still is')]),
    );
    await agent.close();
    expect(await result).toMatchObject({ name: 'ClientClosedError' });
    expect((await back.call('GET', `/api/v1/ops/${begun?.opId}`)).body).toMatchObject({ state: 'completing' });
  });
});
