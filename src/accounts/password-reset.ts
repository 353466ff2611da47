/** Forgotten passwords: a mail with a token that works once, for an hour (docs/spec.md, Password reset). */

import type { SecretDigest } from '../core/base/ids.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import { type Fault, unauthenticated } from '../core/fault.ts';
import { refuseWithout } from '../core/identity/access.ts';
import { mayManageRole, NO_FAILURES, RESET_MS } from '../core/identity/account.ts';
import { emailKeyOf, parseEmail } from '../core/identity/email.ts';
import type { Principal } from '../core/identity/roles.ts';
import { digestIfIssued, digestOf, mintSecret } from '../credentials/secret-token.ts';
import type { Backlog } from '../fairness/backlog.ts';
import type { Mail } from '../ports/ports.ts';
import { accountOf, isUnchanged, isVouchedFor, visible } from './access.ts';
import { type AccountsContext, announce, auditEntry, ownActor, revokeTokens } from './context.ts';
import { hashNewPassword } from './registration.ts';
import type { AccountReads, PasswordReset, StoredAccount } from './store.ts';

/**
 * How many tokens of one account may be valid at once. Further requests send nothing, so that no mailbox is flooded.
 */
const MAX_OPEN_RESETS = 5;

export type RequestPasswordResetInput = { readonly email: string };

export type ResetQueue = {
  readonly backlog: Backlog;
  /**
   * Called for each reset that could not be prepared, and for each that found no room in the queue. Anyone can cause
   * many of both.
   */
  readonly onFailed: (fields: { readonly fault: Fault['kind'] }) => void;
  readonly onDropped: () => void;
};

/**
 * Answered before anything is looked up, so that neither the answer nor its time tells whether there is such an
 * account, or whether mail can be delivered. Always succeeds.
 */
export async function requestPasswordReset(
  context: AccountsContext & { readonly resets: ResetQueue },
  { email }: RequestPasswordResetInput,
): Promise<Result<void, Fault>> {
  const { backlog, onFailed, onDropped } = context.resets;
  const isTaken = backlog.push(async () => {
    const sent = await sendReset(context, email);
    if (!sent.ok) onFailed({ fault: sent.fault.kind });
  });
  if (!isTaken) onDropped();
  return ok(undefined);
}

async function sendReset(context: AccountsContext, text: string): Promise<Result<void, Fault>> {
  const email = parseEmail(text);
  if (email === undefined) return ok(undefined);
  const { secret, digest } = mintSecret();
  const prepared = await context.store.transact<StoredAccount | undefined>(async (transaction) => {
    const known = await transaction.accountByEmail(emailKeyOf(email));
    const account = known && (await transaction.lockAccount(known.id));
    if (account === undefined || account.disabled) return ok(undefined);
    const nowMs = context.clock.nowMs();
    if ((await transaction.countPasswordResets(account.id, nowMs)) >= MAX_OPEN_RESETS) return ok(undefined);
    await transaction.insertPasswordReset({
      digest,
      accountId: account.id,
      issuedBy: null,
      createdAtMs: nowMs,
      expiresAtMs: nowMs + RESET_MS,
    });
    const recorded = await context.audit.record(auditEntry('PasswordResetRequested', 'anonymous', account));
    return recorded.ok ? ok(account) : recorded;
  });
  if (!prepared.ok) return prepared;
  // To the address on record, never to the one that was typed: see emailKeyOf.
  // Not waited for: a slow relay delays only its own outbox.
  if (prepared.value !== undefined)
    void context.mailer.send(resetMail(context.publicUrl(), prepared.value.email, secret));
  return ok(undefined);
}

const resetMail = (publicUrl: string, to: string, secret: string): Mail => ({
  to,
  subject: 'Reset your password',
  text: [
    'Someone, probably you, requested a password reset for your account at',
    `${publicUrl}`,
    '',
    'To choose a new password, open this link within one hour. It works only once:',
    linkOf(publicUrl, secret),
    '',
    'If it was not you, ignore this e-mail; your password stays the same.',
    '',
  ].join('\n'),
});

export type IssuePasswordResetInput = {
  readonly principal: Principal;
  /** Its id, or its e-mail address. */
  readonly account: string;
};

/** The link is known only in this answer. */
export type IssuedReset = {
  readonly resetToken: string;
  readonly link: string;
  readonly email: string;
  readonly expiresAtMs: number;
};

/**
 * A link with which somebody sets a new password, to be handed over by an admin: for a gateway without a mail relay,
 * and for an account that is locked. It replaces all others of the account, which anybody can ask for. Faults:
 * `insufficient_scope`, `unauthenticated`, `not_found` (also for an account of another org), `role_forbidden` for an
 * account of a higher role, `conflict` for a disabled one, and those of the store and the audit log.
 */
export async function issuePasswordReset(
  context: AccountsContext,
  { principal, account: who }: IssuePasswordResetInput,
): Promise<Result<IssuedReset, Fault>> {
  const refused = refuseWithout('admin', principal);
  if (refused !== undefined) return refused;
  const { secret, digest } = mintSecret();
  const email = parseEmail(who);
  const issued = await context.store.transact<IssuedReset>(async (transaction) => {
    const found = await (email === undefined
      ? accountOf(transaction, who)
      : transaction.accountByEmail(emailKeyOf(email)));
    const seen = visible(principal, found && (await transaction.lockAccount(found.id)));
    if (!seen.ok) return seen;
    const account = seen.value;
    if (!(await isUnchanged(transaction, principal)))
      return unauthenticated('your account was just changed; sign in again');
    if (!mayManageRole(principal.role, account.role)) return fail({ kind: 'role_forbidden', role: account.role });
    if (account.disabled) return fail({ kind: 'conflict', detail: 'the account is disabled; enable it first' });
    const nowMs = context.clock.nowMs();
    const expiresAtMs = nowMs + RESET_MS;
    await transaction.deletePasswordResets(account.id);
    const issuedBy = principal.subject;
    await transaction.insertPasswordReset({ digest, accountId: account.id, issuedBy, createdAtMs: nowMs, expiresAtMs });
    const recorded = await context.audit.record(auditEntry('PasswordResetRequested', principal.subject, account));
    if (!recorded.ok) return recorded;
    return ok({ resetToken: secret, link: linkOf(context.publicUrl(), secret), email: account.email, expiresAtMs });
  });
  return issued;
}

/** The token follows the `#`, which browsers do not send: it gets into no log and no Referer header. */
const linkOf = (publicUrl: string, secret: string): string => `${publicUrl}/#/reset-password/${secret}`;

export type ConfirmPasswordResetInput = { readonly resetToken: string; readonly newPassword: string };

/**
 * Sets the password, ends every session and token of the account, and lifts a lock. Faults: `invalid_reset_token`,
 * `weak_password` (the token stays good), and those of hashing, the store and the audit log.
 */
export async function confirmPasswordReset(
  context: AccountsContext,
  input: ConfirmPasswordResetInput,
): Promise<Result<void, Fault>> {
  const digest = digestIfIssued(input.resetToken);
  if (digest === undefined) return invalidToken();
  const found = await context.store.read(async (reads) => {
    const reset = await reads.passwordReset(digest);
    return usable(context, reads, reset, reset && (await reads.accountById(reset.accountId)));
  });
  if (!found.ok) return found;
  const account = found.value;
  if (!account.ok) return account;
  const passwordHash = await hashNewPassword(context, input.newPassword, account.value.email);
  return passwordHash.ok ? changePassword(context, digest, account.value, passwordHash.value) : passwordHash;
}

async function changePassword(
  context: AccountsContext,
  digest: SecretDigest,
  { id, email }: Pick<StoredAccount, 'id' | 'email'>,
  passwordHash: string,
): Promise<Result<void, Fault>> {
  const attempts = digestOf(emailKeyOf(email));
  const changed = await context.store.transact<StoredAccount>(async (transaction) => {
    const nowMs = context.clock.nowMs();
    // First the lock-out, then the account, as a login does: in another order they could wait for each other.
    await transaction.lockLockout(attempts, nowMs);
    const locked = await transaction.lockAccount(id);
    const reset = await transaction.passwordReset(digest); // of two at once, the second finds it gone
    const found = await usable(context, transaction, reset, locked);
    if (!found.ok) return found;
    const account = found.value;
    await transaction.saveLockout(attempts, NO_FAILURES, nowMs);
    await transaction.changeAccount(id, { passwordHash, tokenEpoch: account.tokenEpoch + 1 });
    await transaction.deletePasswordResets(id);
    const sessions = await transaction.revokeSessionsOf(id, nowMs);
    const recorded = await context.audit.record(
      auditEntry('PasswordResetCompleted', ownActor(account), account, { payload: { sessions_revoked: sessions } }),
    );
    return recorded.ok ? ok({ ...account, tokenEpoch: account.tokenEpoch + 1 }) : recorded;
  });
  if (!changed.ok) return changed;
  revokeTokens(context, id, changed.value.tokenEpoch);
  announce(context, 'password_reset', changed.value);
  return ok(undefined);
}

/** The account that it is for. */
async function usable(
  context: AccountsContext,
  reads: AccountReads,
  reset: PasswordReset | undefined,
  account: StoredAccount | undefined,
): Promise<Result<StoredAccount, Fault>> {
  if (account === undefined || account.disabled || reset === undefined) return invalidToken();
  if (reset.expiresAtMs <= context.clock.nowMs()) return invalidToken();
  if (reset.issuedBy === null) return ok(account);
  const vouched = await isVouchedFor(context, reads, { by: reset.issuedBy, role: account.role });
  if (!vouched.ok) return vouched;
  return vouched.value ? ok(account) : invalidToken();
}

const invalidToken = (): Result<never, Fault> => fail({ kind: 'invalid_reset_token' });
