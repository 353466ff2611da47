/** Listings for admins, page by page: accounts and open invites. */
import type { OrgFilter, Page, PageRequest } from '../core/commands.ts';
import { BAD_CURSOR } from '../core/cursor.ts';
import type { Fault } from '../core/fault.ts';
import { isOrgName } from '../core/ids.ts';
import { ok, type Result } from '../core/result.ts';
import { orgInReach, refuseWithout } from '../core/scope.ts';
import type { AccountListing, AccountReads } from './account-store.ts';
import type { AccountsContext } from './accounts-context.ts';

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
    // One more than asked for tells whether there is a next page.
    return list(reads, { orgId: org.value ?? null, afterSequence: last?.value.sequence ?? 0, limit: perPage + 1 });
  });
  if (!found.ok) return found;
  if (found.value === undefined) return BAD_CURSOR;
  const items = found.value.slice(0, perPage);
  return ok({ items, next: found.value.length > items.length ? items.at(-1)?.id : undefined });
}
