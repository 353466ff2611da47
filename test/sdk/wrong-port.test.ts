import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer, type Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type AgentClientOptions, createAgentClient } from '../../sdk/typescript/src/index.ts';
import { selfSigned } from '../support/certificate.ts';
import { fastestMs } from '../support/fastest.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
const TOKEN = 'crawler-token-0123456789-0123456789-0123';
/** Longer than the test may take: what fails before fails at once. */
const PATIENT = { checkMs: 100_000, callMs: 100_000, outageMs: 100_000, closeMs: 100 };
/** Until one of them was fast. */
const MAX_ROUNDS = 20;
const HEADERS = {
  'content-type': 'application/json',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

const isHttpPort = (address: string): string =>
  `${address} is the gateway's HTTP port; gRPC is on port 50051 (SVC_GRPC_ADDR), or use svc-gateway-sdk/fetch with the HTTP address`;

function connectTo(address: string, options: Partial<AgentClientOptions> = {}) {
  const client = createAgentClient({
    address,
    agent: AGENT,
    deadlines: PATIENT,
    onWarning: () => {},
    ...('apiKey' in options ? {} : { credentialToken: TOKEN }),
    ...options,
  } as AgentClientOptions);
  onTestFinished(() => client.close());
  return client;
}

const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'it did not fail',
    ({ code, message }) => ({ code, message }),
  );

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Answers HTTP and records what it was asked. */
function recorder(answer: RequestListener) {
  const asked: { path: string | undefined; headers: IncomingHttpHeaders }[] = [];
  const listener: RequestListener = (request, response) => {
    asked.push({ path: request.url, headers: request.headers });
    answer(request, response);
  };
  return { asked, listener };
}

describe('wrong port', () => {
  let gateway: GatewayHere;
  beforeAll(async () => {
    gateway = await startGatewayHere();
  });
  afterAll(() => gateway.stop());

  test.each(['token', 'key'])('the HTTP port is named at once, to an agent with a %s', async (kind) => {
    const { host } = new URL(gateway.url);
    const message = `${kind === 'key' ? 'cannot register the agent: ' : ''}${isHttpPort(host)}`;
    const expected = { code: 'unimplemented', message };
    const namedAfterMs = async (): Promise<number> => {
      const agent = connectTo(host, kind === 'key' ? { apiKey: ADMIN_KEY } : {});
      const startMs = performance.now();
      expect(await failureOf(agent.check({ action: 'tool.call' }))).toEqual(expected);
      expect(await failureOf(agent.recordUsage({ costUsd: 1 }))).toEqual(expected);
      expect(await failureOf(agent.ready())).toEqual(expected);
      return performance.now() - startMs;
    };
    expect(await fastestMs(4_000, namedAfterMs)).toBeLessThan(4_000);
  });

  test('over TLS the port is probed over TLS, without a credential', async () => {
    const { key, cert, remove } = selfSigned('gateway.test');
    onTestFinished(remove);
    const { asked, listener } = recorder((_, response) => response.writeHead(200, HEADERS).end('{"status":"ok"}'));
    let certificates = 0;
    const server = createTlsServer({ key, cert, requestCert: true, rejectUnauthorized: false }, listener);
    server.on('request', ({ socket }) => {
      if (Object.keys((socket as TLSSocket).getPeerCertificate()).length > 0) certificates += 1;
    });
    const address = await listen(server);
    const agent = connectTo(address, { tls: { ca: cert, key, cert, serverName: 'gateway.test' } });
    const checks = [1, 2, 3].map(() => failureOf(agent.check({ action: 'tool.call' })));
    const expected = { code: 'unimplemented', message: isHttpPort(address) };
    expect(await Promise.all(checks)).toEqual([expected, expected, expected]);
    expect(asked).toEqual([{ path: '/healthz', headers: { host: address, connection: 'close' } }]);
    expect(certificates).toBe(0);
  });

  test.each([
    ['another server', {}],
    ['a proxy before the gateway', { ...HEADERS, server: 'nginx' }],
  ])('%s is asked once, and is not taken for the HTTP port', async (_name, headers) => {
    const { asked, listener } = recorder((_, response) => response.writeHead(200, headers).end('{"status":"ok"}'));
    const address = await listen(createServer(listener));
    const agent = connectTo(address, { deadlines: { ...PATIENT, callMs: 1_000 } });
    expect(await failureOf(agent.recordUsage({ costUsd: 1 }))).toEqual({
      code: 'unavailable',
      message: `no connection to ${address}: the server there does not speak gRPC, or only with TLS`,
    });
    expect(asked.map(({ path }) => path)).toEqual(['/healthz']);
  });

  test('a gateway whose gRPC connects in time is not probed', async () => {
    const [, port] = gateway.grpc.split(':');
    let connections = 0;
    const address = await listen(
      createTcpServer((near) => {
        connections += 1;
        const far = connect(Number(port), '127.0.0.1');
        near.pipe(far).pipe(near);
        for (const [one, other] of [
          [near, far],
          [far, near],
        ] as const)
          one.on('error', () => other.destroy());
      }),
    );
    let tookMs = Number.POSITIVE_INFINITY;
    // The machine that runs the tests may be busy with other things.
    for (let round = 0; round < MAX_ROUNDS && tookMs > 250; round += 1) {
      const agent = connectTo(address, { apiKey: ADMIN_KEY });
      const startMs = performance.now();
      connections = 0;
      expect(await agent.check({ action: 'tool.call', resource: 'web_search' })).toMatchObject({ decision: 'allow' });
      tookMs = performance.now() - startMs;
      await sleep(400);
    }
    expect(tookMs).toBeLessThan(250);
    expect(connections).toBe(1);
  });
});
