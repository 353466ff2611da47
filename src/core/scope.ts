/** Who is asking, and what that allows (contract: Tokens and scopes). */
import type { Fault } from './fault.ts';
import { fail, ok, type Result } from './result.ts';

export const SCOPES = ['read', 'write', 'admin'] as const; // each implies the ones before it
export type Scope = (typeof SCOPES)[number];

export const ROLES = ['owner', 'admin', 'developer', 'viewer'] as const;
export type Role = (typeof ROLES)[number];

export const SCOPES_OF_ROLE: Readonly<Record<Role, readonly Scope[]>> = {
  owner: ['read', 'write', 'admin'],
  admin: ['read', 'write', 'admin'],
  developer: ['read', 'write'],
  viewer: ['read'],
};

/** An authenticated credential: an API key, or a token minted from a key or an account. */
export type Principal = {
  /** `key:<id>` or `account:<id>`; the actor of audit entries. */
  readonly subject: string;
  readonly scopes: readonly Scope[];
  /** The only org that the credential sees; null: it sees every org. */
  readonly orgId: string | null;
  /** The role of an account; absent for keys. */
  readonly role?: Role;
};

/** Whether the scopes include the needed one, or one that implies it. */
export function holds(scopes: readonly Scope[], needed: Scope): boolean {
  const rank = SCOPES.indexOf(needed);
  return scopes.some((scope) => SCOPES.indexOf(scope) >= rank);
}

/** The refusal of a principal that does not hold the scope; undefined where it does. */
export const refuseWithout = (
  needed: Scope,
  { scopes }: Pick<Principal, 'scopes'>,
): Result<never, Fault> | undefined =>
  holds(scopes, needed) ? undefined : fail({ kind: 'insufficient_scope', needed, held: scopes });

/**
 * The refusal of a principal that is not an admin of all orgs, for what concerns every org; undefined where it is one.
 */
export const refuseUnlessAdminOfAll = (principal: Principal): Result<never, Fault> | undefined =>
  refuseWithout('admin', principal) ??
  (principal.orgId === null ? undefined : fail({ kind: 'org_forbidden', orgId: undefined }));

/** True when the principal may know that anything of this org exists; null: of what is bound to no org. */
export const seesOrg = (principal: Principal, orgId: string | null): boolean =>
  principal.orgId === null || principal.orgId === orgId;

export const isScope = (text: string): text is Scope => (SCOPES as readonly string[]).includes(text);
export const isRole = (text: string): text is Role => (ROLES as readonly string[]).includes(text);

/**
 * The org a listing is about: the one asked for, else the one the credential is bound to, else every org (undefined).
 * Fault: `org_forbidden`.
 */
export function orgInReach(principal: Principal, orgId: string | undefined): Result<string | undefined, Fault> {
  if (orgId === undefined) return ok(principal.orgId ?? undefined);
  return seesOrg(principal, orgId) ? ok(orgId) : fail({ kind: 'org_forbidden', orgId });
}
