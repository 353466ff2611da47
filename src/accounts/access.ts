import type { SecretDigest } from '../core/base/ids.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import { type Fault, unauthenticated } from '../core/fault.ts';
import { refuseWithout } from '../core/identity/access.ts';
import {
  type Account,
  accountIdOf,
  lockedForSecs,
  mayManageRole,
  NO_FAILURES,
  parseAccountId,
} from '../core/identity/account.ts';
import { emailKeyOf } from '../core/identity/email.ts';
import { holds, type Principal, type Role, SCOPES_OF_ROLE, seesOrg } from '../core/identity/roles.ts';
import { digestOf } from '../credentials/secret-token.ts';
import { type AccountsContext, announce, auditEntry, publicAccount } from './context.ts';
import type { AccountReads, StoredAccount } from './store.ts';

// The lock that too many failed sign-ins put on an account: shown to admins, and lifted by them.

/** An account as admins see it. `lockedUntilMs` is null while it is not locked. */
export type SeenAccount = Account & { readonly lockedUntilMs: number | null };

const attemptsOn = ({ email }: Pick<Account, 'email'>): SecretDigest => digestOf(emailKeyOf(email));

/** Each account with the end of its lock. */
export async function withLocks<T extends Account>(
  context: AccountsContext,
  reads: AccountReads,
  accounts: readonly T[],
): Promise<readonly (T & SeenAccount)[]> {
  const locks =
    accounts.length === 0
      ? new Map<SecretDigest, number>()
      : await reads.locks(accounts.map(attemptsOn), context.clock.nowMs());
  return accounts.map((account) => ({ lockedUntilMs: locks.get(attemptsOn(account)) ?? null, ...account }));
}

export async function withLock(
  context: AccountsContext,
  reads: AccountReads,
  account: StoredAccount,
): Promise<SeenAccount> {
  const [seen] = await withLocks(context, reads, [publicAccount(account)]);
  return seen!;
}

/**
 * The account may sign in again at once, and its failures are forgotten. An unlocked account is left as it is. Faults:
 * `insufficient_scope`, `unauthenticated`, `not_found` (also for an account of another org), `role_forbidden` for an
 * account of a higher role, and those of the store and the audit log.
 */
export async function unlock(
  context: AccountsContext,
  { principal, accountId }: AccountInput,
): Promise<Result<SeenAccount, Fault>> {
  const refused = refuseWithout('admin', principal);
  if (refused !== undefined) return refused;
  const done = await context.store.transact<{ readonly account: StoredAccount; readonly isLifted: boolean }>(
    async (transaction) => {
      const seen = visible(principal, await accountOf(transaction, accountId));
      if (!seen.ok) return seen;
      const account = seen.value;
      const nowMs = context.clock.nowMs();
      const attempts = attemptsOn(account);
      const lockout = await transaction.lockLockout(attempts, nowMs);
      if (lockedForSecs(lockout, nowMs) === undefined) return ok({ account, isLifted: false });
      if (!(await isUnchanged(transaction, principal)))
        return unauthenticated('your account was just changed; sign in again');
      if (!mayManageRole(principal.role, account.role)) return fail({ kind: 'role_forbidden', role: account.role });
      await transaction.saveLockout(attempts, NO_FAILURES, nowMs);
      const recorded = await context.audit.record(auditEntry('AccountUnlocked', principal.subject, account));
      return recorded.ok ? ok({ account, isLifted: true }) : recorded;
    },
  );
  if (!done.ok) return done;
  const { account, isLifted } = done.value;
  if (isLifted) announce(context, 'unlocked', account);
  return ok({ lockedUntilMs: null, ...publicAccount(account) });
}

export type AccountInput = { readonly principal: Principal; readonly accountId: string };

/**
 * Whether the caller, when it is an account, is still what its token says: another gateway may have demoted or disabled
 * it a moment ago.
 */
export async function isUnchanged(reads: AccountReads, { subject, role }: Principal): Promise<boolean> {
  const id = accountIdOf(subject);
  if (id === undefined) return true;
  const account = await reads.accountById(id);
  return account !== undefined && !account.disabled && account.role === role;
}

export async function accountOf(reads: AccountReads, accountId: string): Promise<StoredAccount | undefined> {
  const id = parseAccountId(accountId);
  return id && (await reads.accountById(id));
}

/** The account, when it is the caller's own or of its org; any other is `not_found`. */
export function visible(principal: Principal, account: StoredAccount | undefined): Result<StoredAccount, Fault> {
  const isSeen =
    account !== undefined && (seesOrg(principal, account.orgId) || accountIdOf(principal.subject) === account.id);
  return isSeen ? ok(account) : fail({ kind: 'not_found', what: 'account' });
}

/** The subject of anybody who may write into the data directory: above every role. */
export const CONSOLE = 'gateway:console';

/**
 * Whether whoever has given something out, such as an invite or a link for a password, could still do so: nobody must
 * return through what was made before. A key that has merely expired still counts: it was valid when it was used.
 */
export async function isVouchedFor(
  context: AccountsContext,
  reads: AccountReads,
  { by, role }: { readonly by: string; readonly role: Role },
): Promise<Result<boolean, Fault>> {
  if (by === CONSOLE) return ok(true);
  const id = accountIdOf(by);
  if (id === undefined) {
    const revoked = await context.isKeyRevoked(by);
    return revoked.ok ? ok(!revoked.value) : revoked;
  }
  const giver = await reads.accountById(id);
  return ok(
    giver !== undefined &&
      !giver.disabled &&
      holds(SCOPES_OF_ROLE[giver.role], 'admin') &&
      mayManageRole(giver.role, role),
  );
}
