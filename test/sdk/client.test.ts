import { executionAsyncResource } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  ActionDeniedError,
  type AgentClient,
  type AgentClientOptions,
  createAgentClient,
  GatewayError,
  type Op,
  OpTerminatedError,
} from '../../sdk/typescript/src/index.ts';
import { workForEver } from '../support/endless-body.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

const SEARCH = { action: 'tool.call', resource: 'web_search' };
/** A machine that is busy with other things is no outage. */
const PATIENT = { checkMs: 100_000, callMs: 100_000, outageMs: 100_000 };
const TOKEN = 'crawler-token-0123456789-0123456789-0123';
/** How soon an operator's signal must reach the body. */
const SIGNAL_MS = 1_000;
/** Until one of them was fast: the machine that runs the tests may be busy with other things. */
const MAX_ROUNDS = 20;

let gateway: GatewayHere;
const clients: AgentClient[] = [];
let lastAgent = 0;

describe('client', () => {
  beforeAll(async () => {
    gateway = await startGatewayHere();
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await gateway.stop();
  });

  /** A client for an agent of its own, registered with the admin key where the options say nothing else. */
  function connect(options: Partial<AgentClientOptions> = {}): AgentClient {
    lastAgent += 1;
    const client = createAgentClient({
      address: gateway.grpc,
      agent: { orgId: 'acme', teamId: 'search', agentId: `crawler-${lastAgent}` },
      onWarning: () => {},
      ...('credentialToken' in options ? {} : { apiKey: ADMIN_KEY }),
      ...options,
      deadlines: { ...PATIENT, ...options.deadlines },
    } as AgentClientOptions);
    clients.push(client);
    return client;
  }

  const control = (opId: string, what: string) => gateway.call('POST', `/api/v1/ops/${opId}/${what}`);
  const opOf = async (opId: string) => (await gateway.call('GET', `/api/v1/ops/${opId}`)).body;
  const failureOf = (promise: Promise<unknown>): Promise<any> =>
    promise.then(
      () => {
        throw new Error('it did not fail');
      },
      (error: unknown) => error,
    );

  /** How long it took until the expectation held. */
  async function timeUntil(expectation: () => unknown): Promise<number> {
    const startMs = performance.now();
    await eventually(expectation);
    return performance.now() - startMs;
  }

  test('how an operation has ended is at the gateway, with what went wrong', async () => {
    const agent = connect();
    const ended = async (body: () => unknown) => {
      let opId = '';
      await agent
        .run(SEARCH, (op) => {
          opId = op.opId;
          return body();
        })
        .catch(() => {});
      const { ended: how, error } = await opOf(opId);
      return [how, error];
    };
    expect(await ended(() => 'found')).toEqual(['completed', null]);
    const long = `no ${'€'.repeat(400)}`;
    const fail = (error: unknown) => () => {
      throw error;
    };
    expect(await ended(fail(new Error('nothing found')))).toEqual(['failed', 'nothing found']);
    expect(await ended(fail(new Error(long)))).toEqual(['failed', `no ${'€'.repeat(340)}`]);
    expect(await ended(fail('\ud800'))).toEqual(['failed', '\ufffd']);
    const { opId } = await agent.check(SEARCH);
    await agent.complete(opId, { error: 'out of paper' });
    expect(await opOf(opId)).toMatchObject({ ended: 'failed', error: 'out of paper' });
  });

  /** Begins an operation whose body goes on until it is told to finish; `steps` counts its checkpoints. */
  function longRun(agent: AgentClient) {
    const seen = { steps: 0, finish: false, op: undefined as Op | undefined };
    const result = agent.run(SEARCH, async (op) => {
      seen.op = op;
      while (!seen.finish) {
        await op.checkpoint();
        seen.steps += 1;
        await sleep(5);
      }
      return 'finished';
    });
    result.catch(() => {});
    return {
      seen,
      result,
      started: () =>
        eventually(() => {
          expect(seen.op).toBeDefined();
          return seen.op as Op;
        }),
    };
  }

  test('an allowed action runs and is complete afterwards', async () => {
    const agent = connect();
    let opId = '';
    const value = await agent.run(
      { ...SEARCH, attributes: { size: 3, tags: ['a', null, { deep: true }] } },
      async (op) => {
        opId = op.opId;
        expect(op.opId).toMatch(/^[0-9a-f]{32}:[0-9a-f]{16}$/);
        expect(op).toMatchObject({
          state: 'running',
          answer: { decision: 'allow', policy: 'starter', ruleId: 'harmless-tools', unreachable: false },
        });
        expect(await opOf(op.opId)).toMatchObject({ state: 'running' });
        return 42;
      },
    );
    expect(value).toBe(42);
    expect(await opOf(opId)).toMatchObject({ state: 'completing' });
  });

  test('a denied action does not run, and the reason is given', async () => {
    let hasRun = false;
    const error = await failureOf(
      connect().run({ action: 'process.exec', resource: 'rm -rf /' }, () => {
        hasRun = true;
      }),
    );
    expect(hasRun).toBe(false);
    expect(error).toBeInstanceOf(ActionDeniedError);
    expect(error).toMatchObject({
      name: 'ActionDeniedError',
      reason:
        'agents may not run commands that delete files or take over the machine (rule no-deleting-commands of policy starter)',
      policy: 'starter',
      ruleId: 'no-deleting-commands',
    });
    expect(error.message).toBe(
      'process.exec on rm -rf / is denied: agents may not run commands that delete files or take over the machine (rule no-deleting-commands of policy starter)',
    );
  });

  test('keeps nothing of an ended operation: the same name is checked again', async () => {
    const agent = connect();
    const name = { traceId: 'a1'.repeat(16), spanId: 'b2'.repeat(8) };
    for (let time = 0; time < 2; time += 1) {
      expect(
        await failureOf(agent.run({ action: 'process.exec', resource: 'rm -rf /', ...name }, () => {})),
      ).toMatchObject({ name: 'ActionDeniedError' });
    }
    const other = { ...SEARCH, ...name, spanId: 'c3'.repeat(8) };
    expect(await agent.run(other, () => 'done')).toBe('done');
    expect(await failureOf(agent.run(other, () => 'again'))).toMatchObject({ name: 'ActionDeniedError' });
  });

  test('an error of the body is thrown, and the operation completes all the same', async () => {
    let opId = '';
    const error = await failureOf(
      connect().run(SEARCH, (op) => {
        opId = op.opId;
        throw new RangeError('no such page');
      }),
    );
    expect(error).toBeInstanceOf(RangeError);
    expect(await opOf(opId)).toMatchObject({ state: 'completing' });
  });

  test('an operator pauses a running body within a second and resumes it', async () => {
    const { seen, result, started } = longRun(connect());
    const op = await started();
    const tookMs: number[] = [];
    for (let round = 0; round < MAX_ROUNDS && !(Math.min(...tookMs) < SIGNAL_MS); round += 1) {
      expect((await control(op.opId, 'pause')).status).toBe(200);
      const pausedMs = await timeUntil(() => expect(op.state).toBe('paused'));
      // Acknowledged when the body has come to stand at a checkpoint.
      const stoodMs = await timeUntil(async () =>
        expect((await opOf(op.opId)).acknowledged_at).toEqual(expect.any(String)),
      );
      const stood = seen.steps;
      await sleep(100);
      expect(seen.steps).toBe(stood);
      expect((await control(op.opId, 'resume')).status).toBe(200);
      const resumedMs = await timeUntil(() => expect(seen.steps).toBeGreaterThan(stood));
      tookMs.push(Math.max(pausedMs, stoodMs, resumedMs));
    }
    expect(Math.min(...tookMs)).toBeLessThan(SIGNAL_MS);
    seen.finish = true;
    expect(await result).toBe('finished');
  });

  test('an operator terminates a body within a second: checkpoint throws, signal aborts', async () => {
    const agent = connect();
    const tookMs: number[] = [];
    for (let round = 0; round < MAX_ROUNDS && !(Math.min(...tookMs) < SIGNAL_MS); round += 1) {
      const { result, started } = longRun(agent);
      const op = await started();
      expect((await control(op.opId, 'terminate')).status).toBe(200);
      const terminatedAtMs = performance.now();
      const error = await failureOf(result);
      tookMs.push(performance.now() - terminatedAtMs);
      expect(error).toBeInstanceOf(OpTerminatedError);
      expect(error.opId).toBe(op.opId);
      expect(op.signal.aborted).toBe(true);
      expect(op.signal.reason).toBe(error);
    }
    expect(Math.min(...tookMs)).toBeLessThan(SIGNAL_MS);
  });

  test('a paused body can be terminated', async () => {
    const { result, started } = longRun(connect());
    const op = await started();
    await control(op.opId, 'pause');
    await eventually(() => expect(op.state).toBe('paused'));
    await control(op.opId, 'terminate');
    expect(await failureOf(result)).toBeInstanceOf(OpTerminatedError);
  });

  test('a body without checkpoints learns at its end that it was terminated', async () => {
    let opId = '';
    const result = connect().run(SEARCH, async (op) => {
      opId = op.opId;
      expect((await control(op.opId, 'terminate')).status).toBe(200);
      return 'unaware';
    });
    expect(await failureOf(result)).toMatchObject({ name: 'OpTerminatedError', opId });
  });

  test('an operation paused as its body returns completes once it is resumed', async () => {
    let opId = '';
    const result = connect().run(SEARCH, async (op) => {
      opId = op.opId;
      await control(op.opId, 'pause');
      return 'done';
    });
    await eventually(async () => expect((await opOf(opId)).acknowledged_at).toEqual(expect.any(String)));
    await control(opId, 'resume');
    expect(await result).toBe('done');
    expect(await opOf(opId)).toMatchObject({ state: 'completing' });
  });

  test('a nested operation shares the trace id and is stopped with its parent', async () => {
    const agent = connect();
    const result = agent.run(SEARCH, async (outer) =>
      agent.run(SEARCH, async (inner) => {
        expect(inner.traceId).toBe(outer.traceId);
        expect(inner.spanId).not.toBe(outer.spanId);
        await control(outer.opId, 'terminate');
        return workForEver(inner);
      }),
    );
    expect(await failureOf(result)).toBeInstanceOf(OpTerminatedError);
  });

  test('nested operations of two clients are separate: each client sees its own', async () => {
    const [first, second] = [connect(), connect()];
    await first.run(SEARCH, async (outer) => {
      await second.run(SEARCH, async (theirs) => {
        expect(theirs.traceId).not.toBe(outer.traceId);
        await first.run(SEARCH, (inner) => expect(inner.traceId).toBe(outer.traceId));
        await second.run(SEARCH, (inner) => expect(inner.traceId).toBe(theirs.traceId));
      });
    });
  });

  test('many clients do not slow a process down: they share one async storage', async () => {
    for (let count = 0; count < 20; count += 1) {
      const agent = connect();
      await agent.run(SEARCH, () => {});
      await agent.close();
    }
    const storages = await new Promise<number>((resolve) =>
      setImmediate(() =>
        resolve(
          Object.getOwnPropertySymbols(executionAsyncResource()).filter(
            ({ description }) => description === 'kResourceStore',
          ).length,
        ),
      ),
    );
    expect(storages).toBeLessThan(5);
  });

  test('thousands of checks each get their own answer', async () => {
    const agent = connect();
    await agent.ready();
    const answers = await Promise.all(
      Array.from({ length: 4_000 }, (_, index) =>
        agent.check({
          action: 'tool.call',
          resource: index % 3 === 0 ? 'web_search' : `unknown-${index}`,
          traceId: `many${lastAgent}`,
          spanId: String(index),
        }),
      ),
    );
    for (const [index, answer] of answers.entries()) {
      const expected = index % 3 === 0 ? 'allow' : 'deny';
      if (answer.decision !== expected || answer.opId !== `many${lastAgent}:${index}`)
        throw new Error(`check ${index} was answered ${JSON.stringify(answer)}`);
      if (expected === 'deny' && !answer.reason.includes(`unknown-${index} `))
        throw new Error(`check ${index} was given another's reason: ${answer.reason}`);
    }
  });

  test('usage is recorded once under one name', async () => {
    const agent = connect();
    const agentId = `crawler-${lastAgent}`;
    expect(await agent.recordUsage({ costUsd: 0.25, usageId: 'invoice-1' })).toEqual({ status: 'ok' });
    expect(await agent.recordUsage({ costUsd: 0.25, usageId: 'invoice-1' })).toEqual({ status: 'ok' });
    await agent.run(SEARCH, async (op) => {
      expect(await op.recordUsage(0.01)).toEqual({ status: 'ok' });
    });
    const { budgets } = (await gateway.call('GET', '/api/v1/budgets?org_id=acme&per_page=1000')).body;
    expect(budgets.find((budget: { agent_id: string | null }) => budget.agent_id === agentId)).toMatchObject({
      tier: 'agent',
      daily: { spent_usd: 0.26 },
      monthly: { spent_usd: 0.26 },
    });
    expect(await failureOf(agent.recordUsage({ costUsd: -1 }))).toMatchObject({
      name: 'GatewayError',
      code: 'invalid_argument',
    });
  });

  test("a malformed check is the caller's mistake and named", async () => {
    const error = await failureOf(connect().check({ action: '' }));
    expect(error).toBeInstanceOf(GatewayError);
    expect(error).toMatchObject({
      code: 'invalid_argument',
      fault: 'invalid_argument',
      message: 'action: is required',
    });
    expect(await failureOf(connect().check({ action: 'tool.call', attributes: { size: Infinity } }))).toEqual(
      new TypeError('attributes.size must be a finite number'),
    );
  });

  test('a wrong API key is refused for good, with the reason', async () => {
    const agent = connect({ apiKey: 'no-such-key' });
    const error = await failureOf(agent.ready());
    expect(error).toMatchObject({
      name: 'GatewayError',
      code: 'unauthenticated',
      message: expect.stringMatching(/^cannot register the agent: /),
    });
    expect(agent.state).toBe('refused');
    expect(await failureOf(agent.check(SEARCH))).toMatchObject({ code: 'unauthenticated' });
  });

  test('a wrong token is denied, and signals cannot arrive', async () => {
    const agent = connect({ credentialToken: TOKEN });
    expect(await failureOf(agent.ready())).toMatchObject({ code: 'unauthenticated' });
    expect(await agent.check(SEARCH)).toMatchObject({
      decision: 'deny',
      unreachable: false,
      reason: 'the credential token is not registered; register the agent again to get a new one',
    });
  });

  test('a given token is used as it is', async () => {
    const agent = { orgId: 'acme', teamId: 'search', agentId: 'own-token' };
    await gateway.call('POST', '/svc.governance.v1.AgentService/RegisterAgent', { agent, credentialToken: TOKEN });
    const client = connect({ agent, credentialToken: TOKEN });
    await client.ready();
    expect(await client.check(SEARCH)).toMatchObject({ decision: 'allow', opState: 'running' });
  });

  test('the parent agent is recorded', async () => {
    const starter = connect();
    await starter.ready();
    const starterId = `crawler-${lastAgent}`;
    const started = connect({ parent: { orgId: 'acme', teamId: 'search', agentId: starterId } });
    await started.ready();
    const { body } = await gateway.call('GET', '/api/v1/agents?per_page=1000');
    const parentOf = (agentId: string) =>
      body.agents.find((agent: { readonly agent_id: string }) => agent.agent_id === agentId)?.parent;
    expect({ parentStarterId: parentOf(starterId), parent: parentOf(`crawler-${lastAgent}`) }).toEqual({
      parentStarterId: null,
      parent: `acme/search/${starterId}`,
    });
  });
});
