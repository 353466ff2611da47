import { once } from 'node:events';
import { createServer, request as requestHttp } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { createCliHome } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { answerJson, startFakeServer } from '../support/fake-server.ts';
import { freePort } from '../support/free-port.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';

/** In front of a gateway, as nginx is; answers for it while it is away. */
async function startReverseProxy(port: number): Promise<string> {
  const server = createServer((request, response) => {
    const away = (): void => void response.writeHead(502, { 'content-type': 'text/html' }).end('<html>');
    request.pipe(
      requestHttp(
        { port, method: request.method, path: request.url, headers: request.headers, agent: false },
        (answer) => {
          response.writeHead(answer.statusCode ?? 0, answer.headers);
          answer.pipe(response);
        },
      ).on('error', away),
    );
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
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const NOBODY = { org_id: null, team_id: null, agent_id: null };

describe('following', () => {
  let gateway: TestGateway;
  let url: string;
  const start = async (): Promise<void> => {
    gateway = await startTestGateway({ env: { SVC_HTTP_ADDR: new URL(url).host } });
  };
  const begin = (op: string) =>
    gateway.call('POST', '/api/v1/ops', { op_id: op, agent: { org_id: 'acme', team_id: 't', agent_id: 'a' } });
  beforeAll(async () => {
    url = `http://127.0.0.1:${await freePort()}`;
    await start();
  });
  afterAll(async () => {
    await gateway?.stop();
  });

  test('continues after a restart, and from the first entry of a new log', async () => {
    const cli = createCliHome();
    onTestFinished(cli.remove);
    const directly = { SVC_CLI_API_URL: url, SVC_CLI_API_KEY: ADMIN_KEY };
    const behind = { ...directly, SVC_CLI_API_URL: await startReverseProxy(Number(new URL(url).port)) };
    for (let nth = 1; nth <= 20; nth += 1) await begin(`before:${nth}`);
    const [logs, watch, near] = [
      cli.inTerminal(['logs', '--follow'], { env: behind, columns: 400 }),
      cli.inTerminal(['ops', 'watch', '-o', 'json'], { env: behind, columns: 400 }),
      cli.inTerminal(['logs', '--follow', '--org', 'acme'], { env: directly, columns: 400 }),
    ];
    await Promise.all([logs, watch, near].map((each) => each.until('before:20')));
    await gateway.stop('SIGKILL');
    // The proxy answers for the gateway.
    await Promise.all([
      logs.until('the server that answered, with status 502, is not a gateway; retrying.'),
      watch.until('; retrying.'),
    ]);
    await start();
    let ops = 0;
    await eventually(async () => {
      ops += 1;
      await begin(`after:${ops}`);
      for (const { shown } of [logs, watch]) expect(shown()).toContain('after:');
    });
    await near.until(`after:${ops} `);
    for (const { type } of [logs, watch, near]) type('\u0003');
    expect(await watch.ended).toBe(0);
    await Promise.all([logs.ended, near.ended]);
    expect([...near.shown().matchAll(/ (before:20|after:\d+) /g)].map(([, op]) => op)).toEqual([
      'before:20',
      ...Array.from({ length: ops }, (_, nth) => `after:${nth + 1}`),
    ]);
  });

  test('a watch ends at once when interrupted during a silent outage', async () => {
    const streams = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    await once(streams, 'listening');
    const { port } = streams.address() as AddressInfo;
    const cli = createCliHome();
    onTestFinished(cli.remove);
    const watch = cli.inTerminal(['ops', 'watch', '-o', 'json'], {
      env: { SVC_CLI_API_URL: `http://127.0.0.1:${port}` },
    });
    const [stream] = (await once(streams, 'connection')) as [WebSocket];
    streams.close();
    const silent = createTcpServer().listen(port, '127.0.0.1');
    onTestFinished(() => {
      silent.close();
    });
    stream.terminate();
    const [tried] = (await once(silent, 'connection')) as [Socket];
    onTestFinished(() => {
      tried.destroy();
    });
    const interruptedMs = performance.now();
    watch.type('\u0003');
    expect(await watch.ended).toBe(0);
    expect(performance.now() - interruptedMs).toBeLessThan(9_000); // an attempt ends by itself after ten seconds
  });

  test('the logs of all gateways of a cluster are followed, each by its own ids', async () => {
    const cli = createCliHome();
    onTestFinished(cli.remove);
    const startMs = Date.now();
    const entries: { gateway: string; id: number; timestamp: string; op_id: string }[] = [];
    const append = (gateway: string, id: number, atMs: number): void => {
      const timestamp = new Date(startMs + atMs).toISOString();
      entries.push({ gateway, id, timestamp, op_id: `op:${entries.length + 1}` });
    };
    let incomplete: string[] = [];
    const server = await startFakeServer(({ url = '' }, response) => {
      const query = new URL(url, 'http://log').searchParams;
      const rows = entries
        .filter(({ timestamp, gateway }) => timestamp >= (query.get('since') ?? '') && !incomplete.includes(gateway))
        .sort((one, other) => (one.timestamp < other.timestamp ? 1 : -1))
        .slice(0, Number(query.get('per_page')))
        .map((row) => ({ ...row, event_type: 'ActionAllowed', decision: 'allow', lineage: NOBODY }));
      answerJson(response, 200, { entries: rows, next_cursor: null, incomplete });
    });
    onTestFinished(() => server.stop());
    append('one', 500, -3_000);
    append('two', 7, -2_000);
    const logs = cli.inTerminal(['logs', '--follow'], { env: { SVC_CLI_API_URL: server.url }, columns: 400 });
    await logs.until('op:2');
    incomplete = ['two'];
    append('one', 501, 9_000);
    append('two', 8, -1_000);
    await Promise.all(['op:3', 'two did not answer; the list is incomplete'].map((text) => logs.until(text)));
    incomplete = [];
    append('two', 1, 9_000); // its log was lost, and has begun anew
    await logs.until('op:5');
    logs.type('\u0003');
    await logs.ended;
    expect([...logs.shown().matchAll(/ (\w+:\d+) .*(op:\d)/g)].map(([, id, op]) => `${id} ${op}`)).toEqual([
      'one:500 op:1',
      'two:7 op:2',
      'one:501 op:3',
      'two:8 op:4',
      'two:1 op:5',
    ]);
  });

  /** A log with an entry for each millisecond until now; counts the pages that are asked for. */
  async function startBusyLog(entries: number) {
    let startMs = Date.now() - entries;
    const beginAnew = (length: number): void => {
      startMs = Date.now();
      log.entries = length;
    };
    const log = { entries, furtherPages: 0, isAway: false, setBackAt: Infinity, url: '', beginAnew };
    const timeOf = (id: number): string => new Date(startMs + id - (id > log.setBackAt ? 3_600_000 : 0)).toISOString();
    const server = createServer(({ url = '' }, response) => {
      if (log.isAway)
        return void response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>no such route</h1>');
      const query = new URL(url, 'http://log').searchParams;
      const newest = Number(query.get('cursor') ?? log.entries);
      if (query.has('cursor')) log.furtherPages += 1;
      const matching = Array.from({ length: newest }, (_, at) => newest - at).filter(
        (id) => timeOf(id) >= (query.get('since') ?? '') && timeOf(id) < (query.get('until') ?? '9'),
      );
      const ids = matching.slice(0, Number(query.get('per_page')));
      const rows = ids.map((id) => ({
        id,
        timestamp: timeOf(id),
        event_type: 'ActionAllowed',
        decision: 'allow',
        op_id: `op:${id}`,
        lineage: NOBODY,
      }));
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(
          JSON.stringify({ entries: rows, next_cursor: matching.length > ids.length ? String(ids.at(-1)! - 1) : null }),
        );
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    log.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return log;
  }

  /** On a terminal. */
  function follow(log: { readonly url: string }) {
    const cli = createCliHome();
    onTestFinished(cli.remove);
    return cli.inTerminal(['logs', '--follow'], {
      env: { SVC_CLI_API_URL: log.url, SVC_CLI_API_KEY: ADMIN_KEY },
      columns: 400,
    });
  }

  /** The numbers of the entries, in the order in which they were printed until Ctrl-C. */
  async function entriesShown(logs: ReturnType<typeof follow>): Promise<readonly number[]> {
    logs.type('\u0003');
    await logs.ended;
    return [...logs.shown().matchAll(/op:(\d+)/g)].map(([, id]) => Number(id));
  }

  test('following a busy log asks only for new entries, each once and in order', async () => {
    const log = await startBusyLog(20_000);
    const logs = follow(log);
    await logs.until('op:20000');
    log.entries += 3;
    await logs.until('op:20003');
    expect(log.furtherPages).toBe(0);
    log.entries += 2_500; // more than a page
    await logs.until('op:22503');
    expect(log.furtherPages).toBe(2);
    const shown = await entriesShown(logs);
    expect(shown).toEqual(Array.from({ length: shown.length }, (_, at) => shown[0]! + at));
  });

  test('a followed log resumes after a proxy found no route for a while', async () => {
    const log = await startBusyLog(3);
    const terminal = follow(log);
    await terminal.until('op:3');
    log.isAway = true;
    await terminal.until('the server that answered, with status 404, is not a gateway; retrying.');
    log.entries = 4;
    log.isAway = false;
    await terminal.until('op:4');
    terminal.type('\u0003');
    await terminal.ended;
  });

  test('entries recorded after the clock was set back are followed, once', async () => {
    const log = await startBusyLog(100);
    const logs = follow(log);
    await logs.until('op:100');
    log.setBackAt = 100;
    log.entries = 103;
    await logs.until('op:103');
    log.entries = 105;
    await logs.until('op:105');
    const shown = await entriesShown(logs);
    expect(shown).toEqual(Array.from({ length: shown.length }, (_, at) => shown[0]! + at));
  });

  test('following a log that starts anew and has outgrown the old one misses nothing', async () => {
    const log = await startBusyLog(20);
    const logs = follow(log);
    await logs.until('op:20');
    log.beginAnew(30);
    await logs.until('op:30');
    const shown = await entriesShown(logs);
    expect(shown.slice(shown.indexOf(20) + 1)).toEqual(Array.from({ length: 30 }, (_, at) => at + 1));
  });

  test('on a terminal that can only print lines, a watch prints lines', async () => {
    const cli = createCliHome();
    onTestFinished(cli.remove);
    const watch = cli.inTerminal(['ops', 'watch'], {
      env: { SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: ADMIN_KEY, TERM: 'dumb' },
    });
    await begin('dumb:1');
    await watch.until('dumb:1  pending  acme/t/a  -  -\r\n');
    watch.type('\u0003');
    await watch.ended;
    expect(watch.shown()).not.toContain('\u001b');
  });

  test('a followed log and a watch in YAML are one document per entry', async () => {
    const cli = createCliHome();
    onTestFinished(cli.remove);
    const env = { SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: ADMIN_KEY };
    const [logs, watch] = [
      cli.inTerminal(['logs', '-f', '-o', 'yaml'], { env, columns: 400 }),
      cli.inTerminal(['ops', 'watch', '-o', 'yaml'], { env, columns: 400 }),
    ];
    for (const op of ['first:1', 'second:1']) {
      await begin(op);
      await Promise.all([logs.until(`op_id: ${op}`), watch.until(`op_id: ${op}`)]);
    }
    for (const { shown, type } of [logs, watch]) {
      expect(shown()).toMatch(/^---\r\n[^]*op_id: first:1\r\n[^]*\r\n---\r\n[^]*op_id: second:1\r\n/);
      type('\u0003');
    }
    await Promise.all([logs.ended, watch.ended]);
  });
});
