/** Which account is meant, and whether the caller may still see to it. */
import { accountIdOf, parseAccountId } from '../core/account.ts';
import type { Fault } from '../core/fault.ts';
import { fail, ok, type Result } from '../core/result.ts';
import { type Principal, seesOrg } from '../core/scope.ts';
import type { AccountReads, StoredAccount } from './account-store.ts';

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
