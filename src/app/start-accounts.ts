import { type AccountUseCases, createAccounts } from '../accounts/accounts.ts';
import { loadCommonPasswords } from '../accounts/common-passwords.ts';
import type { AccountsContext } from '../accounts/context.ts';
import type { Config } from '../config/config.ts';
import type { Result } from '../core/base/result.ts';
import { stackOf } from '../core/base/text.ts';
import type { Fault } from '../core/fault.ts';
import { createMailer } from '../mail/mailer.ts';
import type { SmtpOptions } from '../mail/smtp.ts';
import type { AccessTokens, AccountEvents, AuditLog, Clock, Passwords } from '../ports/ports.ts';
import type { Database } from '../stores/database.ts';
import { createPostgresAccountStore } from '../stores/postgres/accounts.ts';
import { PostgresClock } from '../stores/postgres/clock.ts';
import { within } from '../system/clock.ts';
import type { Logger } from '../system/log.ts';
import { lowerPoolPriority } from '../threads/crypto/pool.ts';
import { loginBounds } from './start-threads.ts';

export type AccountsStart = {
  readonly config: Config;
  readonly database: Database;
  readonly passwords: Passwords;
  readonly tokens: AccessTokens;
  readonly revocations: AccountsContext['revocations'];
  readonly isKeyRevoked: AccountsContext['isKeyRevoked'];
  readonly endMade: AccountsContext['endMade'];
  readonly setup: AccountsContext['setup'];
  readonly audit: AuditLog;
  readonly events: AccountEvents;
  /** The database's time is derived from it, so it must not notice when the wall clock is set. */
  readonly clock: Clock;
  readonly log: Logger;
  readonly publicUrl: () => string;
};

export type RunningAccounts = {
  readonly useCases: AccountUseCases;
  /**
   * Before the gateway answers: what the first login needs, what time it is, and what other gateways revoked. Fault:
   * one of these is not known; call it again.
   */
  start(): Promise<Result<void, Fault>>;
  /** Reads what other gateways revoked since the last time. */
  syncRevocations(): Promise<Result<void, Fault>>;
  /** Whether nobody has an account yet. */
  isEmpty(): Promise<Result<boolean, Fault>>;
  /**
   * Finishes requested resets and their mails within the time. Call it before the audit log and the database are
   * closed.
   */
  stop(timeoutMs: number): Promise<void>;
};

const SYNC_EVERY_MS = 2_000;
const PRUNE_EVERY_MS = 60 * 60 * 1000;

export function startAccounts({ config, database, log, ...ports }: AccountsStart): RunningAccounts {
  const mailer = createMailer(smtpOf(config), log);
  const clock = new PostgresClock(database.postgres, ports.clock);
  const accounts = createAccounts({
    ...ports,
    clock,
    log,
    mailer,
    canSendMail: () => mailer.canSend,
    store: createPostgresAccountStore(database.postgres),
    commonPasswords: loadCommonPasswords(),
    openRegistration: config.SVC_AUTH_OPEN_REGISTRATION,
    openRegistrationOrg: config.SVC_AUTH_OPEN_REGISTRATION_ORG ?? null,
    logins: loginBounds(config),
  });
  // The pool reports an outage once, and the next run makes up for this one.
  const inBackground = (work: () => Promise<unknown>, doing: string) => (): void =>
    void work().catch((error: unknown) => log.error(`${doing} failed`, { error: stackOf(error) }));
  const prune = inBackground(async () => {
    const synced = await clock.sync(); // nothing is deleted by a clock that was set since the last run
    return synced.ok ? accounts.prune() : synced;
  }, 'pruning sessions and tokens');
  const timers = [
    setInterval(inBackground(accounts.syncRevocations, 'syncing revocations'), SYNC_EVERY_MS),
    setInterval(
      inBackground(() => clock.sync(), 'reading the database clock'),
      SYNC_EVERY_MS,
    ),
    setInterval(prune, PRUNE_EVERY_MS),
  ];
  let lowering: Promise<void> | undefined;
  warnOfOpenRegistration(config, log);
  return {
    useCases: accounts.useCases,
    syncRevocations: () => accounts.syncRevocations(),
    isEmpty: () => accounts.isEmpty(),
    start: async () => {
      lowering ??= lowerPoolPriority(config.UV_THREADPOOL_SIZE);
      await lowering;
      const [timed, synced] = await Promise.all([clock.sync(), accounts.syncRevocations(), accounts.warmUp()]);
      if (!timed.ok || !synced.ok) return timed.ok ? synced : timed;
      prune(); // after a long downtime there may be much to delete
      return synced;
    },
    stop: async (timeoutMs) => {
      for (const timer of timers) clearInterval(timer);
      const endMs = performance.now() + timeoutMs;
      await within(timeoutMs, accounts.idle());
      await mailer.close(Math.max(0, endMs - performance.now()));
    },
  };
}

function warnOfOpenRegistration(config: Config, log: Logger): void {
  if (!config.SVC_AUTH_OPEN_REGISTRATION) return;
  const org = config.SVC_AUTH_OPEN_REGISTRATION_ORG;
  if (org === undefined)
    log.warn(
      'registration is open: anyone who reaches this gateway can read and write in every org; set SVC_AUTH_OPEN_REGISTRATION_ORG to bind such accounts to one',
    );
  else log.warn('registration is open: anyone who reaches this gateway can read and write in this org', { org });
}

function smtpOf(config: Config): SmtpOptions | undefined {
  const {
    SVC_SMTP_HOST: host,
    SVC_SMTP_PORT: port,
    SVC_SMTP_USER: user,
    SVC_SMTP_PASS: pass,
    SVC_SMTP_FROM: from,
  } = config;
  if (host === undefined) return undefined;
  // The mailer reports one without the other as a mistake.
  const credentials = user === undefined && pass === undefined ? undefined : { user: user ?? '', pass: pass ?? '' };
  return { host, port, credentials, from };
}
