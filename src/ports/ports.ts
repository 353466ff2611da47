/** The outside world as the use cases see it. Adapters and threads implement it. */

import type { AgentRegistration } from '../core/agents/agents.ts';
import type { AuditDraft } from '../core/audit/audit.ts';
import type { AgentKey } from '../core/base/ids.ts';
import type { Result } from '../core/base/result.ts';
import { messageOf } from '../core/base/text.ts';
import type { BudgetChange, BudgetRow } from '../core/budget/rows.ts';
import type { StateTable } from '../core/effects.ts';
import type { Fault } from '../core/fault.ts';
import type { Account } from '../core/identity/account.ts';
import type { Role, Scope } from '../core/identity/roles.ts';
import type { LimitChange, LimitRow } from '../core/limits/rows.ts';
import type { StatsRow, UnsavedStats } from '../core/stats/stats.ts';

/**
 * Rejection of a store on this machine's disk when the system refuses a write, for example because the disk is full. It
 * is no defect: the caller is told to try again later, and the log tells the operator what to do.
 */
export class StoreUnwritable extends Error {
  override readonly name = 'StoreUnwritable';
  /** Both as in the system's error. */
  readonly code: unknown;
  readonly path: unknown;

  constructor(cause: unknown) {
    super(`the store cannot be written: ${messageOf(cause)}`, { cause });
    const { code, path } = Object(cause) as { readonly code?: unknown; readonly path?: unknown };
    this.code = code;
    this.path = path;
  }
}

/** Rejection of a store that gateways share: what another one has written is in the way, or it is unreachable. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly fault: Fault;

  constructor(fault: Fault) {
    super(fault.kind);
    this.fault = fault;
  }
}

/** Milliseconds since the Unix epoch, never running backwards but where a clock far ahead was set right. */
export type Clock = { nowMs(): number };

/** Resolves once the entry is in the log; a fault means it is not, and what it would have recorded must not happen. */
export type AuditLog = { record(draft: AuditDraft): Promise<Result<void, Fault>> };

/**
 * Keeps registrations across restarts. Resolves once the change would survive a crash; where several gateways share
 * them, with the names of those that do not act by it yet.
 */
export type AgentStore = {
  load(): Iterable<AgentRegistration>;
  /** `isRotation`: it takes the place of another registration of this agent. */
  save(registration: AgentRegistration, isRotation?: boolean): Promise<SavedAt>;
  remove(key: AgentKey): Promise<SavedAt>;
};

/** Names of gateways that do not act yet by what was saved, if there are any. */
export type SavedAt = readonly string[] | void;

/** Rows of spending, and of limits' counts. */
export type StoredRow = BudgetRow | LimitRow;

/** Keeps both across restarts. Changes that are saved together are kept together, or not at all. */
export type BudgetStore = {
  load(): Iterable<StoredRow>;
  save(changes: readonly (BudgetChange | LimitChange)[]): Promise<void>;
};

/** Keeps statistics across restarts. Resolves once the rows would survive a crash. */
export type StatsStore = {
  load(): Iterable<StatsRow>;
  save(unsaved: readonly UnsavedStats[]): Promise<void>;
};

/** Keeps the decisions of people as plain data. Resolves once the change would survive a crash. */
export type StateStore = {
  load(table: StateTable): Iterable<{ readonly id: string; readonly row: unknown }>;
  save(table: StateTable, id: string, row: unknown): Promise<void>;
  remove(table: StateTable, id: string): Promise<void>;
};

/** The same; where several gateways share them, it resolves with the names of those that do not act by it yet. */
export type DecisionStore = Pick<StateStore, 'load'> & {
  save(table: StateTable, id: string, row: unknown): Promise<SavedAt>;
  remove(table: StateTable, id: string): Promise<SavedAt>;
};

/** argon2id on the crypto pool. The fault is `overloaded` when the bounded queue is full. */
export type Passwords = {
  hash(password: string): Promise<Result<string, Fault>>;
  /** `rehash`: the stored hash was made with other parameters than the configured ones. */
  verify(
    hash: string,
    password: string,
  ): Promise<Result<{ readonly matches: boolean; readonly rehash: boolean }, Fault>>;
};

export type Mail = { readonly to: string; readonly subject: string; readonly text: string };
/** Resolves when the mail is handed over or given up. Never rejects, because no caller may depend on delivery. */
export type Mailer = { send(mail: Mail): Promise<void> };

/** `expiresAtSecs` counts from the Unix epoch, as on the wire (docs/spec.md, Lists and times). */
export type AccessToken = { readonly token: string; readonly expiresAtSecs: number; readonly scopes: readonly Scope[] };

/** Access tokens of accounts: 15 minutes, scopes by role (docs/spec.md, Tokens and scopes). */
export type AccessTokens = {
  /** Ends with the session. */
  mintForAccount(
    account: Pick<Account, 'id' | 'role' | 'orgId' | 'tokenEpoch'>,
    sessionId: string,
  ): Promise<Result<AccessToken, Fault>>;
};

/** An event about an account for dashboards (docs/spec.md, Live stream). */
export type AccountEvent = {
  readonly change:
    | 'registered'
    | 'invited'
    | 'invite_revoked'
    | 'signed_in'
    | 'locked'
    | 'unlocked'
    | 'role_changed'
    | 'disabled'
    | 'enabled'
    | 'password_reset'
    | 'sessions_revoked';
  /** Null for an invite: there is no account yet. */
  readonly accountId: string | null;
  readonly email: string;
  readonly role: Role;
  readonly orgId: string | null;
  readonly atMs: number;
};

/** Never fails and never waits: a dashboard that misses an event reads the list. */
export type AccountEvents = { publish(event: AccountEvent): void };
