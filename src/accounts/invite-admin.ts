/** Administration of open invites: list and revoke (admin scope). */

import { lineageOfOrg } from '../core/audit/audit.ts';
import type { Page, PageRequest } from '../core/base/page.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import type { OrgFilter } from '../core/commands.ts';
import type { Fault } from '../core/fault.ts';
import { refuseWithout } from '../core/identity/access.ts';
import { isUuid, mayManageRole } from '../core/identity/account.ts';
import { type EmailAddress, emailKeyOf } from '../core/identity/email.ts';
import { type Principal, seesOrg } from '../core/identity/roles.ts';
import { listForAdmin } from './admin.ts';
import type { AccountsContext } from './context.ts';
import type { AccountListing, AccountReads, StoredInvite } from './store.ts';

/** An invite as an admin sees it: without what its token could be checked against. */
export type OpenInvite = Pick<
  StoredInvite,
  'id' | 'email' | 'role' | 'orgId' | 'invitedBy' | 'createdAtMs' | 'expiresAtMs'
>;

/**
 * Invites neither used, revoked nor expired whose address has no account, in order of creation; an admin bound to an
 * org sees those that bind to it.
 * Faults: `insufficient_scope`, `org_forbidden`, `invalid_argument` for the cursor, and those of the store.
 */
export async function listInvites(
  context: AccountsContext,
  request: PageRequest & OrgFilter,
): Promise<Result<Page<OpenInvite>, Fault>> {
  const page = await listForAdmin(context, request, {
    seen: async (reads, id) => visible(request.principal, await find(reads.inviteById, id)),
    list: (reads, listing) => unanswered(reads, listing, request.principal.orgId, context.clock.nowMs()),
  });
  return page.ok ? ok({ ...page.value, items: page.value.items.map(openInvite) }) : page;
}

/** Skipped invites are read in chunks of this size, however few are requested: each chunk costs two round trips. */
const READ_AT_ONCE = 1000;
/** How many of the last skipped addresses are not read again: thousands of invites may go to one of them. */
const MAX_LEFT_OUT = 1000;

/**
 * Skips invites whose address has an account by now: it cannot have a second one. An admin bound to an org (`seenOrg`)
 * does not learn of accounts elsewhere.
 */
async function unanswered(
  reads: AccountReads,
  listing: AccountListing,
  seenOrg: string | null,
  nowMs: number,
): Promise<readonly StoredInvite[]> {
  const found: StoredInvite[] = [];
  let afterSequence: number | undefined = listing.afterSequence;
  let { limit } = listing;
  let without: readonly EmailAddress[] = [];
  while (afterSequence !== undefined && found.length < listing.limit) {
    const rows = await reads.openInvites({ ...listing, afterSequence, limit, without }, nowMs);
    const used = await reads.usedEmails(
      rows.map(({ email }) => emailKeyOf(email)),
      seenOrg,
    );
    found.push(...rows.filter(({ email }) => !used.has(emailKeyOf(email))));
    const passedOver = rows.flatMap(({ email }) => (used.has(emailKeyOf(email)) ? [email] : []));
    without = [...new Set([...without, ...passedOver])].slice(-MAX_LEFT_OUT);
    afterSequence = rows.length < limit ? undefined : rows.at(-1)?.sequence;
    limit = Math.max(limit, READ_AT_ONCE);
  }
  return found.slice(0, listing.limit);
}

const openInvite = ({ id, email, role, orgId, invitedBy, createdAtMs, expiresAtMs }: StoredInvite): OpenInvite => ({
  id,
  email,
  role,
  orgId,
  invitedBy,
  createdAtMs,
  expiresAtMs,
});

export type InviteRevocation = { readonly principal: Principal; readonly inviteId: string };

/**
 * Its token stops working. An invite that has ended already is left as it is. Faults: `insufficient_scope`, `not_found`
 * (also for an invite of another org), `role_forbidden` for a role that the caller could not give, `conflict` for an
 * invite that was accepted, and those of the store and the audit log.
 */
export async function revokeInvite(
  context: AccountsContext,
  { principal, inviteId }: InviteRevocation,
): Promise<Result<void, Fault>> {
  const refused = refuseWithout('admin', principal);
  if (refused !== undefined) return refused;
  const nowMs = context.clock.nowMs();
  const revoked = await context.store.transact(
    async (transaction): Promise<Result<StoredInvite | undefined, Fault>> => {
      // The row is locked from here on: an accept at the same moment either comes first, or finds the invite gone.
      const seen = visible(principal, await find(transaction.lockInviteById, inviteId));
      if (!seen.ok) return seen;
      const invite = seen.value;
      if (!mayManageRole(principal.role, invite.role)) return fail({ kind: 'role_forbidden', role: invite.role });
      if (invite.usedAtMs !== null)
        return fail({ kind: 'conflict', detail: 'this invite has already been accepted; disable the account instead' });
      if (invite.revokedAtMs !== null || invite.expiresAtMs <= nowMs) return ok(undefined);
      await transaction.revokeInvite(invite.id, nowMs);
      const recorded = await context.audit.record({
        eventType: 'InviteRevoked',
        actor: principal.subject,
        lineage: lineageOfOrg(invite.orgId),
        payload: { email: invite.email, role: invite.role, invited_by: invite.invitedBy },
      });
      return recorded.ok ? ok(invite) : recorded;
    },
  );
  if (!revoked.ok) return revoked;
  if (revoked.value !== undefined) {
    const { email, role, orgId } = revoked.value;
    context.events.publish({ change: 'invite_revoked', accountId: null, email, role, orgId, atMs: nowMs });
  }
  return ok(undefined);
}

/** The store is not asked for a text that cannot be an id. */
const find = async (
  by: (id: string) => Promise<StoredInvite | undefined>,
  id: string,
): Promise<StoredInvite | undefined> => (isUuid(id) ? by(id) : undefined);

/** The invite, when it binds to the caller's org; any other is `not_found`. */
function visible(principal: Principal, invite: StoredInvite | undefined): Result<StoredInvite, Fault> {
  const isSeen = invite !== undefined && seesOrg(principal, invite.orgId);
  return isSeen ? ok(invite) : fail({ kind: 'not_found', what: 'invite' });
}
