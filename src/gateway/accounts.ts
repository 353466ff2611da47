/** All account use cases: those that I/O threads call by name, and those that the main thread calls periodically. */
import { ACCESS_TOKEN_SECS } from '../core/account.ts';
import { networkOf } from '../core/client-address.ts';
import type { Fault } from '../core/fault.ts';
import { fail, ok, type Result } from '../core/result.ts';
import { changeRole, getAccount, listAccounts, me, revokeSessions, setDisabled } from './account-admin.ts';
import { revokeTokens, type AccountsContext } from './accounts-context.ts';
import { Backlog } from './backlog.ts';
import { bounded } from './bounded.ts';
import { listInvites, revokeInvite } from './invite-admin.ts';
import { acceptInvite, invite } from './invites.ts';
import { DecoyHash, login, type LoginInput } from './login.ts';
import { confirmPasswordReset, requestPasswordReset, type RequestPasswordResetInput, type ResetQueue } from './password-reset.ts';
import { register, registrationState, type RegistrationState } from './registration.ts';
import { logout, refresh } from './sessions.ts';
import { throttle } from './throttle.ts';

/** A use case without its context: plain data in, plain data out, so that it can be asked from another thread. */
type Asked<F> = F extends (context: AccountsContext, input: infer Input) => infer Reply ? (input: Input) => Reply : never;

/** `registration` is undefined where nobody can have an account. */
export type SignInMethods = { readonly methods: readonly ('api_key' | 'password')[]; readonly registration: RegistrationState | undefined };

export type AccountUseCases = {
  /** How one can authenticate here (spec: Authentication endpoints); never fails. */
  readonly signInMethods: (input: Record<never, never>) => Promise<Result<SignInMethods, Fault>>;
  readonly register: Asked<typeof register>;
  readonly login: (input: LoginInput) => ReturnType<typeof login>;
  readonly refresh: Asked<typeof refresh>;
  readonly logout: Asked<typeof logout>;
  readonly invite: Asked<typeof invite>;
  readonly acceptInvite: Asked<typeof acceptInvite>;
  readonly listInvites: Asked<typeof listInvites>;
  readonly revokeInvite: Asked<typeof revokeInvite>;
  readonly requestPasswordReset: (input: RequestPasswordResetInput) => ReturnType<typeof requestPasswordReset>;
  readonly confirmPasswordReset: Asked<typeof confirmPasswordReset>;
  readonly me: Asked<typeof me>;
  readonly listAccounts: Asked<typeof listAccounts>;
  readonly getAccount: Asked<typeof getAccount>;
  readonly changeRole: Asked<typeof changeRole>;
  readonly setDisabled: Asked<typeof setDisabled>;
  readonly revokeSessions: Asked<typeof revokeSessions>;
};

export type Accounts = {
  readonly useCases: AccountUseCases;
  /** Prepares what the first login needs, so that its duration reveals nothing. */
  warmUp(): Promise<Result<unknown, Fault>>;
  /**
   * Ends the tokens of every account whose epoch grew elsewhere: before this gateway started, or in another gateway on the
   * same database. Call it at the start and every few seconds.
   */
  syncRevocations(): Promise<Result<void, Fault>>;
  /** Deletes rows that ended long ago. Call it about every hour. */
  prune(): Promise<Result<void, Fault>>;
  /** Resolves when every requested reset has been prepared and handed to the mailer. */
  idle(): Promise<void>;
};

const RESETS_WAITING = 1000;
const RESETS_AT_ONCE = 2;

export function createAccounts(context: AccountsContext): Accounts {
  const decoy = new DecoyHash(context.passwords);
  const backlog = new Backlog({
    capacity: RESETS_WAITING,
    concurrency: RESETS_AT_ONCE,
    onError: (error) => context.log.warn('a password reset failed', { err: error }),
  });
  const resets: ResetQueue = {
    backlog,
    onFailed: throttle(context.clock, (fields) => context.log.warn('a password reset was asked for and could not be prepared', fields)),
    onDropped: throttle(context.clock, (fields) => context.log.warn('too many password resets are waiting; one was dropped', fields)),
  };
  const bind = <Input, Reply>(useCase: (context: AccountsContext, input: Input) => Reply) => (input: Input): Reply => useCase(context, input);
  return {
    useCases: {
      signInMethods: async () => ok({ methods: ['api_key', 'password'], registration: await registrationState(context) }),
      register: bounded(context.logins, context.clock, callerOf, bind(register)),
      login: bounded(context.logins, context.clock, callerOf, (input: LoginInput) => login(context, decoy, input)),
      refresh: bind(refresh),
      logout: bind(logout),
      invite: bind(invite),
      acceptInvite: bind(acceptInvite),
      listInvites: bind(listInvites),
      revokeInvite: bind(revokeInvite),
      requestPasswordReset: (input) => requestPasswordReset(context, resets, input),
      confirmPasswordReset: bind(confirmPasswordReset),
      me: bind(me),
      listAccounts: bind(listAccounts),
      getAccount: bind(getAccount),
      changeRole: bind(changeRole),
      setDisabled: bind(setDisabled),
      revokeSessions: bind(revokeSessions),
    },
    warmUp: () => decoy.get(),
    syncRevocations: () => syncRevocations(context),
    prune: () => prune(context),
    idle: () => backlog.idle(),
  };
}

/** The queue for hashing goes by network, so that one address cannot keep all others from signing in. */
const callerOf = ({ address }: { readonly address: string | null }): string | null => (address === null ? null : networkOf(address));

/** Every account use case on a gateway without an account store (spec: Errors). */
export function withoutAccountStore(): AccountUseCases {
  const refuse = async () => fail({ kind: 'account_store_unavailable' } as const);
  return {
    signInMethods: async () => ok({ methods: ['api_key'], registration: undefined }),
    register: refuse, login: refuse, refresh: refuse, logout: refuse,
    invite: refuse, acceptInvite: refuse, listInvites: refuse, revokeInvite: refuse,
    requestPasswordReset: refuse, confirmPasswordReset: refuse,
    me: refuse, listAccounts: refuse, getAccount: refuse, changeRole: refuse, setDisabled: refuse, revokeSessions: refuse,
  };
}

/** Works in many small transactions: a long one would delay others, and would time out before its end. */
async function prune(context: AccountsContext): Promise<Result<void, Fault>> {
  for (;;) {
    const isMoreLeft = await context.store.transact(async (transaction) => ok(await transaction.prune(context.clock.nowMs())));
    if (!isMoreLeft.ok) return isMoreLeft;
    if (!isMoreLeft.value) return ok(undefined);
  }
}

/** How far the clock of one gateway may be ahead of another's. Its tokens expire that much later there. */
const CLOCKS_APART_MS = 60 * 60 * 1000;

async function syncRevocations(context: AccountsContext): Promise<Result<void, Fault>> {
  const revoked = await context.store.read((reads) => reads.accountsRevokedWithin(ACCESS_TOKEN_SECS * 1000 + CLOCKS_APART_MS));
  if (!revoked.ok) return revoked;
  for (const { id, tokenEpoch } of revoked.value) revokeTokens(context, id, tokenEpoch);
  return ok(undefined);
}
