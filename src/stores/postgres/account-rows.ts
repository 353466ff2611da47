/** How the rows of the account tables read as values of the core. */

import type { PasswordReset, RefreshToken, StoredAccount, StoredInvite } from '../../accounts/store.ts';
import type { SecretDigest } from '../../core/base/ids.ts';
import type { AccountId } from '../../core/identity/account.ts';
import type { EmailAddress } from '../../core/identity/email.ts';
import type { Role } from '../../core/identity/roles.ts';

/** Rows hold times as Date objects, the core as milliseconds since the Unix epoch. */
export const msOrNull = (time: Date | null): number | null => time?.getTime() ?? null;
export const dateOf = (ms: number | null): Date | null => (ms === null ? null : new Date(ms));

export const ACCOUNT_COLUMNS =
  'id, sequence, email, password_hash, role, org_id, disabled, token_epoch, created_at, last_login_at';

export type AccountRow = {
  readonly id: string;
  readonly sequence: string;
  readonly email: string;
  readonly password_hash: string;
  readonly role: string;
  readonly org_id: string | null;
  readonly disabled: boolean;
  readonly token_epoch: number;
  readonly created_at: Date;
  readonly last_login_at: Date | null;
};

export const accountOf = (row: AccountRow): StoredAccount => ({
  id: row.id as AccountId,
  sequence: Number(row.sequence), // the driver keeps 64-bit numbers as text; this one counts people
  email: row.email as EmailAddress,
  passwordHash: row.password_hash,
  role: row.role as Role,
  orgId: row.org_id,
  disabled: row.disabled,
  tokenEpoch: row.token_epoch,
  createdAtMs: row.created_at.getTime(),
  lastLoginAtMs: msOrNull(row.last_login_at),
});

export const INVITE_COLUMNS =
  'id, sequence, digest, email, role, org_id, invited_by, created_at, expires_at, used_at, revoked_at';

export type InviteRow = {
  readonly id: string;
  readonly sequence: string;
  readonly digest: string;
  readonly email: string;
  readonly role: string;
  readonly org_id: string | null;
  readonly invited_by: string;
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly used_at: Date | null;
  readonly revoked_at: Date | null;
};

export const inviteOf = (row: InviteRow): StoredInvite => ({
  id: row.id,
  sequence: Number(row.sequence),
  digest: row.digest as SecretDigest,
  email: row.email as EmailAddress,
  role: row.role as Role,
  orgId: row.org_id,
  invitedBy: row.invited_by,
  createdAtMs: row.created_at.getTime(),
  expiresAtMs: row.expires_at.getTime(),
  usedAtMs: msOrNull(row.used_at),
  revokedAtMs: msOrNull(row.revoked_at),
});

export const RESET_COLUMNS = 'digest, account_id, created_at, expires_at, issued_by';

export type ResetRow = {
  readonly digest: string;
  readonly account_id: string;
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly issued_by: string | null;
};

export const resetOf = (row: ResetRow): PasswordReset => ({
  digest: row.digest as SecretDigest,
  accountId: row.account_id as AccountId,
  createdAtMs: row.created_at.getTime(),
  expiresAtMs: row.expires_at.getTime(),
  issuedBy: row.issued_by,
});

/** A refresh token beside the session it belongs to; `t` and `s` in every query that selects them. */
export const REFRESH_COLUMNS =
  't.digest, t.expires_at, t.rotated_at, s.id AS session_id, s.account_id, s.remember_me, s.created_at, s.revoked_at';

export type RefreshRow = {
  readonly digest: string;
  readonly expires_at: Date;
  readonly rotated_at: Date | null;
  readonly session_id: string;
  readonly account_id: string;
  readonly remember_me: boolean;
  readonly created_at: Date;
  readonly revoked_at: Date | null;
};

export const refreshTokenOf = (row: RefreshRow): RefreshToken => ({
  digest: row.digest as SecretDigest,
  expiresAtMs: row.expires_at.getTime(),
  rotatedAtMs: msOrNull(row.rotated_at),
  session: {
    id: row.session_id,
    accountId: row.account_id as AccountId,
    rememberMe: row.remember_me,
    createdAtMs: row.created_at.getTime(),
    revokedAtMs: msOrNull(row.revoked_at),
  },
});
