import { randomBytes } from 'node:crypto';
import { lineageOfOrg } from '../core/audit/audit.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import { type Fault, invalid } from '../core/fault.ts';
import { ACCESS_TOKEN_SECS, subjectOf } from '../core/identity/account.ts';
import { type ApiKey, keySubject, parseApiKey } from '../core/identity/api-key.ts';
import { holds, SCOPES, SCOPES_OF_ROLE, type Scope } from '../core/identity/roles.ts';
import { type CurrentToken, KEY_TOKEN_SECS, type TokenClaims } from '../core/identity/token-claims.ts';
import type { AccessToken, AccessTokens, AuditLog, Clock } from '../ports/ports.ts';
import type { ApiKeys } from './api-keys.ts';
import { digestOf } from './secret-token.ts';

/** Signatures, on the crypto threads. Faults: `overloaded`, `internal`. */
export type Tokens = {
  /** The issuer and audience are added. */
  sign(claims: Omit<TokenClaims, 'iss' | 'aud'>): Promise<Result<string, Fault>>;
  /**
   * Faults: `unauthenticated` for a token that is not this gateway's, malformed or not valid now. Does not check
   * revocation.
   */
  verify(token: string): Promise<Result<CurrentToken, Fault>>;
};

export type TokenIssuerDeps = {
  readonly apiKeys: ApiKeys;
  readonly tokens: Tokens;
  readonly audit: AuditLog;
  readonly clock: Clock;
};

export type TokenIssuer = AccessTokens & {
  /**
   * POST /api/v1/auth/token (docs/spec.md, Tokens and scopes). Without `scopes`, all that the key holds. Faults:
   * `unauthenticated` for anything but a usable API key, a token included; `insufficient_scope`; `invalid_argument`.
   */
  exchange(bearer: string, scopes?: readonly Scope[]): Promise<Result<AccessToken, Fault>>;
};

const TOKEN_ID_BYTES = 16;

export function createTokenIssuer(deps: TokenIssuerDeps): TokenIssuer {
  const { apiKeys, clock } = deps;

  const mint = async (
    expiresAtSecs: number,
    scopes: readonly Scope[],
    claims: Pick<TokenClaims, 'sub' | 'org_id' | 'role' | 'epoch' | 'sid'>,
    jti: string,
  ) => {
    const iat = Math.floor(clock.nowMs() / 1000);
    const signed = await deps.tokens.sign({ ...claims, iat, exp: expiresAtSecs, jti, scope: scopes.join(' ') });
    return signed.ok ? ok({ token: signed.value, expiresAtSecs, scopes } satisfies AccessToken) : signed;
  };
  const newTokenId = () => randomBytes(TOKEN_ID_BYTES).toString('base64url');

  return {
    exchange: async (bearer, scopes) => {
      const looked = await apiKeys.lookFor(parseApiKey(bearer)?.id);
      if (!looked.ok) return looked;
      const key = apiKeys.authenticate(digestOf(bearer));
      if (key === undefined)
        return fail({
          kind: 'unauthenticated',
          detail: 'this is not a valid API key, and only an API key can be exchanged for a token',
        });
      const granted = grantedScopes(key, scopes);
      if (!granted.ok) return granted;
      const jti = newTokenId();
      const expiresAtSecs = Math.floor(
        Math.min(clock.nowMs() + KEY_TOKEN_SECS * 1000, key.expiresAtMs ?? Infinity) / 1000,
      );
      const recorded = await deps.audit.record({
        eventType: 'TokenIssued',
        lineage: lineageOfOrg(key.orgId),
        actor: keySubject(key.id),
        payload: { token_id: jti, scopes: granted.value, expires_at: new Date(expiresAtSecs * 1000).toISOString() },
      });
      if (!recorded.ok) return recorded;
      return mint(expiresAtSecs, granted.value, { sub: keySubject(key.id), ...boundTo(key.orgId) }, jti);
    },
    mintForAccount: ({ id, role, orgId, tokenEpoch }, sessionId) => {
      const expiresAtSecs = Math.floor(clock.nowMs() / 1000) + ACCESS_TOKEN_SECS;
      return mint(
        expiresAtSecs,
        SCOPES_OF_ROLE[role],
        { sub: subjectOf(id), role, epoch: tokenEpoch, sid: sessionId, ...boundTo(orgId) },
        newTokenId(),
      );
    },
  };
}

const boundTo = (orgId: string | null) => (orgId === null ? {} : { org_id: orgId });

function grantedScopes(key: ApiKey, asked: readonly Scope[] | undefined): Result<readonly Scope[], Fault> {
  if (asked === undefined) return ok(key.scopes);
  if (asked.length === 0) return invalid('scopes', 'must name at least one scope, or be omitted');
  const lacking = asked.find((scope) => !holds(key.scopes, scope));
  if (lacking !== undefined) return fail({ kind: 'insufficient_scope', needed: lacking, held: key.scopes });
  return ok(SCOPES.filter((scope) => asked.includes(scope)));
}
