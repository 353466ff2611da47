import { once } from 'node:events';
import { chmodSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { SMTPServer } from 'smtp-server';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createCliHome } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { fastestMs } from '../support/fastest.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { folderForDatabase, layDatabase, withPostgres } from '../support/postgres.ts';

const newDatabase = withPostgres();
const OWNER = { email: 'owner@example.com', password: 'a horse that nobody corrects' };

/** Without user namespaces, root's PostgreSQL runs as another account, which must reach the folder. */
function reachableFolder(): string {
  const folder = folderForDatabase();
  chmodSync(folder, 0o711);
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function start(folder: string, env: Readonly<Record<string, string>> = {}): Promise<TestGateway> {
  const gateway = await startTestGateway({
    dataDir: folder,
    env: { SVC_ARGON2_MEMORY_KIB: '1024', SVC_SHUTDOWN_SECS: '1', ...env },
  });
  onTestFinished(async () => void (await gateway.stop()));
  return gateway;
}

const cookieOf = (headers: Headers): string => (headers.get('set-cookie') ?? '').split(';')[0] ?? '';

const loginTo = (gateway: TestGateway, credentials: object = OWNER) =>
  gateway.call('POST', '/api/v1/auth/login', credentials, null);

describe('accounts', () => {
  test('accounts live in an embedded database over restarts', async () => {
    const folder = reachableFolder();
    await layDatabase(join(folder, 'data'));
    const before = await start(folder); // without a database: its key moves
    const made = await before.call('POST', '/api/v1/iam/api-keys', { name: 'ci', scopes: ['read'] });
    expect((await before.call('POST', '/api/v1/auth/login', OWNER, null)).status).toBe(503);
    await before.stop();

    const first = await start(folder, { SVC_DATABASE_URL: 'embedded' });
    expect((await first.call('GET', '/api/v1/auth/methods', undefined, null)).body).toEqual({
      methods: ['api_key', 'password'],
      registration: 'first_account',
      reset_by_mail: false,
    });
    expect((await first.call('POST', '/api/v1/auth/token', {}, made.body.key)).status).toBe(200);
    expect((await first.call('POST', '/api/v1/auth/register', OWNER, null)).body.account.role).toBe('owner');
    await first.stop('SIGKILL'); // its PostgreSQL stays behind

    const second = await start(folder, { SVC_DATABASE_URL: 'embedded' });
    const { status, body } = await loginTo(second);
    expect(status).toBe(200);
    expect((await second.call('GET', '/api/v1/auth/me', undefined, body.access_token)).body.account).toMatchObject({
      email: 'owner@example.com',
      role: 'owner',
    });
    expect((await second.call('GET', '/api/v1/accounts', undefined, body.access_token)).body.accounts).toHaveLength(1);
    const logged = await second.call('GET', '/api/v1/logs?event_type=LoginSucceeded', undefined, body.access_token);
    expect(logged.body.entries).toMatchObject([{ event_type: 'LoginSucceeded' }]);
    expect(JSON.stringify(logged.body)).not.toContain(body.access_token);
    const ann = { email: 'ann@example.com', password: OWNER.password };
    const invited = await second.call('POST', '/api/v1/auth/invite', { email: ann.email, role: 'admin' });
    const accepted = await second.call(
      'POST',
      '/api/v1/auth/invite/accept',
      { invite_token: invited.body.invite_token, password: ann.password },
      null,
    );
    const { access_token: token } = (await loginTo(second, ann)).body;
    const left = await second.call('POST', '/api/v1/iam/api-keys', { name: 'back door', scopes: ['admin'] }, token);
    const hook = { url: 'https://example.com/hook', events: ['violation'], org_id: 'acme' };
    const hooks = [];
    for (const bearer of [token, left.body.key, undefined])
      hooks.push((await second.call('POST', '/api/v1/webhooks', hook, bearer)).body.id);
    const demoted = await second.call('POST', `/api/v1/accounts/${accepted.body.account.id}/role`, { role: 'viewer' });
    expect(demoted.body).toMatchObject({
      account: { role: 'viewer' },
      revoked_keys: [{ id: left.body.id, name: 'back door' }],
      deleted_webhooks: expect.arrayContaining([
        { id: hooks[0], url: hook.url },
        { id: hooks[1], url: hook.url },
      ]),
    });
    const { webhooks } = (await second.call('GET', '/api/v1/webhooks')).body;
    expect(webhooks.map(({ id }: { id: string }) => id)).toEqual([hooks[2]]);
    expect((await second.call('GET', '/api/v1/ops', undefined, left.body.key)).status).toBe(401);

    // Without a mail relay: a link to hand over; of an owner, who is above every key, only at the console.
    const reset = await second.call('POST', `/api/v1/accounts/${accepted.body.account.id}/reset`);
    expect(reset.body).toMatchObject({
      email: ann.email,
      link: `${second.url}/#/reset-password/${reset.body.reset_token}`,
    });
    const owner = { ...OWNER, password: 'another horse for the owner' };
    const me = (await second.call('GET', '/api/v1/auth/me', undefined, body.access_token)).body.account;
    expect((await second.call('POST', `/api/v1/accounts/${me.id}/reset`)).body.code).toBe('role_forbidden');
    for (let nth = 0; nth < 5; nth += 1) await loginTo(second, { ...OWNER, password: 'not the password' });
    expect((await loginTo(second)).status).toBe(423);
    const cli = createCliHome();
    onTestFinished(() => cli.remove());
    const console = (email: string) =>
      cli.start(['accounts', 'reset', email, '--dir', join(folder, 'data'), '-o', 'json']);
    expect(await console('nobody@example.com')).toMatchObject({ status: 1, stderr: 'error: account not found\n' });
    const { link } = JSON.parse((await console(OWNER.email)).stdout) as { link: string };
    const confirmed = await second.call(
      'POST',
      '/api/v1/auth/password/reset/confirm',
      { reset_token: link.split('/').at(-1), new_password: owner.password },
      null,
    );
    expect(confirmed.status).toBe(204);
    expect((await loginTo(second, owner)).status).toBe(200);
    expect(await second.stop()).toBe(0);
  });

  test('a disabled account loses its token at once', async () => {
    const gateway = await start(reachableFolder(), {
      SVC_DATABASE_URL: await newDatabase(),
      SVC_AUTH_OPEN_REGISTRATION: 'yes',
    });
    await gateway.call('POST', '/api/v1/auth/register', OWNER, null);
    const owner = (await loginTo(gateway)).body.access_token;
    let registered = 0;
    const lostAfterMs = async (): Promise<number> => {
      const developer = { email: `ada-${(registered += 1)}@example.com`, password: 'quite another horse' };
      const { id } = (await gateway.call('POST', '/api/v1/auth/register', developer, null)).body.account;
      const token = (await loginTo(gateway, developer)).body.access_token;
      expect((await gateway.call('GET', '/api/v1/auth/me', undefined, token)).status).toBe(200);
      expect((await gateway.call('POST', `/api/v1/accounts/${id}/disable`, {}, owner)).status).toBe(200);
      const disabledAtMs = performance.now();
      await eventually(async () =>
        expect((await gateway.call('GET', '/api/v1/ops', undefined, token)).status).toBe(401),
      );
      return performance.now() - disabledAtMs;
    };
    expect(await fastestMs(1_000, lostAfterMs)).toBeLessThan(1_000);
    expect((await gateway.call('GET', '/api/v1/ops', undefined, owner)).status).toBe(200);
  });

  test('access tokens end with their session: by logout, and when a stolen cookie shows', async () => {
    const gateway = await start(reachableFolder(), { SVC_DATABASE_URL: await newDatabase(), SVC_IO_THREADS: '2' });
    await gateway.call('POST', '/api/v1/auth/register', OWNER, null);
    const me = async (token: string) => (await gateway.call('GET', '/api/v1/auth/me', undefined, token)).status;
    const signIn = async () => {
      const { headers, body } = await loginTo(gateway);
      return { token: body.access_token as string, cookie: cookieOf(headers) };
    };
    const withCookie = async (path: string, cookie: string) => {
      const answer = await fetch(gateway.url + path, { method: 'POST', headers: { cookie } });
      return { status: answer.status, cookie: cookieOf(answer.headers), token: (await answer.text()).split('"')[3] };
    };

    const left = await signIn();
    const stays = await signIn();
    expect([await me(left.token), await me(stays.token)]).toEqual([200, 200]);
    expect((await withCookie('/api/v1/auth/logout', left.cookie)).status).toBe(204);
    expect([await me(left.token), await me(stays.token)]).toEqual([401, 200]);

    const stolen = await signIn();
    const thief = await withCookie('/api/v1/auth/refresh', stolen.cookie);
    expect(await me(thief.token!)).toBe(200);
    expect((await withCookie('/api/v1/auth/refresh', stolen.cookie)).status).toBe(401); // its owner's turn
    expect([await me(thief.token!), await me(stolen.token), await me(stays.token)]).toEqual([401, 401, 200]);
  });

  test('a reset mail links to the port chosen by the system', async () => {
    const mails: string[] = [];
    const relay = new SMTPServer({
      authOptional: true,
      hideSTARTTLS: true,
      onData: (stream, _session, callback) =>
        void text(stream).then((mail) => {
          mails.push(mail.replaceAll('=\r\n', ''));
          callback();
        }, callback),
    });
    await new Promise<void>((resolve) => void relay.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => new Promise<void>((resolve) => void relay.close(resolve)));
    const gateway = await start(reachableFolder(), {
      SVC_DATABASE_URL: await newDatabase(),
      SVC_SMTP_HOST: '127.0.0.1',
      SVC_SMTP_PORT: String((relay.server.address() as AddressInfo).port),
    });
    await gateway.call('POST', '/api/v1/auth/register', OWNER, null);
    await gateway.call('POST', '/api/v1/auth/password/reset', { email: OWNER.email }, null);
    await eventually(() => expect(mails.join()).toContain(`${gateway.url}/#/reset-password/`));
  });

  test('SIGTERM exits with 0 in time while a mail relay is silent', async () => {
    const waiting: Socket[] = [];
    const silent = createServer((socket) => waiting.push(socket)).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    onTestFinished(() => {
      for (const socket of waiting) socket.destroy();
      silent.close();
    });
    const { port } = silent.address() as AddressInfo;
    const gateway = await start(reachableFolder(), {
      SVC_DATABASE_URL: await newDatabase(),
      SVC_SMTP_HOST: '127.0.0.1',
      SVC_SMTP_PORT: String(port),
    });
    await gateway.call('POST', '/api/v1/auth/register', OWNER, null);
    expect((await gateway.call('POST', '/api/v1/auth/password/reset', { email: OWNER.email }, null)).status).toBe(202);
    await eventually(async () => expect(waiting).toHaveLength(1));
    expect(await gateway.stop('SIGTERM')).toBe(0); // 'SIGTERM' if it had to be cut off
  });
});
