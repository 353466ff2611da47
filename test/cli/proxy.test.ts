import { appendFileSync } from 'node:fs';
import { type AddressInfo, connect as connectTcp, createServer as createTcpServer, type Server } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { renderError } from '../../src/cli/errors.ts';
import { unreachable } from '../../src/cli/remote/http.ts';
import { proxyFor } from '../../src/client/proxy-choice.ts';
import { messageThrough } from '../../src/client/through-proxy.ts';
import { type Certificate, selfSigned } from '../support/certificate.ts';
import { type CliHome, createCliHome } from '../support/cli.ts';
import { startFakeServer } from '../support/fake-server.ts';
import { fastestMs } from '../support/fastest.ts';
import { type ForwardProxy, startForwardProxy } from '../support/forward-proxy.ts';
import { freePort } from '../support/free-port.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

let gateway: GatewayHere;
let cli: CliHome;
let certificate: Certificate;
let tls: Server;

const httpPort = () => Number(new URL(gateway.url).port);
const portOf = (server: Server) => (server.address() as AddressInfo).port;
const tlsPort = () => portOf(tls);

/** Speaks TLS and passes on to a port of this machine what comes within it. */
async function startTls(certificate: Certificate, port: number): Promise<Server> {
  const server = createTlsServer(certificate, (near) => {
    const far = connectTcp(port, '127.0.0.1');
    near.pipe(far).pipe(near);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const)
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
  });
  server.on('tlsClientError', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

describe('proxy', () => {
  beforeAll(async () => {
    // Its name on the other side of the proxy.
    gateway = await startGatewayHere({ env: { SVC_PUBLIC_URL: 'https://gateway.test' } });
    cli = createCliHome();
    certificate = selfSigned('gateway.test');
    tls = await startTls(certificate, httpPort());
  });
  afterAll(async () => {
    tls.close();
    certificate.remove();
    cli.remove();
    await gateway.stop();
  });

  async function proxyTo(port: number, credentials?: string): Promise<ForwardProxy> {
    const proxy = await startForwardProxy({ to: port, ...(credentials === undefined ? {} : { credentials }) });
    onTestFinished(() => proxy.stop());
    return proxy;
  }

  // No name server knows it: who reaches it has gone through the proxy.
  const behind = (env: Readonly<Record<string, string>>, apiUrl = 'https://gateway.test') => ({
    SVC_CLI_API_URL: apiUrl,
    SVC_CLI_API_KEY: ADMIN_KEY,
    NODE_EXTRA_CA_CERTS: certificate.certFile,
    ...env,
  });

  test('an https gateway is reached through HTTPS_PROXY for all kinds of calls', async () => {
    const proxy = await proxyTo(tlsPort(), 'ann:pass@word');
    const env = behind({ HTTPS_PROXY: `http://ann:pass%40word@127.0.0.1:${proxy.port}` });
    expect(await cli.start(['agents', 'register', 'acme/search/behind', '-o', 'json'], { env })).toMatchObject({
      status: 0,
      stderr: '',
    });
    expect(JSON.parse((await cli.start(['agents', 'ls', '-o', 'json'], { env })).stdout).agents).toMatchObject([
      { agent_id: 'behind' },
    ]);
    expect((await cli.start(['audit', 'export'], { env })).stdout).toContain('"event_type":"AgentRegistered"');
    const watch = cli.inTerminal(['ops', 'watch'], { env });
    await watch.until('https://gateway.test: no operations in flight');
    expect(
      (
        await cli.start(
          [
            'check',
            '--agent',
            'acme/search/behind',
            '--action',
            'tool.call',
            '--resource',
            'web_search',
            '--op',
            'proxy:1',
          ],
          { env },
        )
      ).status,
    ).toBe(0);
    await watch.until('proxy:1');
    watch.type('\u0003');
    expect(await watch.ended).toBe(0);
    expect((await cli.start(['login'], { env })).stdout).toContain('Logged in to https://gateway.test with admin;');
    expect((await cli.start(['ops', 'pause', 'proxy:1'], { env })).stdout).toBe('proxy:1 is paused.\n');
    expect(new Set(proxy.asked)).toEqual(new Set(['CONNECT gateway.test:443']));
    await cli.start(['logout'], { env });
  });

  test('a request to an http gateway goes to HTTP_PROXY; its live stream is tunnelled', async () => {
    const proxy = await proxyTo(httpPort());
    const env = behind({ http_proxy: `127.0.0.1:${proxy.port}` }, 'http://gateway.test:8080/');
    expect(await cli.run(['budgets'], { env })).toMatchObject({ status: 0 });
    const watch = cli.inTerminal(['ops', 'watch'], { env });
    await watch.until('http://gateway.test:8080:');
    watch.type('\u0003');
    await watch.ended;
    expect(proxy.asked).toEqual([
      'GET http://gateway.test:8080/api/v1/budgets?per_page=100',
      'CONNECT gateway.test:8080',
    ]);
  });

  test('an answer without a body keeps no command waiting, also through a tunnel', async () => {
    const [toHttp, toTls] = [await proxyTo(httpPort()), await proxyTo(tlsPort())];
    for (const env of [
      behind({ http_proxy: `127.0.0.1:${toHttp.port}` }, 'http://gateway.test:8080/'),
      behind({ HTTPS_PROXY: `http://127.0.0.1:${toTls.port}` }),
    ]) {
      const { body } = await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'behind', scopes: ['read'] });
      const ms = async (args: readonly string[]): Promise<number> => {
        const startMs = performance.now();
        expect(await cli.start(args, { env })).toMatchObject({ status: 0, stderr: '' });
        return performance.now() - startMs;
      };
      const waitedMs = async () => (await ms(['keys', 'revoke', body.id])) - (await ms(['keys', 'ls']));
      // Less than the gateway keeps a connection on which nothing comes.
      expect(await fastestMs(5_000, waitedMs)).toBeLessThan(5_000);
    }
  });

  test('a proxy may itself speak TLS, and its certificate is verified', async () => {
    const own = selfSigned('localhost');
    onTestFinished(own.remove);
    const proxy = await proxyTo(tlsPort());
    const front = await startTls(own, proxy.port);
    onTestFinished(() => void front.close());
    const env = behind({ HTTPS_PROXY: `https://localhost:${portOf(front)}` });
    expect((await cli.start(['budgets'], { env })).stderr).toMatch(
      /^error: cannot reach the proxy https:\/\/localhost:\d+ on the way to gateway\.test:443: self-signed certificate\nIf you trust it, set NODE_EXTRA_CA_CERTS /,
    );
    appendFileSync(own.certFile, certificate.cert);
    expect(await cli.start(['budgets'], { env: { ...env, NODE_EXTRA_CA_CERTS: own.certFile } })).toMatchObject({
      status: 0,
    });
    expect(proxy.asked).toEqual(['CONNECT gateway.test:443']);
  });

  test('an export that breaks off behind a proxy is reported and leaves no file', async () => {
    const server = await startFakeServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/x-ndjson' }).write('{"id":1}\n', () => response.destroy());
    });
    onTestFinished(() => server.stop());
    const proxy = await proxyTo(Number(new URL(server.url).port));
    const file = join(cli.home, 'cut.ndjson');
    const env = behind({ HTTP_PROXY: `http://127.0.0.1:${proxy.port}` }, 'http://gateway.test');
    expect(await cli.run(['audit', 'export', '--file', file], { env })).toEqual({
      status: 1,
      stdout: '',
      stderr: `error: the connection was lost before the export ended\n${file} is unchanged; run the command again.\n`,
    });
  });

  test('many requests of one command share their tunnels', async () => {
    const proxy = await proxyTo(tlsPort());
    const env = behind({ HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` });
    const ids = Array.from({ length: 40 }, (_, at) => `nowhere:${at}`);
    expect((await cli.start(['ops', 'pause', ...ids], { env })).stderr.match(/operation \S+ not found/g)).toHaveLength(
      40,
    );
    expect(proxy.asked.length).toBeLessThanOrEqual(16);
  });

  test('an unavailable proxy is named without its password, with what to do', async () => {
    const proxy = await proxyTo(tlsPort(), 'ann:right');
    const at = `127.0.0.1:${proxy.port}`;
    const errorOf = async (env: Readonly<Record<string, string>>, args = ['budgets']) => {
      const { status, stdout, stderr } = await cli.run([...args, '--debug'], { env: behind(env) });
      expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
      expect(stderr).not.toMatch(/wrong|right/);
      return stderr.split('\n').slice(0, 2);
    };
    const write = `Set HTTPS_PROXY to http://user:password@${at}, with special characters percent-encoded, or add gateway.test to NO_PROXY to connect without it.`;
    expect(await errorOf({ HTTPS_PROXY: `http://${at}` })).toEqual([
      `error: the proxy http://${at} requires a user and password`,
      write,
    ]);
    for (const args of [['budgets'], ['ops', 'watch'], ['login']]) {
      expect(await errorOf({ HTTPS_PROXY: `http://ann:wrong@${at}` }, args)).toEqual([
        `error: the proxy http://${at} rejects the user and password in HTTPS_PROXY`,
        write,
      ]);
    }
    for (const status of ['502 Bad Gateway', '403 Forbidden']) {
      proxy.answer(status);
      expect(await errorOf({ HTTPS_PROXY: `http://ann:right@${at}` })).toEqual([
        `error: the proxy http://${at} cannot connect to gateway.test:443: it answers ${status}`,
        'Check the URL of the gateway, ask the operator of the proxy, or add gateway.test to NO_PROXY to connect without it.',
      ]);
    }
    const correct = 'Fix HTTPS_PROXY, or add gateway.test to NO_PROXY to connect without it.';
    const nobody = `127.0.0.1:${await freePort()}`;
    expect(await errorOf({ https_proxy: `http://ann:wrong@${nobody}` })).toEqual([
      `error: cannot reach the proxy http://${nobody} on the way to gateway.test:443: the connection was refused`,
      correct,
    ]);
    expect((await errorOf({ HTTPS_PROXY: 'http://ann:wrong@proxy.invalid:3128' }))[0]).toMatch(
      /^error: cannot reach the proxy http:\/\/proxy\.invalid:3128 on the way to gateway\.test:443: (no such host|the host name cannot be resolved)$/,
    );
    expect((await errorOf({ HTTPS_PROXY: `http://ann:wrong@${gateway.grpc}` }))[0]).toBe(
      `error: cannot reach the proxy http://${gateway.grpc} on the way to gateway.test:443: the server there does not speak HTTP`,
    );
  });

  test('refusals of an http proxy and of the gateway are distinguished', async () => {
    const proxy = await proxyTo(httpPort());
    const env = behind({ HTTP_PROXY: `http://127.0.0.1:${proxy.port}` }, 'http://gateway.test');
    expect((await cli.run(['ops', 'show', 'nowhere:0'], { env })).stderr).toMatch(
      /^error: operation nowhere:0 not found\n/,
    );
    proxy.answer('504 Gateway Timeout');
    expect((await cli.run(['budgets'], { env })).stderr).toMatch(
      `error: the proxy http://127.0.0.1:${proxy.port} cannot connect to gateway.test: it answers 504 Gateway Timeout\n`,
    );
    proxy.answer('403 Forbidden');
    expect((await cli.run(['budgets'], { env })).stderr).toMatch(
      `error: the proxy http://127.0.0.1:${proxy.port} cannot connect to gateway.test: it answers 403 Forbidden\n`,
    );
    proxy.answer('401 Unauthorized');
    expect((await cli.run(['budgets'], { env })).stderr).toMatch(
      `error: the proxy http://127.0.0.1:${proxy.port} requires a user and password\n`,
    );
  });

  test('a refusal of the proxy never keeps a connection open', async () => {
    let closed = (): void => {};
    const isClosed = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const proxy = createTcpServer((socket) => {
      socket
        .once('data', () => socket.write('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 6\r\n\r\n<html>'))
        .once('close', closed)
        .on('error', () => {});
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void proxy.close());
    const setting = { variable: 'HTTP_PROXY', text: `127.0.0.1:${portOf(proxy)}` } as const;
    await expect(
      messageThrough(setting, new URL('http://gateway.test/'), {
        method: 'GET',
        headers: {},
        signal: new AbortController().signal,
      }),
    ).rejects.toThrow('it answers 502 Bad Gateway');
    await isClosed;
  });

  test('a proxy that never answers times out and is named', async () => {
    const proxy = await proxyTo(tlsPort());
    const isAsked = proxy.fallSilent();
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const setting = { variable: 'HTTPS_PROXY', text: `http://ann:secret@127.0.0.1:${proxy.port}` } as const;
    const answer = messageThrough(setting, new URL('https://gateway.test/'), {
      method: 'GET',
      headers: {},
      signal: new AbortController().signal,
    });
    const errorOf = answer.catch(
      (error: unknown) => renderError(unreachable('https://gateway.test', error), false).split('\n')[0],
    );
    await isAsked;
    vi.advanceTimersByTime(10_000);
    expect(await errorOf).toBe(
      `error: cannot reach the proxy http://127.0.0.1:${proxy.port} on the way to gateway.test:443: no answer`,
    );
  });

  test('an invalid proxy setting stops only what needs it, and is not printed', async () => {
    const env = behind({ HTTPS_PROXY: 'socks5://ann:hunter2@proxy:1080' });
    expect(await cli.run(['budgets'], { env })).toEqual({
      status: 2,
      stdout: '',
      stderr:
        'error: HTTPS_PROXY is not a proxy URL that svc can use\nIt must be http://host:port or https://host:port, optionally with user:password@ before the host.\n',
    });
    expect((await cli.run(['whoami'], { env })).status).toBe(0);
  });

  test("a gateway's unsigned certificate is refused, also behind a proxy, with advice", async () => {
    const proxy = await proxyTo(tlsPort());
    const env = { ...behind({ HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` }), NODE_EXTRA_CA_CERTS: '' };
    for (const args of [['budgets'], ['ops', 'watch']]) {
      expect(
        (await cli.run(args, { env })).stderr,
      ).toBe(`error: cannot reach the gateway at https://gateway.test: self-signed certificate
If you trust it, set NODE_EXTRA_CA_CERTS to a PEM file with its certificate or that of its CA.
`);
    }
    const direct = (apiUrl: string) => cli.start(['budgets'], { env: behind({}, apiUrl) });
    expect((await direct(`https://localhost:${tlsPort()}`)).stderr).toMatch(
      /altnames.*\nUse a host name that its certificate is valid for\.\n$/,
    );
    expect((await direct(`https://127.0.0.1:${proxy.port}`)).stderr).toMatch(
      /: the server there does not speak TLS\nCheck the URL; it may have to be http instead of https\.\n$/,
    );
  });

  test('the proxy applies by scheme, lower case first, never to loopback or NO_PROXY', () => {
    const env = { HTTPS_PROXY: 'http://secure', HTTP_PROXY: 'http://plain' };
    const chosen = (url: string, more: Readonly<Record<string, string>> = {}) =>
      proxyFor(url, { ...env, ...more })?.text;
    expect({
      https: chosen('https://gw.example'),
      http: chosen('http://gw.example'),
      httpsWithHttpProxy: proxyFor('https://gw.example', { HTTP_PROXY: 'http://plain' }),
    }).toEqual({ https: 'http://secure', http: 'http://plain', httpsWithHttpProxy: undefined });
    expect([
      chosen('https://gw.example', { https_proxy: 'http://lower' }),
      chosen('https://gw.example', { https_proxy: '' }),
    ]).toEqual(['http://lower', undefined]);
    for (const here of ['localhost', '127.0.0.1', '127.9.9.9', '[::1]'])
      expect(chosen(`https://${here}:8443`), here).toBeUndefined();
    const exempt = (url: string, list: string) => chosen(url, { NO_PROXY: list }) === undefined;
    for (const [url, list] of [
      ['https://gw.example', '*'],
      ['https://gw.example', 'a, gw.example'],
      ['https://GW.example', 'gw.EXAMPLE'],
      ['https://gw.example', '.gw.example'],
      ['https://a.gw.example', 'gw.example'],
      ['https://a.gw.example', '.gw.example'],
      ['https://a.gw.example', '*.gw.example'],
      ['https://gw.example:8443', 'gw.example:8443'],
      ['https://gw.example', 'gw.example:443'],
      ['https://10.1.2.3', '10.1.2.3'],
      ['https://10.1.2.3:8443', '192.168.0.0/16 10.0.0.0/8'],
      ['https://[2001:db8::7]', '2001:db8::/32'],
      ['https://[2001:db8::7]', '[2001:db8::7]'],
      ['https://[2001:db8::7]', '2001:db8::7'],
    ] as const)
      expect(exempt(url, list), `${url} ${list}`).toBe(true);
    for (const [url, list] of [
      ['https://gw.example', ''],
      ['https://gw.example', ', ,'],
      ['https://gw.example', '.'],
      ['https://notgw.example', 'gw.example'],
      ['https://gw.example', 'a.gw.example'],
      ['https://gw.example', 'gw.example:8443'],
      ['https://11.1.2.3', '10.0.0.0/8'],
      ['https://gw.example', '0.0.0.0/0'],
      ['https://10.1.2.3', '10.0.0.0/99'],
      ['https://10.1.2.3', '2001:db8::/32'],
    ] as const)
      expect(exempt(url, list), `${url} ${list}`).toBe(false);
  });
});
