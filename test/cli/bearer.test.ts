import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type CliHome, createCliHome } from '../support/cli.ts';
import { answerJson, startFakeServer } from '../support/fake-server.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

let gateway: GatewayHere;
let cli: CliHome;

describe('bearer', () => {
  beforeAll(async () => {
    gateway = await startGatewayHere();
  });
  afterAll(async () => {
    await gateway.stop();
  });
  beforeEach(() => {
    cli = createCliHome();
  });
  afterEach(() => cli.remove());

  const here = () => ({ SVC_CLI_API_URL: gateway.url });
  const path = () => join(cli.folder, 'credentials.yaml');
  const credentials = () => readFileSync(path(), 'utf8');
  const tokenIn = (text: string) => /token: (\S+)/.exec(text)?.[1];

  async function loggedIn(scopes: readonly string[] = ['read', 'write']): Promise<{ id: string; key: string }> {
    const { body } = await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'cli-test', scopes });
    expect((await cli.run(['login'], { env: { ...here(), SVC_CLI_API_KEY: body.key } })).status).toBe(0);
    return body;
  }

  const expire = () => writeFileSync(path(), credentials().replace(/expires_at: \d+/, 'expires_at: 1000000000'));
  const spoil = () =>
    writeFileSync(path(), credentials().replace(/token: \S+/, 'token: eyJhbGciOiJFZERTQSJ9.e30.AAAA'));

  test('an expired session is renewed before the request and stored', async () => {
    await loggedIn();
    const before = tokenIn(credentials());
    expire();
    const { status, stderr } = await cli.run(['ops', 'ls'], { env: here() });
    expect({ status, stderr }).toEqual({ status: 0, stderr: 'There are no operations in flight.\n' });
    expect(tokenIn(credentials())).not.toBe(before);
    expect(JSON.parse((await cli.run(['whoami', '-o', 'json'], { env: here() })).stdout)).toMatchObject({
      expired: false,
      scopes: ['read', 'write'],
    });
  });

  test('a refused session is renewed once, and the request sent again', async () => {
    await loggedIn();
    spoil();
    expect((await cli.run(['agents', 'ls'], { env: here() })).status).toBe(0);
    expect(tokenIn(credentials())).not.toContain('AAAA');
  });

  test('the narrowed scopes of a session stay narrow when it is renewed', async () => {
    const { body } = await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'wide', scopes: ['read', 'write'] });
    await cli.run(['login', '--scope', 'read'], { env: { ...here(), SVC_CLI_API_KEY: body.key } });
    expire();
    await cli.run(['ops', 'ls'], { env: here() });
    expect(JSON.parse((await cli.run(['whoami', '-o', 'json'], { env: here() })).stdout).scopes).toEqual(['read']);
    const refused = await cli.run(['agents', 'register', 'acme/search/a1'], { env: here() });
    expect(refused.status).toBe(1);
    expect(refused.stderr).toMatch(/write/);
    expect(refused.stderr).toContain('Run `svc login` with an API key that has this scope.');
  });

  test('reports that the session has ended once the key is revoked, expired or not', async () => {
    for (const isExpired of [true, false]) {
      const { id } = await loggedIn();
      await gateway.call('POST', `/api/v1/iam/api-keys/${id}/revoke`);
      if (isExpired) expire();
      expect(await cli.run(['ops', 'ls'], { env: here() })).toEqual({
        status: 1,
        stdout: '',
        stderr: `error: not logged in to ${gateway.url}: the session has ended because its API key was revoked or rotated, or has expired\nRun \`svc login\` first.\n`,
      });
    }
    const given = await cli.run(['ops', 'ls'], { env: { ...here(), SVC_CLI_API_KEY: ADMIN_KEY } });
    expect(given.stderr).toMatch(
      /\nRun `svc login` to begin one with the API key that you gave: a session takes precedence over it\.\n$/,
    );
  });

  test('a second 401 in a row is a rejection: the key is not exchanged again', async () => {
    const server = await startFakeServer((request, response) =>
      request.url === '/api/v1/auth/token'
        ? answerJson(response, 200, {
            token: `t${server.requests.length}`,
            expires_at: 4_000_000_000,
            scopes: ['read'],
          })
        : answerJson(response, 401, {}),
    );
    const env = { SVC_CLI_API_URL: server.url };
    await cli.run(['login'], { env, input: 'source-key\n' });
    const { status, stderr } = await cli.run(['ops', 'ls'], { env });
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: `error: not logged in to ${server.url}: the gateway rejected the credential\nRun \`svc login\` first.\n`,
    });
    expect(server.requests).toEqual([
      'POST /api/v1/auth/token Bearer source-key',
      'GET /api/v1/ops?per_page=100 Bearer t1',
      'POST /api/v1/auth/token Bearer source-key',
      'GET /api/v1/ops?per_page=100 Bearer t3',
    ]);
    await server.stop();
  });

  test('without a session sends the raw key, and without a key nothing', async () => {
    const server = await startFakeServer((_request, response) =>
      answerJson(response, 200, { ops: [], next_cursor: null }),
    );
    await cli.run(['ops', 'ls', '--api-url', server.url]);
    await cli.run(['ops', 'ls', '--api-url', server.url], { env: { SVC_CLI_API_KEY: 'from-env' } });
    await cli.run(['ops', 'ls', '--api-url', server.url, '--api-key', 'from-flag'], {
      env: { SVC_CLI_API_KEY: 'from-env' },
    });
    await cli.run(['context', 'add', 'stored', server.url, '--with-key'], { input: 'from-context\n' });
    await cli.run(['ops', 'ls']);
    expect(server.requests.map((request) => request.split(' ').slice(2).join(' '))).toEqual([
      '-',
      'Bearer from-env',
      'Bearer from-flag',
      'Bearer from-context',
    ]);
    await server.stop();
    expect((await cli.run(['ops', 'ls'], { env: { ...here(), SVC_CLI_API_KEY: ADMIN_KEY } })).status).toBe(0);
    expect((await cli.run(['ops', 'ls'], { env: here() })).stderr).toBe(
      `error: not logged in to ${gateway.url}: this requires a session or an API key\nRun \`svc login\` first.\n`,
    );
  });

  test('a session takes precedence over --api-key, with a notice', async () => {
    await loggedIn(['read']);
    const { status, stderr } = await cli.run(['ops', 'ls', '--api-key', 'another-key'], { env: here() });
    expect({ status, stderr }).toEqual({
      status: 0,
      stderr: `note: --api-key is ignored because there is a session for ${gateway.url}; end it with \`svc logout\`.\nThere are no operations in flight.\n`,
    });
  });

  test('neither key nor token follows a redirect', async () => {
    const thief = await startFakeServer((_request, response) => answerJson(response, 200, {}));
    const server = await startFakeServer((_request, response) =>
      response.writeHead(307, { location: `${thief.url}/x` }).end(),
    );
    const { status, stderr } = await cli.run(['login'], {
      env: { SVC_CLI_API_URL: server.url, SVC_CLI_API_KEY: 'secret-key' },
    });
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: `error: ${server.url} redirects to ${thief.url}\nGive the final URL of the gateway, with --api-url or \`svc context add\`.\n`,
    });
    expect(thief.requests).toEqual([]);
    await Promise.all([server.stop(), thief.stop()]);
  });

  test('an answer from something other than a gateway is recognised as such', async () => {
    const server = await startFakeServer((_request, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
    );
    expect((await cli.run(['login'], { env: { SVC_CLI_API_URL: server.url, SVC_CLI_API_KEY: 'k' } })).stderr).toBe(
      `error: the server at ${server.url} does not answer like a gateway\nCheck the URL: it must be the HTTP address of svc-gateway.\n`,
    );
    await server.stop();
  });

  test('nothing from a server can drive the terminal, in results or errors', async () => {
    const evil = 'a\u001b]0;owned\u0007\u001b[2J\u009b31m\u202edlrow\u200b\r\nfake line';
    const server = await startFakeServer((request, response) =>
      request.url?.startsWith('/api/v1/agents') === true
        ? answerJson(response, 200, {
            agents: [{ org_id: evil, team_id: 't', agent_id: evil, parent: evil, active_ops: 1, registered_at: evil }],
            next_cursor: null,
          })
        : answerJson(response, 409, { detail: evil, code: evil }),
    );
    const env = { SVC_CLI_API_URL: server.url };
    for (const args of [
      ['agents', 'ls'],
      ['agents', 'ls', '-o', 'json'],
      ['agents', 'ls', '-o', 'yaml'],
      ['ops', 'pause', 'a:b'],
      ['ops', 'pause', 'a:b', '--debug'],
    ]) {
      const { stdout, stderr } = await cli.run(args, { env });
      expect(stdout + stderr).toContain('owned');
      expect(stdout + stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e\u200b]/);
      expect(stdout + stderr).not.toMatch(/^fake line/m);
    }
    const json = JSON.parse((await cli.run(['agents', 'ls', '-o', 'json'], { env })).stdout);
    expect(json.agents[0].agent_id).toBe(evil);
    const { parse } = await import('yaml');
    expect(parse((await cli.run(['agents', 'ls', '-o', 'yaml'], { env })).stdout).agents[0].agent_id).toBe(evil);
    await server.stop();
  });

  test('an answer that never comes ends with an error', async () => {
    const server = await startFakeServer(() => {});
    const env = { NODE_OPTIONS: `--import=${new URL('../support/time-lapse.mjs', import.meta.url).href}` };
    expect((await cli.start(['ops', 'ls', '--api-url', server.url], { env })).stderr).toBe(
      `error: cannot reach the gateway at ${server.url}: no answer\nStart it with \`svc serve\`, or choose another with --context or --api-url.\n`,
    );
    await server.stop();
  });

  test('a renewed session that cannot be stored is reported and fails no command', async () => {
    await loggedIn();
    expire();
    const before = credentials();
    // No file may grow.
    const terminal = cli.inTerminal(['ops', 'ls'], { env: here(), script: 'ulimit -f 0; exec "$@"', columns: 300 });
    expect(await terminal.ended).toBe(0);
    expect(terminal.shown()).toMatch(
      /^warning: the renewed session cannot be stored: cannot write \S+credentials\.yaml: .+\r\nThere are no operations in flight\.\r\n$/,
    );
    expect(credentials()).toBe(before);
  });

  test('a limited login, and a session its key may not renew, say what to do', async () => {
    let refusal: readonly [number, object] | undefined;
    const server = await startFakeServer((_request, response) => {
      const [status, body] = refusal ?? [
        200,
        { token: 'eyJhbGciOiJFZERTQSJ9.e30.AAAA', expires_at: 1_000_000_000, scopes: ['write'] },
      ];
      answerJson(response, status, body);
    });
    onTestFinished(() => server.stop());
    const env = { SVC_CLI_API_URL: server.url };
    const login = () =>
      cli.run(['login', '--scope', 'write'], {
        env: { ...env, SVC_CLI_API_KEY: 'a-key-0123456789-0123456789-0123456789' },
      });
    expect((await login()).status).toBe(0);
    refusal = [403, { code: 'insufficient_scope', detail: 'this key does not grant write' }];
    expect(await cli.run(['ops', 'ls'], { env })).toEqual({
      status: 1,
      stdout: '',
      stderr: `error: the session for ${server.url} cannot be renewed: this key does not grant write\nRun \`svc login\` again.\n`,
    });
    refusal = [429, { code: 'rate_limited', detail: 'too many requests' }];
    expect(await login()).toEqual({
      status: 1,
      stdout: '',
      stderr: 'error: the gateway did not create a session: too many requests\nWait a moment and try again.\n',
    });
  });
});
