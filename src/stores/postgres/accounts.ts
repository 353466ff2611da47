/** The account store on PostgreSQL: one statement per method. */

import type { AccountReads, AccountStore, AccountTransaction } from '../../accounts/store.ts';
import type { SecretDigest } from '../../core/base/ids.ts';
import { assert } from '../../core/base/result.ts';
import {
  type AccountId,
  INVITE_MS,
  LOCKOUT,
  type Lockout,
  NO_FAILURES,
  RESET_MS,
} from '../../core/identity/account.ts';
import { type EmailKey, emailKeyOf } from '../../core/identity/email.ts';
import {
  ACCOUNT_COLUMNS,
  type AccountRow,
  accountOf,
  dateOf,
  INVITE_COLUMNS,
  type InviteRow,
  inviteOf,
  REFRESH_COLUMNS,
  RESET_COLUMNS,
  refreshTokenOf,
  resetOf,
} from './account-rows.ts';
import type { Postgres } from './postgres.ts';
import type { Queryable } from './queryable.ts';

/** Any numbers that no other advisory lock of the gateway has. */
const ROLES_LOCK = 7_201_554_311;
const PRUNE_LOCK = 7_201_554_313;

export function createPostgresAccountStore(postgres: Postgres): AccountStore {
  return {
    read: (work) => postgres.attempt((queryable) => work(readsOn(queryable))),
    transact: (work) => postgres.transact((queryable) => work(transactionOn(queryable))),
  };
}

type LockoutRow = { readonly failures: number; readonly locked_until: Date | null };
const lockoutOf = (row: LockoutRow | undefined): Lockout =>
  row === undefined ? NO_FAILURES : { failures: row.failures, lockedUntilMs: row.locked_until?.getTime() ?? null };

/** The first row as a value, or undefined. */
async function first<Row extends object, T>(
  queryable: Queryable,
  read: (row: Row) => T,
  text: string,
  values: readonly unknown[],
): Promise<T | undefined> {
  const {
    rows: [row],
  } = await queryable.query<Row>(text, values);
  return row === undefined ? undefined : read(row);
}

function readsOn(on: Queryable): AccountReads {
  return {
    hasAccounts: async () => (await on.query('SELECT 1 FROM accounts LIMIT 1')).rowCount > 0,
    accountByEmail: (key) =>
      first(on, accountOf, `SELECT ${ACCOUNT_COLUMNS} FROM accounts WHERE email_key = $1`, [key]),
    accountById: (id) => first(on, accountOf, `SELECT ${ACCOUNT_COLUMNS} FROM accounts WHERE id = $1`, [id]),
    decoySecret: async () => {
      await on.query(
        `INSERT INTO secrets (name, value) VALUES ('decoys', gen_random_uuid()::text || gen_random_uuid()::text) ON CONFLICT DO NOTHING`,
      );
      const {
        rows: [row],
      } = await on.query<{ value: string }>(`SELECT value FROM secrets WHERE name = 'decoys'`);
      assert(row !== undefined, 'what was inserted is there');
      return row.value;
    },
    usedEmails: async (keys, orgId) => {
      const { rows } = await on.query<{ email_key: string }>(
        'SELECT email_key FROM accounts WHERE email_key = ANY ($1) AND ($2::text IS NULL OR org_id = $2)',
        [keys, orgId],
      );
      return new Set(rows.map((row) => row.email_key as EmailKey));
    },
    accounts: async ({ orgId, afterSequence, limit }) => {
      const { rows } = await on.query<AccountRow>(
        `SELECT ${ACCOUNT_COLUMNS} FROM accounts
          WHERE sequence > $1 AND ($2::text IS NULL OR org_id = $2) ORDER BY sequence LIMIT $3`,
        [afterSequence, orgId, limit],
      );
      return rows.map(accountOf);
    },
    accountsRevokedWithin: async (ms) => {
      const { rows } = await on.query<{ id: string; token_epoch: number }>(
        `SELECT id, token_epoch FROM accounts WHERE tokens_revoked_at >= now() - $1 * interval '1 millisecond'`,
        [ms],
      );
      return rows.map((row) => ({ id: row.id as AccountId, tokenEpoch: row.token_epoch }));
    },
    sessionsEndedWithin: async (ms) => {
      const { rows } = await on.query<{ id: string; account_id: string }>(
        `SELECT id, account_id FROM sessions WHERE revoked_at >= now() - $1 * interval '1 millisecond'`,
        [ms],
      );
      return rows.map((row) => ({ id: row.id, accountId: row.account_id as AccountId }));
    },
    signInState: async (attempts, place) => {
      const {
        rows: [row],
      } = await on.query<LockoutRow & { readonly hash_near: string | null }>(
        `SELECT coalesce(f.failures, 0) AS failures, f.locked_until, coalesce(
           (SELECT password_hash FROM accounts WHERE id >= $2 ORDER BY id LIMIT 1),
           (SELECT password_hash FROM accounts ORDER BY id LIMIT 1)) AS hash_near
          FROM (VALUES (1)) AS one LEFT JOIN sign_in_failures f ON f.attempts_digest = $1`,
        [attempts, place],
      );
      return { lockout: lockoutOf(row), hashNear: row?.hash_near ?? undefined };
    },
    locks: async (attempts, nowMs) => {
      const { rows } = await on.query<{ attempts_digest: string; locked_until: Date }>(
        'SELECT attempts_digest, locked_until FROM sign_in_failures WHERE attempts_digest = ANY ($1) AND locked_until > $2',
        [attempts, dateOf(nowMs)],
      );
      return new Map(rows.map((row) => [row.attempts_digest as SecretDigest, row.locked_until.getTime()]));
    },
    invite: (digest) => first(on, inviteOf, `SELECT ${INVITE_COLUMNS} FROM invites WHERE digest = $1`, [digest]),
    inviteById: (id) => first(on, inviteOf, `SELECT ${INVITE_COLUMNS} FROM invites WHERE id = $1`, [id]),
    openInvites: async ({ orgId, afterSequence, limit, without }, nowMs) => {
      const { rows } = await on.query<InviteRow>(
        `SELECT ${INVITE_COLUMNS} FROM invites
          WHERE sequence > $1 AND ($2::text IS NULL OR org_id = $2) AND used_at IS NULL AND revoked_at IS NULL AND expires_at > $4
            AND email <> ALL ($5::text[]) ORDER BY sequence LIMIT $3`,
        [afterSequence, orgId, limit, dateOf(nowMs), without],
      );
      return rows.map(inviteOf);
    },
    passwordReset: (digest) =>
      first(on, resetOf, `SELECT ${RESET_COLUMNS} FROM password_resets WHERE digest = $1`, [digest]),
    refreshToken: (digest) => first(on, refreshTokenOf, refreshQuery(''), [digest]),
  };
}

const refreshQuery = (locking: string): string =>
  `SELECT ${REFRESH_COLUMNS} FROM refresh_tokens t JOIN sessions s ON s.id = t.session_id WHERE t.digest = $1 ${locking}`;

function transactionOn(on: Queryable): AccountTransaction {
  const run = async (text: string, values: readonly unknown[]): Promise<number> =>
    (await on.query(text, values)).rowCount;
  return {
    ...readsOn(on),
    ...accountWrites(on, run),
    ...sessionWrites(on, run),
    ...inviteAndResetWrites(on, run),
    prune: async (nowMs) => {
      // By one gateway at a time: if two each deleted one of a session's last two tokens, neither would see that the
      // session is over.
      const {
        rows: [lock],
      } = await on.query<{ isOurs: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS "isOurs"', [PRUNE_LOCK]);
      if (lock?.isOurs !== true) return false;
      // Each is kept longer than it is needed, so that a clock that was ahead for a while deletes nothing that is still
      // valid.
      const tokens = await on.query<{ session_id: string }>(
        `${deletion('refresh_tokens', 'digest', 'expires_at')} RETURNING session_id`,
        [dateOf(nowMs - DAY_MS), PRUNED_AT_ONCE],
      );
      await run(
        'DELETE FROM sessions s WHERE id = ANY ($1) AND NOT EXISTS (SELECT 1 FROM refresh_tokens t WHERE t.session_id = s.id)',
        [tokens.rows.map((row) => row.session_id)],
      );
      const others = [
        await run(deletion('sign_in_failures', 'attempts_digest', 'touched_at'), [
          dateOf(nowMs - FORGET_FAILURES_MS),
          PRUNED_AT_ONCE,
        ]),
        await run(deletion('invites', 'digest', 'expires_at'), [dateOf(nowMs - INVITE_MS), PRUNED_AT_ONCE]),
        await run(deletion('password_resets', 'digest', 'expires_at'), [dateOf(nowMs - RESET_MS), PRUNED_AT_ONCE]),
      ];
      return [tokens.rowCount, ...others].includes(PRUNED_AT_ONCE);
    },
  };
}

/** Deleting this many rows takes far less than a statement's timeout, and blocks nobody for long. */
const PRUNED_AT_ONCE = 1000;

/** The oldest first; a row that somebody is using is left for the next time. */
const deletion = (table: string, key: string, time: string): string =>
  `DELETE FROM ${table} WHERE ${key} = ANY (ARRAY(SELECT ${key} FROM ${table} WHERE ${time} < $1 ORDER BY ${time} LIMIT $2 FOR UPDATE SKIP LOCKED))`;

type Run = (text: string, values: readonly unknown[]) => Promise<number>;

/** Failures are forgotten a day after the last one; a lock has long ended by then. */
const DAY_MS = 24 * 60 * 60 * 1000;
const FORGET_FAILURES_MS = Math.max(DAY_MS, LOCKOUT.lockMs);

function accountWrites(on: Queryable, run: Run) {
  return {
    lockRoles: async () => void (await on.query('SELECT pg_advisory_xact_lock($1)', [ROLES_LOCK])),
    activeOwners: async () => {
      const {
        rows: [row],
      } = await on.query<{ owners: number }>(
        `SELECT count(*)::int AS owners FROM accounts WHERE role = 'owner' AND NOT disabled`,
      );
      return row?.owners ?? 0;
    },
    lockAccount: (id) => first(on, accountOf, `SELECT ${ACCOUNT_COLUMNS} FROM accounts WHERE id = $1 FOR UPDATE`, [id]),
    insertAccount: (account) =>
      first(
        on,
        accountOf,
        `INSERT INTO accounts (id, email, email_key, password_hash, role, org_id, disabled, token_epoch, created_at, last_login_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (email_key) DO NOTHING RETURNING ${ACCOUNT_COLUMNS}`,
        [
          account.id,
          account.email,
          emailKeyOf(account.email),
          account.passwordHash,
          account.role,
          account.orgId,
          account.disabled,
          account.tokenEpoch,
          dateOf(account.createdAtMs),
          dateOf(account.lastLoginAtMs),
        ],
      ),
    changeAccount: async (id, change) => {
      await run(
        `UPDATE accounts SET role = coalesce($2, role), disabled = coalesce($3, disabled), password_hash = coalesce($4, password_hash),
           last_login_at = coalesce($5, last_login_at), token_epoch = coalesce($6, token_epoch),
           tokens_revoked_at = CASE WHEN $6::integer > token_epoch THEN now() ELSE tokens_revoked_at END
          WHERE id = $1`,
        [
          id,
          change.role,
          change.disabled,
          change.passwordHash,
          dateOf(change.lastLoginAtMs ?? null),
          change.tokenEpoch,
        ],
      );
    },
    lockLockout: async (attempts: SecretDigest, nowMs: number) => {
      // A single statement creates and locks: between two, another transaction could take the row away.
      const { rows } = await on.query<LockoutRow>(
        `INSERT INTO sign_in_failures (attempts_digest, failures, touched_at) VALUES ($1, 0, $2)
         ON CONFLICT (attempts_digest) DO UPDATE SET touched_at = excluded.touched_at RETURNING failures, locked_until`,
        [attempts, dateOf(nowMs)],
      );
      return lockoutOf(rows[0]);
    },
    saveLockout: async (attempts, lockout, nowMs) => {
      await run(
        'UPDATE sign_in_failures SET failures = $2, locked_until = $3, touched_at = $4 WHERE attempts_digest = $1',
        [attempts, lockout.failures, dateOf(lockout.lockedUntilMs), dateOf(nowMs)],
      );
    },
  } satisfies Partial<AccountTransaction>;
}

function sessionWrites(on: Queryable, run: Run) {
  return {
    insertSession: async (session) => {
      await run(
        'INSERT INTO sessions (id, account_id, remember_me, created_at, revoked_at) VALUES ($1, $2, $3, $4, $5)',
        [session.id, session.accountId, session.rememberMe, dateOf(session.createdAtMs), dateOf(session.revokedAtMs)],
      );
    },
    insertRefreshToken: async ({ digest, expiresAtMs }, sessionId) => {
      await run('INSERT INTO refresh_tokens (digest, session_id, expires_at) VALUES ($1, $2, $3)', [
        digest,
        sessionId,
        dateOf(expiresAtMs),
      ]);
    },
    lockRefreshToken: (digest) => first(on, refreshTokenOf, refreshQuery('FOR UPDATE'), [digest]),
    rotateRefreshToken: async (digest, nowMs) =>
      void (await run('UPDATE refresh_tokens SET rotated_at = $2 WHERE digest = $1', [digest, dateOf(nowMs)])),
    revokeSession: async (sessionId, nowMs) => {
      await run('UPDATE sessions SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL', [sessionId, dateOf(nowMs)]);
    },
    revokeSessionsOf: (accountId, nowMs) =>
      run('UPDATE sessions SET revoked_at = $2 WHERE account_id = $1 AND revoked_at IS NULL', [
        accountId,
        dateOf(nowMs),
      ]),
  } satisfies Partial<AccountTransaction>;
}

function inviteAndResetWrites(on: Queryable, run: Run) {
  return {
    insertInvite: async (invite) => {
      await run(
        'INSERT INTO invites (digest, email, role, org_id, invited_by, created_at, expires_at, used_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)',
        [
          invite.digest,
          invite.email,
          invite.role,
          invite.orgId,
          invite.invitedBy,
          dateOf(invite.createdAtMs),
          dateOf(invite.expiresAtMs),
          dateOf(invite.usedAtMs),
        ],
      );
    },
    lockInvite: (digest) =>
      first(on, inviteOf, `SELECT ${INVITE_COLUMNS} FROM invites WHERE digest = $1 FOR UPDATE`, [digest]),
    useInvite: async (digest, nowMs) =>
      void (await run('UPDATE invites SET used_at = $2 WHERE digest = $1', [digest, dateOf(nowMs)])),
    lockInviteById: (id) => first(on, inviteOf, `SELECT ${INVITE_COLUMNS} FROM invites WHERE id = $1 FOR UPDATE`, [id]),
    revokeInvite: async (id, nowMs) =>
      void (await run('UPDATE invites SET revoked_at = $2 WHERE id = $1', [id, dateOf(nowMs)])),
    insertPasswordReset: async (reset) => {
      await run(`INSERT INTO password_resets (${RESET_COLUMNS}) VALUES ($1, $2, $3, $4, $5)`, [
        reset.digest,
        reset.accountId,
        dateOf(reset.createdAtMs),
        dateOf(reset.expiresAtMs),
        reset.issuedBy,
      ]);
    },
    countPasswordResets: async (accountId, nowMs) => {
      const {
        rows: [row],
      } = await on.query<{ open: number }>(
        'SELECT count(*)::int AS open FROM password_resets WHERE account_id = $1 AND expires_at > $2',
        [accountId, dateOf(nowMs)],
      );
      return row?.open ?? 0;
    },
    deletePasswordResets: async (accountId) =>
      void (await run('DELETE FROM password_resets WHERE account_id = $1', [accountId])),
  } satisfies Partial<AccountTransaction>;
}
