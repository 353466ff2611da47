import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect as connectTcp, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createAgentClient } from '../../sdk/typescript/src/index.ts';
import { type Authority, createAuthority, type Issued } from '../support/authority.ts';
import { createCliHome } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';

let authority: Authority;
let stranger: Authority;
let gatewayCert: Issued;
let folder: string;
const cleanUp: (() => unknown)[] = [];

beforeAll(() => {
  authority = createAuthority('authority');
  stranger = createAuthority('another authority');
  gatewayCert = authority.issue('gateway');
  folder = mkdtempSync(join(tmpdir(), 'svc-tls-test-'));
});
afterEach(async () => {
  for (const undo of cleanUp.splice(0).reverse()) await undo();
});
afterAll(() => {
  for (const each of [authority, stranger]) each.remove();
  rmSync(folder, { recursive: true, force: true });
});

const FILES = { cert: 'cert.pem', key: 'key.pem', ca: 'ca.pem' } as const;
const put = (file: keyof typeof FILES, text: string): string => {
  const path = join(folder, FILES[file]);
  writeFileSync(path, text);
  return path;
};

async function start(env: Readonly<Record<string, string>> = {}): Promise<TestGateway> {
  const gateway = await startTestGateway({
    env: { SVC_TLS_CERT: put('cert', gatewayCert.cert), SVC_TLS_KEY: put('key', gatewayCert.key), ...env },
  });
  cleanUp.push(() => gateway.stop('SIGKILL'));
  return gateway;
}
const startMutual = (): Promise<TestGateway> => start({ SVC_TLS_CLIENT_CA: put('ca', authority.ca) });

type Client = Partial<Issued>;
/** The status of an answer, or the code of the error. */
function statusOf(url: string, client: Client = {}): Promise<number | string> {
  return new Promise((resolve) => {
    const asked = request(
      `${url}/healthz`,
      { ca: authority.ca, ...client, agent: false, servername: 'localhost' },
      (answer) => {
        answer.resume();
        resolve(answer.statusCode ?? 0);
      },
    );
    asked.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    asked.end();
  });
}

async function overTls(address: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const [host, port] = address.replace('https://', '').split(':');
  const socket = connectTls({
    host: host!,
    port: Number(port),
    servername: 'localhost',
    ca: authority.ca,
    ALPNProtocols: ['h2', 'http/1.1'],
    ...options,
  });
  cleanUp.push(() => socket.destroy());
  socket.on('error', () => undefined);
  await once(socket, 'secureConnect');
  return socket;
}

const serialAt = async (address: string): Promise<string> =>
  (await overTls(address)).getPeerX509Certificate()?.serialNumber ?? '';

/** Returns the answer to an agent's first check. */
async function checkOverGrpc(address: string, client: Client = {}): Promise<object> {
  const agent = createAgentClient({
    address,
    agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
    apiKey: ADMIN_KEY,
    tls: { ca: authority.ca, ...client },
    deadlines: { outageMs: 300, closeMs: 100 },
  });
  const answer = await agent.check({ action: 'tool.call', resource: 'web_search' }).catch((error: Error) => error);
  await agent.close();
  return answer;
}

describe('TLS', () => {
  test('serves HTTP, gRPC, WebSocket and svc with the certificate of the files', async () => {
    const gateway = await start();
    expect(gateway.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    expect(gateway.output.stdout).toContain('HTTP core  node:https, because of SVC_TLS_CERT');
    expect(await statusOf(gateway.url)).toBe(200);
    const svc = createCliHome();
    cleanUp.push(() => svc.remove());
    const env = { SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: ADMIN_KEY, NODE_EXTRA_CA_CERTS: authority.caFile };
    expect(await svc.start(['agents', 'ls'], { env })).toMatchObject({ status: 0 });
    const refused = await svc.start(['agents', 'ls'], { env: { ...env, NODE_EXTRA_CA_CERTS: '' } });
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('certificate') });

    const stream = new WebSocket(`${gateway.url.replace('https', 'wss')}/api/v1/stream`, {
      ca: authority.ca,
      headers: { authorization: `Bearer ${ADMIN_KEY}` },
    });
    cleanUp.push(() => stream.terminate());
    const first = once(stream, 'message') as Promise<[Buffer]>;
    await once(stream, 'open');
    expect(await checkOverGrpc(gateway.grpc)).toMatchObject({ decision: 'allow' });
    expect(JSON.parse(String((await first)[0]))).toHaveProperty('id');
  });

  test('answers in HTTP/1.1 a request that offers HTTP/2, and takes the next one', async () => {
    const gateway = await start();
    const socket = await overTls(gateway.url, { ALPNProtocols: ['http/1.1'] });
    const head = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n';
    let heard = '';
    socket.on('data', (piece: Buffer) => {
      heard += piece.toString();
    });
    socket.write(`${head}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n`);
    await eventually(() => expect(heard.match(/HTTP\/1\.1 200/g)).toHaveLength(1));
    socket.write(`${head}\r\n`);
    await eventually(() => expect(heard.match(/HTTP\/1\.1 200/g)).toHaveLength(2));
  });

  test('new connections get a renewed certificate, and open ones stay', async () => {
    const gateway = await start({ SVC_IO_THREADS: '2' });
    const open = await overTls(gateway.grpc);
    const before = await serialAt(gateway.url);
    const renewed = authority.issue('gateway');
    put('cert', renewed.cert);
    put('key', renewed.key);
    await eventually(async () => expect(await serialAt(gateway.url)).not.toBe(before), 15_000);
    await eventually(async () => expect(await serialAt(gateway.grpc)).not.toBe(before), 15_000);
    await eventually(() => expect(gateway.output.stderr).toContain('TLS files reloaded'));
    expect(open.destroyed).toBe(false);
  });

  test.each([
    ['text', () => put('cert', 'nothing'), 'of SVC_TLS_CERT is not a certificate in PEM format'],
    [
      'the key of another certificate',
      () => put('key', authority.issue('other').key),
      'is not the key of the certificate',
    ],
    [
      'an expired certificate',
      () => {
        const expired = authority.issue('gateway', -1);
        put('key', expired.key);
        put('cert', expired.cert);
      },
      'of SVC_TLS_CERT has expired',
    ],
  ])('keeps the certificate where a file becomes %s, and says so', async (_, spoil, reason) => {
    const gateway = await start();
    const before = await serialAt(gateway.url);
    spoil();
    gateway.process.kill('SIGHUP');
    await eventually(() => expect(gateway.output.stderr).toContain(reason), 15_000);
    expect(gateway.output.stderr).toContain('the TLS files were not reloaded');
    expect(await serialAt(gateway.url)).toBe(before);
    expect(await serialAt(gateway.grpc)).toBe(before);
  });

  test.each([
    [{ SVC_TLS_CERT: '/nowhere/cert.pem' }, 'cannot read /nowhere/cert.pem of SVC_TLS_CERT (ENOENT)'],
    [{ SVC_TLS_KEY: '' }, 'SVC_TLS_CERT and SVC_TLS_KEY must be set together'],
    [{ SVC_HTTP_ENGINE: 'native' }, 'SVC_HTTP_ENGINE must be auto or node with SVC_TLS_CERT'],
  ])('does not start with %j', async (env, reason) => {
    await expect(start(env)).rejects.toThrow(reason);
  });

  test('requests in the clear are cut off, and the gateway goes on', async () => {
    const gateway = await start();
    for (const address of [gateway.url.replace('https://', ''), gateway.grpc]) {
      const [host, port] = address.split(':');
      const socket = connectTcp(Number(port), host);
      cleanUp.push(() => socket.destroy());
      socket.on('error', () => undefined);
      let heard = '';
      socket.on('data', (piece: Buffer) => {
        heard += piece.toString('latin1');
      });
      socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
      await once(socket, 'close');
      expect(heard).not.toContain('HTTP/1.1 200');
    }
    expect(await statusOf(gateway.url)).toBe(200);
    expect(gateway.output.stderr).not.toContain('failed');
  });

  test('connections that never begin TLS make room for others', async () => {
    const gateway = await start({ SVC_MAX_GRPC_CONNECTIONS: '8', SVC_IO_THREADS: '0' });
    const [host, port] = gateway.grpc.split(':');
    const silent: Socket[] = [];
    for (let count = 0; count < 8; count += 1) {
      const socket = connectTcp(Number(port), host).on('error', () => undefined);
      silent.push(socket);
      cleanUp.push(() => socket.destroy());
      await once(socket, 'connect');
    }
    await eventually(async () => expect((await overTls(gateway.grpc)).alpnProtocol).toBe('h2'), 5_000);
  });
});

describe('TLS with certificates of clients', () => {
  test('serves those of its authority, and nobody else', async () => {
    const gateway = await startMutual();
    const right = authority.issue('client');
    expect(await statusOf(gateway.url, right)).toBe(200);
    expect(await checkOverGrpc(gateway.grpc, right)).toMatchObject({ decision: 'allow' });
    const wrong: Readonly<Record<string, Client>> = {
      none: {},
      'another authority': stranger.issue('client'),
      expired: authority.issue('client', -1),
    };
    for (const [name, client] of Object.entries(wrong)) {
      expect(await statusOf(gateway.url, client), name).toEqual(expect.any(String));
      expect(await checkOverGrpc(gateway.grpc, client), name).toMatchObject({ decision: 'deny', unreachable: true });
    }
  });

  test('a session does not outlive the authority that admitted it', async () => {
    const gateway = await startMutual();
    const client = authority.issue('client');
    const sessions: Buffer[] = [];
    const first = await overTls(gateway.url, { ...client, ALPNProtocols: ['http/1.1'] });
    first.on('session', (session: Buffer) => sessions.push(session));
    first.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await eventually(() => expect(sessions.length).toBeGreaterThan(0));
    const resume = (): Promise<string> =>
      new Promise((resolve) => {
        const [host, port] = gateway.url.replace('https://', '').split(':');
        const socket = connectTls({
          host: host!,
          port: Number(port),
          servername: 'localhost',
          ca: authority.ca,
          session: sessions[0]!,
        });
        cleanUp.push(() => socket.destroy());
        socket.on('error', () => resolve('refused'));
        socket.on('data', () => resolve(socket.isSessionReused() ? 'resumed' : 'anew'));
        socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
      });
    expect(await resume()).toBe('resumed');
    put('ca', stranger.ca);
    await eventually(() => expect(gateway.output.stderr).toContain('TLS files reloaded'), 15_000);
    expect(await resume()).toBe('refused');
  });
});
