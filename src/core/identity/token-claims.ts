import { isRole, isScope, type Role, type Scope } from './roles.ts';

/** The claims as they are in the token; times in Unix seconds. */
export type TokenClaims = {
  readonly iss: string;
  readonly aud: string;
  /** `key:<id>` or `account:<id>`. */
  readonly sub: string;
  readonly iat: number;
  readonly exp: number;
  readonly jti: string;
  /** Separated by spaces. */
  readonly scope: string;
  /** Absent: bound to no org. */
  readonly org_id?: string;
  /** Only accounts have these; for `epoch` see `tokenEpoch` of an account. */
  readonly role?: Role;
  readonly epoch?: number;
  /** Only accounts have it: the session with which the token ends. */
  readonly sid?: string;
};

/** A token whose claims are well formed and that is valid at this time. */
export type CurrentToken = {
  readonly subject: string;
  readonly scopes: readonly Scope[];
  readonly orgId: string | null;
  readonly expiresAtMs: number;
  readonly role: Role | undefined;
  readonly epoch: number | undefined;
  readonly sessionId: string | undefined;
};

/** How far the clock of a token's issuer may be ahead. An expired token gets no such grace. */
export const CLOCK_SKEW_MS = 5000;

/** How long a token minted from an API key is valid (docs/spec.md, Limits). */
export const KEY_TOKEN_SECS = 24 * 60 * 60;

/**
 * A good signature does not make claims current or of this version, so each one is validated. Undefined when one is
 * not.
 */
export function readClaims(claims: object, nowMs: number): CurrentToken | undefined {
  const {
    sub,
    iat,
    nbf,
    exp,
    jti,
    scope,
    org_id: orgId,
    role,
    epoch,
    sid,
  } = claims as Readonly<Record<string, unknown>>;
  if (typeof sub !== 'string' || typeof jti !== 'string' || typeof scope !== 'string') return undefined;
  if (typeof iat !== 'number' || typeof exp !== 'number') return undefined;
  if (orgId !== undefined && (typeof orgId !== 'string' || orgId === '')) return undefined;
  if (role !== undefined && (typeof role !== 'string' || !isRole(role))) return undefined;
  if (epoch !== undefined && typeof epoch !== 'number') return undefined;
  if (sid !== undefined && typeof sid !== 'string') return undefined;
  if (nbf !== undefined && (typeof nbf !== 'number' || nowMs < nbf * 1000 - CLOCK_SKEW_MS)) return undefined;
  if (!(nowMs < exp * 1000) || !(nowMs >= iat * 1000 - CLOCK_SKEW_MS)) return undefined;
  const scopes = scope.split(' ');
  if (!scopes.every(isScope)) return undefined;
  return { subject: sub, scopes, orgId: orgId ?? null, expiresAtMs: exp * 1000, role, epoch, sessionId: sid };
}
