/** The rights of roles and scopes, as far as they decide about the pages. */
import type { Account, Scope } from '../base/api-types.ts';

export type Role = Account['role'];

/** From the most powerful on. */
export const ROLES: readonly Role[] = ['owner', 'admin', 'developer', 'viewer'];

const IMPLIED: Readonly<Record<Scope, readonly Scope[]>> = {
  read: ['read', 'write', 'admin'],
  write: ['write', 'admin'],
  admin: ['admin'],
};

export const SCOPES: readonly Scope[] = ['read', 'write', 'admin'];

export const SCOPES_OF_ROLE: Readonly<Record<Role, readonly Scope[]>> = {
  owner: ['read', 'write', 'admin'],
  admin: ['read', 'write', 'admin'],
  developer: ['read', 'write'],
  viewer: ['read'],
};

/** A scope implies those below it. */
export const impliesScope = (held: readonly Scope[], wanted: Scope): boolean =>
  IMPLIED[wanted].some((each) => held.includes(each));
