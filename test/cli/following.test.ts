import { createServer, request as requestHttp } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createCliHome } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { ADMIN_KEY, startTestGateway } from '../support/gateway.ts';

/** In front of a gateway, as nginx is; answers for it while it is away. */
async function startReverseProxy(port: number): Promise<string> {
  const server = createServer((request, response) => {
    const away = (): void => void response.writeHead(502, { 'content-type': 'text/html' }).end('<html>');
    request.pipe(requestHttp({ port, method: request.method, path: request.url, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(response);
    }).on('error', away));
  });
  server.on('upgrade', (request, near) => {
    const lines = Object.entries(request.headers).map(([name, value]) => `${name}: ${String(value)}\r\n`);
    const far = connect(port, '127.0.0.1', () => {
      far.write(`GET ${request.url} HTTP/1.1\r\n${lines.join('')}\r\n`);
      far.pipe(near).pipe(far);
    });
    far.on('error', () => near.end('HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\ncontent-length: 6\r\n\r\n<html>'));
    near.on('error', () => far.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => { server.closeAllConnections(); server.close(); });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('behind a proxy that answers for a gateway which is away, a followed log and a watch go on when it is back', async () => {
  const port = await freePort();
  const start = () => startTestGateway({ env: { SVC_HTTP_ADDR: `127.0.0.1:${port}` } });
  const cli = createCliHome();
  onTestFinished(cli.remove);
  const env = { SVC_CLI_API_URL: await startReverseProxy(port), SVC_CLI_API_KEY: ADMIN_KEY };
  const first = await start();
  const [logs, watch] = [cli.inTerminal(['logs', '--follow'], { env, columns: 400 }), cli.inTerminal(['ops', 'watch', '-o', 'json'], { env, columns: 400 })];
  const begin = (gateway: typeof first, op: string) => gateway.call('POST', '/api/v1/ops', { op_id: op, agent: { org_id: 'acme', team_id: 't', agent_id: 'a' } });
  await begin(first, 'before:1');
  await Promise.all([logs.until('before:1'), watch.until('before:1')]);
  await first.stop('SIGKILL');
  await Promise.all([logs.until('what answered, with status 502, is no gateway; trying again.'), watch.until('; trying again.')]);
  const second = await start();
  onTestFinished(() => second.stop().then(() => undefined));
  let ops = 0;
  await eventually(async () => {
    ops += 1;
    await begin(second, `after:${ops}`);
    for (const { shown } of [logs, watch]) expect(shown()).toContain('after:');
  });
  for (const { type } of [logs, watch]) type('\u0003');
  expect(await watch.ended).toBe(0);
  await logs.ended;
});

test('on a terminal that can only print lines, a watch prints lines', async () => {
  const gateway = await startTestGateway();
  const cli = createCliHome();
  onTestFinished(async () => { cli.remove(); await gateway.stop(); });
  const watch = cli.inTerminal(['ops', 'watch'], { env: { SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: ADMIN_KEY, TERM: 'dumb' } });
  await gateway.call('POST', '/api/v1/ops', { op_id: 'dumb:1', agent: { org_id: 'acme', team_id: 't', agent_id: 'a' } });
  await watch.until('dumb:1  pending  acme/t/a\r\n');
  watch.type('\u0003');
  await watch.ended;
  expect(watch.shown()).not.toContain('\u001b');
});
