/**
 * Registration: the first account owns the workspace, later ones need open registration (docs/spec.md, Registration).
 */
import { randomUUID } from 'node:crypto';
import { fail, ok, type Result } from '../core/base/result.ts';
import { type Fault, invalid } from '../core/fault.ts';
import type { Account, AccountId } from '../core/identity/account.ts';
import { type EmailAddress, parseEmail } from '../core/identity/email.ts';
import { acceptPassword } from '../core/identity/password-rules.ts';
import { digestIfIssued } from '../credentials/secret-token.ts';
import { type AccountsContext, announce, auditEntry, ownActor, publicAccount } from './context.ts';
import type { NewAccount } from './store.ts';

export type RegisterInput = {
  readonly email: string;
  readonly password: string;
  /** Proof that the operator makes the first account. */
  readonly setupToken?: string | undefined;
  readonly bearer?: string | undefined;
  /** The client's address. */
  readonly address: string | null;
};

/**
 * Faults: `registration_closed`, `setup_required`, `invalid_argument` for the e-mail, `weak_password`, `email_taken`,
 * and those of hashing, the store and the audit log.
 */
export async function register(context: AccountsContext, input: RegisterInput): Promise<Result<Account, Fault>> {
  const hasAccounts = await context.store.read((reads) => reads.hasAccounts());
  if (!hasAccounts.ok) return hasAccounts;
  if (hasAccounts.value && !context.openRegistration) return fail({ kind: 'registration_closed' });
  if (!hasAccounts.value && !(await isProven(context, input))) return fail({ kind: 'setup_required' });
  const email = readEmail(input.email);
  if (!email.ok) return email;
  const passwordHash = await hashNewPassword(context, input.password, email.value);
  if (!passwordHash.ok) return passwordHash;

  const registered = await context.store.transact(async (transaction) => {
    // Asked again under the lock: of two that were both first a moment ago, only one is now.
    await transaction.lockRoles();
    const isFirst = !(await transaction.hasAccounts());
    if (!isFirst && !context.openRegistration) return fail({ kind: 'registration_closed' });
    const role = isFirst ? 'owner' : 'developer';
    const orgId = isFirst ? null : context.openRegistrationOrg;
    const account = await transaction.insertAccount(
      newAccount(context, { email: email.value, passwordHash: passwordHash.value, role, orgId }),
    );
    if (account === undefined) return fail({ kind: 'email_taken', email: email.value });
    const recorded = await context.audit.record(
      auditEntry('AccountRegistered', ownActor(account), account, { payload: { role } }),
    );
    return recorded.ok ? ok(publicAccount(account)) : recorded;
  });
  if (registered.ok) announce(context, 'registered', registered.value);
  return registered;
}

async function isProven({ setup }: AccountsContext, { setupToken, bearer }: RegisterInput): Promise<boolean> {
  if (setup === undefined) return true;
  if (setupToken !== undefined && digestIfIssued(setupToken) === setup.token) return true;
  return bearer !== undefined && (await setup.isAdmin(bearer));
}

/** Who may register without an invite: the first account, everybody, or nobody. */
export type RegistrationState = 'first_account' | 'open' | 'closed';

/** Tells the sign-in page which form to show. Never fails: an unreachable store is reported when the form is sent. */
export class RegistrationStatus {
  readonly #context: Pick<AccountsContext, 'store' | 'openRegistration'>;
  #isFirstMade = false;

  constructor(context: Pick<AccountsContext, 'store' | 'openRegistration'>) {
    this.#context = context;
  }

  /**
   * Accounts are never deleted: once there is one, the store is not asked again, and people need not wait for one that
   * is silent.
   */
  async state(): Promise<RegistrationState> {
    const isEmpty = await this.isEmpty();
    if (isEmpty.ok && isEmpty.value) return 'first_account';
    return this.#context.openRegistration ? 'open' : 'closed';
  }

  /** Whether there is no account yet. */
  async isEmpty(): Promise<Result<boolean, Fault>> {
    if (this.#isFirstMade) return ok(false);
    const hasAccounts = await this.#context.store.read((reads) => reads.hasAccounts());
    if (!hasAccounts.ok) return hasAccounts;
    this.#isFirstMade = hasAccounts.value;
    return ok(!hasAccounts.value);
  }
}

export function readEmail(text: string): Result<EmailAddress, Fault> {
  const email = parseEmail(text);
  return email === undefined ? invalid('email', 'is not a valid e-mail address') : ok(email);
}

/** The hash of a password that keeps the rules. */
export async function hashNewPassword(
  context: AccountsContext,
  password: string,
  email: EmailAddress,
): Promise<Result<string, Fault>> {
  const accepted = acceptPassword(password, context.commonPasswords, email);
  return accepted.ok ? context.passwords.hash(accepted.value) : accepted;
}

export function newAccount(
  context: AccountsContext,
  given: Pick<NewAccount, 'email' | 'passwordHash' | 'role' | 'orgId'>,
): NewAccount {
  return {
    ...given,
    id: randomUUID() as AccountId,
    disabled: false,
    tokenEpoch: 0,
    createdAtMs: context.clock.nowMs(),
    lastLoginAtMs: null,
  };
}
