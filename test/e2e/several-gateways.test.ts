/** Gateways that share one PostgreSQL and one signing key: what one does to a credential, the others feel. */
import { generateKeyPairSync } from 'node:crypto';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';
import { withPostgres } from '../support/postgres.ts';
import { throughProxy } from '../support/proxy.ts';
import { openStream } from '../support/stream.ts';

const newDatabase = withPostgres();
const PASSWORD = 'a horse that nobody corrects';
const SHARED_KEY = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

async function start(url: string): Promise<GatewayHere> {
  const gateway = await startGatewayHere({
    env: { SVC_DATABASE_URL: url, SVC_JWT_PRIVATE_KEY: SHARED_KEY, SVC_ARGON2_MEMORY_KIB: '1024' },
  });
  onTestFinished(async () => {
    await gateway.stop();
  });
  return gateway;
}

describe('several gateways', () => {
  test('accounts and keys disabled at one gateway lose tokens and streams at another', async () => {
    const url = await newDatabase({ isEmpty: true });
    const [here, there] = await Promise.all([start(url), start(url)]);
    const invited = await here.call('POST', '/api/v1/auth/invite', { email: 'dev@example.com', role: 'developer' });
    const accepted = await there.call(
      'POST',
      '/api/v1/auth/invite/accept',
      { invite_token: invited.body.invite_token, password: PASSWORD },
      null,
    );
    const signedIn = await here.call(
      'POST',
      '/api/v1/auth/login',
      { email: 'dev@example.com', password: PASSWORD },
      null,
    );
    const { id: keyId, key } = (await here.call('POST', '/api/v1/iam/api-keys', { name: 'ci', scopes: ['read'] })).body;
    const bearers = [
      signedIn.body.access_token,
      key,
      (await here.call('POST', '/api/v1/auth/token', undefined, key)).body.token,
    ];
    const statuses = (gateway: GatewayHere) =>
      Promise.all(bearers.map(async (bearer) => (await gateway.call('GET', '/api/v1/ops', undefined, bearer)).status));
    await eventually(async () => expect(await statuses(there)).toEqual([200, 200, 200]));
    const dashboards = await Promise.all(bearers.map((bearer) => openStream(there, '', { bearer })));

    expect((await here.call('POST', `/api/v1/accounts/${accepted.body.account.id}/disable`)).status).toBe(200);
    expect((await here.call('POST', `/api/v1/iam/api-keys/${keyId}/revoke`)).status).toBe(204);
    expect(await statuses(here)).toEqual([401, 401, 401]);
    expect((await Promise.all(dashboards.map(({ closed }) => closed))).map(({ code }) => code)).toEqual([
      4401, 4401, 4401,
    ]);
    expect(await statuses(there)).toEqual([401, 401, 401]);
  });

  test('an API key created at one gateway works and is listed at another at once', async () => {
    const url = await newDatabase();
    const [here, there] = await Promise.all([start(url), start(url)]);
    const make = async () => (await here.call('POST', '/api/v1/iam/api-keys', { name: 'new', scopes: ['admin'] })).body;
    const answers: unknown[] = [];
    const note = async (asked: Promise<{ status: number }>) => answers.push((await asked).status);
    await note(there.call('GET', '/api/v1/ops', undefined, (await make()).key));
    await note(there.call('POST', '/api/v1/auth/token', undefined, (await make()).key));
    await note(
      there.call(
        'GET',
        '/api/v1/ops',
        undefined,
        (await here.call('POST', '/api/v1/auth/token', undefined, (await make()).key)).body.token,
      ),
    );
    const invited = await here.call(
      'POST',
      '/api/v1/auth/invite',
      { email: 'dev@example.com', role: 'developer' },
      (await make()).key,
    );
    await note(
      there.call(
        'POST',
        '/api/v1/auth/invite/accept',
        { invite_token: invited.body.invite_token, password: PASSWORD },
        null,
      ),
    );
    expect(answers).toEqual([200, 200, 200, 201]);

    const { id, key } = await make();
    const listed = async () =>
      (await there.call('GET', '/api/v1/iam/api-keys')).body.api_keys.find((each: { id: string }) => each.id === id);
    expect(await listed()).toMatchObject({ revoked_at: null });
    await here.call('POST', `/api/v1/iam/api-keys/${id}/revoke`);
    expect(await listed()).toMatchObject({ revoked_at: expect.any(String) });
    expect((await there.call('GET', '/api/v1/ops', undefined, key)).status).toBe(401);
  });

  test('a gateway that cannot learn of revoked tokens does not start before it can', async () => {
    const { url, proxy } = await throughProxy(await newDatabase());
    proxy.refuseFrom('FROM accounts WHERE tokens_revoked_at');
    let isStarted = false;
    const starting = start(url.href).then((gateway) => {
      isStarted = true;
      return gateway;
    });
    await eventually(async () => expect(proxy.isRefusing()).toBe(true));
    const before = proxy.accepted();
    await eventually(async () => expect(proxy.accepted()).toBeGreaterThan(before + 1)); // it has asked again
    expect(isStarted).toBe(false);
    proxy.serve();
    expect((await (await starting).call('GET', '/readyz', undefined, null)).status).toBe(200);
  });

  test("a gateway without rights to another's table does not start, and names it", async () => {
    const url = new URL(await newDatabase());
    const owner = new pg.Client({ connectionString: url.href });
    await owner.connect();
    onTestFinished(() => owner.end());
    await owner.query(
      `CREATE ROLE without_keys LOGIN PASSWORD 'without_keys'; GRANT ALL ON ALL TABLES IN SCHEMA public TO without_keys; REVOKE ALL ON api_keys FROM without_keys`,
    );
    url.username = url.password = 'without_keys';
    await expect(start(url.href)).rejects.toThrow(
      'cannot use the database in SVC_DATABASE_URL: permission denied for table api_keys',
    );
  });
});
