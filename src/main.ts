/** Puts the gateway together, and takes it apart again in the order in which nothing is lost. */
import { chmodSync, mkdirSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Logger } from './adapters/log.ts';
import { createClock } from './adapters/clock.ts';
import { createMetrics } from './adapters/metrics.ts';
import { loadPolicies, renderPolicyProblem, type LoadedPolicies } from './adapters/policy-file.ts';
import { watchPolicies } from './adapters/policy-watch.ts';
import { randomHashKey, secrets } from './adapters/secrets.ts';
import { openSigningKeys } from './adapters/signing-keys.ts';
import { lockDataDir } from './adapters/store/data-dir-lock.ts';
import { createLmdbAgents } from './adapters/store/lmdb-agents.ts';
import { createLmdbApiKeyStore } from './adapters/store/lmdb-api-keys.ts';
import { createLmdbBudgets } from './adapters/store/lmdb-budgets.ts';
import { createLmdbRevocationStore } from './adapters/store/lmdb-revocations.ts';
import { damagedStoreFile, openEmbeddedStore } from './adapters/store/lmdb.ts';
import type { Address, Config } from './config.ts';
import { DEFAULT_REDACTED_KEYS, redactAttributes, redactedKeys } from './core/audit-redact.ts';
import { BudgetTracker } from './core/budget.ts';
import { explain } from './core/fault.ts';
import { fail, ok } from './core/result.ts';
import { Governor } from './core/governor.ts';
import { loginBounds, openDatabase, startAccounts } from './accounts-start.ts';
import type { IoData } from './io-thread.ts';
import { withoutAccountStore } from './gateway/accounts.ts';
import { ApiKeys, type Bootstrap } from './gateway/api-keys.ts';
import { createAuthenticator } from './gateway/authenticate.ts';
import { createCredentialUseCases } from './gateway/credential-use-cases.ts';
import { readLog } from './gateway/logs.ts';
import { PolicyKeeper } from './gateway/policies.ts';
import { RateLimiter } from './gateway/rate-limit.ts';
import { RevocationList } from './gateway/revocations.ts';
import { createTokenIssuer } from './gateway/tokens.ts';
import type { UseCases } from './gateway/use-cases.ts';
import { WsTickets } from './gateway/ws-tickets.ts';
import type { AuditThreadOptions } from './threads/audit-thread.ts';
import { AuditReaderLink } from './threads/audit-reader-link.ts';
import { AuditLink } from './threads/audit-link.ts';
import { createCryptoPool } from './threads/crypto-pool.ts';
import { Supervisor, type Listening } from './threads/supervisor.ts';
import { Switchboard } from './threads/switchboard.ts';
import { createTokens } from './threads/tokens.ts';
import { metricsOf } from './metrics-table.ts';
import { packageVersion, STARTER_POLICY, WEB_FOLDER } from './package-files.ts';

/** Why the gateway does not start, in words for whoever started it. */
export class StartError extends Error {}

export type Gateway = {
  readonly listening: Listening;
  readonly policies: LoadedPolicies;
  /** What the start did about the first API key. */
  readonly bootstrap: Bootstrap;
  /** Reads policies and signing keys again; what cannot be read or is wrong leaves the old in force, and is logged. */
  reload(actor: string): Promise<void>;
  /** Takes no more requests, answers those in flight, writes what is on its way, and lets go of everything. */
  stop(): Promise<void>;
};

const DAY_MS = 24 * 3_600_000;
const RELOAD_RETRY_MS = 5_000;
const API_KEY_USES_EVERY_MS = 60_000;
/** How soon a gateway knows what another one on the same database did to API keys. */
const SHARED_KEYS_EVERY_MS = 2_000;

export async function startGateway(config: Config, log: Logger): Promise<Gateway> {
  const undo: (() => unknown)[] = [];
  try {
    return await assemble(config, log, undo);
  } catch (error) {
    for (const step of undo.reverse()) await step();
    throw error;
  }
}

async function assemble(config: Config, log: Logger, undo: (() => unknown)[]): Promise<Gateway> {
  const dataDir = config.SVC_DATA_DIR;
  makeDataDir(dataDir);
  const lock = await lockDataDir(dataDir);
  if (!lock.ok) throw new StartError(`the data directory ${dataDir} is in use by another gateway (${lock.fault.holder}); stop it, or choose another SVC_DATA_DIR`);
  undo.push(() => lock.value.release());
  const httpPort = await choosePort('SVC_HTTP_ADDR', config.SVC_HTTP_ADDR, config.SVC_IO_THREADS > 1);
  await choosePort('SVC_GRPC_ADDR', config.SVC_GRPC_ADDR, false);

  const clock = createClock();
  const policyPath = config.SVC_POLICY_PATH ?? STARTER_POLICY;
  // A change is told once, so one that comes while the gateway starts, or waits for its database, is kept for the end of it.
  let isPolicyStale = false;
  let onPolicyChange = (): void => { isPolicyStale = true; };
  const policyWatcher = watchPolicies(policyPath, () => onPolicyChange());
  undo.push(() => policyWatcher.close());
  const policies = await readPolicies(policyPath, config.SVC_POLICY_PATH === undefined ? '' : ' of SVC_POLICY_PATH');
  const damaged = damagedStoreFile(dataDir);
  if (damaged !== undefined) throw new StartError(`${damaged} is damaged: restore it from a copy, or remove it to start without API keys, registrations and spend of before`);
  const store = openEmbeddedStore(dataDir);
  undo.push(() => store.close());
  const crypto = createCryptoPool({
    threads: config.SVC_CRYPTO_THREADS,
    cost: { memoryKib: config.SVC_ARGON2_MEMORY_KIB, iterations: config.SVC_ARGON2_ITERATIONS, parallelism: config.SVC_ARGON2_PARALLELISM },
    maxPasswordQueue: config.SVC_CRYPTO_QUEUE,
    uvThreads: config.UV_THREADPOOL_SIZE,
    onError: (message, cause) => log.error(message, { cause }),
  });
  undo.push(() => crypto.close());

  const budgets = new BudgetTracker(policies.policies.budget, clock.nowMs());
  const budgetStore = createLmdbBudgets(store);
  budgets.restore(budgetStore.load(), clock.nowMs());
  const redacted = redactedKeys([...DEFAULT_REDACTED_KEYS, ...config.SVC_AUDIT_REDACT]);
  const governor = new Governor({
    policies: policies.policies,
    budgets,
    maxOps: config.SVC_MAX_OPS,
    sweepTtlMs: config.SVC_OPS_TTL_SECS * 1000,
    hashKey: randomHashKey(),
    redact: (attributes) => redactAttributes(attributes, redacted),
  });
  const agents = createLmdbAgents(store);
  for (const registration of agents.load()) governor.restoreAgent(registration);

  const audit = new AuditLink(clock, (trouble) => {
    if (trouble.isWritable) log.warn('the audit log is written again', { entriesLost: trouble.entriesLost });
    else log.error('the audit log cannot be written', { reason: trouble.reason, checks: config.SVC_AUDIT_ON_FAILURE });
  });
  const onError = (error: unknown, doing: string): void => log.error(`failed: ${doing}`, { error: error instanceof Error ? error.stack : String(error) });

  const signingKeys = await openSigningKeys({ dataDir, given: config.SVC_JWT_PRIVATE_KEY, clock }).catch((error: unknown) => { throw new StartError(String((error as Error).message)); });
  const tokens = createTokens({ lane: crypto.tokenLane, keys: signingKeys, clock, frame: { issuer: config.SVC_JWT_ISSUER, audience: config.SVC_JWT_AUDIENCE } });
  const revocations = new RevocationList({ store: createLmdbRevocationStore(store), clock, onError: (message, error) => onError(error, message) });

  const database = await openDatabase(config, store, log).catch((error: unknown) => { throw new StartError(String((error as Error).message)); });
  undo.push(() => database?.close());
  const openedKeys = await ApiKeys.open({ store: database?.apiKeys ?? createLmdbApiKeyStore(store), audit, clock, secrets });
  if (!openedKeys.ok) throw new StartError(explain(openedKeys.fault));
  const apiKeys = openedKeys.value;
  const authenticator = createAuthenticator({ apiKeys, tokens, revocations, secrets });
  const issuer = createTokenIssuer({ apiKeys, tokens, revocations, audit, clock, secrets });
  const tickets = new WsTickets({ authenticator, clock });
  const limiters = { credential: new RateLimiter(config.SVC_RATE_LIMIT_API), address: new RateLimiter(config.SVC_RATE_LIMIT_AUTH), check: new RateLimiter(config.SVC_RATE_LIMIT_CHECK) };

  const auditDirectory = join(dataDir, 'audit');
  const auditReader = new AuditReaderLink({ directory: auditDirectory }, (message) => log.error('failed: reading the audit log', { error: message }));
  undo.push(() => auditReader.close());

  const policyKeeper = new PolicyKeeper({
    policies: policies.policies,
    load: async () => {
      const loaded = await loadPolicies(policyPath);
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

  const logins = loginBounds(config);
  const ioData: IoData = {
    httpHost: config.SVC_HTTP_ADDR.host,
    grpcHost: config.SVC_GRPC_ADDR.host,
    maxPending: config.SVC_MAX_PENDING,
    webFolder: WEB_FOLDER,
    onAuditFailure: config.SVC_AUDIT_ON_FAILURE,
    corsOrigins: config.SVC_CORS_ORIGINS,
    bodyTimeoutMs: config.SVC_BODY_TIMEOUT_SECS * 1000,
    hasAccountStore: config.SVC_DATABASE_URL !== undefined,
    maxLogins: logins.atOnce + logins.waiting,
    ownOrigins: [...(config.SVC_PUBLIC_URL === undefined ? [] : [new URL(config.SVC_PUBLIC_URL).origin]), ...config.SVC_CORS_ORIGINS],
    maxStreams: config.SVC_MAX_STREAMS,
    opsTtlSecs: config.SVC_OPS_TTL_SECS,
    maxGrpcConnections: config.SVC_MAX_GRPC_CONNECTIONS,
  };
  const supervisor = new Supervisor({
    switchboard, audit, ioData,
    ioThreads: config.SVC_IO_THREADS,
    ports: { httpPort, grpcPort: config.SVC_GRPC_ADDR.port },
    auditData: {
      directory: auditDirectory,
      fsync: config.SVC_AUDIT_FSYNC,
      counters: audit.counters,
      checkpointKeyPath: join(dataDir, 'keys', 'audit-checkpoint.pem'),
      checkpointEveryMs: config.SVC_AUDIT_CHECKPOINT_MINUTES * 60_000,
      retention: {
        maxAgeMs: config.SVC_AUDIT_RETENTION_DAYS === 0 ? undefined : config.SVC_AUDIT_RETENTION_DAYS * DAY_MS,
        maxBytes: config.SVC_AUDIT_RETENTION_MIB === 0 ? undefined : config.SVC_AUDIT_RETENTION_MIB * 1024 * 1024,
      },
    } satisfies AuditThreadOptions,
    note: (level, message, fields) => log[level](message, fields),
  });
  const metrics = createMetrics(metricsOf({ governor, switchboard, supervisor, audit, crypto, policies: policyKeeper, limiters, version: packageVersion() }));
  undo.push(() => metrics.close());
  const opened = await supervisor.startAudit().catch((error: unknown) => { throw new StartError(String((error as Error).message)); });
  undo.push(() => supervisor.closeAudit());
  for (const note of opened.notes) log.warn(note);

  const bootstrap = await apiKeys.bootstrap(config.SVC_BOOTSTRAP_API_KEY);
  if (!bootstrap.ok) throw new StartError(explain(bootstrap.fault));
  await accounts?.start();
  undo.push(() => supervisor.drainIo(0));
  const listening = await supervisor.startIo().catch((error: unknown) => { throw new StartError(String((error as Error).message)); });

  // A full disk makes the embedded store reject.
  const flushUses = async (): Promise<void> => {
    try {
      const flushed = await apiKeys.flushUses();
      if (!flushed.ok) log.warn('the use of API keys was not noted', { reason: explain(flushed.fault) });
    } catch (error) {
      onError(error, 'noting the use of API keys');
    }
  };
  const timers = [
    ...(database === undefined ? [] : [setInterval(() => void apiKeys.refresh().catch((error: unknown) => onError(error, 'taking over API keys')), SHARED_KEYS_EVERY_MS)]),
    setInterval(() => {
      sweep(governor, clock.nowMs());
      switchboard.saveSpend().catch((error: unknown) => onError(error, 'saving budgets'));
    }, config.SVC_OPS_SWEEP_SECS * 1000),
    setInterval(() => void flushUses(), API_KEY_USES_EVERY_MS),
    setInterval(() => revocations.prune(), API_KEY_USES_EVERY_MS),
  ];

  onPolicyChange = () => void policyKeeper.reload('gateway').then(
    (reloaded) => {
      // Nobody will say again that the files have changed.
      if (!reloaded.ok && reloaded.fault.kind === 'audit_unavailable') setTimeout(onPolicyChange, RELOAD_RETRY_MS).unref();
    },
    (error: unknown) => onError(error, 'reloading policies'),
  );
  if (isPolicyStale) onPolicyChange();
  const reload = async (actor: string): Promise<void> => {
    await policyKeeper.reload(actor);
    try {
      const { kid, changed } = await signingKeys.reload();
      log.info('signing keys reloaded', { kid, changed });
    } catch (error) {
      log.error('signing keys were not reloaded', { reason: error instanceof Error ? error.message : String(error) });
    }
  };

  let stopping: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    for (const timer of timers) clearInterval(timer);
    policyWatcher.close();
    await supervisor.drainIo(config.SVC_SHUTDOWN_SECS * 1000);
    await accounts?.stop(config.SVC_SHUTDOWN_SECS * 1000);
    await flushUses();
    await switchboard.saveSpend().catch((error: unknown) => onError(error, 'saving budgets'));
    await auditReader.close();
    await supervisor.closeAudit();
    await crypto.close();
    await database?.close();
    await store.close();
    await lock.value.release();
  };
  return { listening, policies, bootstrap: bootstrap.value, reload, stop: () => (stopping ??= stop()) };
}

/** Entries that may be on their way to the audit log; some seconds' worth at full speed. */
const MAX_UNRECORDED_ENTRIES = 200_000;

/** A slice at a time, with the checks in between. */
function sweep(governor: Governor, nowMs: number): void {
  if (governor.sweep(nowMs)) setImmediate(() => sweep(governor, nowMs));
}

function makeDataDir(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    chmodSync(path, 0o700);
  } catch (error) {
    throw new StartError(`cannot make the data directory ${path}: ${(error as Error).message}; choose another SVC_DATA_DIR`);
  }
}

async function readPolicies(path: string, from: string): Promise<LoadedPolicies> {
  const loaded = await loadPolicies(path);
  if (loaded.ok) return loaded.value;
  throw new StartError([`the policies${from} were refused:`, ...loaded.fault.map((problem) => `  ${renderPolicyProblem(problem)}`)].join('\n'));
}

/**
 * The I/O threads may share their port among themselves, but not with another program. Sockets on a port that the system
 * has chosen cannot be shared, so where several threads want one, a free one is chosen here.
 */
function choosePort(variable: string, { host, port }: Address, isShared: boolean): Promise<number> {
  if (port === 0 && !isShared) return Promise.resolve(0);
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) => reject(new StartError(`cannot listen on ${host}:${port} (${error.code ?? error.message}); stop what listens there, or choose another ${variable}`)));
    probe.listen({ host, port }, () => {
      const chosen = (probe.address() as AddressInfo).port;
      probe.close(() => resolve(chosen));
    });
  });
}

