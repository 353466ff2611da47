/** Invites: made by an admin, handed over out of band, used once (docs/spec.md, Invites). */

import { lineageOfOrg } from '../core/audit/audit.ts';
import { isOrgName, type SecretDigest } from '../core/base/ids.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import { type Fault, invalid } from '../core/fault.ts';
import { refuseWithout } from '../core/identity/access.ts';
import { type Account, INVITE_MS, mayManageRole } from '../core/identity/account.ts';
import { type EmailAddress, emailKeyOf } from '../core/identity/email.ts';
import { type Principal, type Role, seesOrg } from '../core/identity/roles.ts';
import { digestIfIssued, mintSecret } from '../credentials/secret-token.ts';
import { isVouchedFor } from './access.ts';
import { type AccountsContext, announce, auditEntry, ownActor, publicAccount } from './context.ts';
import { hashNewPassword, newAccount, readEmail } from './registration.ts';
import type { AccountReads, Invite, StoredInvite } from './store.ts';

export type InviteInput = {
  readonly principal: Principal;
  readonly email: string;
  readonly role: Role;
  /** The org to bind the account to; undefined: the inviter's org. */
  readonly orgId: string | undefined;
};

/** The token is known only in this answer. */
export type NewInvite = {
  readonly inviteToken: string;
  readonly email: EmailAddress;
  readonly role: Role;
  readonly orgId: string | null;
  readonly expiresAtMs: number;
};

/**
 * Faults: `insufficient_scope`, `role_forbidden`, `org_forbidden`, `invalid_argument`, `email_taken`, and those of the
 * store and the audit log.
 */
export async function invite(context: AccountsContext, input: InviteInput): Promise<Result<NewInvite, Fault>> {
  const { principal, role } = input;
  const refused = refuseWithout('admin', principal);
  if (refused !== undefined) return refused;
  if (!mayManageRole(principal.role, role)) return fail({ kind: 'role_forbidden', role });
  const org = orgToBind(principal, input.orgId, role);
  if (!org.ok) return org;
  const email = readEmail(input.email);
  if (!email.ok) return email;

  const { secret, digest } = mintSecret();
  const nowMs = context.clock.nowMs();
  const made: Invite = {
    digest,
    email: email.value,
    role,
    orgId: org.value,
    invitedBy: principal.subject,
    createdAtMs: nowMs,
    expiresAtMs: nowMs + INVITE_MS,
    usedAtMs: null,
  };
  const stored = await context.store.transact(async (transaction) => {
    const existing = await transaction.accountByEmail(emailKeyOf(made.email));
    // An account that the inviter cannot see is not mentioned: the invite will find it when it is accepted.
    if (existing !== undefined && seesOrg(principal, existing.orgId))
      return fail({ kind: 'email_taken', email: made.email });
    await transaction.insertInvite(made);
    return context.audit.record({
      eventType: 'InviteCreated',
      actor: principal.subject,
      lineage: lineageOfOrg(made.orgId),
      payload: { email: made.email, role, expires_at: new Date(made.expiresAtMs).toISOString() },
    });
  });
  if (!stored.ok) return stored;
  context.events.publish({
    change: 'invited',
    accountId: null,
    email: made.email,
    role,
    orgId: made.orgId,
    atMs: nowMs,
  });
  return ok({ inviteToken: secret, email: made.email, role, orgId: made.orgId, expiresAtMs: made.expiresAtMs });
}

/** An owner is bound to no org: one that sees a single org could not look after the workspace. */
function orgToBind(principal: Principal, asked: string | undefined, role: Role): Result<string | null, Fault> {
  const orgId = asked ?? principal.orgId;
  if (orgId === null) return ok(null);
  if (!isOrgName(orgId)) return invalid('org_id', 'is not a valid org name');
  if (!seesOrg(principal, orgId)) return fail({ kind: 'org_forbidden', orgId });
  return role === 'owner' ? invalid('org_id', 'an owner cannot be bound to an org') : ok(orgId);
}

export type AcceptInviteInput = { readonly inviteToken: string; readonly password: string };

/**
 * Faults: `invalid_invite`, `weak_password` (the invite stays good), `email_taken`, and those of hashing, the store and
 * the audit log.
 */
export async function acceptInvite(
  context: AccountsContext,
  input: AcceptInviteInput,
): Promise<Result<Account, Fault>> {
  const digest = digestIfIssued(input.inviteToken);
  if (digest === undefined) return fail({ kind: 'invalid_invite' });
  // Checked before the password is hashed: guesses cost a query, not a hash.
  const found = await context.store.read(async (reads) => usable(context, reads, await reads.invite(digest)));
  if (!found.ok) return found;
  const pending = found.value;
  if (!pending.ok) return pending;
  const passwordHash = await hashNewPassword(context, input.password, pending.value.email);
  return passwordHash.ok ? redeem(context, digest, passwordHash.value) : passwordHash;
}

async function redeem(
  context: AccountsContext,
  digest: SecretDigest,
  passwordHash: string,
): Promise<Result<Account, Fault>> {
  const accepted = await context.store.transact(async (transaction) => {
    // The row is locked from here on: the second of two uses at the same moment finds the invite used.
    const pending = await usable(context, transaction, await transaction.lockInvite(digest));
    if (!pending.ok) return pending;
    const { email, role, orgId, invitedBy } = pending.value;
    const account = await transaction.insertAccount(newAccount(context, { email, passwordHash, role, orgId }));
    if (account === undefined) return refuseTaken(transaction, pending.value);
    await transaction.useInvite(digest, context.clock.nowMs());
    const recorded = await context.audit.record(
      auditEntry('InviteAccepted', ownActor(account), account, { payload: { role, invited_by: invitedBy } }),
    );
    return recorded.ok ? ok(publicAccount(account)) : recorded;
  });
  if (accepted.ok) announce(context, 'registered', accepted.value);
  return accepted;
}

/** The holder of an invite to an org need not learn of accounts elsewhere. */
async function refuseTaken(reads: AccountReads, { email, orgId }: Invite): Promise<Result<never, Fault>> {
  const existing = await reads.accountByEmail(emailKeyOf(email));
  const isSeen = orgId === null || existing?.orgId === orgId;
  return isSeen ? fail({ kind: 'email_taken', email }) : fail({ kind: 'invalid_invite' });
}

async function usable(
  context: AccountsContext,
  reads: AccountReads,
  found: StoredInvite | undefined,
): Promise<Result<Invite, Fault>> {
  const isPending =
    found !== undefined &&
    found.usedAtMs === null &&
    found.revokedAtMs === null &&
    found.expiresAtMs > context.clock.nowMs();
  if (!isPending) return fail({ kind: 'invalid_invite' });
  const vouched = await isVouchedFor(context, reads, { by: found.invitedBy, role: found.role });
  if (!vouched.ok) return vouched;
  return vouched.value ? ok(found) : fail({ kind: 'invalid_invite' });
}
