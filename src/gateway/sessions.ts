/** Sessions after the sign-in: a cookie that changes at every use, and the end of them (contract: HTTP shapes). */
import { refreshLifetimeMs } from '../core/account.ts';
import type { Fault } from '../core/fault.ts';
import { fail, ok, type Result } from '../core/result.ts';
import type { AccountTransaction, RefreshToken, StoredAccount } from './account-store.ts';
import { auditEntry, ownActor, unauthenticated, type AccountsContext } from './accounts-context.ts';
import type { SignIn } from './login.ts';
import { digestOfPresented, mintSecret } from './secret-token.ts';

export type RefreshInput = { readonly refreshToken: string };
export type LogoutInput = { readonly refreshToken: string | undefined };

type Live = { readonly token: RefreshToken; readonly account: StoredAccount };
type Standing = { readonly kind: 'live' } & Live | { readonly kind: 'replayed'; readonly token: RefreshToken } | { readonly kind: 'dead' };

/**
 * A fresh access token and the cookie's successor, which lives a whole refresh lifetime from now. A cookie that has been
 * exchanged already ends the session it came from: whoever presents it, it has been copied. So of two uses at once one
 * is answered, and the session ends. Faults: `unauthenticated`, `conflict` when the account is changed this very
 * moment (the cookie stays good), `overloaded`, and those of the store and the audit log.
 */
export async function refresh(context: AccountsContext, { refreshToken }: RefreshInput): Promise<Result<SignIn, Fault>> {
  const digest = digestOfPresented(refreshToken);
  if (digest === undefined) return sessionEnded();
  const read = await context.store.read(async (reads) => {
    const token = await reads.refreshToken(digest);
    return standingOf(token, token && (await reads.accountById(token.session.accountId)), context.clock.nowMs());
  });
  if (!read.ok) return read;
  if (read.value.kind === 'dead') return sessionEnded();
  if (read.value.kind === 'replayed') {
    const ended = await endSessionOf(context, digest, 'replay');
    return ended.ok ? sessionEnded() : ended;
  }

  // Done before the cookie is exchanged: a cookie that was exchanged without an answer would look stolen the next time.
  const before = read.value;
  const access = await context.tokens.mintForAccount(before.account);
  if (!access.ok) return access;
  const next = mintSecret();
  const lifetimeMs = refreshLifetimeMs(before.token.session.rememberMe);
  const rotated = await context.store.transact<'rotated' | 'ended'>(async (transaction) => {
    const nowMs = context.clock.nowMs();
    const token = await transaction.lockRefreshToken(digest);
    const standing = standingOf(token, token && (await transaction.accountById(token.session.accountId)), nowMs);
    if (standing.kind === 'dead') return ok('ended');
    if (standing.kind === 'replayed') return endSession(context, transaction, standing.token, 'replay');
    if (standing.account.tokenEpoch !== before.account.tokenEpoch) return fail({ kind: 'conflict', detail: 'the account has just been changed; try again' });
    await Promise.all([
      transaction.rotateRefreshToken(digest, nowMs),
      transaction.insertRefreshToken({ digest: next.digest, expiresAtMs: nowMs + lifetimeMs }, standing.token.session.id),
    ]);
    const payload = { session_id: standing.token.session.id };
    const recorded = await context.audit.record(auditEntry('TokenIssued', ownActor(standing.account), standing.account, { reason: 'refresh', payload }));
    return recorded.ok ? ok('rotated') : recorded;
  });
  if (!rotated.ok) return rotated;
  if (rotated.value === 'ended') return sessionEnded();
  return ok({ access: access.value, refreshToken: next.secret, refreshLifetimeMs: lifetimeMs });
}

/** Ends the session of the cookie, which may be an exchanged one. Succeeds when there is nothing to end. */
export async function logout(context: AccountsContext, { refreshToken }: LogoutInput): Promise<Result<void, Fault>> {
  const digest = refreshToken === undefined ? undefined : digestOfPresented(refreshToken);
  if (digest === undefined) return ok(undefined);
  const ended = await endSessionOf(context, digest, 'logout');
  return ended.ok ? ok(undefined) : ended;
}

/** Why a session ends before its time, as the audit log says it. Nobody knows who replays a cookie. */
const ENDINGS = { logout: 'logout', replay: 'a refresh token that had been exchanged was presented again' } as const;
type Ending = keyof typeof ENDINGS;

function standingOf(token: RefreshToken | undefined, account: StoredAccount | undefined, nowMs: number): Standing {
  if (token === undefined || account === undefined) return { kind: 'dead' };
  if (token.session.revokedAtMs !== null || account.disabled || token.expiresAtMs <= nowMs) return { kind: 'dead' };
  return token.rotatedAtMs === null ? { kind: 'live', token, account } : { kind: 'replayed', token };
}

/** Succeeds when there is nothing to end. */
const endSessionOf = (context: AccountsContext, digest: RefreshToken['digest'], ending: Ending): Promise<Result<'ended', Fault>> =>
  context.store.transact(async (transaction) => {
    const token = await transaction.lockRefreshToken(digest);
    return token === undefined ? ok('ended') : endSession(context, transaction, token, ending);
  });

async function endSession(context: AccountsContext, transaction: AccountTransaction, token: RefreshToken, ending: Ending): Promise<Result<'ended', Fault>> {
  const account = await transaction.accountById(token.session.accountId);
  if (token.session.revokedAtMs !== null || account === undefined) return ok('ended');
  await transaction.revokeSession(token.session.id, context.clock.nowMs());
  const payload = { session_id: token.session.id };
  const actor = ending === 'replay' ? 'anonymous' : ownActor(account);
  const recorded = await context.audit.record(auditEntry('SessionRevoked', actor, account, { reason: ENDINGS[ending], payload }));
  return recorded.ok ? ok('ended') : recorded;
}

const sessionEnded = (): Result<never, Fault> => unauthenticated('the session is unknown or has ended; sign in again');
