/**
 * Signing in with e-mail and password (docs/spec.md, Sign-in).
 *
 * Nothing tells an address that has an account from one that has none: not the status, not the body, not the time
 * (an unknown address costs a real hash and the same statements), and not the lock, which both get.
 */
import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { type AuditDraft, NO_LINEAGE } from '../core/audit/audit.ts';
import type { SecretDigest } from '../core/base/ids.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import { type Fault, unauthenticated } from '../core/fault.ts';
import {
  afterFailure,
  type Lockouts,
  lockedForSecs,
  lockedOutForSecs,
  NO_FAILURES,
  refreshLifetimeMs,
} from '../core/identity/account.ts';
import { type EmailKey, emailKeyOf, parseEmail } from '../core/identity/email.ts';
import { readPassword } from '../core/identity/password-rules.ts';
import { digestOf, mintSecret } from '../credentials/secret-token.ts';
import type { AccessToken, Passwords } from '../ports/ports.ts';
import { type AccountsContext, announce, auditEntry, ownActor } from './context.ts';
import { deviceOf, mintDevice } from './device.ts';
import type { AccountStore, AccountTransaction, StoredAccount } from './store.ts';

/**
 * The hash that a password is compared with when there is no account. It must cost what an account's would: after a
 * change of the hashing parameters, accounts keep hashes of the old ones until their next sign-in. So each address
 * without an account follows the cost of one account. A secret decides which: otherwise two such addresses, one on
 * either side of a third, would reveal whether that one has an account.
 */
export class Decoys {
  readonly #passwords: Passwords;
  readonly #store: AccountStore;
  #todays: Promise<Result<string, Fault>> | undefined;
  #secret: Promise<Result<string, Fault>> | undefined;

  constructor({ passwords, store }: { readonly passwords: Passwords; readonly store: AccountStore }) {
    this.#passwords = passwords;
    this.#store = store;
  }

  /** Loads what all decoys need, once. Call it before the first login, which would otherwise take longer. */
  async warmUp(): Promise<Result<{ readonly todays: string; readonly secret: string }, Fault>> {
    this.#todays ??= this.#passwords.hash(randomBytes(32).toString('base64url'));
    this.#secret ??= this.#store.read((reads) => reads.decoySecret());
    const [todays, secret] = await Promise.all([this.#todays, this.#secret]);
    if (!todays.ok) this.#todays = undefined;
    if (!secret.ok) this.#secret = undefined;
    if (!todays.ok) return todays;
    return secret.ok ? ok({ todays: todays.value, secret: secret.value }) : secret;
  }

  /** The place among the account ids where the account that an address follows is looked up. */
  async placeOf(attempts: SecretDigest): Promise<Result<string, Fault>> {
    const ready = await this.warmUp();
    return ready.ok ? ok(createHmac('sha256', ready.value.secret).update(attempts).digest('hex')) : ready;
  }

  /** A decoy that costs as much as `hash`, or as a new account's hash where there is none. */
  async like(hash: string | undefined): Promise<Result<string, Fault>> {
    if (hash !== undefined)
      return ok(hash.replace(/[^$]+\$[^$]+$/, (saltAndHash) => saltAndHash.replace(/[^$]/g, 'A')));
    const ready = await this.warmUp();
    return ready.ok ? ok(ready.value.todays) : ready;
  }
}

export type LoginInput = {
  readonly email: string;
  readonly password: string;
  readonly rememberMe: boolean;
  /** The client's address, for the audit log. */
  readonly address: string | null;
  /** The cookie that an earlier sign-in left with the device. */
  readonly device?: string | undefined;
};

export type SignIn = {
  readonly access: AccessToken;
  /** For the cookie only; the store keeps its hash. */
  readonly refreshToken: string;
  readonly refreshLifetimeMs: number;
  /** By which the device is known from now on; only of a sign-in with a password. */
  readonly device?: string | undefined;
};

type LoginContext = AccountsContext & { readonly decoys: Decoys };

/** An attempt: the account that it names, and the keys under which its failures are counted. */
type Attempt = {
  readonly input: LoginInput;
  readonly attempts: SecretDigest;
  /** Undefined unless the device has signed in to the account before. */
  readonly device: SecretDigest | undefined;
  /** The cookie for the device if it signs in. */
  readonly cookie: string;
  readonly account: StoredAccount | undefined;
  readonly decoy: string;
};

/**
 * Faults: `unauthenticated`, the same for every reason; `account_locked`, even with the right password; `overloaded`,
 * and those of the store and the audit log.
 */
export async function login(context: LoginContext, input: LoginInput): Promise<Result<SignIn, Fault>> {
  const email = parseEmail(input.email);
  // A text that is not an address has no account, and is handled in the same way.
  const key = email === undefined ? (`malformed ${input.email}` as EmailKey) : emailKeyOf(email);
  const attempts = digestOf(key);
  const ready = await context.decoys.warmUp();
  if (!ready.ok) return ready;
  const { secret } = ready.value;
  // Here and below, what does not need an answer is asked together with what comes before it: the store may be far
  // away.
  const place = await context.decoys.placeOf(attempts);
  if (!place.ok) return place;
  const device = deviceOf(secret, key, input.device);
  const found = await context.store.read((reads) =>
    Promise.all([
      reads.accountByEmail(email === undefined ? ('' as EmailKey) : key),
      reads.signInState(attempts, place.value),
      device && reads.signInState(device, place.value),
    ]),
  );
  if (!found.ok) return found;
  const [account, { lockout, hashNear }, ofDevice] = found.value;
  const decoy = await context.decoys.like(hashNear);
  if (!decoy.ok) return decoy;
  const cookie = (device && input.device) ?? mintDevice(secret, key);
  const attempt: Attempt = { input, attempts, device, cookie, account, decoy: decoy.value };

  const locked = lockedOutForSecs({ account: lockout, device: ofDevice?.lockout }, context.clock.nowMs());
  if (locked !== undefined) return refuseLocked(context, attempt, locked);
  const verified = await verify(context, attempt);
  if (!verified.ok) return verified;
  return verified.value.matches && attempt.account !== undefined && !attempt.account.disabled
    ? succeed(context, attempt, attempt.account, verified.value.rehash)
    : countFailure(context, attempt);
}

async function verify(context: LoginContext, { account, decoy, input }: Attempt) {
  const password = readPassword(input.password);
  const verified = await context.passwords.verify(account?.passwordHash ?? decoy, password ?? '');
  if (!verified.ok || password !== undefined) return verified;
  return ok({ matches: false, rehash: false });
}

/** The final transaction's finding that the account has been locked meanwhile. */
type Locked = { readonly kind: 'locked'; readonly lockedSecs: number };

/**
 * The attempt is decided while the row is locked. However many run at once, the first five failures count, and all that
 * come after them learn only that the account is locked, whether their password is right or wrong.
 */
async function countFailure(context: AccountsContext, attempt: Attempt): Promise<Result<never, Fault>> {
  const counted = await context.store.transact<Locked | { readonly kind: 'counted'; readonly locksNow: boolean }>(
    async (transaction) => {
      const nowMs = context.clock.nowMs();
      const before = await lockoutsOf(transaction, attempt, nowMs);
      const lockedSecs = lockedOutForSecs(before, nowMs);
      if (lockedSecs !== undefined) return ok({ kind: 'locked', lockedSecs });
      const next = afterFailure(before.account, nowMs);
      await Promise.all([
        transaction.saveLockout(attempt.attempts, next, nowMs),
        attempt.device &&
          transaction.saveLockout(attempt.device, afterFailure(before.device ?? NO_FAILURES, nowMs), nowMs),
      ]);
      const recorded = await context.audit.record(failureEntry(attempt, 'LoginFailed', 'wrong e-mail or password'));
      if (!recorded.ok) return recorded;
      const locksNow = next.lockedUntilMs !== null && next.lockedUntilMs !== before.account.lockedUntilMs;
      if (!locksNow) return ok({ kind: 'counted', locksNow });
      const lockRecorded = await context.audit.record(
        failureEntry(attempt, 'AccountLocked', `${next.failures} failed attempts`),
      );
      return lockRecorded.ok ? ok({ kind: 'counted', locksNow: true }) : lockRecorded;
    },
  );
  if (!counted.ok) return counted;
  if (counted.value.kind === 'locked') return refuseLocked(context, attempt, counted.value.lockedSecs);
  if (counted.value.locksNow && attempt.account !== undefined) announce(context, 'locked', attempt.account);
  return wrongCredentials();
}

/** Locked in one order everywhere, so that two attempts never wait for each other. */
async function lockoutsOf(
  transaction: AccountTransaction,
  { attempts, device }: Attempt,
  nowMs: number,
): Promise<Lockouts> {
  const [ofAccount, ofDevice] = await Promise.all([
    transaction.lockLockout(attempts, nowMs),
    device && transaction.lockLockout(device, nowMs),
  ]);
  return { account: ofAccount, device: ofDevice };
}

async function succeed(
  context: AccountsContext,
  attempt: Attempt,
  account: StoredAccount,
  rehash: boolean,
): Promise<Result<SignIn, Fault>> {
  // Both before the transaction, which must not hold a connection while the crypto threads are busy.
  const sessionId = randomUUID();
  const access = await context.tokens.mintForAccount(account, sessionId);
  if (!access.ok) return access;
  const rehashed = rehash ? await context.passwords.hash(readPassword(attempt.input.password) ?? '') : undefined;
  // when the pool is busy, the next login rehashes it
  const passwordHash = rehashed?.ok ? rehashed.value : account.passwordHash;

  const { secret, digest } = mintSecret();
  const lifetimeMs = refreshLifetimeMs(attempt.input.rememberMe);
  const settled = await context.store.transact<Locked | { readonly kind: 'changed' } | { readonly kind: 'signed-in' }>(
    async (transaction) => {
      const nowMs = context.clock.nowMs();
      const [lockouts, current] = await Promise.all([
        lockoutsOf(transaction, attempt, nowMs),
        transaction.lockAccount(account.id),
      ]);
      const lockedSecs = lockedOutForSecs(lockouts, nowMs);
      if (lockedSecs !== undefined) return ok({ kind: 'locked', lockedSecs });
      // Disabled, given another role or another password since it was read: this token is already dead.
      if (current === undefined || current.disabled || current.tokenEpoch !== account.tokenEpoch)
        return ok({ kind: 'changed' });
      const session = {
        id: sessionId,
        accountId: account.id,
        rememberMe: attempt.input.rememberMe,
        createdAtMs: nowMs,
        revokedAtMs: null,
      };
      // Others go on guessing: a lock that this device has passed stays.
      const isLocked = lockedForSecs(lockouts.account, nowMs) !== undefined;
      await Promise.all([
        isLocked ? undefined : transaction.saveLockout(attempt.attempts, NO_FAILURES, nowMs),
        attempt.device && transaction.saveLockout(attempt.device, NO_FAILURES, nowMs),
        transaction.changeAccount(account.id, { lastLoginAtMs: nowMs, passwordHash }),
        transaction.insertSession(session),
        transaction.insertRefreshToken({ digest, expiresAtMs: nowMs + lifetimeMs }, session.id),
      ]);
      const payload = {
        session_id: session.id,
        remember_me: session.rememberMe,
        address: attempt.input.address,
        ...(isLocked && { known_device: true }),
      };
      const recorded = await context.audit.record(
        auditEntry('LoginSucceeded', ownActor(account), account, { payload }),
      );
      return recorded.ok ? ok({ kind: 'signed-in' }) : recorded;
    },
  );
  if (!settled.ok) return settled;
  switch (settled.value.kind) {
    case 'locked':
      return refuseLocked(context, attempt, settled.value.lockedSecs);
    case 'changed':
      return wrongCredentials();
    case 'signed-in':
      announce(context, 'signed_in', account);
      return ok({
        access: access.value,
        refreshToken: secret,
        refreshLifetimeMs: lifetimeMs,
        device: attempt.cookie,
      });
  }
}

async function refuseLocked(
  context: AccountsContext,
  attempt: Attempt,
  retryAfterSecs: number,
): Promise<Result<never, Fault>> {
  const recorded = await context.audit.record(failureEntry(attempt, 'LoginFailed', 'locked'));
  return recorded.ok ? fail({ kind: 'account_locked', retryAfterSecs }) : recorded;
}

const wrongCredentials = (): Result<never, Fault> => unauthenticated('wrong e-mail or password');

function failureEntry(
  { account, input }: Attempt,
  eventType: 'LoginFailed' | 'AccountLocked',
  reason: string,
): AuditDraft {
  const payload = { address: input.address };
  if (account !== undefined) return auditEntry(eventType, 'anonymous', account, { reason, payload });
  // Logged only when it is an address: people type passwords into the wrong field.
  return {
    eventType,
    actor: 'anonymous',
    lineage: NO_LINEAGE,
    reason,
    payload: { account_id: null, email: parseEmail(input.email) ?? null, ...payload },
  };
}
