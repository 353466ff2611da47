/** The needs of every account use case, and helpers that several of them share. */

import { type AuditDraft, type AuditEvent, lineageOfOrg } from '../core/audit/audit.ts';
import type { SecretDigest } from '../core/base/ids.ts';
import type { Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import { type Account, type AccountId, subjectOf } from '../core/identity/account.ts';
import type { CommonPasswords } from '../core/identity/password-rules.ts';
import type { EndMadeKeys, Made } from '../credentials/made-keys.ts';
import type { RevocationList } from '../credentials/revocations.ts';
import type { Bounds } from '../fairness/bounded.ts';
import type { AccessTokens, AccountEvent, AccountEvents, AuditLog, Clock, Mailer, Passwords } from '../ports/ports.ts';
import type { AccountStore, StoredAccount } from './store.ts';

/** Proof that the operator makes the first account: a token that only its terminal has shown, or the admin key. */
export type Setup = {
  readonly token: SecretDigest;
  readonly isAdmin: (bearer: string) => Promise<boolean>;
};

export type AccountsContext = {
  readonly store: AccountStore;
  readonly passwords: Passwords;
  readonly tokens: AccessTokens;
  readonly revocations: Pick<RevocationList, 'revoke' | 'endSession'>;
  /** Whether the key of the subject `key:<id>` was revoked. Fault: `store_unreachable`. */
  readonly isKeyRevoked: (subject: string) => Promise<Result<boolean, Fault>>;
  /** Ends what the account made and may not hold any more. Faults: those of the stores and the log. */
  readonly endMade: (asked: EndMadeKeys) => Promise<Result<Made, Fault>>;
  readonly audit: AuditLog;
  readonly mailer: Mailer;
  /** Whether mails are sent at all. */
  readonly canSendMail: () => boolean;
  readonly events: AccountEvents;
  readonly clock: Clock;
  readonly commonPasswords: CommonPasswords;
  /** SVC_AUTH_OPEN_REGISTRATION: whether anybody may register once there is an owner. */
  readonly openRegistration: boolean;
  /** SVC_AUTH_OPEN_REGISTRATION_ORG: the org of accounts made by open registration; null: none. */
  readonly openRegistrationOrg: string | null;
  /** The proof that the first registration has to present; undefined: none. */
  readonly setup: Setup | undefined;
  /** The gateway's public address, without a slash at the end: the links in mails lead there. */
  readonly publicUrl: () => string;
  readonly logins: Bounds;
  readonly log: { warn(message: string, fields?: object): void };
};

/** An account as everybody but the store sees it. */
export function publicAccount({
  id,
  email,
  role,
  orgId,
  disabled,
  tokenEpoch,
  createdAtMs,
  lastLoginAtMs,
}: StoredAccount): Account {
  return { id, email, role, orgId, disabled, tokenEpoch, createdAtMs, lastLoginAtMs };
}

type Subject = Pick<Account, 'id' | 'email' | 'orgId'>;

/** An audit entry about an account; `actor` caused it. */
export function auditEntry(
  eventType: AuditEvent,
  actor: string,
  about: Subject,
  details: Pick<AuditDraft, 'reason' | 'payload'> = {},
): AuditDraft {
  const payload = { account_id: about.id, email: about.email, ...details.payload };
  return { eventType, actor, lineage: lineageOfOrg(about.orgId), reason: details.reason, payload };
}

export const ownActor = (account: Pick<Account, 'id'>): string => subjectOf(account.id);

export function announce(
  context: AccountsContext,
  change: AccountEvent['change'],
  account: Subject & Pick<Account, 'role'>,
): void {
  context.events.publish({
    change,
    accountId: account.id,
    email: account.email,
    role: account.role,
    orgId: account.orgId,
    atMs: context.clock.nowMs(),
  });
}

/**
 * Call it once a new epoch is committed, and before the caller is answered: it ends the tokens of the old one in every
 * thread.
 */
export function revokeTokens(context: AccountsContext, id: AccountId, tokenEpoch: number): void {
  context.revocations.revoke(subjectOf(id), tokenEpoch);
}
