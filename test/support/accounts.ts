/**
 * The account use cases on a real database, with cheap hashes, a clock that is set by hand, and everything they said.
 */

import argon2 from 'argon2';
import { expect, onTestFinished } from 'vitest';
import { type Accounts, createAccounts } from '../../src/accounts/accounts.ts';
import { loadCommonPasswords } from '../../src/accounts/common-passwords.ts';
import type { AccountsContext } from '../../src/accounts/context.ts';
import type { AuditDraft } from '../../src/core/audit/audit.ts';
import { ok, type Result } from '../../src/core/base/result.ts';
import type { Account } from '../../src/core/identity/account.ts';
import { type Principal, type Role, SCOPES_OF_ROLE } from '../../src/core/identity/roles.ts';
import { NOTHING_MADE } from '../../src/credentials/made-keys.ts';
import type { AccountEvent, Mail, Passwords } from '../../src/ports/ports.ts';
import { createPostgresAccountStore } from '../../src/stores/postgres/accounts.ts';
import { POSTGRES_DEFAULTS, Postgres } from '../../src/stores/postgres/postgres.ts';
import { SILENT } from './database-server.ts';
import { eventually } from './eventually.ts';

export const GOOD_PASSWORD = 'a horse that nobody corrects';
export const START_MS = Date.UTC(2030, 0, 1);

export type Scene = Accounts['useCases'] & {
  readonly accounts: Accounts;
  readonly context: AccountsContext;
  readonly postgres: Postgres;
  readonly audit: AuditDraft[];
  readonly events: AccountEvent[];
  readonly mails: Mail[];
  /** `account:<id> <epoch>`, in the order in which they were revoked. */
  readonly revoked: string[];
  /** Whose access tokens were ended. */
  readonly endedSessions: string[];
  readonly hashed: string[];
  /** The subjects of API keys that were revoked. */
  readonly revokedKeys: Set<string>;
  advance(ms: number): void;
};

export type SceneOptions = Partial<AccountsContext> & { readonly memoryKib?: number };

export async function openScene(url: string, options: SceneOptions = {}): Promise<Scene> {
  const { memoryKib = 64, ...overrides } = options;
  const postgres = new Postgres({ url, ...POSTGRES_DEFAULTS }, SILENT);
  onTestFinished(() => postgres.close());
  const audit: AuditDraft[] = [];
  const events: AccountEvent[] = [];
  const mails: Mail[] = [];
  const revoked: string[] = [];
  const endedSessions: string[] = [];
  const hashed: string[] = [];
  const revokedKeys = new Set<string>();
  let nowMs = START_MS;
  const context: AccountsContext = {
    store: createPostgresAccountStore(postgres),
    passwords: cheapPasswords(memoryKib, hashed),
    tokens: {
      mintForAccount: async ({ id, role, tokenEpoch }) =>
        ok({ token: `${id}:${role}:${tokenEpoch}`, expiresAtSecs: nowMs / 1000 + 900, scopes: SCOPES_OF_ROLE[role] }),
    },
    revocations: {
      revoke: (subject, epoch) => void revoked.push(`${subject} ${epoch}`),
      endSession: (sessionId) => void endedSessions.push(sessionId),
    },
    endMade: async () => ok(NOTHING_MADE),
    isKeyRevoked: async (subject) => ok(revokedKeys.has(subject)),
    audit: { record: async (draft) => (audit.push(draft), ok(undefined)) },
    canSendMail: () => true,
    mailer: { send: async (mail) => void mails.push(mail) },
    events: { publish: (event) => void events.push(event) },
    clock: { nowMs: () => nowMs },
    commonPasswords: loadCommonPasswords(),
    logins: { atOnce: 1000, waiting: 0, waitMs: 10_000, what: 'sign-in' },
    openRegistration: false,
    openRegistrationOrg: null,
    setup: undefined,
    publicUrl: () => 'https://gateway.test',
    log: SILENT,
    ...overrides,
  };
  await postgres.start();
  const accounts = createAccounts(context);
  await accounts.warmUp();
  return {
    ...accounts.useCases,
    accounts,
    context,
    postgres,
    audit,
    events,
    mails,
    revoked,
    endedSessions,
    hashed,
    revokedKeys,
    advance: (ms) => void (nowMs += ms),
  };
}

function cheapPasswords(memoryKib: number, hashed: string[]): Passwords {
  const cost = { memoryCost: memoryKib, timeCost: 2, parallelism: 1 };
  return {
    hash: async (password) => (hashed.push(password), ok(await argon2.hash(password, cost))),
    verify: async (hash, password) =>
      ok({ matches: await argon2.verify(hash, password), rehash: argon2.needsRehash(hash, cost) }),
  };
}

/** The value, or a test that fails with the fault. */
export function valueOf<T>(result: Result<T, unknown>): T {
  if (!result.ok) throw new Error(`fault: ${JSON.stringify(result.fault)}`);
  return result.value;
}

export const principalOf = (account: Account): Principal => ({
  subject: `account:${account.id}`,
  scopes: SCOPES_OF_ROLE[account.role],
  orgId: account.orgId,
  role: account.role,
});

export const ADMIN_KEY: Principal = { subject: 'key:k1', scopes: ['admin'], orgId: null };

/** The first account of an empty store. */
export async function registerOwner(scene: Scene): Promise<Account> {
  return valueOf(await scene.register({ email: 'owner@example.com', password: GOOD_PASSWORD, address: null }));
}

/** An account made by an invite of the admin key. */
export async function inviteAccount(scene: Scene, email: string, role: Role, orgId?: string): Promise<Account> {
  const { inviteToken } = valueOf(await scene.invite({ principal: ADMIN_KEY, email, role, orgId }));
  return valueOf(await scene.acceptInvite({ inviteToken, password: GOOD_PASSWORD }));
}

export const signIn = (scene: Scene, email: string, password = GOOD_PASSWORD, rememberMe = false) =>
  scene.login({ email, password, rememberMe, address: '192.0.2.1' });

/**
 * A scene on the same database in which something happens after the account was read and before the answer is settled.
 */
export const openSceneWith = (url: string, { context }: Scene, meanwhile: () => Promise<unknown>): Promise<Scene> =>
  openScene(url, {
    tokens: {
      ...context.tokens,
      mintForAccount: async (account, sessionId) => (
        await meanwhile(), context.tokens.mintForAccount(account, sessionId)
      ),
    },
  });

/**
 * Does something while a change is under way, which ends only once somebody waits for it, or when that is done without.
 */
export async function whileUnderWay<T>({ postgres }: Scene, change: string, act: () => Promise<T>): Promise<T> {
  let acting: Promise<T> | undefined;
  let isDone = false;
  valueOf(
    await postgres.transact(async (on) => {
      await on.query(change);
      acting = act().finally(() => {
        isDone = true;
      });
      await eventually(async () =>
        expect(isDone || (await on.query('SELECT 1 FROM pg_locks WHERE NOT granted')).rowCount > 0).toBe(true),
      );
      return ok(undefined);
    }),
  );
  return acting!;
}

export const eventTypes = (scene: Scene): string[] => scene.audit.map((draft) => draft.eventType);
