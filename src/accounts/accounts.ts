/** All account use cases: those that I/O threads call by name, and those that the main thread calls periodically. */

import { networkOf } from '../core/base/client-address.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import { ACCESS_TOKEN_SECS, subjectOf } from '../core/identity/account.ts';
import { Backlog } from '../fairness/backlog.ts';
import { bounded } from '../fairness/bounded.ts';
import { throttle } from '../fairness/rate-limit.ts';
import type { UseCase } from '../ports/use-case.ts';
import { unlock } from './access.ts';
import { changeRole, getAccount, listAccounts, me, revokeSessions, setDisabled } from './admin.ts';
import { type AccountsContext, revokeTokens } from './context.ts';
import { listInvites, revokeInvite } from './invite-admin.ts';
import { acceptInvite, invite } from './invites.ts';
import { Decoys, login } from './login.ts';
import { confirmPasswordReset, issuePasswordReset, type ResetQueue, requestPasswordReset } from './password-reset.ts';
import { type RegistrationState, RegistrationStatus, register } from './registration.ts';
import { logout, refresh } from './sessions.ts';

/** The parts that the use cases of one gateway share, beyond the given ones. */
type Shared = AccountsContext & {
  readonly decoys: Decoys;
  readonly resets: ResetQueue;
  readonly registration: RegistrationStatus;
};

const USE_CASES = {
  signInMethods,
  register,
  login,
  refresh,
  logout,
  invite,
  acceptInvite,
  listInvites,
  revokeInvite,
  requestPasswordReset,
  confirmPasswordReset,
  me,
  listAccounts,
  getAccount,
  changeRole,
  setDisabled,
  unlock,
  issuePasswordReset,
  revokeSessions,
};

/** A use case without its context: plain data in, plain data out, so that it can be asked from another thread. */
type Asked<F> = F extends (context: Shared, input: infer Input) => infer Reply ? (input: Input) => Reply : never;

export type AccountUseCases = { readonly [Name in keyof typeof USE_CASES]: Asked<(typeof USE_CASES)[Name]> };

type InContext = (context: Shared, input: never) => Promise<Result<unknown, Fault>>;

const answerEach = (answerOf: (useCase: InContext) => UseCase<never, unknown>): AccountUseCases =>
  Object.fromEntries(Object.entries(USE_CASES).map(([name, useCase]) => [name, answerOf(useCase)])) as AccountUseCases;

export type Accounts = {
  readonly useCases: AccountUseCases;
  /** Prepares what the first login needs, so that its duration reveals nothing, and what the sign-in page is told. */
  warmUp(): Promise<void>;
  /**
   * Ends the tokens of every account whose epoch grew elsewhere: before this gateway started, or in another gateway on
   * the same database. Call it at the start and every few seconds.
   */
  syncRevocations(): Promise<Result<void, Fault>>;
  /** Deletes rows that ended long ago. Call it about every hour. */
  prune(): Promise<Result<void, Fault>>;
  /** Whether there is no account yet. */
  isEmpty(): Promise<Result<boolean, Fault>>;
  /** Resolves when every requested reset has been prepared and handed to the mailer. */
  idle(): Promise<void>;
};

const RESETS_WAITING = 1000;
const RESETS_AT_ONCE = 2;

export function createAccounts(context: AccountsContext): Accounts {
  const decoys = new Decoys(context);
  const backlog = new Backlog({
    capacity: RESETS_WAITING,
    concurrency: RESETS_AT_ONCE,
    onError: (error) => context.log.warn('a password reset failed', { err: error }),
  });
  const resets: ResetQueue = {
    backlog,
    onFailed: throttle(context.clock, (fields) =>
      context.log.warn('a requested password reset could not be prepared', fields),
    ),
    onDropped: throttle(context.clock, (fields) =>
      context.log.warn('too many password resets are waiting; one was dropped', fields),
    ),
  };
  const registration = new RegistrationStatus(context);
  const shared: Shared = { ...context, decoys, resets, registration };
  const useCases = answerEach((useCase) => (input) => useCase(shared, input));
  return {
    useCases: {
      ...useCases,
      register: bounded(context.logins, context.clock, callerOf, useCases.register),
      login: bounded(context.logins, context.clock, callerOf, useCases.login),
    },
    warmUp: async () => void (await Promise.all([decoys.warmUp(), registration.state()])),
    syncRevocations: () => syncRevocations(context),
    prune: () => prune(context),
    isEmpty: () => registration.isEmpty(),
    idle: () => backlog.idle(),
  };
}

/** The queue for hashing goes by network, so that one address cannot keep all others from signing in. */
const callerOf = ({ address }: { readonly address: string | null }): string | null =>
  address === null ? null : networkOf(address);

/** Every account use case on a gateway without an account store (docs/spec.md, Accounts). */
export function withoutAccountStore(): AccountUseCases {
  return {
    ...answerEach(() => async () => fail({ kind: 'account_store_unavailable' })),
    signInMethods: async () =>
      ok({ methods: ['api_key'], registration: undefined, isSetupRequired: false, canSendMail: false }),
  };
}

/** `registration` is undefined where nobody can have an account. */
export type SignInMethods = {
  readonly methods: readonly ('api_key' | 'password')[];
  readonly registration: RegistrationState | undefined;
  /** Whether the first account needs proof. */
  readonly isSetupRequired: boolean;
  /** Whether a forgotten password can be reset by mail. */
  readonly canSendMail: boolean;
};

/** How one can authenticate here (docs/spec.md, HTTP); never fails. */
async function signInMethods(
  { registration, setup, canSendMail }: Shared,
  _: Record<never, never>,
): Promise<Result<SignInMethods, Fault>> {
  const state = await registration.state();
  return ok({
    methods: ['api_key', 'password'],
    registration: state,
    isSetupRequired: state === 'first_account' && setup !== undefined,
    canSendMail: canSendMail(),
  });
}

/** Works in many small transactions: a long one would delay others, and would time out before its end. */
async function prune(context: AccountsContext): Promise<Result<void, Fault>> {
  for (;;) {
    const isMoreLeft = await context.store.transact(async (transaction) =>
      ok(await transaction.prune(context.clock.nowMs())),
    );
    if (!isMoreLeft.ok) return isMoreLeft;
    if (!isMoreLeft.value) return ok(undefined);
  }
}

/** How far the clock of one gateway may be ahead of another's. Its tokens expire that much later there. */
const CLOCKS_APART_MS = 60 * 60 * 1000;

async function syncRevocations(context: AccountsContext): Promise<Result<void, Fault>> {
  const withinMs = ACCESS_TOKEN_SECS * 1000 + CLOCKS_APART_MS;
  const revoked = await context.store.read((reads) =>
    Promise.all([reads.accountsRevokedWithin(withinMs), reads.sessionsEndedWithin(withinMs)]),
  );
  if (!revoked.ok) return revoked;
  const [accounts, sessions] = revoked.value;
  for (const { id, tokenEpoch } of accounts) revokeTokens(context, id, tokenEpoch);
  for (const { id, accountId } of sessions) context.revocations.endSession(id, subjectOf(accountId));
  return ok(undefined);
}
