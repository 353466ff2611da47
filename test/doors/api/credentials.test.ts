import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { ok } from '../../../src/core/base/result.ts';
import { createApiKey, revokeApiKey } from '../../../src/credentials/api-key-admin.ts';
import { digestOf } from '../../../src/credentials/secret-token.ts';
import { CachedAuthenticator, VerifiedCache } from '../../../src/credentials/verified-cache.ts';
import { credentialRoutes } from '../../../src/doors/api/credentials.ts';
import { serveRoutes } from '../../../src/doors/api/server.ts';
import { DoorState } from '../../../src/doors/engine/door-state.ts';
import { decode, encode } from '../../../src/threads/codec.ts';
import { createCredentialUseCases } from '../../../src/use-cases/credentials.ts';
import type { Link, UseCases } from '../../../src/use-cases/use-cases.ts';
import { openTestCredentials, testCryptoPool } from '../../support/credentials.ts';
import { type CreateEngine, ENGINES } from '../../support/engines.ts';
import { ADMIN, must } from '../../support/harness.ts';

const DAY_MS = 86_400_000;
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const pool = testCryptoPool();

let createEngine: CreateEngine;

/**
 * The rows over a real socket, with the use cases in the same thread: what passes between is encoded as between
 * threads.
 */
async function serve() {
  const { clock, apiKeys, issuer, authenticator, signingKeys } = await openTestCredentials(pool);
  const useCases: Partial<UseCases> = {
    ...createCredentialUseCases({
      apiKeys,
      issuer,
      authenticator,
      signingKeys,
      isStillAdmin: async () => true,
      webhooks: { endMade: async () => ok({ deleted: [], kept: [] }) },
      isApproverName: () => false,
      onKeyRotated: () => undefined,
    }),
    takePermit: async () => ok(undefined),
  };
  const link: Link = {
    ask: () => Promise.reject(new Error('these rows command nothing')),
    call: async (name, input) => decode(encode(await useCases[name]!(decode(encode(input)) as never))) as never,
  };
  const cached = new CachedAuthenticator({
    cache: new VerifiedCache(),
    ask: (bearer) => link.call('authenticate', { bearer }),
    digestOf,
    nowMs: clock.nowMs,
  });
  authenticator.onRevoked((subject) => cached.drop(subject));
  const http = createEngine();
  const authenticate = async (bearer: string) => {
    const result = await cached.authenticate(bearer);
    return result.ok ? ok(result.value.principal) : result;
  };
  serveRoutes(http, {
    door: new DoorState(Infinity),
    ports: { link, authenticate } as never,
    routes: credentialRoutes,
    corsOrigins: [],
    own: { origins: [], hosts: undefined },
    bodyTimeoutMs: 30_000,
    onError: (error) => {
      throw error;
    },
    onCut: () => {
      throw new Error('these rows answer in one piece');
    },
  });
  onTestFinished(() => http.close());
  const port = await http.listen('127.0.0.1', 0, false);
  const call = async (method: string, path: string, bearer?: string, body?: unknown) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: {
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
        'content-type': 'application/json',
        connection: 'close',
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: (text === '' ? undefined : JSON.parse(text)) as any,
    };
  };
  const mint = async (input: object) =>
    must(await createApiKey(apiKeys, ADMIN, { name: 'n', scopes: ['admin'], ...input }));
  return { call, mint, apiKeys, clock };
}

describe.each(ENGINES)('credentials over %s', (_name, create) => {
  beforeAll(() => {
    createEngine = create;
  });

  test('every row answers every kind of credential with its listed status', async () => {
    const { call, mint, apiKeys, clock } = await serve();
    const make = async (input: object) => (await mint(input)).key;
    const expired = await make({ expiresAtMs: clock.nowMs() + 1 });
    clock.advance(1);
    const revoked = await mint({});
    must(await revokeApiKey(apiKeys, ADMIN, revoked.record.id));
    const target = (await mint({ orgId: 'acme' })).record.id;
    const credentials = {
      none: undefined,
      garbage: 'garbage',
      expired,
      revoked: revoked.key,
      otherOrg: await make({ orgId: 'globex' }),
      read: await make({ scopes: ['read'] }),
      write: await make({ scopes: ['write'] }),
      admin: await make({}),
    };
    const newKey = { name: 'n', scopes: ['read'], org_id: 'acme' };
    const rows: [string, string, unknown, number[]][] = [
      //                                                             none garb expi revo othr read write admin
      ['POST', '/api/v1/auth/token', undefined, [401, 401, 401, 401, 200, 200, 200, 200]],
      ['POST', '/api/v1/auth/token', { scopes: ['write'] }, [401, 401, 401, 401, 200, 403, 200, 200]],
      ['POST', '/api/v1/iam/api-keys', newKey, [401, 401, 401, 401, 403, 403, 403, 201]],
      ['POST', '/iam/api-keys', newKey, [401, 401, 401, 401, 403, 403, 403, 201]],
      ['GET', '/api/v1/iam/api-keys', undefined, [401, 401, 401, 401, 200, 403, 403, 200]],
      ['GET', '/iam/api-keys', undefined, [401, 401, 401, 401, 200, 403, 403, 200]],
      ['GET', '/api/v1/iam/api-keys?org_id=acme', undefined, [401, 401, 401, 401, 403, 403, 403, 200]],
      ['GET', '/api/v1/iam/api-keys/self', undefined, [401, 401, 401, 401, 200, 200, 200, 200]],
      ['POST', `/api/v1/iam/api-keys/${target}/revoke`, undefined, [401, 401, 401, 401, 404, 403, 403, 204]],
      ['POST', `/iam/api-keys/${target}/revoke`, undefined, [401, 401, 401, 401, 404, 403, 403, 204]],
      ['POST', '/iam/api-keys/unknown/revoke', undefined, [401, 401, 401, 401, 404, 403, 403, 404]],
      ['POST', '/api/v1/iam/signing-keys/rotate', undefined, [401, 401, 401, 401, 403, 403, 403, 200]],
      ['GET', '/.well-known/jwks.json', undefined, [200, 200, 200, 200, 200, 200, 200, 200]],
    ];
    for (const [method, path, body, expected] of rows) {
      const statuses: number[] = [];
      for (const bearer of Object.values(credentials)) statuses.push((await call(method, path, bearer, body)).status);
      expect(statuses, `${method} ${path}`).toEqual(expected);
    }
    expect((await call('POST', '/api/v1/iam/api-keys')).headers.get('www-authenticate')).toMatch(/^Bearer/);
  });

  test('a key is created, exchanged, used, listed without its secret, and revoked', async () => {
    const { call, mint, clock } = await serve();
    const { key: admin } = await mint({});
    const expiresAt = new Date(clock.nowMs() + DAY_MS * 30).toISOString();
    const created = await call('POST', '/api/v1/iam/api-keys', admin, {
      name: 'ci',
      scopes: ['admin', 'read'],
      org_id: 'acme',
      expires_at: expiresAt,
    });
    expect(created.body).toEqual({
      id: expect.stringMatching(/^\w{11}$/),
      key: expect.stringMatching(/^svc_/),
      name: 'ci',
      hint: `svc_${created.body.id}…`,
      scopes: ['read', 'admin'],
      org_id: 'acme',
      created_at: expect.stringMatching(RFC_3339),
      created_by: expect.stringMatching(/^key:\w{11}$/),
      expires_at: expiresAt,
      revoked_at: null,
      last_used_at: null,
    });
    const exchanged = await call('POST', '/api/v1/auth/token', created.body.key);
    expect(exchanged.body).toEqual({
      token: expect.stringMatching(/^eyJ/),
      expires_at: clock.nowMs() / 1000 + 86_400,
      scopes: ['read', 'admin'],
    });
    const { token } = exchanged.body;
    const listed = await call('GET', '/iam/api-keys', token);
    expect(listed.body).toMatchObject({
      api_keys: [{ id: created.body.id, last_used_at: expect.stringMatching(RFC_3339) }],
      next_cursor: null,
    });
    expect((await call('GET', '/api/v1/iam/api-keys/self', token)).body).toEqual({
      id: created.body.id,
      name: 'ci',
      scopes: ['read', 'admin'],
      org_id: 'acme',
      expires_at: expiresAt,
    });
    expect(JSON.stringify(listed.body)).not.toContain(created.body.key.slice(16));
    expect((await call('POST', '/api/v1/auth/token', token)).status).toBe(401);
    expect((await call('POST', `/iam/api-keys/${created.body.id}/revoke`, admin)).status).toBe(204);
    expect((await call('POST', `/iam/api-keys/${created.body.id}/revoke`, admin)).status).toBe(204);
    expect((await call('GET', '/iam/api-keys', token)).status).toBe(401);
    expect((await call('GET', '/iam/api-keys', created.body.key)).status).toBe(401);
    expect((await call('POST', '/api/v1/auth/token', created.body.key)).status).toBe(401);
  });

  test('a body that does not fit is 400 and names its field', async () => {
    const { call, mint } = await serve();
    const { key } = await mint({});
    const rows: [string, unknown, string][] = [
      ['/api/v1/auth/token', { scopes: ['root'] }, 'scopes.0'],
      ['/api/v1/auth/token', { scopes: 'read' }, 'scopes'],
      ['/api/v1/auth/token', { scopes: [] }, 'scopes'],
      ['/api/v1/auth/token', { scope: 'read' }, 'scope'],
      ['/api/v1/iam/api-keys', {}, 'name'],
      ['/api/v1/iam/api-keys', { name: 'n', scopes: [] }, 'scopes'],
      ['/api/v1/iam/api-keys', { name: 'n', scopes: ['read'], org_id: 'a/b' }, 'org_id'],
      ['/api/v1/iam/api-keys', { name: 'n', scopes: ['read'], expires_at: 'tomorrow' }, 'expires_at'],
      ['/api/v1/iam/api-keys', { name: 'n', scopes: ['read'], expires_at: '2001-01-01T00:00:00Z' }, 'expires_at'],
    ];
    for (const [path, body, field] of rows) {
      const answer = await call('POST', path, key, body);
      expect({ status: answer.status, code: answer.body.code, field: answer.body.field }, JSON.stringify(body)).toEqual(
        { status: 400, code: 'invalid_argument', field },
      );
    }
  });

  test('an unknown scope is refused with the known ones, and a non-list as such', async () => {
    const { call, mint } = await serve();
    const { key } = await mint({});
    const detailOf = async (scopes: unknown) => (await call('POST', '/api/v1/auth/token', key, { scopes })).body.detail;
    expect(await detailOf(['read', 'root'])).toBe('scopes.1: must be one of read, write, admin');
    expect(await detailOf('read')).toBe('scopes: must be a list of read, write, admin');
  });

  test('the key set shows the old and the new key after a rotation, and no private part', async () => {
    const { call, mint } = await serve();
    const { key } = await mint({});
    const { token } = (await call('POST', '/api/v1/auth/token', key)).body;
    const { kid } = (await call('POST', '/api/v1/iam/signing-keys/rotate', token)).body;
    const { keys } = (await call('GET', '/.well-known/jwks.json')).body;
    expect(keys).toHaveLength(2);
    expect(keys.map((jwk: { kid: string }) => jwk.kid)).toContain(kid);
    for (const jwk of keys) expect(Object.keys(jwk).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x']);
    expect((await call('GET', '/iam/api-keys', token)).status).toBe(200);
  });
});
