import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeServer } from '../support/fake-server.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

/** An example agent that works in many quick steps. */
function startExample(command: string, file: string, env: Readonly<Record<string, string>>) {
  const agent = spawn(command, [join(PACKAGE_ROOT, 'examples', file)], {
    env: { PATH: process.env.PATH ?? '', AGENT_API_KEY: ADMIN_KEY, AGENT_STEP_MS: '20', AGENT_STEPS: '100000', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<number | null>((resolve) => agent.once('close', resolve));
  let log = '';
  for (const output of [agent.stdout, agent.stderr])
    output.on('data', (chunk: Buffer) => {
      log += chunk.toString();
    });
  return { agent, ended, log: () => log, pages: () => log.match(/read page/g)?.length ?? 0 };
}

/**
 * Pauses, resumes and terminates the operation that the agent says it works as; `whilePaused` is run in between.
 * Returns its id.
 */
async function control(
  gateway: GatewayHere,
  { ended, log, pages }: ReturnType<typeof startExample>,
  whilePaused = async (_opId: string): Promise<void> => undefined,
): Promise<string> {
  await eventually(() => expect(pages()).toBeGreaterThan(2));
  const opId = /OP=(\S+)/.exec(log())?.[1] ?? expect.unreachable('it names no operation');
  const operator = (what: string) => gateway.call('POST', `/api/v1/ops/${opId}/${what}`);
  expect((await operator('pause')).status).toBe(200);
  await whilePaused(opId);
  // Earlier output may still be in the pipe.
  const read = await eventually(async () => {
    const before = pages();
    await sleep(200);
    expect(pages()).toBe(before);
    return before;
  });
  expect((await operator('resume')).status).toBe(200);
  await eventually(() => expect(pages()).toBeGreaterThan(read));
  expect((await operator('terminate')).status).toBe(200);
  expect(await ended).toBe(1);
  return opId;
}

describe('example', () => {
  let gateway: GatewayHere;
  beforeAll(async () => {
    gateway = await startGatewayHere();
  });
  afterAll(async () => {
    await gateway?.stop();
  });

  test('the example agent is paused, watched, resumed and terminated as documented', async () => {
    const example = startExample(process.execPath, 'agent.mjs', { AGENT_GATEWAY: gateway.grpc });
    try {
      const opId = await control(gateway, example, async (paused) => {
        await eventually(async () =>
          expect((await gateway.call('GET', `/api/v1/ops/${paused}`)).body).toMatchObject({
            state: 'paused',
            acknowledged_at: expect.any(String),
          }),
        );
      });
      expect(example.log()).toContain('process.exec on rm -rf / is denied: ');
      expect(example.log()).not.toContain('this line is never printed');
      expect(example.log()).toContain(`stopped: operation ${opId} was terminated by an operator`);
    } finally {
      example.agent.kill('SIGKILL');
    }
  });

  test.each([[{}], [{ AGENT_API_KEY: '' }]])(
    'without a key the example agent says which variable to set (%j)',
    (env) => {
      const { status, stderr } = spawnSync(process.execPath, [join(PACKAGE_ROOT, 'examples', 'agent.mjs')], {
        env: { PATH: process.env.PATH ?? '', ...env },
        encoding: 'utf8',
      });
      expect({ status, stderr }).toEqual({
        status: 2,
        stderr: 'set AGENT_API_KEY to an API key with write scope: the gateway has shown one at its first start\n',
      });
    },
  );

  const withPython = test.skipIf(spawnSync('python3', ['--version']).error !== undefined);

  withPython(
    'the example agent in Python waits while it is paused and stops when it is terminated, as its walk-through says',
    async () => {
      const example = startExample('python3', 'agent.py', { AGENT_URL: gateway.url });
      try {
        await control(gateway, example);
        expect(example.log()).toContain('(rule no-deleting-commands of policy starter)');
        expect(example.log()).toMatch(/stopped: .*terminated/);
      } finally {
        example.agent.kill('SIGKILL');
      }
    },
  );

  withPython(
    'the example agent in Python leaves no operation open when it is denied its next step, or interrupted',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'svc-example-'));
      const policy = join(folder, 'policy.yaml');
      const write = (effect: 'allow' | 'deny'): void =>
        writeFileSync(
          policy,
          `name: example\nscope: global\nrules:\n  - id: search\n    actions: ["tool.call"]\n    effect: ${effect}\n    reason: not in this test\n`,
        );
      write('allow');
      const gateway = await startGatewayHere({ env: { SVC_POLICY_PATH: policy } });
      const stop = async (by: (agent: ChildProcess) => unknown) => {
        const example = startExample('python3', 'agent.py', { AGENT_URL: gateway.url });
        try {
          await eventually(() => expect(example.pages()).toBeGreaterThan(2));
          await by(example.agent);
          const status = await example.ended;
          const opId = /OP=(\S+)/.exec(example.log())?.[1];
          return { status, state: (await gateway.call('GET', `/api/v1/ops/${opId}`)).body.state, log: example.log() };
        } finally {
          example.agent.kill('SIGKILL');
        }
      };
      try {
        expect(await stop((agent) => agent.kill('SIGINT'))).toMatchObject({ status: 130, state: 'completing' });
        const denied = await stop(async () => {
          write('deny');
          await gateway.call('POST', '/api/v1/policies/reload');
        });
        expect(denied).toMatchObject({
          status: 1,
          state: 'completing',
          log: expect.stringContaining('stopped: not in this test'),
        });
      } finally {
        await gateway.stop();
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );

  withPython.each([
    [
      'without a key',
      {},
      2,
      'set AGENT_API_KEY to an API key with write scope: the gateway has shown one at its first start\n',
    ],
    [
      'without a gateway',
      { AGENT_API_KEY: 'svc_key', AGENT_URL: 'http://127.0.0.1:1' },
      1,
      'http://127.0.0.1:1 cannot be reached: <urlopen error [Errno 111] Connection refused>\n',
    ],
  ])('%s the example agent in Python says what is missing', (_what, env, code, told) => {
    const { status, stderr } = spawnSync('python3', [join(PACKAGE_ROOT, 'examples', 'agent.py')], {
      env: { PATH: process.env.PATH ?? '', ...env },
      encoding: 'utf8',
    });
    expect({ status, stderr: stderr.replace(/Errno \d+/, 'Errno 111') }).toEqual({ status: code, stderr: told });
  });

  withPython.each([
    ['a page of a proxy', 502, '<html>Bad Gateway</html>', ' with status 502'],
    ['a page for people', 200, '<html>Sign in</html>', ''],
    ['an error of another server', 404, '[]', ' with status 404'],
  ])('tells in Python that %s is no answer of a gateway', async (_what, status, body, told) => {
    const server = await startFakeServer((_request, response) => response.writeHead(status).end(body));
    onTestFinished(() => server.stop());
    const example = startExample('python3', 'agent.py', { AGENT_URL: server.url });
    expect({ status: await example.ended, log: example.log() }).toEqual({
      status: 1,
      log: `the server at ${server.url}${told} is not a gateway\n`,
    });
  });
});
