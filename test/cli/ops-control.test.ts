import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createCliHome, type CliHome } from '../support/cli.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startFakeServer } from '../support/hostile-server.ts';

let gateway: TestGateway;
let cli: CliHome;

beforeAll(async () => {
  gateway = await startTestGateway();
  cli = createCliHome();
  for (const [agent, ids] of [['acme/ops/wild', ['w:1', 'w:2', 'w:3']], ['acme/ops/calm', ['c:1']], ['/ops/wild', ['n:1']]] as const) await start(agent, ids);
});
afterAll(async () => {
  await gateway.stop();
  cli.remove();
});

const env = (url = gateway.url) => ({ SVC_CLI_API_URL: url, SVC_CLI_API_KEY: ADMIN_KEY });
const svc = (command: string) => cli.run(command.split(' '), { env: env() });

async function start(agent: string, opIds: readonly string[]): Promise<void> {
  await svc(`agents register ${agent}`);
  for (const opId of opIds) expect(await svc(`check --agent ${agent} --action tool.call --resource web_search --op ${opId}`)).toMatchObject({ status: 0 });
}

const states = async (): Promise<Readonly<Record<string, string>>> => {
  const { ops } = JSON.parse((await svc('ops ls -o json')).stdout) as { ops: { op_id: string; state: string }[] };
  return Object.fromEntries(ops.map(({ op_id: id, state }) => [id, state]));
};

test('an agent is looked for by the name that the listings show, with its org or without one', async () => {
  const idsOf = async (command: string) => (await svc(command)).stdout.match(/\b[wcn]:\d/g);
  expect(await idsOf('ops ls --agent acme/ops/wild')).toEqual(['w:1', 'w:2', 'w:3']);
  expect(await idsOf('ops ls --agent /ops/wild')).toEqual(['n:1']);
  expect(await idsOf('ops ls --agent wild')).toEqual(['w:1', 'w:2', 'w:3', 'n:1']);
  expect(await idsOf('logs --event ActionAllowed --agent acme/ops/wild')).toEqual(['w:1', 'w:2', 'w:3']);
});

test('all operations of an agent are paused, resumed and terminated at once, and those of no other', async () => {
  expect(await svc('ops pause --agent acme/ops/wild')).toEqual({ status: 2, stdout: '', stderr: 'error: this would pause 3 operations\nThere is no terminal to ask on: add --yes if these are meant.\n' });
  expect(await svc('ops pause --agent acme/ops/wild --yes')).toEqual({ status: 0, stdout: 'w:1 is paused.\nw:2 is paused.\nw:3 is paused.\n', stderr: '' });
  expect(await svc('ops pause --agent acme/ops/wild --yes')).toEqual({ status: 0, stdout: '', stderr: 'There is no operation to pause.\n' });
  expect(await states()).toEqual({ 'w:1': 'paused', 'w:2': 'paused', 'w:3': 'paused', 'c:1': 'running', 'n:1': 'running' });
  expect((await svc('ops resume w:1')).status).toBe(0);
  const { status, stdout } = await svc('ops terminate --agent acme/ops/wild -y -o json');
  expect({ status, ended: (JSON.parse(stdout) as { op_id: string; state: string }[]).map(({ op_id: id, state }) => `${id} ${state}`) }).toEqual({ status: 0, ended: ['w:1 terminated', 'w:2 terminated', 'w:3 terminated'] });
  expect(await states()).toMatchObject({ 'c:1': 'running', 'n:1': 'running' });
  expect(await svc('ops terminate --agent acme/ops/wild -y -o json')).toMatchObject({ status: 0, stdout: '[]\n' });
});

test('on a terminal it is shown whose operations they are, and asked whether they are meant', async () => {
  await start('acme/asked/a1', ['a:1', 'a:2']);
  await start('acme/asked/a2', ['a:3']);
  const answered = async (keys: string): Promise<readonly [number, string]> => {
    const terminal = cli.inTerminal(['ops', 'terminate', '--team', 'asked'], { env: { NO_COLOR: '1', ...env() } });
    await terminal.until('Terminate these 3 operations? [y/N] ');
    expect(terminal.shown()).toBe('  2  acme/asked/a1\r\n  1  acme/asked/a2\r\nTerminate these 3 operations? [y/N] ');
    terminal.type(keys);
    return [await terminal.ended, terminal.shown()];
  };
  expect(await answered('\r')).toEqual([1, expect.stringContaining('error: nothing was changed')]);
  expect(await states()).toMatchObject({ 'a:1': 'running', 'a:2': 'running', 'a:3': 'running' });
  expect(await answered('y\r')).toEqual([0, expect.stringContaining('a:1 is terminated.\r\na:2 is terminated.\r\na:3 is terminated.')]);
});

test('what has ended meanwhile is no failure, a gateway that is busy is waited for, and what has come since is told', async () => {
  const posted: string[] = [];
  const server = await startFakeServer((request, response) => {
    const answer = (status: number, body: object, headers = {}) => void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
    const { method, url = '' } = request;
    if (method === 'GET') return answer(200, { ops: url.includes('running') ? (posted.length === 0 ? ['x:1', 'x:2'] : ['x:2', 'x:3']).map((id) => ({ op_id: id, state: 'running' })) : [], next_cursor: null });
    posted.push(url);
    if (url.includes('x%3A1')) return answer(404, { code: 'not_found', detail: 'there is no operation x:1' });
    if (posted.filter((path) => path === url).length === 1) return answer(429, { code: 'rate_limited', detail: 'too many requests' }, { 'retry-after': '1' });
    return answer(200, { op_id: 'x:2', state: 'terminated' });
  });
  onTestFinished(() => server.stop());
  expect(await cli.run(['ops', 'terminate', '--all', '--yes'], { env: env(server.url) })).toEqual({
    status: 0,
    stdout: 'x:2 is terminated.\n',
    stderr: 'The gateway limits the rate of requests; continuing as fast as it allows.\nthere is no operation x:1\n1 more operation started meanwhile: run the command again. Removing the agent with `svc agents rm` keeps it from starting more.\n',
  });
});
