import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createCliHome } from '../support/cli.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';

const svc = createCliHome();
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(async () => {
  await gateway.stop();
  svc.remove();
});
const envOf = (env: Readonly<Record<string, string>> = {}) => ({
  SVC_CLI_API_URL: gateway.url,
  SVC_CLI_API_KEY: ADMIN_KEY,
  SVC_GATEWAY_GRPC: gateway.grpc,
  ...env,
});
const load = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  svc.run(['load', '--rate', '100', '--duration', '1s', ...args], { env: envOf(env) });

describe('svc load', () => {
  test.each(['connect', 'grpc', 'stream'])(
    'measures over %s, and leaves no agents and no operations',
    async (protocol) => {
      const { stdout, stderr, status } = await load(['--protocol', protocol, '--agents', '3', '-o', 'json']);
      expect({ status, stderr: stderr.replace(/^warning: this client came .*\n/, '') }).toEqual({
        status: 0,
        stderr: '',
      });
      const result = JSON.parse(stdout);
      expect(result).toMatchObject({ protocol, rate: 100, agents: 3, errors: 0, limit: null, missed: [] });
      expect(result.due).toBeGreaterThan(50);
      expect(result.decisions).toEqual({ allow: result.due, deny: 0, pending: 0 });
      const { p50, p99, longest } = result.wait_ms;
      expect(p50 > 0 && p50 <= p99 && p99 <= longest).toBe(true);
      expect((await gateway.call('GET', '/api/v1/agents')).body.agents).toEqual([]);
      expect((await gateway.call('GET', '/api/v1/ops?state=running')).body.ops).toEqual([]);
      const [op] = (await gateway.call('GET', '/api/v1/ops?per_page=1')).body.ops;
      expect(op).toMatchObject({ state: 'completing', agent: { org_id: 'svc-load', team_id: 'svc-load' } });
    },
  );

  test('exits with 1 where a goal is missed, and writes a report without the network', async () => {
    const path = join(svc.home, 'report.html');
    const { stdout, stderr, status } = await load(['--html', path, '--p99', '1us', '--errors', '0']);
    expect(status).toBe(1);
    expect(stdout).toMatch(/^p99\.9 +[\d.,]+ ms$/m);
    expect(stderr).toMatch(/^error: p99 was [\d.,]+ ms, more than the 0\.001 ms of --p99$/m);
    const html = readFileSync(path, 'utf8');
    expect(html.match(/<svg /g)).toHaveLength(3);
    expect(html).toContain('more than the 0.001 ms of --p99</p>');
    expect(html).not.toMatch(/<script|https?:\/\/(?!127\.0\.0\.1)|NaN|undefined/);
  });

  test('says at once that such checks are denied, and counts denies as answers', async () => {
    const { stdout, stderr, status } = await load(['--action', 'process.exec', '--errors', '0']);
    expect(stderr).toContain('warning: such checks are not allowed (deny): no policy allows process.exec');
    expect(stdout).toMatch(/^decisions +0 allow, [1-9]\d* deny, 0 pending$/m);
    expect(status).toBe(0);
  });

  test('names what is wrong before the load begins', async () => {
    const nothing = { SVC_CLI_API_URL: 'http://127.0.0.1:1' };
    expect((await load([], nothing)).stderr).toMatch(/^error: cannot reach the gateway at http:\/\/127\.0\.0\.1:1: /);
    expect((await load([], { SVC_CLI_API_KEY: 'x'.repeat(40) })).stderr).toContain('the gateway rejected the API key');
    expect((await load(['--protocol', 'grpc', '--grpc', '127.0.0.1:1'])).stderr).toBe(
      'error: the first check was not decided: the connection was refused\nName the gRPC address of the gateway with --grpc <host:port>.\n',
    );
    const proxied = { SVC_CLI_API_URL: 'http://gateway.example', HTTP_PROXY: 'http://127.0.0.1:1' };
    expect((await load([], proxied)).stderr).toContain('through a proxy, which would be measured as well');
    expect((await gateway.call('GET', '/api/v1/agents')).body.agents).toEqual([]);
  });

  test('a server that does not speak gRPC is named as one', async () => {
    const server = createServer((socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const address = server.address() as { port: number };
    const { stderr } = await load(['--protocol', 'stream', '--grpc', `127.0.0.1:${address.port}`]);
    expect(stderr).toContain('the first check was not decided: the server there does not speak gRPC');
  });

  test.each(['grpc', 'stream'])('the HTTP port, given for that of %s, is named as one', async (protocol) => {
    const { host } = new URL(gateway.url);
    expect(await load(['--protocol', protocol, '--grpc', host])).toMatchObject({
      status: 1,
      stderr: `error: the first check was not decided: ${host} is an HTTP port, not that of gRPC\nName the gRPC address of the gateway with --grpc <host:port>.\n`,
    });
  });

  test('options that make no sense are refused', async () => {
    for (const [option, value, problem] of [
      ['--duration', '5', '--duration must be a time such as 5ms, 60s or 10m'],
      ['--duration', '10ms', '--duration must be from 1s to 24h'],
      ['--rate', '0', '--rate must be a whole number of at least 1'],
      ['--connections', '100000', '--connections must be at most 10,000'],
      ['--html', '/nowhere/report.html', '--html cannot be written: ENOENT'],
      ['--grpc', 'gateway', '--grpc must be host:port'],
    ] as const) {
      const { status, stderr } = await load(['--protocol', 'grpc', option, value]);
      expect(stderr).toContain(`error: ${problem}`);
      expect(status).toBe(2);
    }
  });

  test('Ctrl-C on a terminal ends the load and shows what was measured', async () => {
    const session = svc.inTerminal(['load', '--rate', '50', '--duration', '10m'], { env: envOf() });
    await session.until(/\d+ of 600 s {2}\d+\/s {2}p50/);
    session.type('\u0003');
    expect(await session.ended).toBe(130);
    expect(session.shown()).toMatch(/checks +[\d,]+ due, [\d,]+ answered/);
    expect((await gateway.call('GET', '/api/v1/agents')).body.agents).toEqual([]);
  });
});
