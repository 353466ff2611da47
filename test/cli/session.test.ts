import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { changePrivateFile } from '../../src/cli/files/private-folder.ts';
import { putSession, readSession, removeSession, renewSession } from '../../src/cli/remote/session-file.ts';
import { type CliHome, createCliHome } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

let gateway: GatewayHere;
let cli: CliHome;

describe('session', () => {
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
  const withKey = (key = ADMIN_KEY) => ({ ...here(), SVC_CLI_API_KEY: key });
  const credentials = () => readFileSync(join(cli.folder, 'credentials.yaml'), 'utf8');
  const modeOf = (path: string) => statSync(path).mode & 0o777;

  async function createKey(scopes: readonly string[]): Promise<{ id: string; key: string }> {
    const { status, body } = await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'cli-test', scopes });
    expect(status).toBe(201);
    return body;
  }

  test('login asks for the key without showing it and prints one line', async () => {
    const terminal = cli.inTerminal(['login', '--api-url', gateway.url]);
    await terminal.until('API key:');
    terminal.type(`${ADMIN_KEY}\r`);
    expect(await terminal.ended).toBe(0);
    expect(terminal.shown()).toContain(
      `Logged in to ${gateway.url} with admin; the session expires in about 24 hours.`,
    );
    expect(terminal.shown()).not.toContain(ADMIN_KEY);
    expect(terminal.shown()).not.toContain('eyJ');
  });

  test('the prompt is on standard error, the result alone on standard output', async () => {
    const { status, stdout, stderr } = await cli.start(['login'], { env: here(), input: `${ADMIN_KEY}\n` });
    expect({ status, stdout, stderr }).toEqual({
      status: 0,
      stdout: `Logged in to ${gateway.url} with admin; the session expires in about 24 hours.\n`,
      stderr: 'API key: \n',
    });
  });

  test('editing keys work at the prompt, and Ctrl-C leaves it with nothing stored', async () => {
    const edited = cli.inTerminal(['login', '--api-url', gateway.url]);
    await edited.until('API key:');
    edited.type(`wrong\u0015${ADMIN_KEY}xy\u007f\u007f\u001b[C\r`);
    expect(await edited.ended).toBe(0);
    cli.remove();
    const left = cli.inTerminal(['login', '--api-url', gateway.url]);
    await left.until('API key:');
    left.type('abc\u0003');
    expect(await left.ended).toBe(130);
    expect((await cli.run(['whoami', '-o', 'json'], { env: here() })).stdout).toBe('{\n  "logged_in": false\n}\n');
  });

  test.skipIf(process.platform === 'win32')(
    'warns of a session or key that others may read, and makes it private again',
    async () => {
      await cli.run(['login'], { env: withKey() });
      const path = join(cli.folder, 'credentials.yaml');
      const whoami = () => cli.start(['whoami', '-o', 'json'], { env: here() });
      expect((await whoami()).stderr).toBe('');
      chmodSync(path, 0o644);
      const { status, stdout, stderr } = await whoami();
      expect({ status, logged_in: JSON.parse(stdout).logged_in }).toEqual({ status: 0, logged_in: true });
      expect(stderr).toBe(`warning: ${path} contains a session and its API key and is accessible to others (mode 0644)
Run \`chmod 600 ${path}\`; if someone may have read it, revoke the API key with \`svc keys revoke\`.
`);
      chmodSync(path, 0o640);
      expect((await cli.start(['keys', 'ls'], { env: here() })).stderr).toContain('(mode 0640)');
      await cli.run(['login'], { env: withKey() });
      expect({ mode: modeOf(path), stderr: (await whoami()).stderr }).toEqual({ mode: 0o600, stderr: '' });

      const config = join(cli.folder, 'config.yaml');
      await cli.run(['context', 'add', 'plain', gateway.url]);
      chmodSync(config, 0o644);
      expect((await cli.start(['context', 'ls'])).stderr).toBe(''); // there is no secret in it
      await cli.run(['context', 'add', 'stored', gateway.url, '--with-key'], { input: `${ADMIN_KEY}\n` });
      expect(modeOf(config)).toBe(0o600);
      chmodSync(config, 0o644);
      expect((await cli.start(['context', 'ls'])).stderr).toContain(
        `warning: ${config} contains an API key and is accessible to others (mode 0644)`,
      );
    },
  );

  test('an empty entry is rejected', async () => {
    for (const input of ['\n', '   \n', '']) {
      const { status, stderr } = await cli.run(['login'], { env: here(), input });
      expect({ status, stderr }).toEqual({
        status: 1,
        stderr: 'API key: \nerror: no API key provided\nEnter it at the prompt, or set SVC_CLI_API_KEY.\n',
      });
    }
  });

  test("the flag's key precedes the environment's, and that the context's", async () => {
    const { key } = await createKey(['read']);
    await cli.run(['context', 'add', 'stored', gateway.url, '--with-key'], { input: `${key}\n` });
    expect((await cli.run(['login'])).stdout).toContain('Logged in to stored with read;');
    expect((await cli.run(['login'], { env: { SVC_CLI_API_KEY: ADMIN_KEY } })).stdout).toContain('with admin;');
    expect((await cli.run(['login', '--api-key', key], { env: { SVC_CLI_API_KEY: ADMIN_KEY } })).stdout).toContain(
      'with read;',
    );
    expect(await cli.run(['login', '--api-key', ''], { env: here() })).toMatchObject({ status: 2, stdout: '' });
  });

  test("a scope narrows the session; one the key lacks is refused in the server's words", async () => {
    const both = await createKey(['read', 'write']);
    expect((await cli.run(['login', '--scope', 'write'], { env: withKey(both.key) })).stdout).toContain('with write;');
    expect((await cli.run(['login'], { env: withKey(both.key) })).stdout).toContain('with read, write;');
    const { key } = await createKey(['read']);
    const refused = await cli.run(['login', '--scope', 'admin'], { env: withKey(key) });
    expect(refused.status).toBe(1);
    const { body } = await gateway.call('POST', '/api/v1/auth/token', { scopes: ['admin'] }, key);
    expect(refused.stderr).toContain(body.detail);
    expect(await cli.run(['login', '--scope', 'all'], { env: withKey() })).toMatchObject({ status: 2 });
  });

  test('a wrong key is reported and never printed', async () => {
    const wrong = 'svc_00000000000_wrong-0123456789-0123456789-0123456789';
    for (const args of [['login'], ['login', '--debug'], ['login', '-o', 'json']]) {
      const { status, stdout, stderr } = await cli.run(args, { env: withKey(wrong) });
      expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
      expect(stderr).toContain('error: authentication failed: the API key was rejected\n');
      expect(stderr).not.toContain('wrong-');
    }
    const broken = await cli.run(['login', '--debug'], { env: here(), input: 'two words\u0001\n' });
    expect(broken.stderr).toContain('error: the API key contains invalid characters');
    expect(broken.stderr).not.toContain('two words');
  });

  test('a key behind a mistyped option, or as a stray argument, is not printed', async () => {
    for (const args of [
      ['login', `--apikey=${'svc_AAAAAAAAAAA_secret'}`],
      ['login', 'svc_AAAAAAAAAAA_secret'],
      ['svc_AAAAAAAAAAA_secret'],
      ['--apikey=other-secret', 'login'],
    ]) {
      const { status, stdout, stderr } = await cli.run(args, { env: here() });
      expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
      expect(stderr).not.toContain('secret');
    }
  });

  test('the session is readable by its owner alone, also in an open folder or file', async () => {
    mkdirSync(cli.folder, { mode: 0o777 });
    chmodSync(cli.folder, 0o777);
    writeFileSync(join(cli.folder, 'credentials.yaml'), 'sessions: {}\n');
    chmodSync(join(cli.folder, 'credentials.yaml'), 0o644);
    expect((await cli.run(['login'], { env: withKey() })).status).toBe(0);
    expect({ mode: modeOf(cli.folder), fileMode: modeOf(join(cli.folder, 'credentials.yaml')) }).toEqual({
      mode: 0o700,
      fileMode: 0o600,
    });
    await cli.run(['context', 'add', 'prod', gateway.url]);
    expect(modeOf(join(cli.folder, 'config.yaml'))).toBe(0o600);
    expect(readdirSync(cli.folder).sort()).toEqual(['config.yaml', 'credentials.yaml']);
  });

  test('whoami shows the session without secrets, in the specified fields', async () => {
    const { key, id } = await createKey(['read', 'write']);
    await cli.run(['context', 'add', 'prod', gateway.url]);
    await cli.run(['login'], { env: { SVC_CLI_API_KEY: key } });
    const json = JSON.parse((await cli.run(['whoami', '--output', 'json'])).stdout);
    expect(json).toEqual({
      logged_in: true,
      context: 'prod',
      api_url: gateway.url,
      scopes: ['read', 'write'],
      expires_at: expect.any(Number),
      expires_in_secs: expect.any(Number),
      expired: false,
      source_key_hint: `svc_${id}…`,
    });
    expect(Math.abs(json.expires_at - Date.now() / 1000 - 86_400)).toBeLessThan(600);
    expect(86_400 - json.expires_in_secs).toBeLessThan(600);
    const yaml = (await cli.run(['whoami', '--output', 'yaml'])).stdout;
    expect(yaml).toContain(`source_key_hint: svc_${id}…\n`);
    const table = (await cli.run(['whoami'])).stdout;
    expect(table).toContain('scopes   read, write\n');
    for (const text of [yaml, table]) {
      expect(text).not.toContain(key);
      expect(text).not.toContain('eyJ');
    }
  });

  test('whoami without a session says how to get one, and succeeds', async () => {
    expect(await cli.run(['whoami'], { env: here() })).toEqual({
      status: 0,
      stdout: `Not logged in to ${gateway.url}. Run \`svc login\` to log in.\n`,
      stderr: '',
    });
    expect(await cli.run(['whoami', '--output', 'json'], { env: withKey() })).toEqual({
      status: 0,
      stdout: '{\n  "logged_in": false\n}\n',
      stderr: '',
    });
    expect(await cli.run(['whoami', '--output', 'yaml'], { env: here() })).toEqual({
      status: 0,
      stdout: 'logged_in: false\n',
      stderr: '',
    });
    expect(readdirSync(cli.home)).toEqual([]);
  });

  test('whoami without a session shows the key that commands send', async () => {
    const { stdout } = await cli.run(['whoami'], { env: { ...here(), SVC_CLI_API_KEY: ADMIN_KEY } });
    expect(stdout).toMatch(/^Not logged in to .*; commands send the API key .{4,20}… *\. Run `svc login` to exchange/);
    expect(stdout).not.toContain(ADMIN_KEY);
  });

  test("logout drops this context's session only, keeps the key, and may be repeated", async () => {
    await cli.run(['context', 'add', 'one', gateway.url]);
    await cli.run(['context', 'add', 'two', gateway.url]);
    for (const name of ['one', 'two'])
      await cli.run(['login', '--context', name], { env: { SVC_CLI_API_KEY: ADMIN_KEY } });
    expect(await cli.run(['logout'])).toEqual({ status: 0, stdout: 'Logged out of one.\n', stderr: '' });
    expect(await cli.run(['logout'])).toEqual({
      status: 0,
      stdout: 'Not logged in to one; there is nothing to do.\n',
      stderr: '',
    });
    expect((await cli.run(['whoami', '--context', 'two', '-o', 'json'])).stdout).toContain('"logged_in": true');
    expect((await cli.run(['login'], { env: { SVC_CLI_API_KEY: ADMIN_KEY } })).status).toBe(0);
  });

  test('concurrent logins lose nothing', async () => {
    const names = ['a', 'b', 'c', 'd'];
    for (const name of names) await cli.run(['context', 'add', name, gateway.url]);
    const results = await Promise.all(
      names.map((name) => cli.start(['login', '--context', name], { env: { SVC_CLI_API_KEY: ADMIN_KEY } })),
    );
    expect(results.map(({ status }) => status)).toEqual([0, 0, 0, 0]);
    const { contexts } = JSON.parse((await cli.run(['context', 'ls', '-o', 'json'])).stdout);
    expect(contexts.map(({ name, session }: { name: string; session: string }) => [name, session])).toEqual([
      ['a', 'valid'],
      ['b', 'valid'],
      ['c', 'valid'],
      ['d', 'valid'],
    ]);
    expect(readdirSync(cli.folder).sort()).toEqual(['config.yaml', 'credentials.yaml']);
  });

  test('a lock left behind by a crash blocks nobody', async () => {
    mkdirSync(cli.folder, { mode: 0o700 });
    writeFileSync(join(cli.folder, 'credentials.yaml.lock'), '');
    utimesSync(join(cli.folder, 'credentials.yaml.lock'), 1, 1);
    expect((await cli.run(['login'], { env: withKey() })).status).toBe(0);
    expect(readdirSync(cli.folder)).toEqual(['credentials.yaml']);
  });

  test('a command that waited long keeps its lock: the next one does not steal it', async () => {
    vi.stubEnv('HOME', cli.home);
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const lock = join(cli.folder, 'credentials.yaml.lock');
    mkdirSync(cli.folder, { mode: 0o700 });
    writeFileSync(lock, '');
    let finish = (): void => {};
    const steps: string[] = [];
    const first = changePrivateFile('credentials.yaml', async () => {
      steps.push('first begins');
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      steps.push('first ends');
      return 'first\n';
    });
    const ticket = () => readdirSync(cli.folder).find((name) => name.startsWith('credentials.yaml.lock.'));
    await eventually(() => expect(ticket()).toBeDefined());
    utimesSync(join(cli.folder, ticket()!), 1, 1); // as if it had come long ago
    utimesSync(lock, 1, 1); // the first one takes it away itself, between two tries
    await eventually(() => expect(steps).toEqual(['first begins']));
    const second = changePrivateFile('credentials.yaml', async (text) => {
      steps.push('second begins');
      return `${text}second\n`;
    });
    await sleep(200);
    finish();
    await Promise.all([first, second]);
    expect(steps).toEqual(['first begins', 'first ends', 'second begins']);
    expect(credentials()).toBe('first\nsecond\n');
  });

  test('a suspended command that lost its lock undoes nothing of others', async () => {
    vi.stubEnv('HOME', cli.home);
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const steps: string[] = [];
    const command = (name: string) => {
      let finish = (): void => {};
      const mayEnd = new Promise<void>((resolve) => {
        finish = resolve;
      });
      const ended = changePrivateFile('credentials.yaml', async (text) => {
        steps.push(`${name} begins`);
        await mayEnd;
        steps.push(`${name} ends`);
        return `${text ?? ''}${name}\n`;
      });
      return { ended, finish };
    };
    const stopped = command('stopped');
    await eventually(() => expect(steps).toEqual(['stopped begins']));
    utimesSync(join(cli.folder, 'credentials.yaml.lock'), 1, 1); // as if it had been stopped for long
    const second = command('second');
    await eventually(() => expect(steps).toContain('second begins'));
    stopped.finish();
    await eventually(() => expect(steps).toContain('stopped ends'));
    const third = command('third');
    await sleep(200);
    expect(steps).toEqual(['stopped begins', 'second begins', 'stopped ends']);
    second.finish();
    third.finish();
    await Promise.all([stopped.ended, second.ended, third.ended]);
    expect(credentials().trim().split('\n').sort()).toEqual(['second', 'stopped', 'third']);
    expect(readdirSync(cli.folder)).toEqual(['credentials.yaml']);
  });

  test('a late renewal revives no ended session and replaces none of another key', async () => {
    vi.stubEnv('HOME', cli.home);
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const session = (token: string, sourceKey: string) => ({
      apiUrl: gateway.url,
      token,
      expiresAtSecs: 1,
      scopes: ['read'],
      sourceKey,
    });
    const [old, renewed, other] = [session('old', 'key'), session('renewed', 'key'), session('other', 'another-key')];
    await putSession('one', old);
    await removeSession('one');
    await renewSession('one', old, renewed);
    expect(await readSession('one', gateway.url)).toBeUndefined();
    await putSession('one', other);
    await renewSession('one', old, renewed);
    expect(await readSession('one', gateway.url)).toEqual(other);
    await putSession('one', old);
    await renewSession('one', old, renewed);
    expect(await readSession('one', gateway.url)).toEqual(renewed);
  });

  test('a corrupt or partial credentials file is no session, and login replaces it', async () => {
    await cli.run(['login'], { env: withKey() });
    const whole = credentials();
    const broken = [
      '',
      '\u0000\u0001',
      'sessions: [',
      '- 1',
      'sessions: 7',
      whole.slice(0, whole.length / 2),
      whole.replace(/expires_at: .*/, 'expires_at: soon'),
      whole.replace(/token: .*/, 'token: "a\\r\\nX-Evil: 1"'),
    ];
    for (const text of broken) {
      writeFileSync(join(cli.folder, 'credentials.yaml'), text);
      expect(await cli.run(['whoami', '-o', 'json'], { env: here() })).toEqual({
        status: 0,
        stdout: '{\n  "logged_in": false\n}\n',
        stderr: '',
      });
      expect((await cli.run(['logout'], { env: here() })).status).toBe(0);
    }
    expect((await cli.run(['login'], { env: withKey() })).status).toBe(0);
  });

  test('a context stores an API key only on request, and says when it does not', async () => {
    const added = await cli.run(['context', 'add', 'prod', gateway.url, '--api-key', ADMIN_KEY]);
    expect(added).toMatchObject({ status: 0, stderr: 'The API key is not stored; use --with-key to store it.\n' });
    expect(JSON.parse((await cli.run(['context', 'ls', '-o', 'json'])).stdout).contexts).toMatchObject([
      { name: 'prod', api_key_hint: null },
    ]);
  });

  test('the session of a context is not sent to another gateway of the same name', async () => {
    await cli.run(['context', 'add', 'prod', gateway.url]);
    await cli.run(['login'], { env: { SVC_CLI_API_KEY: ADMIN_KEY } });
    await cli.run(['context', 'add', 'prod', 'http://127.0.0.1:1']);
    expect((await cli.run(['whoami', '-o', 'json'])).stdout).toBe('{\n  "logged_in": false\n}\n');
    expect((await cli.run(['whoami', '-o', 'json', '--api-url', gateway.url])).stdout).toBe(
      '{\n  "logged_in": false\n}\n',
    );
    expect(JSON.parse((await cli.run(['context', 'ls', '-o', 'json'])).stdout).contexts).toMatchObject([
      { name: 'prod', session: 'none' },
    ]);
  });

  test('chooses the context by flag, environment, then default; names known ones', async () => {
    for (const name of ['one', 'two', 'three']) await cli.run(['context', 'add', name, `http://127.0.0.1:1/${name}`]);
    await cli.run(['context', 'use', 'three']);
    const env = { SVC_CLI_CONTEXT: 'two' };
    expect((await cli.run(['whoami'])).stdout).toContain('Not logged in to three.');
    expect((await cli.run(['whoami'], { env })).stdout).toContain('Not logged in to two.');
    expect((await cli.run(['whoami', '--context', 'one'], { env })).stdout).toContain('Not logged in to one.');
    expect((await cli.run(['whoami', '--api-url', 'http://127.0.0.1:9/'])).stdout).toContain(
      'Not logged in to http://127.0.0.1:9.',
    );
    expect(await cli.run(['whoami', '--context', 'fuor'])).toEqual({
      status: 1,
      stdout: '',
      stderr:
        'error: context fuor not found\nThe contexts are one, two, three; add one with `svc context add fuor <url>`.\n',
    });
    expect(await cli.run(['context', 'rm', 'three'])).toMatchObject({ status: 0, stdout: 'Removed context three.\n' });
    expect((await cli.run(['whoami'])).stdout).toContain('Not logged in to http://127.0.0.1:8080.');
    await cli.run(['context', 'rm', 'two']);
    const use = async () => (await cli.run(['context', 'use', 'fuor'])).stderr;
    const rm = async () => (await cli.run(['context', 'rm', 'fuor'])).stderr;
    expect(await use()).toBe(
      'error: context fuor not found\nThe only context is one; add one with `svc context add fuor <url>`.\n',
    );
    expect(await rm()).toBe('error: context fuor not found\nThe only context is one.\n');
    await cli.run(['context', 'rm', 'one']);
    expect(await use()).toBe(
      'error: context fuor not found\nThere are no contexts yet; add one with `svc context add fuor <url>`.\n',
    );
    expect(await rm()).toBe('error: context fuor not found\nThere are no contexts yet.\n');
  });

  test("a context flag's URL precedes the environment's, and that a context's there", async () => {
    await cli.run(['context', 'add', 'one', 'http://127.0.0.1:1/one']);
    const env = { SVC_CLI_API_URL: 'http://127.0.0.1:1/variable', SVC_CLI_API_KEY: ADMIN_KEY };
    const reached = async (args: readonly string[], more = {}) =>
      /gateway at (\S+):/.exec((await cli.run(['login', ...args], { env: { ...env, ...more } })).stderr)?.[1];
    expect(await reached(['--context', 'one'])).toBe('http://127.0.0.1:1/one');
    expect(await reached(['--context', 'one', '--api-url', 'http://127.0.0.1:1/flag'])).toBe('http://127.0.0.1:1/flag');
    expect(await reached([], { SVC_CLI_CONTEXT: 'one' })).toBe('http://127.0.0.1:1/variable');
    expect(await reached([])).toBe('http://127.0.0.1:1/variable');
  });

  test('contexts keep the comments of their file, and an invalid file is not printed', async () => {
    await cli.run(['context', 'add', 'one', gateway.url]);
    const path = join(cli.folder, 'config.yaml');
    writeFileSync(path, `# mine\n${readFileSync(path, 'utf8')}`);
    await cli.run(['context', 'add', 'two', gateway.url]);
    expect(readFileSync(path, 'utf8')).toBe(
      `# mine\ncurrent_context: one\ncontexts:\n  one:\n    api_url: ${gateway.url}\n  two:\n    api_url: ${gateway.url}\n`,
    );
    writeFileSync(path, 'contexts:\n  one: { api_key: svc_secret, api_url: [ }\n');
    const { status, stderr } = await cli.run(['whoami']);
    expect(status).toBe(1);
    expect(stderr).toContain('config.yaml cannot be used:');
    expect(stderr).not.toContain('secret');
  });

  test('an unreachable gateway is named with what to do', async () => {
    const away = `http://127.0.0.1:${await freePort()}`;
    const env = { SVC_CLI_API_URL: away, SVC_CLI_API_KEY: ADMIN_KEY };
    const { status, stdout, stderr } = await cli.run(['login'], { env });
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect((await cli.run(['login'], { env: { ...env, SVC_CLI_API_URL: 'http://127.0.0.1:6000' } })).stderr) // a port that fetch refuses, like browsers
      .toBe(
        'error: cannot reach the gateway at http://127.0.0.1:6000: the connection was refused\nStart it with `svc serve`, or choose another with --context or --api-url.\n',
      );
    expect(stderr).toBe(
      `error: cannot reach the gateway at ${away}: the connection was refused\nStart it with \`svc serve\`, or choose another with --context or --api-url.\n`,
    );
    expect((await cli.run(['login'], { env: { ...env, SVC_CLI_API_URL: `http://${gateway.grpc}` } })).stderr).toBe(
      `error: cannot reach the gateway at http://${gateway.grpc}: the server there does not speak HTTP\nCheck the URL: it must be the HTTP address of svc-gateway, not that of gRPC.\n`,
    );
    const debugged = await cli.run(['login', '--debug'], { env });
    expect(debugged.stderr).toContain('ECONNREFUSED');
    expect(debugged.stderr).not.toContain(ADMIN_KEY);
  });

  test.skipIf(process.platform !== 'linux')('a folder that cannot be created is reported at once', async () => {
    const { status, stderr } = await cli.run(['context', 'add', 'local', gateway.url], {
      env: { HOME: '/proc/svc/home' },
    });
    expect(status).toBe(1);
    expect(stderr).toMatch(
      /^error: cannot write \/proc\/svc\/home\/\.svc\/config\.yaml: .+\n\/proc\/svc\/home\/\.svc must be a folder that you own and can write to\.\n$/,
    );
  });

  test('a service without access to its home works from its environment', async () => {
    mkdirSync(join(cli.folder, 'credentials.yaml'), { recursive: true }); // which not even root can read
    mkdirSync(join(cli.folder, 'config.yaml'));
    expect(await cli.run(['ops', 'ls'], { env: withKey() })).toEqual({
      status: 0,
      stdout: '',
      stderr: `warning: cannot read ${join(cli.folder, 'credentials.yaml')}: it is a folder; using the API key instead.\nThere are no operations in flight.\n`,
    });
    expect(await cli.run(['ops', 'ls'], { env: here() })).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^error: cannot read \S+credentials\.yaml: it is a folder\n/),
    });
    expect(await cli.run(['ops', 'ls'], { env: { SVC_CLI_API_KEY: ADMIN_KEY } })).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^error: cannot read \S+config\.yaml: it is a folder\n/),
    });
  });

  test('without a home nothing is stored, and what needs no file works', async () => {
    const env = { ...withKey(), HOME: '' };
    expect((await cli.run(['ops', 'ls'], { env, cwd: cli.home })).status).toBe(0);
    expect(await cli.run(['login'], { env, cwd: cli.home })).toEqual({
      status: 1,
      stdout: '',
      stderr:
        'error: there is no home folder to store this in\nSet HOME, or set SVC_CLI_API_URL and SVC_CLI_API_KEY for every command.\n',
    });
    expect(readdirSync(cli.home)).toEqual([]);
  });

  test('warns before a key goes over the network unencrypted', async () => {
    const url = 'http://gateway.invalid:8080';
    const added = await cli.run(['context', 'add', 'far', url]);
    expect(added).toMatchObject({
      status: 0,
      stderr: `warning: ${url} is not encrypted; others on the network can read keys. Use https.\n`,
    });
    const login = await cli.run(['login', '--context', 'far', '--api-key', ADMIN_KEY]);
    expect(login).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(
        `^warning: ${url} is not encrypted; others on the network can read the key. Use https.\n`,
      ),
    });
    expect((await cli.run(['context', 'add', 'safe', 'https://gateway.invalid'])).stderr).toBe('');
    expect((await cli.run(['context', 'add', 'near', 'http://localhost:8080'])).stderr).toBe('');
  });

  test('an added context becomes the default if it is the first or on request', async () => {
    const added = async (...args: string[]) =>
      JSON.parse((await cli.run(['context', 'add', ...args, '-o', 'json'])).stdout).current;
    expect({
      first: await added('first', 'http://127.0.0.1:1'),
      second: await added('second', 'http://127.0.0.1:2', '--use'),
      third: await added('third', 'http://127.0.0.1:3'),
    }).toEqual({ first: true, second: true, third: false });
    const { contexts } = JSON.parse((await cli.run(['context', 'ls', '-o', 'json'])).stdout) as {
      contexts: { name: string; current: boolean }[];
    };
    expect(contexts.filter(({ current }) => current).map(({ name }) => name)).toEqual(['second']);
  });
});
