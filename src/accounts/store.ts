/** The relational store as the account use cases see it. Rows in, rows out; every rule is in the use cases. */

import type { SecretDigest } from '../core/base/ids.ts';
import type { Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { Account, AccountId, Lockout } from '../core/identity/account.ts';
import type { EmailAddress, EmailKey } from '../core/identity/email.ts';
import type { Role } from '../core/identity/roles.ts';

export type StoredAccount = Account & {
  /** argon2id in PHC form. */
  readonly passwordHash: string;
  /** Grows with every new account: its place in the list of all accounts. */
  readonly sequence: number;
};

/** A sign-in and the refresh tokens that descend from it. `id` is public: the audit log has it. */
export type Session = {
  readonly id: string;
  readonly accountId: AccountId;
  readonly rememberMe: boolean;
  readonly createdAtMs: number;
  readonly revokedAtMs: number | null;
};

export type RefreshToken = {
  readonly digest: SecretDigest;
  readonly session: Session;
  readonly expiresAtMs: number;
  /** When it was exchanged for its successor. */
  readonly rotatedAtMs: number | null;
};

export type Invite = {
  readonly digest: SecretDigest;
  readonly email: EmailAddress;
  readonly role: Role;
  readonly orgId: string | null;
  readonly invitedBy: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  readonly usedAtMs: number | null;
};

/** `id` is public and random. The digest never leaves the store. */
export type StoredInvite = Invite & {
  readonly id: string;
  /** Grows with every new invite: its place in the list of all invites. */
  readonly sequence: number;
  /**
   * Kept separately rather than as an earlier expiry: a gateway whose clock is behind would still accept the invite.
   */
  readonly revokedAtMs: number | null;
};

export type PasswordReset = {
  readonly digest: SecretDigest;
  readonly accountId: AccountId;
  /** Who hands it over; null: it was sent by mail. */
  readonly issuedBy: string | null;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
};

export type NewAccount = Omit<StoredAccount, 'sequence'>;
export type AccountChange = Partial<
  Pick<StoredAccount, 'role' | 'disabled' | 'passwordHash' | 'lastLoginAtMs' | 'tokenEpoch'>
>;
export type AccountListing = { readonly orgId: string | null; readonly afterSequence: number; readonly limit: number };
/** `without`: addresses, as written in the invites, that are left out. */
export type InviteListing = AccountListing & { readonly without: readonly EmailAddress[] };

export type AccountReads = {
  hasAccounts(): Promise<boolean>;
  accountByEmail(key: EmailKey): Promise<StoredAccount | undefined>;
  accountById(id: AccountId): Promise<StoredAccount | undefined>;
  /** A secret of the store, the same for all gateways on it; made when it is first asked for. */
  decoySecret(): Promise<string>;
  /** Returns the keys that belong to an account of this org or, if it is null, of any. */
  usedEmails(keys: readonly EmailKey[], orgId: string | null): Promise<ReadonlySet<EmailKey>>;
  /** In order of creation. `orgId` null lists every account. */
  accounts(listing: AccountListing): Promise<readonly StoredAccount[]>;
  /**
   * Accounts whose epoch grew in the last `ms` by the store's own clock, because those of the gateways that share it
   * may differ.
   */
  accountsRevokedWithin(ms: number): Promise<readonly Pick<Account, 'id' | 'tokenEpoch'>[]>;
  /** Sessions that were ended in the last `ms`, likewise. */
  sessionsEndedWithin(ms: number): Promise<readonly Pick<Session, 'id' | 'accountId'>[]>;
  /**
   * Beside the lockout, the password hash of the first account whose id is not before `place`, or of the first of all;
   * undefined where there is none.
   */
  signInState(
    attempts: SecretDigest,
    place: string,
  ): Promise<{ readonly lockout: Lockout; readonly hashNear: string | undefined }>;
  /** Returns the end of each lock that is in force at that time. */
  locks(attempts: readonly SecretDigest[], nowMs: number): Promise<ReadonlyMap<SecretDigest, number>>;
  invite(digest: SecretDigest): Promise<StoredInvite | undefined>;
  inviteById(id: string): Promise<StoredInvite | undefined>;
  /** Neither used, revoked nor expired, in order of creation. `orgId` null lists those of every org. */
  openInvites(listing: InviteListing, nowMs: number): Promise<readonly StoredInvite[]>;
  passwordReset(digest: SecretDigest): Promise<PasswordReset | undefined>;
  refreshToken(digest: SecretDigest): Promise<RefreshToken | undefined>;
};

/** A transaction. A method named `lock…` reads the row and keeps it from every other transaction until the end. */
export type AccountTransaction = AccountReads & {
  /** Lets one transaction at a time decide who is first, or the last owner. */
  lockRoles(): Promise<void>;
  activeOwners(): Promise<number>;
  lockAccount(id: AccountId): Promise<StoredAccount | undefined>;
  /** `undefined` when another account has the address. */
  insertAccount(account: NewAccount): Promise<StoredAccount | undefined>;
  /** A changed `tokenEpoch` also notes when, for `accountsRevokedWithin`. */
  changeAccount(id: AccountId, change: AccountChange): Promise<void>;
  lockLockout(attempts: SecretDigest, nowMs: number): Promise<Lockout>;
  saveLockout(attempts: SecretDigest, lockout: Lockout, nowMs: number): Promise<void>;
  insertSession(session: Session): Promise<void>;
  insertRefreshToken(token: Omit<RefreshToken, 'session' | 'rotatedAtMs'>, sessionId: string): Promise<void>;
  /** Locks the whole session, so that two uses of one cookie come one after the other. */
  lockRefreshToken(digest: SecretDigest): Promise<RefreshToken | undefined>;
  rotateRefreshToken(digest: SecretDigest, nowMs: number): Promise<void>;
  revokeSession(sessionId: string, nowMs: number): Promise<void>;
  /** Returns how many were still in force. */
  revokeSessionsOf(accountId: AccountId, nowMs: number): Promise<number>;
  insertInvite(invite: Invite): Promise<void>;
  lockInvite(digest: SecretDigest): Promise<StoredInvite | undefined>;
  useInvite(digest: SecretDigest, nowMs: number): Promise<void>;
  lockInviteById(id: string): Promise<StoredInvite | undefined>;
  revokeInvite(id: string, nowMs: number): Promise<void>;
  insertPasswordReset(reset: PasswordReset): Promise<void>;
  countPasswordResets(accountId: AccountId, nowMs: number): Promise<number>;
  deletePasswordResets(accountId: AccountId): Promise<void>;
  /** Deletes a part of the rows that ended long ago. True when there may be more of them. */
  prune(nowMs: number): Promise<boolean>;
};

export type AccountStore = {
  /** Fault: `store_unreachable`. */
  read<T>(work: (reads: AccountReads) => Promise<T>): Promise<Result<T, Fault>>;
  /** Commits what `work` did when it resolves with a value, undoes it when it resolves with a fault or rejects. */
  transact<T>(work: (transaction: AccountTransaction) => Promise<Result<T, Fault>>): Promise<Result<T, Fault>>;
};
