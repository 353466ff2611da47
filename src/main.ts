/** Puts the gateway together, and takes it apart again in an order in which nothing is lost. */
import { createClock } from './adapters/clock.ts';
import type { Logger } from './adapters/log.ts';
import { createMetrics } from './adapters/metrics.ts';
import { renderPolicyProblem, type LoadedPolicies } from './adapters/policy-file.ts';
import { watchPolicies } from './adapters/policy-watch.ts';
import { randomHashKey, secrets } from './adapters/secrets.ts';
import { openSigningKeys } from './adapters/signing-keys.ts';
import { createLmdbAgents } from './adapters/store/lmdb-agents.ts';
import { createLmdbApiKeyStore } from './adapters/store/lmdb-api-keys.ts';
import { createLmdbBudgets } from './adapters/store/lmdb-budgets.ts';
import { createLmdbRevocationStore } from './adapters/store/lmdb-revocations.ts';
import type { Config } from './config.ts';
import { DEFAULT_REDACTED_KEYS, redactAttributes, redactedKeys } from './core/audit-redact.ts';
import { BudgetTracker } from './core/budget.ts';
import { messageOf, stackOf } from './core/error-text.ts';
import { Governor } from './core/governor.ts';
import { fail, ok } from './core/result.ts';
import { openDatabase, startAccounts } from './accounts-start.ts';
import { withoutAccountStore } from './gateway/accounts.ts';
import { ApiKeys, type Bootstrap } from './gateway/api-keys.ts';
import { createAuthenticator } from './gateway/authenticate.ts';
import { createCredentialUseCases } from './gateway/credential-use-cases.ts';
import { readLog } from './gateway/logs.ts';
import { PolicyKeeper } from './gateway/policies.ts';
import { RateLimiter } from './gateway/rate-limit.ts';
import { RevocationList } from './gateway/revocations.ts';
import type { SigningKeys } from './gateway/signing-keys.ts';
import { createTokenIssuer } from './gateway/tokens.ts';
import type { UseCases } from './gateway/use-cases.ts';
import { WsTickets } from './gateway/ws-tickets.ts';
import { AuditReaderLink } from './threads/audit-reader-link.ts';
import { AuditLink } from './threads/audit-link.ts';
import { createCryptoPool, type CryptoPool } from './threads/crypto-pool.ts';
import { loadPoliciesAside } from './threads/policy-reader.ts';
import { Supervisor, type Listening } from './threads/supervisor.ts';
import { Switchboard } from './threads/switchboard.ts';
import { createTokens } from './threads/tokens.ts';
import { metricsOf } from './metrics-table.ts';
import { packageVersion, STARTER_POLICY } from './package-files.ts';
import { choosePort, holdDataDir, openStore, orStartError, readPolicies, startErrorOf, valueOrStartError } from './start-checks.ts';
import { auditDataOf, auditFolderOf, ioDataOf } from './thread-data.ts';
import { flushKeys, startTimers } from './timers.ts';
import { within } from './within.ts';

export type Gateway = {
  readonly listening: Listening;
  readonly policies: LoadedPolicies;
  /** What the start did about the first API key. */
  readonly bootstrap: Bootstrap;
  /** Reads policies and signing keys again. Where one cannot be read or is wrong, that is logged and the old one stays in force. */
  reload(actor: string): Promise<void>;
  /** Takes no more requests, answers those in flight, writes what is on its way, and closes everything it opened. */
  stop(): Promise<void>;
};

const RELOAD_RETRY_MS = 5_000;
/** Promised mails and the stores get at least this long, even where requests have used up the grace period of the shutdown. */
const LEAST_LATE_GRACE_MS = 1_000;
/** After that, an embedded database gets at least this long. */
const LEAST_DATABASE_GRACE_MS = 500;

/**
 * Rejects with a `StartError` where something given to it is wrong. When `signal` is aborted it rejects with the reason of
 * the signal, unless it was too late for that: then the gateway is started and has to be stopped.
 */
export async function startGateway(config: Config, log: Logger, signal: AbortSignal): Promise<Gateway> {
  const undo: (() => unknown)[] = [];
  try {
    return await assemble(config, log, signal, undo);
  } catch (error) {
    for (const step of undo.reverse()) await step();
    throw startErrorOf(error, config.SVC_DATA_DIR);
  }
}

async function assemble(config: Config, log: Logger, signal: AbortSignal, undo: (() => unknown)[]): Promise<Gateway> {
  const dataDir = config.SVC_DATA_DIR;
  const lock = await holdDataDir(dataDir);
  undo.push(() => lock.release());
  const httpPort = await choosePort(config.SVC_HTTP_ADDR, config.SVC_GRPC_ADDR, config.SVC_IO_THREADS > 1);

  const clock = createClock();
  const policyPath = config.SVC_POLICY_PATH ?? STARTER_POLICY;
  // A change is reported once, so one that comes while the gateway still starts is remembered until the start is done.
  let isPolicyStale = false;
  let onPolicyChange = (): void => { isPolicyStale = true; };
  const policyWatcher = watchPolicies(policyPath, () => onPolicyChange());
  undo.push(() => policyWatcher.close());
  const policies = await readPolicies(policyPath, config.SVC_POLICY_PATH === undefined ? '' : ' of SVC_POLICY_PATH');
  const store = await openStore(dataDir);
  undo.push(() => store.close());
  const crypto = startCrypto(config, log);
  undo.push(() => crypto.close());

  const budgets = new BudgetTracker(policies.policies.budget, clock.nowMs());
  const budgetStore = createLmdbBudgets(store);
  budgets.restore(budgetStore.load(), clock.nowMs());
  const governor = createGovernor(config, policies, budgets);
  const agents = createLmdbAgents(store);
  for (const registration of agents.load()) governor.restoreAgent(registration);

  const audit = new AuditLink(clock, (trouble) => {
    if (trouble.isWritable) log.warn('the audit log is written again', { entriesLost: trouble.entriesLost });
    else log.error('the audit log cannot be written', { reason: trouble.reason, checks: config.SVC_AUDIT_ON_FAILURE });
  });
  const onError = (error: unknown, doing: string): void => log.error(`failed: ${doing}`, { error: stackOf(error) });

  const signingKeys = await orStartError(openSigningKeys({ dataDir, given: config.SVC_JWT_PRIVATE_KEY, clock }));
  const tokens = createTokens({ lane: crypto.tokenLane, keys: signingKeys, clock, frame: { issuer: config.SVC_JWT_ISSUER, audience: config.SVC_JWT_AUDIENCE } });
  const revocations = new RevocationList({ store: createLmdbRevocationStore(store), clock, onError: (message, error) => onError(error, message) });

  const database = await orStartError(openDatabase(config, store, log, signal));
  undo.push(() => database?.close());
  signal.throwIfAborted();
  const apiKeys = valueOrStartError(await ApiKeys.open({ store: database?.apiKeys ?? createLmdbApiKeyStore(store), audit, clock, secrets }));
  const authenticator = createAuthenticator({ apiKeys, tokens, revocations, secrets });
  const issuer = createTokenIssuer({ apiKeys, tokens, revocations, audit, clock, secrets });
  const tickets = new WsTickets({ authenticator, clock });
  const limiters = { credential: new RateLimiter(config.SVC_RATE_LIMIT_API), address: new RateLimiter(config.SVC_RATE_LIMIT_AUTH), check: new RateLimiter(config.SVC_RATE_LIMIT_CHECK) };

  const auditReader = new AuditReaderLink({ directory: auditFolderOf(config) }, (message) => log.error('failed: reading the audit log', { error: message }));
  undo.push(() => auditReader.close());

  const policyKeeper = new PolicyKeeper({
    policies: policies.policies,
    load: async () => {
      const loaded = await loadPoliciesAside(policyPath);
      return loaded.ok ? loaded : fail(loaded.fault.map(renderPolicyProblem));
    },
    install: (set) => {
      governor.policies = set;
      budgets.reconfigure(set.budget, clock.nowMs());
    },
    audit, clock, log,
  });

  const accounts = database && startAccounts({
    config, database, audit, clock, log,
    passwords: crypto.passwords,
    tokens: issuer,
    isKeyRevoked: (subject) => apiKeys.isRevoked(subject),
    events: { publish: ({ orgId, atMs, accountId, ...payload }) => switchboard.events.publish('account', orgId, null, atMs, { account_id: accountId, ...payload }) },
  });
  undo.push(() => accounts?.stop(0));
  const useCases: UseCases = {
    ...(accounts?.useCases ?? withoutAccountStore()),
    readLog: ({ principal, ...request }) => readLog(auditReader, principal, request),
    listPolicies: async ({ principal, ...page }) => policyKeeper.list(principal, page),
    explainCheck: async ({ principal, subject }) => policyKeeper.explain(principal, subject),
    reloadPolicies: ({ principal }) => policyKeeper.reloadFor(principal),
    ...createCredentialUseCases({ apiKeys, issuer, authenticator, signingKeys }),
    issueTicket: ({ bearer }) => tickets.issue(bearer),
    redeemTicket: async ({ ticket }) => tickets.redeem(ticket),
    readiness: async () => {
      if (supervisor.isStopping) return fail({ kind: 'shutting_down', retryAfterSecs: 1 });
      if (!audit.isWritable && config.SVC_AUDIT_ON_FAILURE === 'deny') return fail({ kind: 'audit_unavailable' });
      return ok({
        audit: audit.isWritable ? 'writable' : 'unwritable',
        database: database === undefined ? 'not_configured' : await database.postgres.isReachable() ? 'reachable' : 'unreachable',
      });
    },
    metrics: async () => ok({ contentType: metrics.contentType, text: await metrics.render() }),
    takePermit: async ({ limit, key }) => limiters[limit].take(key, clock.nowMs()),
  };

  const switchboard = new Switchboard({
    governor, audit, agents, budgets: budgetStore, useCases, clock, onError,
    onAuditFailure: config.SVC_AUDIT_ON_FAILURE,
    maxUnrecorded: MAX_UNRECORDED_ENTRIES,
    checkLimiter: config.SVC_RATE_LIMIT_CHECK === 0 ? undefined : limiters.check,
  });
  authenticator.onRevoked((subject) => switchboard.broadcast({ type: 'revoked', subject }));

  const supervisor = new Supervisor({
    switchboard, audit,
    ioData: ioDataOf(config),
    ioThreads: config.SVC_IO_THREADS,
    ports: { httpPort, grpcPort: config.SVC_GRPC_ADDR.port },
    auditData: auditDataOf(config, audit.counters),
    note: (level, message, fields) => log[level](message, fields),
  });
  const metrics = createMetrics(metricsOf({ governor, switchboard, supervisor, audit, crypto, policies: policyKeeper, limiters, version: packageVersion() }));
  undo.push(() => metrics.close());
  const opened = await orStartError(supervisor.startAudit());
  undo.push(() => supervisor.closeAudit());
  for (const note of opened.notes) log.warn(note);

  const bootstrap = valueOrStartError(await apiKeys.bootstrap(config.SVC_BOOTSTRAP_API_KEY));
  if (accounts !== undefined) valueOrStartError(await accounts.start());
  signal.throwIfAborted();
  undo.push(() => supervisor.drainIo(0).then(() => supervisor.endIo()));
  const listening = await orStartError(supervisor.startIo());

  const timers = startTimers({ config, log, onError, clock, governor, switchboard, apiKeys, revocations, isShared: database !== undefined });
  onPolicyChange = () => void policyKeeper.reload('gateway').then(
    (reloaded) => {
      // The watcher does not report this change again.
      if (!reloaded.ok && reloaded.fault.kind === 'audit_unavailable') setTimeout(onPolicyChange, RELOAD_RETRY_MS).unref();
    },
    (error: unknown) => onError(error, 'reloading policies'),
  );
  if (isPolicyStale) onPolicyChange();
  const reload = async (actor: string): Promise<void> => {
    await policyKeeper.reload(actor);
    await reloadSigningKeys(signingKeys, log);
  };

  let stopping: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    for (const timer of timers) clearInterval(timer);
    policyWatcher.close();
    const graceMs = config.SVC_SHUTDOWN_SECS * 1000;
    const endMs = performance.now() + graceMs;
    await supervisor.drainIo(graceMs);
    const leftMs = Math.max(LEAST_LATE_GRACE_MS, endMs - performance.now());
    // A database that does not answer delays neither of them longer than that.
    await Promise.all([accounts?.stop(leftMs), within(leftMs, flushKeys(apiKeys, log, onError))]);
    await switchboard.saveSpend().catch((error: unknown) => onError(error, 'saving budgets'));
    await auditReader.close();
    await supervisor.closeAudit();
    await crypto.close();
    await database?.close(Math.max(LEAST_DATABASE_GRACE_MS, endMs - performance.now()));
    await store.close();
    await lock.release();
    await supervisor.endIo();
  };
  return { listening, policies, bootstrap, reload, stop: () => (stopping ??= stop()) };
}

const startCrypto = (config: Config, log: Logger): CryptoPool => createCryptoPool({
  threads: config.SVC_CRYPTO_THREADS,
  cost: { memoryKib: config.SVC_ARGON2_MEMORY_KIB, iterations: config.SVC_ARGON2_ITERATIONS, parallelism: config.SVC_ARGON2_PARALLELISM },
  maxPasswordQueue: config.SVC_CRYPTO_QUEUE,
  uvThreads: config.UV_THREADPOOL_SIZE,
  onError: (message, cause) => log.error(message, { cause }),
});

function createGovernor(config: Config, { policies }: LoadedPolicies, budgets: BudgetTracker): Governor {
  const redacted = redactedKeys([...DEFAULT_REDACTED_KEYS, ...config.SVC_AUDIT_REDACT]);
  return new Governor({
    policies,
    budgets,
    maxOps: config.SVC_MAX_OPS,
    maxOrgOps: config.SVC_MAX_ORG_OPS,
    maxAgents: config.SVC_MAX_AGENTS,
    maxOrgAgents: config.SVC_MAX_ORG_AGENTS,
    sweepTtlMs: config.SVC_OPS_TTL_SECS * 1000,
    hashKey: randomHashKey(),
    redact: (attributes) => redactAttributes(attributes, redacted),
  });
}

/** Entries that may be on their way to the audit log at once: what a few seconds at full speed bring. */
const MAX_UNRECORDED_ENTRIES = 200_000;

async function reloadSigningKeys(signingKeys: SigningKeys, log: Logger): Promise<void> {
  try {
    const { kid, changed } = await signingKeys.reload();
    log.info('signing keys reloaded', { kid, changed });
  } catch (error) {
    log.error('signing keys were not reloaded', { reason: messageOf(error) });
  }
}
