import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CliHome, createCliHome } from '../support/cli.ts';
import { answerJson, type FakeServer, startFakeServer } from '../support/fake-server.ts';

describe('gateways that did not confirm an order', () => {
  let server: FakeServer;
  let cli: CliHome;
  beforeAll(async () => {
    server = await startFakeServer(({ method, url = '' }, response) => {
      if (method === 'GET') return answerJson(response, 200, { api_keys: [], next_cursor: null });
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
  const svc = (...words: string[]) => cli.start(words, { env });
  const WARNING = 'warning: two did not confirm this in time, and will follow on reaching the database again.\n';

  test('are named on standard error, and the order counts as done', async () => {
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

  test('are named once for many orders, and so is the database', async () => {
    const ended = await svc('ops', 'terminate', 't:1', 't:2', 't:late');
    expect(ended.status).toBe(0);
    expect(ended.stderr).toBe(
      `${WARNING}warning: The database could not be reached: it will hold at all gateways once this is written there.\n`,
    );
  });

  test('are in what programs read', async () => {
    const json = async (...words: string[]) => JSON.parse((await svc(...words, '-o', 'json')).stdout);
    expect(await json('agents', 'rm', 'acme/search/crawler')).toEqual({
      removed: 'acme/search/crawler',
      unconfirmed: ['two'],
    });
    expect(await json('accounts', 'enable', 'a1')).toEqual({ email: 'a@example.com', unconfirmed: ['two'] });
    expect(await json('ops', 'terminate', 't:late')).toMatchObject({ unconfirmed: ['two', 'database'] });
  });
});
