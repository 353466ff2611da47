import { createHmac, createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Result } from '../../src/core/base/result.ts';
import { fail } from '../../src/core/base/result.ts';
import type { Fault } from '../../src/core/fault.ts';
import type { AccountId } from '../../src/core/identity/account.ts';
import { type CreateApiKey, createApiKey, revokeApiKey } from '../../src/credentials/api-key-admin.ts';
import { bootstrapOf } from '../../src/credentials/api-key-start.ts';
import { ApiKeys } from '../../src/credentials/api-keys.ts';
import { createAuthenticator } from '../../src/credentials/authenticate.ts';
import { RevocationList } from '../../src/credentials/revocations.ts';
import { createTokenIssuer } from '../../src/credentials/tokens.ts';
import { createEmbeddedApiKeyStore } from '../../src/stores/embedded/api-keys.ts';
import { CryptoLane } from '../../src/threads/crypto/lane.ts';
import { createTokens } from '../../src/threads/crypto/tokens.ts';
import { FRAME, openTestCredentials, testCryptoPool } from '../support/credentials.ts';
import { ADMIN, faultOf, must, START_MS, temporaryStore } from '../support/harness.ts';

const START_SECS = START_MS / 1000;
const DAY_SECS = 86_400;
const OWNER = { id: 'a1' as AccountId, role: 'owner', orgId: null, tokenEpoch: 3 } as const;

const pool = testCryptoPool();

async function start() {
  const parts = await openTestCredentials(pool);
  const mint = async (input: Partial<CreateApiKey> = {}) =>
    must(await createApiKey(parts.apiKeys, ADMIN, { name: 'n', scopes: ['admin'], ...input }));
  const restart = async () => {
    const reopened = await parts.reopen();
    return { ...reopened, ...reopened.authenticator };
  };
  return { ...parts, ...parts.authenticator, mint, restart };
}

const kindOf = (result: Result<unknown, Fault>): string => (result.ok ? 'ok' : result.fault.kind);
const part = (token: string, at: 0 | 1): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[at] ?? '', 'base64url').toString());

describe('exchanging an API key', () => {
  test("returns a token of 24 hours with the documented claims and the key's rights", async () => {
    const { mint, issuer, authenticate, audit, signingKeys } = await start();
    const { key, record } = await mint({ scopes: ['read', 'write'], orgId: 'acme' });
    const { token, expiresAtSecs, scopes } = must(await issuer.exchange(key));
    expect({ expiresAtSecs, scopes }).toEqual({ expiresAtSecs: START_SECS + DAY_SECS, scopes: ['read', 'write'] });
    expect(part(token, 0)).toEqual({ alg: 'EdDSA', typ: 'at+jwt', kid: signingKeys.signer().kid });
    expect(part(token, 1)).toEqual({
      iss: 'svc-gateway',
      aud: 'svc-gateway',
      sub: `key:${record.id}`,
      iat: START_SECS,
      exp: START_SECS + DAY_SECS,
      jti: expect.stringMatching(/^[\w-]{22}$/),
      scope: 'read write',
      org_id: 'acme',
    });
    expect(must(await authenticate(token))).toEqual({
      principal: { subject: `key:${record.id}`, scopes: ['read', 'write'], orgId: 'acme' },
      expiresAtMs: START_MS + DAY_SECS * 1000,
    });
    expect(audit.drafts.at(-1)).toMatchObject({
      eventType: 'TokenIssued',
      actor: `key:${record.id}`,
      lineage: { orgId: 'acme' },
      payload: { token_id: part(token, 1)['jti'], scopes: ['read', 'write'], expires_at: '2030-01-02T00:00:00.000Z' },
    });
    expect(JSON.stringify(audit.drafts)).not.toContain(token.split('.')[2]);
  });

  test('narrows to the requested scopes, also to implied ones', async () => {
    const { mint, issuer, authenticate } = await start();
    const { key } = await mint({ scopes: ['admin'] });
    const { token, scopes } = must(await issuer.exchange(key, ['write', 'read', 'read']));
    expect(scopes).toEqual(['read', 'write']);
    expect(must(await authenticate(token)).principal.scopes).toEqual(['read', 'write']);
  });

  test('names the scope that the key lacks', async () => {
    const { mint, issuer } = await start();
    const { key } = await mint({ scopes: ['write'] });
    expect(faultOf(await issuer.exchange(key, ['read', 'admin']))).toEqual({
      kind: 'insufficient_scope',
      needed: 'admin',
      held: ['write'],
    });
    expect(faultOf(await issuer.exchange(key, []))).toMatchObject({ kind: 'invalid_argument', field: 'scopes' });
  });

  test('is refused for anything but an API key in force', async () => {
    const { mint, issuer, apiKeys, clock } = await start();
    const live = await mint();
    const revoked = await mint();
    must(await revokeApiKey(apiKeys, ADMIN, revoked.record.id));
    const expired = await mint({ expiresAtMs: START_MS + 1 });
    const { token } = must(await issuer.exchange(live.key));
    clock.advance(1);
    const outcomes = Object.entries({
      live: live.key,
      revoked: revoked.key,
      expired: expired.key,
      token,
      absent: '',
      wrong: `${live.key}x`,
    });
    const kinds = await Promise.all(
      outcomes.map(async ([name, bearer]) => `${name}: ${kindOf(await issuer.exchange(bearer))}`),
    );
    expect(kinds).toEqual([
      'live: ok',
      'revoked: unauthenticated',
      'expired: unauthenticated',
      'token: unauthenticated',
      'absent: unauthenticated',
      'wrong: unauthenticated',
    ]);
  });

  test('never outlives the key', async () => {
    const { mint, issuer, authenticate, clock } = await start();
    const { key } = await mint({ expiresAtMs: START_MS + 90_500 });
    const { token, expiresAtSecs } = must(await issuer.exchange(key));
    expect(expiresAtSecs).toBe(START_SECS + 90);
    clock.advance(89_999);
    expect(kindOf(await authenticate(token))).toBe('ok');
    clock.advance(1);
    expect(kindOf(await authenticate(token))).toBe('unauthenticated');
  });

  test('fails when the audit log cannot record it', async () => {
    const { mint, issuer, audit } = await start();
    const { key } = await mint();
    audit.broken = true;
    expect(kindOf(await issuer.exchange(key))).toBe('audit_unavailable');
  });
});

describe('tokens', () => {
  test('no token is issued where nobody can sign', async () => {
    const { mint, apiKeys, clock, audit } = await start();
    const overloaded = fail({ kind: 'overloaded', what: 'signing', retryAfterSecs: 1 } as const);
    const issuer = createTokenIssuer({
      apiKeys,
      clock,
      audit,
      tokens: { sign: async () => overloaded, verify: async () => overloaded },
    });
    expect(await issuer.exchange((await mint()).key)).toEqual(overloaded);
    expect(await issuer.mintForAccount(OWNER, 's1')).toEqual(overloaded);
  });

  describe('an account token', () => {
    test('lives 15 minutes and carries role, scopes and org', async () => {
      const { issuer, authenticate, clock } = await start();
      const roles = {
        owner: ['read', 'write', 'admin'],
        admin: ['read', 'write', 'admin'],
        developer: ['read', 'write'],
        viewer: ['read'],
      } as const;
      for (const [role, scopes] of Object.entries(roles) as [keyof typeof roles, readonly string[]][]) {
        const minted = must(await issuer.mintForAccount({ ...OWNER, role, orgId: 'acme' }, 's1'));
        expect({ expiresAtSecs: minted.expiresAtSecs, scopes: minted.scopes }).toEqual({
          expiresAtSecs: START_SECS + 900,
          scopes,
        });
        expect(must(await authenticate(minted.token)).principal).toEqual({
          subject: 'account:a1',
          role,
          scopes,
          orgId: 'acme',
        });
      }
      const { token } = must(await issuer.mintForAccount(OWNER, 's1'));
      clock.advance(899_999);
      expect(kindOf(await authenticate(token))).toBe('ok');
      clock.advance(1);
      expect(kindOf(await authenticate(token))).toBe('unauthenticated');
    });

    test('ends with its epoch, also after a restart; one of the same second lives', async () => {
      const { issuer, authenticate, onRevoked, restart, revocations } = await start();
      const revoked: string[] = [];
      onRevoked((subject) => revoked.push(subject));
      const before = must(await issuer.mintForAccount(OWNER, 's1'));
      const other = must(await issuer.mintForAccount({ ...OWNER, id: 'a2' as AccountId, tokenEpoch: 0 }, 's1'));
      revocations.revoke('account:a1', 4);
      revocations.revoke('account:a1', 4); // said again
      revocations.revoke('account:a1', 2); // late news of an earlier one
      const after = must(await issuer.mintForAccount({ ...OWNER, tokenEpoch: 4 }, 's1'));
      const outcomes = async (ask: typeof authenticate) =>
        Promise.all([before, other, after].map(async ({ token }) => kindOf(await ask(token))));
      expect(await outcomes(authenticate)).toEqual(['unauthenticated', 'ok', 'ok']);
      expect(revoked).toEqual(['account:a1']);
      await expect.poll(async () => outcomes((await restart()).authenticate)).toEqual(['unauthenticated', 'ok', 'ok']);
      revocations.revoke('account:a2', 1);
      expect({ outcomes: await outcomes(authenticate), revoked }).toEqual({
        outcomes: ['unauthenticated', 'unauthenticated', 'ok'],
        revoked: ['account:a1', 'account:a2'],
      });
    });

    test('ends with its session, also after a restart; those of other sessions live', async () => {
      const { issuer, authenticate, onRevoked, restart, revocations } = await start();
      const revoked: string[] = [];
      onRevoked((subject) => revoked.push(subject));
      const ended = must(await issuer.mintForAccount(OWNER, 's1'));
      const other = must(await issuer.mintForAccount(OWNER, 's2'));
      revocations.endSession('s1', 'account:a1');
      revocations.endSession('s1', 'account:a1'); // said again, by another gateway
      const outcomes = async (ask: typeof authenticate) =>
        Promise.all([ended, other].map(async ({ token }) => kindOf(await ask(token))));
      expect({ outcomes: await outcomes(authenticate), revoked }).toEqual({
        outcomes: ['unauthenticated', 'ok'],
        revoked: ['account:a1'],
      });
      await expect.poll(async () => outcomes((await restart()).authenticate)).toEqual(['unauthenticated', 'ok']);
    });

    test('a revocation is dropped when the last token it could affect has ended', async () => {
      const { revocations, clock, restart } = await start();
      revocations.revoke('account:a1', 4);
      await expect.poll(async () => (await restart()).revocations.size).toBe(1);
      clock.advance(900_000);
      revocations.prune();
      expect(revocations.size).toBe(1);
      clock.advance(5_000);
      revocations.prune();
      expect(revocations.size).toBe(0);
      await expect.poll(async () => (await restart()).revocations.size).toBe(0);
    });

    test('a revocation that cannot be stored still applies, and the operator is notified', async () => {
      const { clock } = await start();
      const errors: string[] = [];
      const full = () => Promise.reject(new Error('the disk is full'));
      const revocations = new RevocationList({
        store: { all: () => [], put: full, remove: full },
        clock,
        onError: (message, error) => errors.push(`${message}: ${String(error)}`),
      });
      revocations.revoke('account:a1', 4);
      expect([3, 4].map((epoch) => revocations.isRevoked('account:a1', epoch))).toEqual([true, false]);
      clock.advance(905_000);
      revocations.prune();
      await expect
        .poll(() => errors)
        .toEqual([
          'writing a revocation to disk: Error: the disk is full',
          'removing an expired revocation: Error: the disk is full',
        ]);
    });

    test('a revocation being announced is kept and closes nothing twice', async () => {
      const { revocations, clock, onRevoked } = await start();
      const revoked: string[] = [];
      onRevoked((subject) => revoked.push(subject));
      for (let seconds = 0; seconds <= 1_200; seconds += 60) {
        revocations.revoke('account:a1', 4);
        revocations.prune();
        clock.advance(60_000);
      }
      expect(revocations.isRevoked('account:a1', 3)).toBe(true);
      expect(revoked).toEqual(['account:a1']);
    });
  });

  describe('authenticating', () => {
    test('a raw API key is a credential, with or without expiry', async () => {
      const { mint, authenticate } = await start();
      const { key, record } = await mint({ scopes: ['write'], orgId: 'acme' });
      expect(must(await authenticate(key))).toEqual({
        principal: { subject: `key:${record.id}`, scopes: ['write'], orgId: 'acme' },
        expiresAtMs: Infinity,
      });
      const expiring = await mint({ expiresAtMs: START_MS + 1000 });
      expect(must(await authenticate(expiring.key)).expiresAtMs).toBe(START_MS + 1000);
    });

    test('a key chosen by the operator works even in the shape of a token', async () => {
      const { apiKeys, authenticate } = await start();
      const shaped = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJrZXk6MSJ9.c2lnbmF0dXJl';
      must(await bootstrapOf(apiKeys, shaped)());
      expect(must(await authenticate(shaped)).principal.scopes).toEqual(['admin']);
    });

    test('revoking a key ends its tokens at once', async () => {
      const { mint, issuer, authenticate, apiKeys, onRevoked } = await start();
      const { key, record } = await mint();
      const { token } = must(await issuer.exchange(key));
      const revoked: string[] = [];
      onRevoked((subject) => revoked.push(subject));
      must(await revokeApiKey(apiKeys, ADMIN, record.id));
      expect({ kindToken: kindOf(await authenticate(token)), kindKey: kindOf(await authenticate(key)) }).toEqual({
        kindToken: 'unauthenticated',
        kindKey: 'unauthenticated',
      });
      expect(revoked).toEqual([`key:${record.id}`]);
    });

    test.each(['key', 'account'] as const)(
      'a token of an %s revoked while its signature is verified is refused',
      async (kind) => {
        const { mint, issuer, apiKeys, tokens, revocations } = await start();
        const { key, record } = await mint();
        const { token } = must(await (kind === 'key' ? issuer.exchange(key) : issuer.mintForAccount(OWNER, 's1')));
        const verify = async (bearer: string) => {
          const verified = await tokens.verify(bearer);
          if (kind === 'key') must(await revokeApiKey(apiKeys, ADMIN, record.id));
          else revocations.revoke('account:a1', 4);
          return verified;
        };
        const { authenticate } = createAuthenticator({ apiKeys, revocations, tokens: { verify } });
        expect(faultOf(await authenticate(token))).toEqual({
          kind: 'unauthenticated',
          detail: 'the token was revoked; sign in again',
        });
      },
    );

    test('a token for a key unknown to this gateway is refused', async () => {
      const { tokens, authenticate } = await start();
      const common = { iat: START_SECS, exp: START_SECS + 60, jti: 'j', scope: 'admin' };
      const unknown = [
        { sub: 'key:unknown' },
        { sub: 'key:' },
        { sub: 'account:a1' },
        { sub: 'agent:x' },
        { sub: 'agent:x', epoch: 1 },
        { sub: '' },
        { sub: '', epoch: 1 },
      ];
      for (const claims of unknown)
        expect(
          kindOf(await authenticate(must(await tokens.sign({ ...common, ...claims })))),
          JSON.stringify(claims),
        ).toBe('unauthenticated');
    });

    test('a mistyped key is distinguished from an unknown one', async () => {
      const { mint, authenticate } = await start();
      const { key } = await mint();
      const { key: ofAnother } = await (await start()).mint();
      expect(faultOf(await authenticate(ofAnother))).toEqual({
        kind: 'unauthenticated',
        detail: 'the credential is unknown, revoked or expired',
      });
      expect(faultOf(await authenticate(key.slice(0, -1)))).toEqual({
        kind: 'unauthenticated',
        detail: 'the API key is incomplete or mistyped',
      });
      for (const bearer of ['', 'garbage', 'a.b', 'x'.repeat(4096)])
        expect(faultOf(await authenticate(bearer))).toEqual({
          kind: 'unauthenticated',
          detail: 'the credential is unknown, revoked or expired',
        });
      for (const length of [4097, 100_000])
        expect(faultOf(await authenticate('x'.repeat(length)))).toEqual({
          kind: 'unauthenticated',
          detail: 'the credential is too long to be valid',
        });
    });

    test("without the store, another gateway's key or token is not refused as wrong", async () => {
      const away = { kind: 'store_unreachable', retryAfterSecs: 2 } as const;
      const { mint, issuer: elsewhere, ...parts } = await start();
      const { key } = await mint();
      const { token } = must(await elsewhere.exchange(key));
      const store = { ...createEmbeddedApiKeyStore(temporaryStore()), changedWithin: async () => fail(away) };
      const deps = {
        ...parts,
        apiKeys: must(await ApiKeys.open({ ...parts, store, maxOrgKeys: 1, pauseBetweenLooks: async () => {} })),
      };
      const { authenticate } = createAuthenticator(deps);
      expect(
        [await authenticate(key), await authenticate(token), await createTokenIssuer(deps).exchange(key)].map(faultOf),
      ).toEqual([away, away, away]);
      expect(kindOf(await authenticate('x'.repeat(40)))).toBe('unauthenticated');
    });

    test('a full queue is not reported as a bad credential', async () => {
      const { apiKeys, revocations, clock, signingKeys: keys, issuer, mint } = await start();
      const { token } = must(await issuer.exchange((await mint()).key));
      const lane = new CryptoLane({
        what: 'token verification',
        threads: 0,
        maxQueue: 0,
        maxBatch: 1,
        timeoutMs: 1,
        whenLate: 'replace-thread',
        onError: () => {},
      });
      const tokens = createTokens({ lane, keys, clock, frame: FRAME });
      expect(faultOf(await createAuthenticator({ apiKeys, revocations, tokens }).authenticate(token))).toEqual({
        kind: 'overloaded',
        what: 'token verification',
        retryAfterSecs: 1,
      });
    });
  });

  describe('forged tokens', () => {
    async function forge() {
      const parts = await start();
      const { key, record } = await parts.mint();
      const { token } = must(await parts.issuer.exchange(key));
      const { kid, privateKeyPem } = parts.signingKeys.signer();
      const claims = part(token, 1);
      const header = { alg: 'EdDSA', typ: 'at+jwt', kid };
      const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
      const input = (changedHeader: object, changedClaims: object) =>
        `${encode({ ...header, ...changedHeader })}.${encode({ ...claims, ...changedClaims })}`;
      /** Signed with the gateway's own key, as an attacker cannot: what is left to refuse is what the token says. */
      const signed = (changedHeader: object, changedClaims: object = {}) => {
        const text = input(changedHeader, changedClaims);
        return `${text}.${sign(null, Buffer.from(text), createPrivateKey(privateKeyPem)).toString('base64url')}`;
      };
      return { ...parts, token, record, kid, input, signed, publicKeyPem: parts.signingKeys.verifier(kid) ?? '' };
    }

    test('the forger in these tests can make a valid one', async () => {
      const { authenticate, signed } = await forge();
      expect(kindOf(await authenticate(signed({})))).toBe('ok');
      expect(kindOf(await authenticate(signed({}, { iat: START_SECS + 5, nbf: START_SECS + 5 })))).toBe('ok'); // within the skew of clocks
    });

    test('accepts nothing but EdDSA and its own type, issuer, audience and time', async () => {
      const { authenticate, signed } = await forge();
      const changes: [object, object?][] = [
        [{ alg: 'none' }],
        [{ alg: 'HS256' }],
        [{ alg: 'ES256' }],
        [{ alg: 'eddsa' }],
        [{ alg: 'Ed25519' }],
        [{ alg: ['EdDSA'] }],
        [{ alg: null }],
        [{ typ: 'JWT' }],
        [{ typ: undefined }],
        [{ typ: ['at+jwt'] }],
        [{ crit: ['b64'], b64: false }],
        [{}, { iss: 'other' }],
        [{}, { iss: undefined }],
        [{}, { iss: ['svc-gateway'] }],
        [{}, { aud: 'other' }],
        [{}, { aud: undefined }],
        [{}, { aud: [] }],
        [{}, { exp: START_SECS }],
        [{}, { exp: START_SECS - 1 }],
        [{}, { exp: undefined }],
        [{}, { exp: '9999999999' }],
        [{}, { exp: null }],
        [{}, { nbf: START_SECS + 6 }],
        [{}, { nbf: 'soon' }],
        [{}, { iat: START_SECS + 6 }],
        [{}, { iat: undefined }],
        [{}, { sub: undefined }],
        [{}, { sub: 7 }],
        [{}, { jti: undefined }],
        [{}, { scope: undefined }],
        [{}, { scope: 'root' }],
        [{}, { scope: '' }],
        [{}, { scope: ['admin'] }],
        [{}, { org_id: '' }],
        [{}, { org_id: 7 }],
        [{}, { org_id: null }],
        [{}, { role: 'god' }],
        [{}, { scope: 'read root' }],
        [{}, { sub: 'account:a1', epoch: '9' }],
        [{}, { sub: 'account:a1', epoch: null }],
      ];
      for (const [header, claims] of changes) {
        expect(kindOf(await authenticate(signed(header, claims))), JSON.stringify([header, claims])).toBe(
          'unauthenticated',
        );
      }
    });

    test('a key id selects among the known keys and reaches nothing else', async () => {
      const { authenticate, signed } = await forge();
      for (const kid of [
        undefined,
        null,
        '',
        'unknown',
        '../../keys/signing.json',
        '/dev/null',
        '__proto__',
        'constructor',
        ['x'],
        { a: 1 },
        'x'.repeat(3000),
      ]) {
        expect(kindOf(await authenticate(signed({ kid }))), JSON.stringify(kid)).toBe('unauthenticated');
      }
    });

    test('refuses no signature, a foreign or changed one, and the public key as secret', async () => {
      const { authenticate, token, input, publicKeyPem, kid } = await forge();
      const text = input({}, {});
      const foreign = sign(null, Buffer.from(text), generateKeyPairSync('ed25519').privateKey).toString('base64url');
      const hmacInput = input({ alg: 'HS256' }, { scope: 'admin' });
      const hmacs = [publicKeyPem, publicKeyPem.trim(), kid].map(
        (secret) => `${hmacInput}.${createHmac('sha256', secret).update(hmacInput).digest('base64url')}`,
      );
      const [head = '', body = '', tail = ''] = token.split('.');
      const elevated = Buffer.from(JSON.stringify({ ...part(token, 1), sub: 'account:a1', epoch: 99 })).toString(
        'base64url',
      );
      const forged = [
        `${input({ alg: 'none' }, {})}.`,
        `${text}.`,
        `${text}.${foreign}`,
        ...hmacs,
        `${head}.${elevated}.${tail}`,
        `${head}.${body}`,
        `${head}.${body}.${tail}.${tail}`,
        `${head}.${body}.${tail.slice(0, -2)}`,
        `${token}=`,
        ` ${token}`,
        `${token}\n`,
        '..',
        'a.b.c',
      ];
      for (const bearer of forged) expect(kindOf(await authenticate(bearer)), bearer).toBe('unauthenticated');
      expect(kindOf(await authenticate(token))).toBe('ok');
    });

    test('ignores a jwk, a jku or an x5c in the header', async () => {
      const { authenticate, input, kid } = await forge();
      const { privateKey, publicKey } = generateKeyPairSync('ed25519');
      for (const header of [
        { kid, jwk: publicKey.export({ format: 'jwk' }) },
        { kid, jku: 'https://attacker.example/jwks.json' },
        { kid, x5c: ['MIIB'] },
      ]) {
        const text = input(header, {});
        expect(
          kindOf(await authenticate(`${text}.${sign(null, Buffer.from(text), privateKey).toString('base64url')}`)),
        ).toBe('unauthenticated');
      }
    });
  });

  test('tokens of the previous key verify for a day after a rotation and no longer', async () => {
    const { mint, issuer, authenticate, signingKeys, clock } = await start();
    const { key } = await mint();
    const before = must(await issuer.exchange(key));
    must(await signingKeys.rotate());
    const after = must(await issuer.exchange(key));
    expect(part(after.token, 0)['kid']).not.toBe(part(before.token, 0)['kid']);
    expect({
      before: kindOf(await authenticate(before.token)),
      after: kindOf(await authenticate(after.token)),
    }).toEqual({ before: 'ok', after: 'ok' });
    expect(
      signingKeys
        .jwks()
        .keys.map(({ kid }) => kid)
        .sort(),
    ).toEqual([part(before.token, 0)['kid'], part(after.token, 0)['kid']].sort());
    clock.advance(DAY_SECS * 1000 + 5000);
    expect(signingKeys.jwks().keys.map(({ kid }) => kid)).toEqual([part(after.token, 0)['kid']]);
  });
});
