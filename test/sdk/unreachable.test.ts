import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { describe, expect, onTestFinished, type TestContext, test, vi } from 'vitest';
import { type AgentClientOptions, createAgentClient } from '../../sdk/typescript/src/index.ts';
import { freePort } from '../support/free-port.ts';
import { scriptedAgent, scriptedGateway } from '../support/scripted-gateway.ts';

const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
/** A call is tried again for longer than a busy machine needs to hear once why it fails. */
const DEADLINES = { checkMs: 30_000, callMs: 6_000, outageMs: 300, closeMs: 100 };

/** Tests run at once, so each has its own end. */
type OnceOver = TestContext['onTestFinished'];

async function listen(server: Server, onceOver: OnceOver): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onceOver(() => void server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Returns the errors of a check and of a usage record if a gateway cannot be reached. */
async function saidOf(onceOver: OnceOver, address: string, options: Partial<AgentClientOptions> = {}) {
  const client = createAgentClient({
    address,
    agent: AGENT,
    deadlines: DEADLINES,
    onWarning: () => {},
    ...('apiKey' in options ? {} : { credentialToken: 'x'.repeat(40) }),
    ...options,
  } as AgentClientOptions);
  onceOver(() => client.close());
  const { reason } = await client.check({ action: 'tool.call' });
  const usage = await client.recordUsage({ costUsd: 1 }).then(
    () => 'it did not fail',
    (error: Error) => error.message,
  );
  return { reason, usage };
}

describe('unreachable', () => {
  // At once: each call is tried again for as long as it may take.
  test.concurrent('an unreachable gateway is named with its address and the reason', async ({
    onTestFinished: onceOver,
  }) => {
    const address = `127.0.0.1:${await freePort()}`;
    const [withToken, registering] = await Promise.all([
      saidOf(onceOver, address),
      saidOf(onceOver, address, { apiKey: 'a-key' }),
    ]);
    expect(withToken).toEqual({
      reason: `cannot reach the gateway: no connection to ${address}: the connection was refused`,
      usage: `no connection to ${address}: the connection was refused`,
    });
    expect(registering.reason).toBe(
      `cannot reach the gateway: the agent is not registered yet: no connection to ${address}: the connection was refused`,
    );
  });

  test.concurrent('an unknown host, a server without gRPC and a cut connection are distinguished', async ({
    onTestFinished: onceOver,
  }) => {
    const http = await listen(
      createHttpServer((_, response) => void response.end('hello')),
      onceOver,
    );
    const cutting = await listen(
      createServer((socket) => void socket.destroy()),
      onceOver,
    );
    const said = await Promise.all([
      saidOf(onceOver, 'no-such-host.invalid:50051'),
      saidOf(onceOver, http),
      saidOf(onceOver, http, { tls: { serverName: 'gateway.test' } }),
      saidOf(onceOver, cutting),
    ]);
    expect(said.map(({ usage }) => usage)).toEqual([
      'no connection to no-such-host.invalid:50051: the host name cannot be resolved',
      `no connection to ${http}: the server there does not speak gRPC, or only with TLS`,
      `no connection to ${http}: the server there does not speak TLS`,
      `no connection to ${cutting}: the connection was closed before gRPC began; check that the address is that of gRPC, not of HTTP`,
    ]);
  });

  test.concurrent('a silent gateway is named with the time it was waited for', async ({ onTestFinished: onceOver }) => {
    const silent = await listen(
      createServer((socket) => {
        socket.on('error', () => {});
        onceOver(() => void socket.destroy());
      }),
      onceOver,
    );
    expect(
      (await saidOf(onceOver, silent, { deadlines: { ...DEADLINES, checkMs: 300, callMs: 1_000 } })).usage,
    ).toMatch(new RegExp(`^no answer from ${silent} within (0\\.9\\d\\d|[1-9]\\d*\\.\\d+) s$`));
  });

  test('a proxy from the environment applies to other machines, not to the local one', async () => {
    const gateway = await scriptedGateway();
    const [, port = ''] = gateway.address.split(':');
    const asked: (string | undefined)[] = [];
    const proxy = createHttpServer().on('connect', ({ url }, near: Socket) => {
      asked.push(url);
      const far = connect(Number(port), '127.0.0.1', () => {
        near.write('HTTP/1.1 200 Connection established\r\n\r\n');
        near.pipe(far).pipe(near);
      });
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const)
        one.on('error', () => other.destroy());
    });
    for (const name of ['grpc_proxy', 'https_proxy', 'no_grpc_proxy', 'no_proxy']) vi.stubEnv(name, '');
    vi.stubEnv('http_proxy', `http://${await listen(proxy, onTestFinished)}`);
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const decisionAt = async (address: string) => {
      const agent = scriptedAgent({ address }, { deadlines: { checkMs: 60_000, outageMs: 60_000 } });
      return (await agent.check({ action: 'tool.call' })).decision;
    };
    for (const host of ['127.0.0.1', 'localhost']) expect(await decisionAt(`${host}:${port}`)).toBe('allow');
    expect(asked).toEqual([]);
    expect(await decisionAt('gateway.invalid:50051')).toBe('allow');
    expect(new Set(asked)).toEqual(new Set(['gateway.invalid:50051']));
  });
});
