import { spawn } from 'node:child_process';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type AgentClientOptions, createAgentClient } from '../../sdk/typescript/src/index.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { workForEver } from '../support/endless-body.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

const SEARCH = { action: 'tool.call', resource: 'web_search' };
/** A machine that is busy with other things is no outage. */
const PATIENT = { checkMs: 100_000, callMs: 100_000, outageMs: 100_000 };

let gateway: GatewayHere;
describe('close', () => {
  beforeAll(async () => {
    gateway = await startGatewayHere();
  });
  afterAll(async () => {
    await gateway.stop();
  });

  const connect = (agentId: string, options: Partial<AgentClientOptions> = {}) =>
    createAgentClient({
      address: gateway.grpc,
      agent: { orgId: 'acme', teamId: 'search', agentId },
      apiKey: ADMIN_KEY,
      onWarning: () => {},
      ...options,
      deadlines: { ...PATIENT, closeMs: 30_000, ...options.deadlines },
    } as AgentClientOptions);

  /** Runs a program that uses the package by its name; answers what it wrote, and how it ended. */
  async function runProgram(program: string) {
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      cwd: PACKAGE_ROOT,
      env: { PATH: process.env.PATH ?? '', GRPC: gateway.grpc, KEY: ADMIN_KEY },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    const timer = setTimeout(() => child.kill('SIGKILL'), 60_000);
    const end = await new Promise<number | string | null>((resolve) =>
      child.once('close', (code, signal) => resolve(signal ?? code)),
    );
    clearTimeout(timer);
    return { end, output };
  }

  test('checks in flight at close are answered before it resolves', async () => {
    const agent = connect('closing');
    const settled: string[] = [];
    const checks = Array.from({ length: 500 }, () =>
      agent.check(SEARCH).then((answer) => settled.push(answer.decision)),
    );
    await agent.close();
    expect(settled).toHaveLength(500);
    expect(new Set(settled)).toEqual(new Set(['allow']));
    await Promise.all(checks);
    expect(agent.state).toBe('closed');
  });

  test('after close nothing is accepted, and closing again is no error', async () => {
    const agent = connect('closed');
    await agent.close();
    await agent.close();
    for (const call of [
      agent.check(SEARCH),
      agent.run(SEARCH, () => {}),
      agent.recordUsage({ costUsd: 1 }),
      agent.complete('a:b'),
      agent.ready(),
    ]) {
      await expect(call).rejects.toMatchObject({ name: 'ClientClosedError', message: 'the agent client is closed' });
    }
  });

  test('while the client closes, running bodies finish and nothing else begins', async () => {
    const agent = connect('finishing');
    let begun = (): void => {};
    const hasBegun = new Promise<void>((resolve) => {
      begun = resolve;
    });
    let goOn = (): void => {};
    const mayGoOn = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const run = agent.run(SEARCH, async (op) => {
      begun();
      await mayGoOn;
      const { decision } = await agent.check(SEARCH);
      const { status } = await op.recordUsage(0.01);
      return `${decision}, ${status}, ${await agent.run(SEARCH, () => 'done')}`;
    });
    await hasBegun;
    const closed = agent.close();
    for (const call of [
      agent.check(SEARCH),
      agent.run(SEARCH, () => {}),
      agent.recordUsage({ costUsd: 1 }),
      agent.complete('a:b'),
    ]) {
      await expect(call).rejects.toMatchObject({ name: 'ClientClosedError' });
    }
    goOn();
    expect(await run).toBe('allow, ok, done');
    await closed;
  });

  test('checks that cannot be answered in time are rejected at close', async () => {
    const agent = createAgentClient({
      address: '127.0.0.1:1',
      agent: { orgId: 'acme', teamId: 'search', agentId: 'alone' },
      apiKey: ADMIN_KEY,
      deadlines: { outageMs: 60_000, checkMs: 60_000, closeMs: 50 },
    });
    const check = agent.check(SEARCH);
    check.catch(() => {});
    await agent.close();
    await expect(check).rejects.toMatchObject({ name: 'ClientClosedError' });
  });

  test('a waiting check rejects with ClientClosedError at close, and is never unhandled', async () => {
    const silent = createServer(); // takes every call and answers none
    const asked = new Promise((resolve) =>
      silent.on('stream', (stream, { ':path': path }) => {
        stream.on('error', () => {});
        if (path?.endsWith('/StreamCheckActions') === true) stream.once('data', resolve);
      }),
    );
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void silent.close());
    const agent = createAgentClient({
      address: `127.0.0.1:${(silent.address() as AddressInfo).port}`,
      agent: { orgId: 'acme', teamId: 'search', agentId: 'alone' },
      credentialToken: 'any-token-of-at-least-32-characters',
      deadlines: { outageMs: 60_000, checkMs: 60_000, closeMs: 50 },
    });
    const leaving = new AbortController();
    const left = agent.check(SEARCH, { signal: leaving.signal });
    const check = agent.check(SEARCH);
    check.catch(() => {});
    await asked;
    leaving.abort(new Error('left'));
    await expect(left).rejects.toThrow('left');
    await agent.close();
    await expect(check).rejects.toMatchObject({ name: 'ClientClosedError' });
    await new Promise((resolve) => setTimeout(resolve, 50)); // a promise that rejects for nobody fails the run
  });

  test('a body waiting at a checkpoint is released at close', async () => {
    const agent = connect('let-go', { deadlines: { closeMs: 50 } });
    let opId = '';
    const result = agent.run(SEARCH, async (op) => {
      opId = op.opId;
      return workForEver(op);
    });
    result.catch(() => {});
    await agent.ready();
    await expect.poll(() => opId).not.toBe('');
    await agent.close();
    await expect(result).rejects.toMatchObject({ name: 'ClientClosedError' });
    expect((await gateway.call('GET', `/api/v1/ops/${opId}`)).body).toMatchObject({ state: 'completing' });
  });

  test('a signal obeyed right before close is acknowledged', async () => {
    const agent = connect('last-word');
    let opId = '';
    const result = agent.run(SEARCH, async (op) => {
      opId = op.opId;
      await gateway.call('POST', `/api/v1/ops/${opId}/terminate`);
      return workForEver(op);
    });
    await expect(result).rejects.toMatchObject({ name: 'OpTerminatedError' });
    await agent.close();
    expect((await gateway.call('GET', `/api/v1/ops/${opId}`)).body).toMatchObject({
      state: 'terminated',
      acknowledged_at: expect.any(String),
    });
  });

  test('a process exits by itself once its client is closed', async () => {
    expect(
      await runProgram(`
    import { createAgentClient } from 'svc-gateway-sdk';
    const agent = createAgentClient({ address: process.env.GRPC, agent: { orgId: 'acme', teamId: 'search', agentId: 'process' }, apiKey: process.env.KEY });
    console.log(await agent.run({ action: 'tool.call', resource: 'clock' }, (op) => op.state));
    await Promise.all(Array.from({ length: 100 }, () => agent.check({ action: 'tool.call', resource: 'clock' })));
    await agent.close();
  `),
    ).toEqual({ end: 0, output: 'running\n' });
  });

  test('a process exits by itself after close, also without a gateway', async () => {
    expect(
      await runProgram(`
    import { createAgentClient } from 'svc-gateway-sdk';
    const agent = createAgentClient({ address: '127.0.0.1:1', agent: { orgId: 'acme', teamId: 'search', agentId: 'process' }, apiKey: process.env.KEY });
    console.log((await agent.check({ action: 'tool.call', resource: 'clock' })).unreachable);
    await agent.close();
  `),
    ).toEqual({ end: 0, output: 'true\n' });
  });

  test('a failed report that no caller handles is not swallowed', async () => {
    expect(
      await runProgram(`
    import { createAgentClient } from 'svc-gateway-sdk';
    const agent = createAgentClient({ address: '127.0.0.1:1', agent: { orgId: 'acme', teamId: 'search', agentId: 'process' }, apiKey: process.env.KEY, deadlines: { outageMs: 0 } });
    agent.complete('trace:span');
  `),
    ).toEqual({ end: 1, output: expect.stringContaining('GatewayError: cannot reach the gateway') });
  });
});
