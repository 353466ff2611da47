import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CliHome, createCliHome } from '../support/cli.ts';
import { answerJson, type FakeServer, startFakeServer } from '../support/fake-server.ts';

const op = (op_home: string) => ({
  op_id: 'twice:s',
  op_home,
  state: 'running',
  agent: { org_id: 'acme', team_id: 's', agent_id: op_home },
});

const member = (name: string, leftSecs: number) => ({
  name,
  state: leftSecs > 0 ? 'live' : 'suspect',
  lease_until: new Date(Date.now() + leftSecs * 1000).toISOString(),
});

describe('the command line at a cluster', () => {
  let server: FakeServer;
  let cli: CliHome;
  const asked: string[] = [];
  beforeAll(async () => {
    server = await startFakeServer(({ method, url = '' }, response) => {
      asked.push(`${method} ${url}`);
      if (url.includes('orgs%3As'))
        return answerJson(response, 409, { code: 'ambiguous', detail: 'operation orgs:s exists in several orgs' });
      if (url.includes('CheckAction'))
        return answerJson(response, 200, { decision: 'DECISION_ALLOW', opHome: 'home-two' });
      if (url.startsWith('/api/v1/ops?'))
        return answerJson(response, 200, { ops: [op('home-one'), op('home-two')], next_cursor: null });
      if (method === 'GET' && url.startsWith('/api/v1/ops/twice'))
        return answerJson(response, 200, { ops: [op('home-one'), op('home-two')] });
      if (url.startsWith('/api/v1/ops/once')) return answerJson(response, 200, op('home-one'));
      if (url === '/api/v1/cluster')
        return answerJson(response, 200, { members: [member('one', 90), member('two', -90)] });
      if (method === 'GET') return answerJson(response, 200, { api_keys: [], webhooks: [], next_cursor: null });
      response.setHeader('svc-unconfirmed', url.includes('late') ? 'two, database' : 'two');
      if (url.includes('/ops/')) return answerJson(response, 200, { op_id: url.split('/')[4], state: 'terminated' });
      if (url.includes('/halts')) return answerJson(response, 201, { halt: { id: 'h' }, ops_affected: 1 });
      if (url.includes('/accounts')) return answerJson(response, 200, { account: { email: 'a@example.com' } });
      if (url.includes('/policies')) return answerJson(response, 200, { version: 'v1', changed: true });
      response.writeHead(204).end();
    });
    cli = createCliHome();
    await cli.run(['context', 'add', 'fake', server.url]);
  });
  afterAll(async () => {
    await server.stop();
    cli.remove();
  });

  const env = { SVC_CLI_API_KEY: 'svc_key' };
  const svc = (...words: string[]) => cli.run(words, { env });
  const WARNING = 'warning: two did not confirm this in time, and will follow on reaching the database again.\n';

  test('shows each operation where two gateways have one of an id', async () => {
    const both = await svc('ops', 'show', 'twice:s');
    expect(both.status).toBe(0);
    expect(both.stdout.match(/^(op_home|agent) .*/gm)).toEqual([
      'op_home       home-one',
      'agent         acme/s/home-one',
      'op_home       home-two',
      'agent         acme/s/home-two',
    ]);
    expect(both.stderr).toMatch(/^2 gateways have an operation of this id/);
    const one = await svc('ops', 'show', 'once:s');
    expect([one.stderr, one.stdout.match(/^op_home/gm)?.length]).toEqual(['', 1]);
    const json = JSON.parse((await svc('ops', 'show', 'twice:s', '-o', 'json')).stdout);
    expect(json.ops.map((each: { op_home: string }) => each.op_home)).toEqual(['home-one', 'home-two']);
  });

  test('tells a lease that lasts from one that is over', async () => {
    const { stdout } = await svc('cluster', 'ls');
    expect(stdout).toMatch(/^one +live .* {2}1m {3,}/m);
    expect(stdout).toMatch(/^two +suspect .* {2}1m ago {2}/m);
  });

  test('orders the operation of one gateway, and those listed each at its own', async () => {
    asked.length = 0;
    for (const trigger of ['pause', 'resume', 'terminate', 'complete'])
      expect((await svc('ops', trigger, 'twice:s', '--op-home', 'home-two', '--org', 'acme')).status).toBe(0);
    const ordered = (trigger: string, home: string) =>
      `POST /api/v1/ops/twice%3As/${trigger}?org_id=acme&op_home=${home}`;
    expect(asked).toEqual(['pause', 'resume', 'terminate', 'complete'].map((trigger) => ordered(trigger, 'home-two')));
    await svc('ops', 'show', 'twice:s', '--op-home', 'home-two');
    expect(asked.at(-1)).toBe('GET /api/v1/ops/twice%3As?op_home=home-two');
    expect((await svc('ops', 'pause', '--all', '--yes')).status).toBe(0);
    expect(
      asked
        .filter((each) => each.startsWith('POST'))
        .slice(-2)
        .sort(),
    ).toEqual([ordered('pause', 'home-one'), ordered('pause', 'home-two')]);
    expect(await svc('ops', 'pause', '--all', '--op-home', 'home-two')).toMatchObject({
      status: 2,
      stderr: 'error: --op-home names the gateway of an operation given by its id\nGive its id.\n',
    });
    expect((await svc('ops', 'pause', 'orgs:s')).stderr).toBe(
      'error: operation orgs:s exists in several orgs\nSay which org with --org, or which gateway of a cluster with --op-home.\n',
    );
  });

  test('names the gateway of the operation that is checked', async () => {
    const check = ['check', '--agent', 'acme/s/a', '--action', 'tool.call', '--resource', 'x', '-o', 'json'];
    const checked = await svc(...check, '--op', 'twice:s', '--op-home', 'home-two');
    expect(JSON.parse(checked.stdout)).toMatchObject({ decision: 'allow', op_home: 'home-two' });
    expect(await svc(...check, '--op-home', 'home-two')).toMatchObject({
      status: 2,
      stderr: 'error: --op-home names the gateway of the operation in --op\nGive --op, too.\n',
    });
  });

  test('names gateways that did not confirm, and the order counts as done', async () => {
    for (const words of [
      ['halt', 'org:acme', '--reason', 'leaked'],
      ['agents', 'rm', 'acme/search/crawler'],
      ['keys', 'revoke', 'k1', '--yes'],
      ['accounts', 'disable', 'a1', '--yes'],
    ])
      expect([words, await svc(...words)]).toMatchObject([words, { status: 0, stderr: WARNING }]);
    const published = await svc('policy', 'publish', '--set', 'v1');
    expect(published).toEqual({ status: 0, stdout: 'Version v1 is in force.\n', stderr: WARNING });
  });

  test('names them once for many orders, and so the database', async () => {
    const ended = await svc('ops', 'terminate', 't:1', 't:2', 't:late');
    expect(ended.status).toBe(0);
    expect(ended.stderr).toBe(
      `${WARNING}warning: The database could not be reached: the change takes effect at all gateways once it is written there.\n`,
    );
  });

  test('has them in what programs read', async () => {
    const json = async (...words: string[]) => JSON.parse((await svc(...words, '-o', 'json')).stdout);
    expect(await json('agents', 'rm', 'acme/search/crawler')).toEqual({
      removed: 'acme/search/crawler',
      unconfirmed: ['two'],
    });
    expect(await json('accounts', 'enable', 'a1')).toEqual({ email: 'a@example.com', unconfirmed: ['two'] });
    expect(await json('ops', 'terminate', 't:late')).toMatchObject({ unconfirmed: ['two', 'database'] });
  });
});
