/** Administration of accounts: list, role, disable, sessions (admin scope), and the caller's own account. */

import type { AuditEvent } from '../core/audit/audit.ts';
import { isOrgName } from '../core/base/ids.ts';
import { BAD_CURSOR, type Page, type PageRequest } from '../core/base/page.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import type { OrgFilter } from '../core/commands.ts';
import { type Fault, unauthenticated } from '../core/fault.ts';
import { orgInReach, refuseWithout } from '../core/identity/access.ts';
import { accountIdOf, mayManageRole, parseAccountId, subjectOf } from '../core/identity/account.ts';
import { type Principal, type Role, SCOPES_OF_ROLE, type Scope } from '../core/identity/roles.ts';
import { type Made, NOTHING_MADE } from '../credentials/made-keys.ts';
import type { AccountEvent } from '../ports/ports.ts';
import { type AccountInput, accountOf, isUnchanged, type SeenAccount, visible, withLock, withLocks } from './access.ts';
import { type AccountsContext, announce, auditEntry, publicAccount, revokeTokens } from './context.ts';
import type { AccountListing, AccountReads, AccountTransaction, StoredAccount } from './store.ts';

// Listings for admins, page by page: accounts and open invites.

export type Rows<Row extends { readonly sequence: number }> = {
  /** The row of this id, where the caller may see it. */
  readonly seen: (reads: AccountReads, id: string) => Promise<Result<Pick<Row, 'sequence'>, Fault>>;
  readonly list: (reads: AccountReads, listing: AccountListing) => Promise<readonly Row[]>;
};

/**
 * In order of creation; an admin bound to an org gets the rows bound to it. Faults: `insufficient_scope`,
 * `org_forbidden`, `invalid_argument` for the cursor, and those of the store.
 */
export async function listForAdmin<Row extends { readonly id: string; readonly sequence: number }>(
  { store }: Pick<AccountsContext, 'store'>,
  { principal, orgId, perPage, cursor }: PageRequest & OrgFilter,
  { seen, list }: Rows<Row>,
): Promise<Result<Page<Row>, Fault>> {
  const refused = refuseWithout('admin', principal);
  if (refused !== undefined) return refused;
  const org = orgInReach(principal, orgId);
  if (!org.ok) return org;
  // The store is not asked for a text that cannot be an org: PostgreSQL refuses some of them, such as U+0000.
  if (org.value !== undefined && !isOrgName(org.value)) return ok({ items: [], next: undefined });
  const found = await store.read(async (reads) => {
    // The id of the last row, and not its place in the list of all, which would tell an org how many others there are.
    const last = cursor === undefined ? undefined : await seen(reads, cursor);
    if (last?.ok === false) return undefined;
    // An extra row tells whether there is a next page.
    return list(reads, { orgId: org.value ?? null, afterSequence: last?.value.sequence ?? 0, limit: perPage + 1 });
  });
  if (!found.ok) return found;
  if (found.value === undefined) return BAD_CURSOR;
  const items = found.value.slice(0, perPage);
  return ok({ items, next: found.value.length > items.length ? items.at(-1)?.id : undefined });
}

/**
 * The caller's own account. Faults: `not_found` for a credential that is not an account's, `unauthenticated` when the
 * account is gone, and those of the store.
 */
export async function me(
  context: AccountsContext,
  { principal }: { readonly principal: Principal },
): Promise<Result<SeenAccount, Fault>> {
  const id = accountIdOf(principal.subject);
  if (id === undefined) return fail({ kind: 'not_found', what: 'account behind this API key' });
  const found = await context.store.read(async (reads) => {
    const account = await reads.accountById(id);
    return account && (await withLock(context, reads, account));
  });
  if (!found.ok) return found;
  return found.value === undefined ? unauthenticated('this account no longer exists') : ok(found.value);
}

/**
 * In order of creation; an admin bound to an org sees the accounts bound to it. Faults: `insufficient_scope`,
 * `org_forbidden`, `invalid_argument` for the cursor, and those of the store.
 */
export async function listAccounts(
  context: AccountsContext,
  request: PageRequest & OrgFilter,
): Promise<Result<Page<SeenAccount>, Fault>> {
  const page = await listForAdmin(context, request, {
    seen: async (reads, id) => visible(request.principal, await accountOf(reads, id)),
    list: async (reads, listing) => withLocks(context, reads, await reads.accounts(listing)),
  });
  return page.ok
    ? ok({
        ...page.value,
        items: page.value.items.map((row) => ({ lockedUntilMs: row.lockedUntilMs, ...publicAccount(row) })),
      })
    : page;
}

/** Faults: `insufficient_scope`, `not_found` (also for an account of another org), and those of the store. */
export async function getAccount(
  context: AccountsContext,
  { principal, accountId }: AccountInput,
): Promise<Result<SeenAccount, Fault>> {
  const refused = refuseWithout('admin', principal);
  if (refused !== undefined) return refused;
  const found = await context.store.read(async (reads) => {
    const seen = visible(principal, await accountOf(reads, accountId));
    return seen.ok ? ok(await withLock(context, reads, seen.value)) : seen;
  });
  return found.ok ? found.value : found;
}

/** Tokens of the old role end at once; sessions go on with the new role. Faults: as `administer`. */
export async function changeRole(
  context: AccountsContext,
  input: AccountInput & { readonly role: Role; readonly cascade?: boolean },
): Promise<Result<ChangedAccount, Fault>> {
  const changed = await administer(context, input, async (transaction, account) => {
    if (account.role === input.role) return ok(undefined);
    const { principal, role } = input;
    const owners = await transaction.activeOwners();
    // Somebody must be able to appoint the first owner of a workspace whose first account came by an invite.
    const mayAppoint = mayManageRole(principal.role, role) || (owners === 0 && principal.orgId === null);
    if (!mayAppoint) return fail({ kind: 'role_forbidden', role });
    if (role === 'owner' && account.orgId !== null)
      return fail({ kind: 'conflict', detail: 'an account bound to an org cannot be an owner' });
    if (isLastOwner(account, owners)) return lastOwner();
    return ok({
      change: { role },
      event: 'AccountRoleChanged',
      announcement: 'role_changed',
      endsSessions: false,
      payload: { from: account.role, to: role },
    });
  });
  return changed.ok ? endMadeBy(context, input, changed.value, SCOPES_OF_ROLE[changed.value.role]) : changed;
}

/** An account, and what has become of the keys and webhooks that it made. */
export type ChangedAccount = SeenAccount & { readonly made: Made };

/** Also where nothing was changed: a fault may have kept them from ending the last time. */
async function endMadeBy(
  context: AccountsContext,
  { principal, cascade = true }: AccountInput & { readonly cascade?: boolean },
  account: SeenAccount,
  mayHold: readonly Scope[],
): Promise<Result<ChangedAccount, Fault>> {
  const made = await context.endMade({
    maker: subjectOf(account.id),
    actor: principal.subject,
    mayHold,
    cascade,
  });
  return made.ok ? ok({ ...account, made: made.value }) : made;
}

/** A disabled account cannot sign in, and its sessions and tokens end. Faults: as `administer`. */
export async function setDisabled(
  context: AccountsContext,
  input: AccountInput & { readonly disabled: boolean; readonly cascade?: boolean },
): Promise<Result<ChangedAccount, Fault>> {
  const changed = await administer(context, input, async (transaction, account) => {
    if (account.disabled === input.disabled) return ok(undefined);
    if (!input.disabled)
      return ok({
        change: { disabled: false },
        event: 'AccountEnabled',
        announcement: 'enabled',
        endsSessions: false,
        payload: {},
      });
    if (isLastOwner(account, await transaction.activeOwners())) return lastOwner();
    return ok({
      change: { disabled: true },
      event: 'AccountDisabled',
      announcement: 'disabled',
      endsSessions: true,
      payload: {},
    });
  });
  if (!changed.ok) return changed;
  return input.disabled ? endMadeBy(context, input, changed.value, []) : ok({ ...changed.value, made: NOTHING_MADE });
}

/** Signs the account out everywhere. It may do so itself; for others it needs admin. Faults: as `administer`. */
export async function revokeSessions(
  context: AccountsContext,
  input: AccountInput,
): Promise<Result<SeenAccount, Fault>> {
  const isOwn = accountIdOf(input.principal.subject) === input.accountId;
  return (isOwn ? carryOut : administer)(context, input, async () =>
    ok({ change: {}, event: 'SessionRevoked', announcement: 'sessions_revoked', endsSessions: true, payload: {} }),
  );
}

type AdminAction = {
  readonly change: { readonly role?: Role; readonly disabled?: boolean };
  readonly event: AuditEvent;
  readonly announcement: AccountEvent['change'];
  readonly endsSessions: boolean;
  readonly payload: Readonly<Record<string, unknown>>;
};

/** The action to carry out on this account; undefined: nothing needs to change. */
type Decide = (
  transaction: AccountTransaction,
  account: StoredAccount,
) => Promise<Result<AdminAction | undefined, Fault>>;

/**
 * Changes an account, and ends the tokens it had before. Faults: `insufficient_scope`, `unauthenticated`, `not_found`
 * (also for an account of another org), `role_forbidden` for an account of a higher role, `conflict` for the last
 * owner, and those of the store and the audit log.
 */
async function administer(
  context: AccountsContext,
  input: AccountInput,
  decide: Decide,
): Promise<Result<SeenAccount, Fault>> {
  return refuseWithout('admin', input.principal) ?? carryOut(context, input, decide);
}

async function carryOut(
  context: AccountsContext,
  { principal, accountId }: AccountInput,
  decide: Decide,
): Promise<Result<SeenAccount, Fault>> {
  const done = await context.store.transact<{
    account: StoredAccount;
    seen: SeenAccount;
    action: AdminAction | undefined;
  }>(async (transaction) => {
    // Roles change one at a time, so that two owners cannot remove each other.
    await transaction.lockRoles();
    const id = parseAccountId(accountId);
    const seen = visible(principal, id && (await transaction.lockAccount(id)));
    if (!seen.ok) return seen;
    const account = seen.value;
    const decided = await decide(transaction, account);
    if (!decided.ok) return decided;
    const action = decided.value;
    if (action === undefined) return ok({ account, seen: await withLock(context, transaction, account), action });
    if (!(await isUnchanged(transaction, principal)))
      return unauthenticated('your account was just changed; sign in again');
    if (!mayManageRole(principal.role, account.role)) return fail({ kind: 'role_forbidden', role: account.role });
    const change = { ...action.change, tokenEpoch: account.tokenEpoch + 1 };
    await transaction.changeAccount(account.id, change);
    const payload = action.endsSessions
      ? { ...action.payload, sessions_revoked: await transaction.revokeSessionsOf(account.id, context.clock.nowMs()) }
      : action.payload;
    const recorded = await context.audit.record(auditEntry(action.event, principal.subject, account, { payload }));
    const changed = { ...account, ...change };
    return recorded.ok
      ? ok({ account: changed, seen: await withLock(context, transaction, changed), action })
      : recorded;
  });
  if (!done.ok) return done;
  const { account, seen, action } = done.value;
  if (action !== undefined) {
    revokeTokens(context, account.id, account.tokenEpoch);
    announce(context, action.announcement, account);
  }
  return ok(seen);
}

const isLastOwner = (account: StoredAccount, owners: number): boolean =>
  account.role === 'owner' && !account.disabled && owners <= 1;

const lastOwner = (): Result<never, Fault> =>
  fail({ kind: 'conflict', detail: 'this is the last owner; make another account an owner first' });
