import { ok, type Result } from '../core/base/result.ts';
import { type Fault, unauthenticated } from '../core/fault.ts';
import { accountIdOf } from '../core/identity/account.ts';
import { type ApiKey, keyIdOf, keySubject, looksLikeApiKey, parseApiKey } from '../core/identity/api-key.ts';
import type { CurrentToken } from '../core/identity/token-claims.ts';
import type { Authenticated } from '../ports/use-case.ts';
import type { ApiKeys } from './api-keys.ts';
import type { RevocationList } from './revocations.ts';
import { digestOf } from './secret-token.ts';
import type { Tokens } from './tokens.ts';

export type AuthenticatorDeps = {
  readonly apiKeys: ApiKeys;
  readonly tokens: Pick<Tokens, 'verify'>;
  readonly revocations: RevocationList;
};

export type Authenticator = {
  /**
   * Who presents this bearer: a raw API key or an access token. Faults: `unauthenticated`, `overloaded`, `internal`.
   */
  authenticate(bearer: string): Promise<Result<Authenticated, Fault>>;
  /**
   * `listener` is called at once when the credentials of a subject end early, so that caches drop it and its streams
   * close.
   */
  onRevoked(listener: (subject: string) => void): void;
};

/** Longer than any credential that the gateway issues or accepts. In characters. */
const MAX_BEARER_LENGTH = 4096;

export function createAuthenticator({ apiKeys, tokens, revocations }: AuthenticatorDeps): Authenticator {
  return {
    authenticate: async (bearer) => {
      if (bearer.length > MAX_BEARER_LENGTH) return unauthenticated('the credential is too long to be valid');
      const looked = await apiKeys.lookFor(parseApiKey(bearer)?.id);
      if (!looked.ok) return looked;
      // Keys first: a key that the operator chose may have any shape, also that of a token.
      const key = apiKeys.authenticate(digestOf(bearer));
      if (key !== undefined) return ok(ofKey(key));
      if (bearer.split('.').length !== 3) return unauthenticated(problemOf(bearer));
      const token = await tokens.verify(bearer);
      if (!token.ok) return token;
      const itsKeyLooked = await apiKeys.lookFor(keyIdOf(token.value.subject));
      if (!itsKeyLooked.ok) return itsKeyLooked;
      // Checked after the waits and in the same turn as the answer, so that a revocation in between is not missed.
      return isInForce(token.value)
        ? ok(ofToken(token.value))
        : unauthenticated('the token was revoked; sign in again');
    },
    onRevoked: (listener) => {
      apiKeys.onRevoked(listener);
      revocations.onRevoked(listener);
    },
  };

  function isInForce({ subject, epoch, sessionId }: CurrentToken): boolean {
    const keyId = keyIdOf(subject);
    if (keyId !== undefined) return apiKeys.authenticateId(keyId) !== undefined;
    if (sessionId !== undefined && revocations.isSessionEnded(sessionId)) return false;
    return accountIdOf(subject) !== undefined && epoch !== undefined && !revocations.isRevoked(subject, epoch);
  }
}

function problemOf(bearer: string): string {
  if (looksLikeApiKey(bearer) && parseApiKey(bearer) === undefined) return 'the API key is incomplete or mistyped';
  return 'the credential is unknown, revoked or expired';
}

const ofKey = (key: ApiKey): Authenticated => ({
  principal: { subject: keySubject(key.id), scopes: key.scopes, orgId: key.orgId },
  expiresAtMs: key.expiresAtMs ?? Infinity,
});

const ofToken = ({ subject, scopes, orgId, role, expiresAtMs }: CurrentToken): Authenticated => ({
  principal: { subject, scopes, orgId, ...(role === undefined ? {} : { role }) },
  expiresAtMs,
});
