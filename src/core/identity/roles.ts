export const SCOPES = ['read', 'write', 'admin'] as const;

// each implies the ones before it
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

/** True when the principal may know that anything of this org exists; null: of what is bound to no org. */
export const seesOrg = (principal: Principal, orgId: string | null): boolean =>
  principal.orgId === null || principal.orgId === orgId;

export const isScope = (text: string): text is Scope => (SCOPES as readonly string[]).includes(text);

export const isRole = (text: string): text is Role => (ROLES as readonly string[]).includes(text);
