/** Sessions after the sign-in: a cookie that changes at every use, and the end of them (docs/spec.md, Sessions). */

import { fail, ok, type Result } from '../core/base/result.ts';
import { type Fault, unauthenticated } from '../core/fault.ts';
import { refreshLifetimeMs, subjectOf } from '../core/identity/account.ts';
import { digestIfIssued, mintSecret } from '../credentials/secret-token.ts';
import { type AccountsContext, auditEntry, ownActor } from './context.ts';
import type { SignIn } from './login.ts';
import type { AccountReads, AccountTransaction, RefreshToken, Session, StoredAccount } from './store.ts';

export type RefreshInput = { readonly refreshToken: string };
export type LogoutInput = { readonly refreshToken: string | undefined };

type Standing =
  | { readonly kind: 'live'; readonly token: RefreshToken; readonly account: StoredAccount }
  | { readonly kind: 'replayed'; readonly token: RefreshToken }
  | { readonly kind: 'dead' };

/**
 * A fresh access token and the cookie's successor, which lives a whole refresh lifetime from now. A cookie that has
 * been exchanged already ends the session it came from: it has been copied. If two uses race, one is answered, and the
 * session ends. Faults: `unauthenticated`, `conflict` when the account is changed this very moment (the cookie stays
 * good), `overloaded`, and those of the store and the audit log.
 */
export async function refresh(
  context: AccountsContext,
  { refreshToken }: RefreshInput,
): Promise<Result<SignIn, Fault>> {
  const digest = digestIfIssued(refreshToken);
  if (digest === undefined) return sessionEnded();
  const read = await context.store.read(async (reads) =>
    standingOf(reads, await reads.refreshToken(digest), context.clock.nowMs()),
  );
  if (!read.ok) return read;
  const standing = read.value;
  if (standing.kind === 'dead') return sessionEnded();
  if (standing.kind === 'replayed') {
    const ended = await endSessionOf(context, digest, 'replay');
    return ended.ok ? sessionEnded() : ended;
  }
  // Done before the cookie is exchanged: a cookie that was exchanged without an answer would look stolen the next time.
  const access = await context.tokens.mintForAccount(standing.account, standing.token.session.id);
  if (!access.ok) return access;
  const next = mintSecret();
  const lifetimeMs = refreshLifetimeMs(standing.token.session.rememberMe);
  const exchanged = await exchange(context, digest, standing.account, { digest: next.digest, lifetimeMs });
  if (!exchanged.ok) return exchanged;
  if (exchanged.value !== 'exchanged') {
    endTokensOf(context, exchanged.value);
    return sessionEnded();
  }
  return ok({ access: access.value, refreshToken: next.secret, refreshLifetimeMs: lifetimeMs });
}

type Successor = { readonly digest: RefreshToken['digest']; readonly lifetimeMs: number };

/** Exchanges the cookie of this account for its successor, if it still may be once its row is locked. */
const exchange = (
  context: AccountsContext,
  digest: RefreshToken['digest'],
  { tokenEpoch }: StoredAccount,
  next: Successor,
): Promise<Result<'exchanged' | Ended, Fault>> =>
  context.store.transact<'exchanged' | Ended>(async (transaction) => {
    const nowMs = context.clock.nowMs();
    const standing = await standingOf(transaction, await transaction.lockRefreshToken(digest), nowMs);
    if (standing.kind === 'dead') return ok(NOTHING_ENDED);
    if (standing.kind === 'replayed') return endSession(context, transaction, standing.token, 'replay');
    const {
      token: { session },
      account,
    } = standing;
    if (account.tokenEpoch !== tokenEpoch)
      return fail({ kind: 'conflict', detail: 'the account was just changed; try again' });
    await Promise.all([
      transaction.rotateRefreshToken(digest, nowMs),
      transaction.insertRefreshToken({ digest: next.digest, expiresAtMs: nowMs + next.lifetimeMs }, session.id),
    ]);
    const recorded = await context.audit.record(
      auditEntry('TokenIssued', ownActor(account), account, { reason: 'refresh', payload: { session_id: session.id } }),
    );
    return recorded.ok ? ok('exchanged') : recorded;
  });

/** Ends the session of the cookie, which may be an exchanged one. Succeeds when there is nothing to end. */
export async function logout(context: AccountsContext, { refreshToken }: LogoutInput): Promise<Result<void, Fault>> {
  const digest = refreshToken === undefined ? undefined : digestIfIssued(refreshToken);
  if (digest === undefined) return ok(undefined);
  const ended = await endSessionOf(context, digest, 'logout');
  return ended.ok ? ok(undefined) : ended;
}

/** Why a session ends before its time, as the audit log says it. Nobody knows who replays a cookie. */
const ENDINGS = { logout: 'logout', replay: 'a refresh token that was already used was presented again' } as const;
type Ending = keyof typeof ENDINGS;

async function standingOf(reads: AccountReads, token: RefreshToken | undefined, nowMs: number): Promise<Standing> {
  const account = token && (await reads.accountById(token.session.accountId));
  if (token === undefined || account === undefined) return { kind: 'dead' };
  if (token.session.revokedAtMs !== null || account.disabled) return { kind: 'dead' };
  // its time does not count: a successor may be in use
  if (token.rotatedAtMs !== null) return { kind: 'replayed', token };
  return token.expiresAtMs <= nowMs ? { kind: 'dead' } : { kind: 'live', token, account };
}

/** The session that a transaction has ended, if any. Its access tokens end once that is committed. */
type Ended = { readonly session: Session | undefined };
const NOTHING_ENDED: Ended = { session: undefined };

function endTokensOf({ revocations }: AccountsContext, { session }: Ended): void {
  if (session !== undefined) revocations.endSession(session.id, subjectOf(session.accountId));
}

/** Succeeds when there is nothing to end. */
async function endSessionOf(
  context: AccountsContext,
  digest: RefreshToken['digest'],
  ending: Ending,
): Promise<Result<Ended, Fault>> {
  const ended = await context.store.transact<Ended>(async (transaction) => {
    const token = await transaction.lockRefreshToken(digest);
    return token === undefined ? ok(NOTHING_ENDED) : endSession(context, transaction, token, ending);
  });
  if (ended.ok) endTokensOf(context, ended.value);
  return ended;
}

async function endSession(
  context: AccountsContext,
  transaction: AccountTransaction,
  token: RefreshToken,
  ending: Ending,
): Promise<Result<Ended, Fault>> {
  const account = await transaction.accountById(token.session.accountId);
  if (token.session.revokedAtMs !== null || account === undefined) return ok(NOTHING_ENDED);
  await transaction.revokeSession(token.session.id, context.clock.nowMs());
  const payload = { session_id: token.session.id };
  const actor = ending === 'replay' ? 'anonymous' : ownActor(account);
  const recorded = await context.audit.record(
    auditEntry('SessionRevoked', actor, account, { reason: ENDINGS[ending], payload }),
  );
  return recorded.ok ? ok({ session: token.session }) : recorded;
}

const sessionEnded = (): Result<never, Fault> => unauthenticated('the session is unknown or has ended; sign in again');
