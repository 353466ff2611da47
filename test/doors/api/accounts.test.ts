import { request } from 'node:http';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type AccountUseCases, withoutAccountStore } from '../../../src/accounts/accounts.ts';
import { fail, ok } from '../../../src/core/base/result.ts';
import { type Principal, SCOPES_OF_ROLE } from '../../../src/core/identity/roles.ts';
import { accountRoutes } from '../../../src/doors/api/accounts.ts';
import { serveRoutes } from '../../../src/doors/api/server.ts';
import { addressBehind } from '../../../src/doors/engine/client-address.ts';
import { DoorState } from '../../../src/doors/engine/door-state.ts';
import { decode, encode } from '../../../src/threads/codec.ts';
import type { Link } from '../../../src/use-cases/use-cases.ts';
import { ADMIN_KEY, GOOD_PASSWORD, openScene, type Scene, type SceneOptions } from '../../support/accounts.ts';
import { type CreateEngine, ENGINES } from '../../support/engines.ts';
import { eventually } from '../../support/eventually.ts';
import { withTables } from '../../support/postgres.ts';

const newDatabase = withTables();

type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: any;
};
type Ask = { readonly bearer?: string; readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> };
type Call = (method: string, path: string, ask?: Ask) => Promise<Answer>;

let createEngine: CreateEngine;

/** The rows over a real socket. A bearer is what the scene minted, or `admin-key`. */
async function listen(useCases: AccountUseCases, hasAccountStore: boolean): Promise<Call> {
  const all: Record<string, (input: never) => Promise<unknown>> = {
    ...useCases,
    takePermit: async () => ok(undefined),
  };
  const link: Link = {
    ask: () => Promise.reject(new Error('these rows command nothing')),
    call: async (name, input) => decode(encode(await all[name]!(decode(encode(input)) as never))) as never,
  };
  const http = createEngine();
  serveRoutes(http, {
    door: new DoorState(Infinity),
    ports: { link, authenticate: async (bearer: string) => principalBehind(bearer) } as never,
    corsOrigins: [],
    own: { origins: ['https://gateway.test'], hosts: undefined },
    bodyTimeoutMs: 30_000,
    addressOf: addressBehind(['127.0.0.1']),
    routes: accountRoutes({ hasAccountStore, maxLogins: 2 }),
    onError: (error) => {
      throw error;
    },
    onCut: () => {
      throw new Error('these rows answer in one piece');
    },
  });
  onTestFinished(() => http.close());
  const port = await http.listen('127.0.0.1', 0, false);
  return (method, path, { bearer, body, headers } = {}) =>
    new Promise((resolve, reject) => {
      const authorization = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
      const sent = request(
        {
          port,
          host: '127.0.0.1',
          method,
          path,
          agent: false,
          headers: { ...authorization, 'content-type': 'application/json', ...headers },
        },
        (response) => {
          let text = '';
          response
            .setEncoding('utf8')
            .on('data', (chunk: string) => (text += chunk))
            .on('end', () =>
              resolve({
                status: response.statusCode ?? 0,
                headers: response.headers,
                body: text === '' ? undefined : JSON.parse(text),
              }),
            );
        },
      );
      sent
        .on('error', reject)
        .end(body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body));
    });
}

function principalBehind(bearer: string) {
  if (bearer === 'admin-key') return ok(ADMIN_KEY);
  if (bearer === 'read-key') return ok<Principal>({ subject: 'key:r', scopes: ['read'], orgId: null });
  const [id, role] = bearer.split(':') as [string, keyof typeof SCOPES_OF_ROLE];
  return role in SCOPES_OF_ROLE
    ? ok<Principal>({ subject: `account:${id}`, role, scopes: SCOPES_OF_ROLE[role], orgId: null })
    : fail({ kind: 'unauthenticated', detail: 'unknown' } as const);
}

async function serve(options: SceneOptions = {}): Promise<{ call: Call; scene: Scene }> {
  const scene = await openScene(await newDatabase(), options);
  return { scene, call: await listen(scene, true) };
}

const OWNER = { email: 'owner@example.com', password: GOOD_PASSWORD };
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

async function signIn(call: Call, credentials = OWNER): Promise<{ token: string; cookie: string }> {
  const answer = await call('POST', '/api/v1/auth/login', { body: credentials });
  expect(answer.status).toBe(200);
  return { token: answer.body.access_token, cookie: answer.headers['set-cookie']![0]!.split(';')[0]! };
}

describe.each(ENGINES)('accounts over %s', (_name, create) => {
  beforeAll(() => {
    createEngine = create;
  });

  test('an account registers, signs in, refreshes, is shown and signs out', async () => {
    const { call } = await serve();
    expect((await call('GET', '/api/v1/auth/methods')).body).toEqual({
      methods: ['api_key', 'password'],
      registration: 'first_account',
      reset_by_mail: true,
    });

    const registered = await call('POST', '/api/v1/auth/register', { body: OWNER });
    expect({ status: registered.status, body: registered.body }).toEqual({
      status: 201,
      body: {
        account: {
          id: expect.any(String),
          email: 'owner@example.com',
          role: 'owner',
          org_id: null,
          created_at: '2030-01-01T00:00:00.000Z',
        },
      },
    });

    expect((await call('GET', '/api/v1/auth/methods')).body.registration).toBe('closed');

    const loggedIn = await call('POST', '/api/v1/auth/login', { body: { ...OWNER, remember_me: true } });
    expect({ status: loggedIn.status, body: loggedIn.body }).toEqual({
      status: 200,
      body: {
        access_token: expect.any(String),
        token_type: 'Bearer',
        expires_in: 900,
        expires_at: 1_893_456_900,
        scopes: ['read', 'write', 'admin'],
      },
    });
    expect(loggedIn.headers['set-cookie']).toEqual([
      expect.stringMatching(
        /^svc_refresh=[\w-]{43}; Max-Age=2592000; Path=\/api\/v1\/auth; HttpOnly; Secure; SameSite=Strict$/,
      ),
      expect.stringMatching(
        /^svc_device=[\w-]{22}\.[\w-]{43}; Max-Age=15552000; Path=\/api\/v1\/auth\/login; HttpOnly; Secure; SameSite=Strict$/,
      ),
    ]);

    const cookie = loggedIn.headers['set-cookie']![0]!.split(';')[0]!;
    const refreshed = await call('POST', '/api/v1/auth/refresh', { headers: { cookie: `theme=dark; ${cookie}` } });
    expect({ status: refreshed.status, body: Object.keys(refreshed.body) }).toEqual({
      status: 200,
      body: ['access_token', 'token_type', 'expires_in', 'expires_at', 'scopes'],
    });
    const next = refreshed.headers['set-cookie']![0]!.split(';')[0]!;
    expect(next).not.toBe(cookie);

    const me = await call('GET', '/api/v1/auth/me', { bearer: refreshed.body.access_token });
    expect(me.body).toEqual({
      account: {
        ...registered.body.account,
        disabled: false,
        last_login_at: '2030-01-01T00:00:00.000Z',
        locked_until: null,
      },
      scopes: ['read', 'write', 'admin'],
    });

    const loggedOut = await call('POST', '/api/v1/auth/logout', { headers: { cookie: next } });
    expect({ status: loggedOut.status, setCookie: loggedOut.headers['set-cookie'] }).toEqual({
      status: 204,
      setCookie: ['svc_refresh=; Max-Age=0; Path=/api/v1/auth; HttpOnly; Secure; SameSite=Strict'],
    });
    expect((await call('POST', '/api/v1/auth/refresh', { headers: { cookie: next } })).status).toBe(401);
    expect((await call('POST', '/api/v1/auth/logout')).status).toBe(204);
    expect(
      (await call('POST', '/api/v1/auth/logout', { body: '{not json', headers: { 'content-type': 'text/plain' } }))
        .status,
    ).toBe(204);

    // Guessing now locks out everybody but this browser, though it has signed out.
    const device = loggedIn.headers['set-cookie']![1]!.split(';')[0]!;
    const login = async (password: string, headers = {}) =>
      (await call('POST', '/api/v1/auth/login', { body: { ...OWNER, password }, headers })).status;
    for (let guess = 0; guess < 5; guess += 1) expect(await login('a guess')).toBe(401);
    expect(await login(GOOD_PASSWORD)).toBe(423);
    expect(await login(GOOD_PASSWORD, { cookie: device })).toBe(200);
  });

  test('a replayed cookie is 401, ends the session, and is cleared', async () => {
    const { call } = await serve();
    await call('POST', '/api/v1/auth/register', { body: OWNER });
    const { cookie } = await signIn(call);
    const next = (await call('POST', '/api/v1/auth/refresh', { headers: { cookie } })).headers['set-cookie']![0]!.split(
      ';',
    )[0]!;
    const replayed = await call('POST', '/api/v1/auth/refresh', { headers: { cookie } });
    expect({
      status: replayed.status,
      code: replayed.body.code,
      wwwAuthenticate: replayed.headers['www-authenticate'],
    }).toEqual({ status: 401, code: 'unauthenticated', wwwAuthenticate: 'Bearer' });
    expect(replayed.headers['set-cookie']).toEqual([expect.stringContaining('Max-Age=0')]);
    expect((await call('POST', '/api/v1/auth/refresh', { headers: { cookie: next } })).status).toBe(401);
  });

  test('refresh and logout refuse pages of other sites and accept those of this one', async () => {
    const { call } = await serve();
    await call('POST', '/api/v1/auth/register', { body: OWNER });
    const { cookie } = await signIn(call);
    for (const path of ['/api/v1/auth/refresh', '/api/v1/auth/logout']) {
      for (const origin of ['https://evil.test', 'null', 'https://gateway.test.evil.test']) {
        const refused = await call('POST', path, { headers: { cookie, origin } });
        expect(
          { status: refused.status, code: refused.body.code, setCookie: refused.headers['set-cookie'] },
          origin,
        ).toEqual({ status: 403, code: 'foreign_origin', setCookie: undefined });
      }
    }
    const refreshed = await call('POST', '/api/v1/auth/refresh', {
      headers: { cookie, origin: 'https://gateway.test' },
    });
    expect(refreshed.status).toBe(200);
    const next = refreshed.headers['set-cookie']![0]!.split(';')[0]!;
    expect(
      (
        await call('POST', '/api/v1/auth/logout', {
          headers: { cookie: next, origin: 'http://localhost:8080', host: 'localhost:8080' },
        })
      ).status,
    ).toBe(204);
  });

  test('every refusal has its status and code', async () => {
    const { call, scene } = await serve();
    await call('POST', '/api/v1/auth/register', { body: OWNER });
    const post = async (path: string, body: unknown, bearer?: string) => {
      const answer = await call('POST', `/api/v1/auth/${path}`, { body, ...(bearer !== undefined && { bearer }) });
      return [answer.status, answer.body?.code];
    };
    expect(await post('register', { email: 'x@example.com', password: GOOD_PASSWORD })).toEqual([
      403,
      'registration_closed',
    ]);
    expect(await post('login', { email: 'x@example.com', password: 'wrong' })).toEqual([401, 'unauthenticated']);
    expect(await post('login', { email: 'x@example.com' })).toEqual([400, 'invalid_argument']);
    expect(await post('login', { ...OWNER, remember_me: 'yes' })).toEqual([400, 'invalid_argument']);
    expect(await post('login', '{"email":')).toEqual([400, 'invalid_argument']);
    expect(await post('refresh', undefined)).toEqual([401, 'unauthenticated']);
    expect(await post('invite', { email: 'x@example.com' })).toEqual([401, 'unauthenticated']);
    expect(await post('invite', { email: 'x@example.com' }, 'read-key')).toEqual([403, 'insufficient_scope']);
    expect(await post('invite', { email: 'x@example.com', role: 'root' }, 'admin-key')).toEqual([
      400,
      'invalid_argument',
    ]);
    expect(await post('invite', { email: 'x@example.com', role: 'owner' }, 'admin-key')).toEqual([
      403,
      'role_forbidden',
    ]);
    expect(await post('invite', { email: 'owner@example.com' }, 'admin-key')).toEqual([409, 'email_taken']);
    expect(await post('invite/accept', { invite_token: 'x', password: GOOD_PASSWORD })).toEqual([
      422,
      'invalid_invite',
    ]);
    expect(await post('password/reset', { email: 'nobody@example.com' })).toEqual([202, undefined]);
    expect(await post('password/reset', {})).toEqual([400, 'invalid_argument']);
    expect(await post('password/reset/confirm', { reset_token: 'x', new_password: GOOD_PASSWORD })).toEqual([
      422,
      'invalid_reset_token',
    ]);
    for (let i = 0; i < 5; i++)
      expect(await post('login', { ...OWNER, password: 'wrong' })).toEqual([401, 'unauthenticated']);
    const locked = await call('POST', '/api/v1/auth/login', { body: OWNER });
    expect({ status: locked.status, code: locked.body.code, retryAfter: locked.headers['retry-after'] }).toEqual({
      status: 423,
      code: 'account_locked',
      retryAfter: '900',
    });
    scene.advance(15 * 60_000);
    expect((await signIn(call)).token).toBeDefined();
  });

  test('a short password is 422 and says so', async () => {
    const { call } = await serve();
    const answer = await call('POST', '/api/v1/auth/register', {
      body: { email: 'owner@example.com', password: 'short' },
    });
    expect({ status: answer.status, contentType: answer.headers['content-type'], body: answer.body }).toEqual({
      status: 422,
      contentType: 'application/problem+json',
      body: {
        type: expect.any(String),
        title: 'Unprocessable Content',
        status: 422,
        code: 'weak_password',
        detail: 'the password must be at least 12 characters long',
      },
    });
  });

  test('an invited person accepts, requests a reset and sets a new password', async () => {
    const { call, scene } = await serve();
    const invited = await call('POST', '/api/v1/auth/invite', {
      bearer: 'admin-key',
      body: { email: 'dev@example.com', role: 'developer', org_id: 'acme' },
    });
    expect({ status: invited.status, body: invited.body }).toEqual({
      status: 201,
      body: {
        invite_token: expect.stringMatching(/^[\w-]{43}$/),
        email: 'dev@example.com',
        role: 'developer',
        org_id: 'acme',
        expires_at: '2030-01-08T00:00:00.000Z',
      },
    });
    const accepted = await call('POST', '/api/v1/auth/invite/accept', {
      body: { invite_token: invited.body.invite_token, password: GOOD_PASSWORD },
    });
    expect({ status: accepted.status, account: accepted.body.account }).toEqual({
      status: 201,
      account: {
        id: expect.any(String),
        email: 'dev@example.com',
        role: 'developer',
        org_id: 'acme',
        created_at: expect.stringMatching(RFC_3339),
      },
    });

    const requested = await call('POST', '/api/v1/auth/password/reset', { body: { email: 'dev@example.com' } });
    expect({ status: requested.status, body: requested.body }).toEqual({ status: 202, body: undefined });
    await scene.accounts.idle();
    const resetToken = /reset-password\/([\w-]+)/.exec(scene.mails[0]!.text)![1]!;
    const confirmed = await call('POST', '/api/v1/auth/password/reset/confirm', {
      body: { reset_token: resetToken, new_password: 'a wholly different phrase' },
    });
    expect({ status: confirmed.status, body: confirmed.body }).toEqual({ status: 204, body: undefined });
    await signIn(call, { email: 'dev@example.com', password: 'a wholly different phrase' });
  });

  test('an admin lists, changes, disables, enables and signs out accounts', async () => {
    const { call } = await serve({ openRegistration: true });
    await call('POST', '/api/v1/auth/register', { body: OWNER });
    expect((await call('GET', '/api/v1/auth/methods')).body.registration).toBe('open');
    const { id } = (
      await call('POST', '/api/v1/auth/register', { body: { email: 'dev@example.com', password: GOOD_PASSWORD } })
    ).body.account;
    const { token } = await signIn(call);
    const listed = await call('GET', '/api/v1/accounts?per_page=1', { bearer: token });
    expect(listed.body).toEqual({
      accounts: [expect.objectContaining({ email: 'owner@example.com', disabled: false })],
      next_cursor: expect.any(String),
    });
    expect((await call('GET', `/api/v1/accounts?cursor=${listed.body.next_cursor}`, { bearer: token })).body).toEqual({
      accounts: [expect.objectContaining({ id, role: 'developer' })],
      next_cursor: null,
    });
    expect((await call('GET', `/api/v1/accounts/${id}`, { bearer: token })).body.account).toMatchObject({
      id,
      last_login_at: null,
    });
    for (const nobody of ['nobody', '%00', '00000000-0000-4000-8000-000000000000'])
      expect((await call('GET', `/api/v1/accounts/${nobody}`, { bearer: token })).status).toBe(404);
    expect(
      (await call('POST', `/api/v1/accounts/${id}/role`, { bearer: token, body: { role: 'viewer' } })).body.account
        .role,
    ).toBe('viewer');
    expect((await call('POST', `/api/v1/accounts/${id}/disable`, { bearer: token })).body.account.disabled).toBe(true);
    expect((await call('POST', `/api/v1/accounts/${id}/enable`, { bearer: token })).body.account.disabled).toBe(false);
    expect((await call('POST', `/api/v1/accounts/${id}/sessions/revoke`, { bearer: token })).status).toBe(204);
    expect((await call('POST', '/api/v1/auth/sessions/revoke', { bearer: token })).status).toBe(204);
    expect((await call('GET', '/api/v1/accounts', { bearer: 'read-key' })).status).toBe(403);
  });

  const NATIVE = [
    'POST /api/v1/auth/register',
    'POST /api/v1/auth/login',
    'POST /api/v1/auth/refresh',
    'POST /api/v1/auth/logout',
    'POST /api/v1/auth/invite',
    'POST /api/v1/auth/invite/accept',
    'POST /api/v1/auth/password/reset',
    'POST /api/v1/auth/password/reset/confirm',
    'GET /api/v1/auth/me',
    'GET /api/v1/accounts',
    'GET /api/v1/accounts/x',
    'POST /api/v1/accounts/x/role',
    'POST /api/v1/accounts/x/disable',
  ];

  test('without an account store everything but methods is 503 for everybody', async () => {
    const call = await listen(withoutAccountStore(), false);
    expect((await call('GET', '/api/v1/auth/methods')).body).toEqual({ methods: ['api_key'] });
    for (const row of NATIVE) {
      const [method, path] = row.split(' ') as [string, string];
      for (const ask of [{}, { bearer: 'admin-key' }, { bearer: 'garbage' }]) {
        const answer = await call(method, path, ask);
        expect({ status: answer.status, code: answer.body.code }, row).toEqual({
          status: 503,
          code: 'account_store_unavailable',
        });
      }
    }
  });

  test('while the database is away, account routes are 503 with Retry-After', async () => {
    const { call, scene } = await serve();
    await call('POST', '/api/v1/auth/register', { body: OWNER });
    const { cookie } = await signIn(call);
    await scene.postgres.close();
    for (const [path, body] of [
      ['login', OWNER],
      ['register', OWNER],
      ['refresh', undefined],
      ['logout', undefined],
    ] as const) {
      const answer = await call('POST', `/api/v1/auth/${path}`, { body, headers: { cookie } });
      expect(
        {
          status: answer.status,
          code: answer.body.code,
          retryAfter: answer.headers['retry-after'],
          setCookie: answer.headers['set-cookie'],
        },
        path,
      ).toEqual({ status: 503, code: 'store_unreachable', retryAfter: '2', setCookie: undefined });
    }
    expect((await call('POST', '/api/v1/auth/password/reset', { body: { email: 'owner@example.com' } })).status).toBe(
      202,
    );
  });

  test('refuses one sign-in over the limit at once, and nothing else', async () => {
    const scene = await openScene(await newDatabase());
    const waiting: (() => void)[] = [];
    const login = (): Promise<never> =>
      new Promise((resolve) =>
        waiting.push(() => resolve(fail({ kind: 'unauthenticated', detail: 'wrong' } as const) as never)),
      );
    const call = await listen({ ...scene, login }, true);
    // From two addresses: of one, half are.
    const signingIn = ['192.0.2.1', '192.0.2.2'].map((address) =>
      call('POST', '/api/v1/auth/login', { body: OWNER, headers: { 'x-forwarded-for': address } }),
    );
    await eventually(() => expect(waiting).toHaveLength(2));
    for (const body of [OWNER, 'no JSON at all']) {
      const refused = await call('POST', '/api/v1/auth/login', { body });
      expect({ status: refused.status, retryAfter: refused.headers['retry-after'], code: refused.body.code }).toEqual({
        status: 503,
        retryAfter: '1',
        code: 'overloaded',
      });
    }
    expect((await call('GET', '/api/v1/auth/methods')).status).toBe(200);
    for (const answer of waiting.splice(0)) answer();
    expect((await Promise.all(signingIn)).map(({ status }) => status)).toEqual([401, 401]);
    const next = call('POST', '/api/v1/auth/login', { body: OWNER });
    await eventually(() => expect(waiting).toHaveLength(1));
    waiting[0]!();
    expect((await next).status).toBe(401);
  });
});
