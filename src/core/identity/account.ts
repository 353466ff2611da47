/** The people who sign in (docs/spec.md, Accounts). */

import type { Brand } from '../base/ids.ts';
import type { EmailAddress } from './email.ts';
import { ROLES, type Role } from './roles.ts';

/** Account lockout as a table of two states (docs/spec.md, Lockout). */

export const LOCKOUT = { failures: 5, lockMs: 15 * 60 * 1000 } as const;

/** `lockedUntilMs` is null while unlocked. Failures are counted for every address, whether or not it has an account. */
export type Lockout = { readonly failures: number; readonly lockedUntilMs: number | null };

export const NO_FAILURES: Lockout = { failures: 0, lockedUntilMs: null };

/** Whole seconds until the lock ends, at least 1; undefined when it is not locked at that time. */
export function lockedForSecs(lockout: Lockout, nowMs: number): number | undefined {
  if (lockout.lockedUntilMs === null || lockout.lockedUntilMs <= nowMs) return undefined;
  return Math.ceil((lockout.lockedUntilMs - nowMs) / 1000);
}

/**
 * A failure while locked changes nothing, so further attempts do not prolong the lock. After a lock the count starts
 * again at one.
 */
export function afterFailure(lockout: Lockout, nowMs: number): Lockout {
  if (lockedForSecs(lockout, nowMs) !== undefined) return lockout;
  const failures = (lockout.lockedUntilMs === null ? lockout.failures : 0) + 1;
  return { failures, lockedUntilMs: failures >= LOCKOUT.failures ? nowMs + LOCKOUT.lockMs : null };
}

/**
 * Counters of failed attempts; `device` is undefined unless the attempt comes from a device that has signed in before.
 */
export type Lockouts = { readonly account: Lockout; readonly device: Lockout | undefined };

/** As `lockedForSecs`. Only its own failures lock out a device that is known: anybody could lock out the owner. */
export function lockedOutForSecs({ account, device }: Lockouts, nowMs: number): number | undefined {
  const accountSecs = lockedForSecs(account, nowMs);
  if (accountSecs === undefined || device === undefined) return accountSecs;
  const deviceSecs = lockedForSecs(device, nowMs);
  return deviceSecs && Math.min(accountSecs, deviceSecs);
}

export type AccountId = Brand<string, 'AccountId'>;

export type Account = {
  readonly id: AccountId;
  /** As its owner wrote it; two accounts never share its `emailKeyOf`. */
  readonly email: EmailAddress;
  readonly role: Role;
  /** The only org that the account sees; null: it sees every org. */
  readonly orgId: string | null;
  readonly disabled: boolean;
  /** Grows by one whenever every token minted so far must stop working. */
  readonly tokenEpoch: number;
  readonly createdAtMs: number;
  readonly lastLoginAtMs: number | null;
};

/** The `sub` of an account's tokens and the actor of its audit entries. */
export const subjectOf = (id: AccountId): string => `account:${id}`;

export const accountIdOf = (subject: string): AccountId | undefined =>
  subject.startsWith('account:') ? (subject.slice('account:'.length) as AccountId) : undefined;

/** The text as an account id; undefined when it does not have the form of one. */
export const parseAccountId = (text: string): AccountId | undefined => (isUuid(text) ? (text as AccountId) : undefined);

/** Account ids and invite ids have this form. */
export const isUuid = (text: string): boolean => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(text);

/** Lower means more power: ROLES begins with the most powerful role. */
const rankOf = (role: Role): number => ROLES.indexOf(role);

/**
 * Whether the holder of `own` may give the role to somebody, or take it away. An account may do so up to its own role.
 * A credential without a role (an API key with admin scope) holds every scope but is not an owner, so it may do so up
 * to admin.
 */
export const mayManageRole = (own: Role | undefined, role: Role): boolean => rankOf(own ?? 'admin') <= rankOf(role);

/** How long access tokens, refresh tokens, invites and password resets are valid (docs/spec.md, Limits). */
export const ACCESS_TOKEN_SECS = 15 * 60;
const HOUR_MS = 60 * 60 * 1000;
const REFRESH_MS = 12 * HOUR_MS;
const REMEMBERED_REFRESH_MS = 30 * 24 * HOUR_MS;
export const INVITE_MS = 7 * 24 * HOUR_MS;
export const RESET_MS = HOUR_MS;

/** Each rotation starts a new lifetime, so a session ends this long after its last use. */
export const refreshLifetimeMs = (rememberMe: boolean): number => (rememberMe ? REMEMBERED_REFRESH_MS : REFRESH_MS);
