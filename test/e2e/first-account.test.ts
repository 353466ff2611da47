/** Who can make the first account, which owns the workspace (docs/spec.md, Registration). */
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { withPostgres } from '../support/postgres.ts';

const newDatabase = withPostgres();
const OWNER = { email: 'owner@example.com', password: 'a horse that nobody corrects' };
const REGISTER = '/api/v1/auth/register';

async function start(env: Record<string, string> = {}): Promise<TestGateway> {
  const gateway = await startTestGateway({
    env: { SVC_DATABASE_URL: await newDatabase(), SVC_ARGON2_MEMORY_KIB: '1024', ...env },
  });
  onTestFinished(async () => void (await gateway.stop('SIGKILL')));
  return gateway;
}

/** As a browser that a page has sent on: with its headers, and no others. */
async function send(
  { url }: TestGateway,
  [method, path]: readonly [string, string],
  headers: Record<string, string>,
  body = '',
): Promise<{ status: number | undefined; code: unknown }> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    request(
      { hostname: hostname.replace('0.0.0.0', '127.0.0.1'), port, method, path, headers, agent: false },
      (response) =>
        resolve(
          text(response).then((content) => ({
            status: response.statusCode,
            code: content.startsWith('{') ? JSON.parse(content).code : undefined,
          })),
        ),
    )
      .on('error', reject)
      .end(body);
  });
}

describe('first account', () => {
  test('on loopback no page makes it in place of its visitor', async () => {
    const gateway = await start();
    const { host } = new URL(gateway.url);
    const json = { 'content-type': 'application/json' };
    const attacks = [
      // Requests that a page can send without asking the gateway first: a form, text, and a blob without a type.
      [['POST', REGISTER], { host, origin: 'http://evil.test' }],
      [['POST', REGISTER], { host }],
      [['POST', REGISTER], { host, 'content-type': 'text/plain' }],
      // Its name resolves to this machine by now.
      [['POST', REGISTER], { ...json, host: 'evil.test:8080', origin: 'http://evil.test:8080' }],
      [['POST', REGISTER], { ...json, host: 'evil.test:8080' }],
      [['GET', '/metrics'], { host: 'evil.test:8080' }],
    ] as const;
    const answers = [];
    for (const [row, headers] of attacks)
      answers.push(await send(gateway, row, headers, row[0] === 'GET' ? '' : JSON.stringify(OWNER)));
    expect(answers).toEqual([
      { status: 403, code: 'foreign_origin' },
      { status: 415, code: 'unsupported_media_type' },
      { status: 415, code: 'unsupported_media_type' },
      { status: 421, code: 'foreign_host' },
      { status: 421, code: 'foreign_host' },
      { status: 421, code: 'foreign_host' },
    ]);
    expect(gateway.output.stdout).toContain('the first to register becomes the owner');
    expect((await gateway.call('GET', '/api/v1/auth/methods', undefined, null)).body).toMatchObject({
      registration: 'first_account',
    });
    expect((await gateway.call('POST', REGISTER, OWNER, null)).body.account.role).toBe('owner');
  });

  test('needs the printed link if others reach the gateway', async () => {
    const gateway = await start({ SVC_HTTP_ADDR: '0.0.0.0:0', SVC_PUBLIC_URL: 'https://gateway.example.com' });
    const refused = await gateway.call('POST', REGISTER, OWNER, null);
    expect({ status: refused.status, code: refused.body.code }).toEqual({ status: 403, code: 'setup_required' });
    const [, token] = /https:\/\/gateway\.example\.com\/#\/setup\/([\w-]{43})/.exec(gateway.output.stdout) ?? [];
    expect(gateway.output.stderr).not.toContain(token);
    expect((await gateway.call('GET', '/api/v1/auth/methods', undefined, null)).body).toMatchObject({
      setup_required: true,
    });
    const guessed = await gateway.call('POST', REGISTER, { ...OWNER, setup_token: 'x'.repeat(43) }, null);
    expect(guessed.body.code).toBe('setup_required');
    expect((await gateway.call('POST', REGISTER, { ...OWNER, setup_token: token }, null)).status).toBe(201);
    const again = await gateway.call('POST', REGISTER, { ...OWNER, email: 'b@example.com', setup_token: token }, null);
    expect(again.body.code).toBe('registration_closed');
  });

  test('the admin key will do as well, and a lesser key will not', async () => {
    const gateway = await start({ SVC_AUTH_FIRST_ACCOUNT: 'setup' });
    const made = await gateway.call('POST', '/api/v1/iam/api-keys', {
      name: 'acme',
      scopes: ['admin'],
      org_id: 'acme',
    });
    expect((await gateway.call('POST', REGISTER, OWNER, made.body.key)).body.code).toBe('setup_required');
    expect((await gateway.call('POST', REGISTER, OWNER)).status).toBe(201);
  });

  test('an operator may open it, which is said at the start', async () => {
    const gateway = await start({ SVC_HTTP_ADDR: '0.0.0.0:0', SVC_AUTH_FIRST_ACCOUNT: 'open' });
    expect(gateway.output.stdout).toContain('the first to register becomes the owner (SVC_AUTH_FIRST_ACCOUNT)');
    expect((await gateway.call('POST', REGISTER, OWNER, null)).status).toBe(201);
  });

  test.each([
    [{}, 'anyone who reaches this gateway can read and write in every org'],
    [{ SVC_AUTH_OPEN_REGISTRATION_ORG: 'guests' }, 'anyone who reaches this gateway can read and write in this org'],
  ])('open registration is warned about at the start: %j', async (env, warning) => {
    const gateway = await start({ SVC_AUTH_OPEN_REGISTRATION: 'yes', ...env });
    expect(gateway.output.stderr).toContain(warning);
  });
});
