import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type CliHome, createCliHome, SVC } from '../support/cli.ts';
import { startFakeServer } from '../support/fake-server.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

let gateway: GatewayHere;
let cli: CliHome;

describe('ops control', () => {
  beforeAll(async () => {
    gateway = await startGatewayHere();
    cli = createCliHome();
    for (const [agent, ids] of [
      ['acme/ops/wild', ['w:1', 'w:2', 'w:3']],
      ['acme/ops/calm', ['c:1']],
      ['/ops/wild', ['n:1']],
    ] as const)
      await start(agent, ids);
  });
  afterAll(async () => {
    await gateway.stop();
    cli.remove();
  });

  const env = (url = gateway.url) => ({ SVC_CLI_API_URL: url, SVC_CLI_API_KEY: ADMIN_KEY });
  const svc = (command: string) => cli.run(command.split(' '), { env: env() });

  async function start(agent: string, opIds: readonly string[]): Promise<void> {
    await svc(`agents register ${agent}`);
    for (const opId of opIds)
      expect(await svc(`check --agent ${agent} --action tool.call --resource web_search --op ${opId}`)).toMatchObject({
        status: 0,
      });
  }

  const states = async (): Promise<Readonly<Record<string, string>>> => {
    const { ops } = JSON.parse((await svc('ops ls -o json')).stdout) as { ops: { op_id: string; state: string }[] };
    return Object.fromEntries(ops.map(({ op_id: id, state }) => [id, state]));
  };

  test('an agent is found by its name in the listings, with its org or without', async () => {
    const idsOf = async (command: string) => (await svc(command)).stdout.match(/\b[wcn]:\d/g);
    expect(await idsOf('ops ls --agent acme/ops/wild')).toEqual(['w:1', 'w:2', 'w:3']);
    expect(await idsOf('ops ls --agent /ops/wild')).toEqual(['n:1']);
    expect(await idsOf('ops ls --agent wild')).toEqual(['w:1', 'w:2', 'w:3', 'n:1']);
    expect(await idsOf('logs --event ActionAllowed --agent acme/ops/wild')).toEqual(['w:1', 'w:2', 'w:3']);
  });

  test('pauses, resumes and terminates all operations of one agent at once', async () => {
    expect(await svc('ops pause --agent acme/ops/wild')).toEqual({
      status: 2,
      stdout: '',
      stderr: 'error: this would pause 3 operations\nThere is no terminal for confirmation; add --yes to go ahead.\n',
    });
    expect(await svc('ops pause --agent acme/ops/wild --yes')).toEqual({
      status: 0,
      stdout: 'w:1 is paused.\nw:2 is paused.\nw:3 is paused.\n',
      stderr: '',
    });
    expect(await svc('ops pause --agent acme/ops/wild --yes')).toEqual({
      status: 0,
      stdout: '',
      stderr: 'There are no operations to pause.\n',
    });
    expect(await states()).toEqual({
      'w:1': 'paused',
      'w:2': 'paused',
      'w:3': 'paused',
      'c:1': 'running',
      'n:1': 'running',
    });
    expect((await svc('ops resume w:1')).status).toBe(0);
    const { status, stdout } = await svc('ops terminate --agent acme/ops/wild -y -o json');
    expect({
      status,
      ended: (JSON.parse(stdout) as { op_id: string; state: string }[]).map(({ op_id: id, state }) => `${id} ${state}`),
    }).toEqual({ status: 0, ended: ['w:1 terminated', 'w:2 terminated', 'w:3 terminated'] });
    expect(await states()).toMatchObject({ 'c:1': 'running', 'n:1': 'running' });
    expect(await svc('ops terminate --agent acme/ops/wild -y -o json')).toMatchObject({ status: 0, stdout: '[]\n' });
  });

  test('on a terminal shows whose operations they are and asks for confirmation', async () => {
    await start('acme/asked/a1', ['a:1', 'a:2']);
    await start('acme/asked/a2', ['a:3']);
    const answered = async (keys: string): Promise<readonly [number, string]> => {
      const terminal = cli.inTerminal(['ops', 'terminate', '--team', 'asked'], { env: { NO_COLOR: '1', ...env() } });
      await terminal.until('Terminate these 3 operations? [y/N] ');
      expect(terminal.shown()).toBe('  2  acme/asked/a1\r\n  1  acme/asked/a2\r\nTerminate these 3 operations? [y/N] ');
      terminal.type(keys);
      return [await terminal.ended, terminal.shown()];
    };
    expect(await answered('\r')).toEqual([1, expect.stringContaining('error: cancelled; nothing was changed')]);
    expect(await answered('\u0004')).toEqual([
      1,
      expect.stringContaining('[y/N] \r\nerror: cancelled; nothing was changed'),
    ]);
    expect(await states()).toMatchObject({ 'a:1': 'running', 'a:2': 'running', 'a:3': 'running' });
    expect(await answered('y\r')).toEqual([
      0,
      expect.stringContaining('a:1 is terminated.\r\na:2 is terminated.\r\na:3 is terminated.'),
    ]);
  });

  test('counts operations that ended as success, waits while busy, and reports new ones', async () => {
    const posted: string[] = [];
    const server = await startFakeServer((request, response) => {
      const answer = (status: number, body: object, headers = {}) =>
        void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
      const { method, url = '' } = request;
      if (method === 'GET')
        return answer(200, {
          ops: url.includes('running')
            ? (posted.length === 0 ? ['x:0', 'x:1', 'x:2'] : ['x:2', 'x:3']).map((id) => ({
                op_id: id,
                state: 'running',
              }))
            : [],
          next_cursor: null,
        });
      posted.push(url);
      if (url.includes('x%3A0')) return answer(409, { code: 'invalid_transition', detail: 'cannot terminate x:0' });
      if (url.includes('x%3A1')) return answer(404, { code: 'not_found', detail: 'operation x:1 not found' });
      if (posted.filter((path) => path === url).length === 1)
        return answer(429, { code: 'rate_limited', detail: 'too many requests' }, { 'retry-after': '1' });
      return answer(200, { op_id: 'x:2', state: 'terminated' });
    });
    onTestFinished(() => server.stop());
    expect(await cli.run(['ops', 'terminate', '--all', '--yes'], { env: env(server.url) })).toEqual({
      status: 0,
      stdout: 'x:2 is terminated.\n',
      stderr:
        'The gateway limits the request rate; continuing as fast as it allows.\ncannot terminate x:0\noperation x:1 not found\n1 more operation started in the meantime; run the command again. To keep the agent from starting more, deny it everything by policy; after `svc agents rm` it would receive no signals, and may register again.\n',
    });
  });

  /** A gateway whose operations are all `running`, for what the test has it answer to control them. */
  async function startFakeOps(
    opIds: readonly string[],
    control: (opId: string, answer: (status: number, body: object, headers?: object) => void, cut: () => void) => void,
    limitedListings: readonly number[] = [],
  ) {
    let listings = 0;
    const server = await startFakeServer((request, response) => {
      const answer = (status: number, body: object, headers = {}) =>
        void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
      const { method, url = '' } = request;
      if (method !== 'GET')
        return control(decodeURIComponent(/ops\/([^/]+)/.exec(url)?.[1] ?? ''), answer, () => request.socket.destroy());
      listings += 1;
      if (limitedListings.includes(listings))
        return answer(429, { code: 'rate_limited', detail: 'too many requests' }, { 'retry-after': '1' });
      return answer(200, {
        ops: url.includes('pending') ? [] : opIds.map((id) => ({ op_id: id, state: 'running' })),
        next_cursor: null,
      });
    });
    onTestFinished(() => server.stop());
    return server;
  }

  test('waits for the rate limit in listings, and ends an operation listed twice once', async () => {
    const server = await startFakeOps(
      ['x:1'],
      (opId, answer) => answer(200, { op_id: opId, state: 'terminated' }),
      [1, 5],
    );
    expect(await cli.run(['ops', 'terminate', '--all', '--yes'], { env: env(server.url) })).toEqual({
      status: 0,
      stdout: 'x:1 is terminated.\n',
      stderr: 'The gateway limits the request rate; continuing as fast as it allows.\n',
    });
  });

  test('an outage or a missing right is reported once, not for each operation', async () => {
    const ids = Array.from({ length: 1000 }, (_, index) => `x:${index}`);
    const server = await startFakeOps(ids, (opId, answer, cut) =>
      Number(opId.slice(2)) < 20 ? answer(200, { op_id: opId, state: 'paused' }) : cut(),
    );
    const gone = await cli.run(['ops', 'pause', '--all', '--yes'], { env: env(server.url) });
    expect({
      status: gone.status,
      paused: gone.stdout.split('\n').length - 1,
      errors: gone.stderr.match(/^error: /gm)?.length,
    }).toEqual({ status: 1, paused: 20, errors: 12 + 16 });
    expect(gone.stderr).toContain('\n952 more operations were not tried.\n');
    expect(server.requests.at(-1)).toContain('POST');

    for (let index = 0; index < 20; index += 1)
      await gateway.call('POST', '/api/v1/ops', {
        op_id: `k:${index}`,
        agent: { org_id: 'acme', team_id: 'kept', agent_id: 'busy' },
      });
    const {
      body: { key },
    } = await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'looks', scopes: ['read'] });
    const refused = await cli.run(['ops', 'terminate', '--team', 'kept', '--yes'], {
      env: { SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: key },
    });
    expect({
      status: refused.status,
      stdout: refused.stdout,
      errors: refused.stderr.match(/^error: /gm)?.length,
    }).toEqual({ status: 1, stdout: '', errors: 16 });
    expect(refused.stderr).toContain('\n4 more operations were not tried.\n');
    expect(await states()).toMatchObject({ 'k:0': 'pending', 'k:19': 'pending' });
  });

  const pausingAll = (url: string, ...options: string[]) =>
    spawn(process.execPath, [SVC, 'ops', 'pause', '--all', '--yes', ...options], {
      env: { PATH: process.env.PATH ?? '', HOME: cli.home, ...env(url) },
    });

  test('all operations are paused even when the reader of the output stops early', async () => {
    const ids = Array.from({ length: 100 }, (_, index) => `x:${index}`);
    const server = await startFakeOps(ids, (opId, answer) => answer(200, { op_id: opId, state: 'paused' }));
    const child = pausingAll(server.url);
    child.stdout.once('data', () => child.stdout.destroy());
    expect(await once(child, 'exit')).toEqual([0, null]);
    expect(server.requests.filter((request) => request.startsWith('POST'))).toHaveLength(100);
  });

  test('Ctrl-C says how many operations were done and how many were not tried', async () => {
    const ids = Array.from({ length: 1000 }, (_, index) => `x:${index}`);
    let interrupt = (): void => {};
    const server = await startFakeOps(ids, (opId, answer) => {
      if (opId === 'x:100') interrupt();
      answer(200, { op_id: opId, state: 'paused' });
    });
    const child = pausingAll(server.url, '-o', 'json');
    interrupt = () => void child.kill('SIGINT');
    const [stdout, stderr] = [text(child.stdout), text(child.stderr)];
    expect(await once(child, 'exit')).toEqual([130, null]);
    const done = JSON.parse(await stdout) as unknown[];
    expect(done.length).toBeGreaterThan(100);
    expect(await stderr).toBe(`Interrupted: ${1000 - done.length} more operations were not tried.\n`);
  });

  test('a session that expires among many requests is renewed once for all', async () => {
    const ids = Array.from({ length: 40 }, (_, index) => `x:${index}`);
    let exchanges = 0;
    const server = await startFakeServer((request, response) => {
      const answer = (status: number, body: object) =>
        void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      const { method, url = '', headers } = request;
      if (url.includes('/auth/token')) {
        exchanges += 1;
        return answer(200, { token: `t${exchanges}`, expires_at: 4_000_000_000, scopes: ['write'] });
      }
      if (method === 'GET')
        return answer(200, { ops: ids.map((id) => ({ op_id: id, state: 'running' })), next_cursor: null });
      return headers.authorization === 'Bearer t1' ? answer(401, {}) : answer(200, { op_id: 'x', state: 'paused' });
    });
    onTestFinished(() => server.stop());
    await cli.run(['login'], { env: { SVC_CLI_API_URL: server.url }, input: 'source-key\n' });
    expect(await cli.run(['ops', 'pause', '--all', '--yes'], { env: { SVC_CLI_API_URL: server.url } })).toEqual({
      status: 0,
      stdout: 'x is paused.\n'.repeat(40),
      stderr: '',
    });
    expect(exchanges).toBe(2);
  });

  test('shows the agents with the most operations, and how many more there are', async () => {
    const ops = Array.from({ length: 12 }, (_, nth) => ({
      op_id: `m:${nth}`,
      state: 'running',
      agent: { org_id: 'acme', team_id: 'many', agent_id: nth === 11 ? 'a0' : `a${nth}` },
    }));
    const server = await startFakeServer(
      (request, response) =>
        void response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ ops: request.url?.includes('running') ? ops : [], next_cursor: null })),
    );
    onTestFinished(() => server.stop());
    const terminal = cli.inTerminal(['ops', 'terminate', '--all'], { env: { NO_COLOR: '1', ...env(server.url) } });
    await terminal.until('[y/N] ');
    expect(terminal.shown().split('\r\n')).toEqual([
      '   2  acme/many/a0',
      ...Array.from({ length: 9 }, (_, nth) => `   1  acme/many/a${nth + 1}`),
      '      and 1 more agent',
      'Terminate these 12 operations? [y/N] ',
    ]);
    terminal.type('n\r');
    expect(await terminal.ended).toBe(1);
  });
});
