/** Puts the gateway together, starts it, and takes it apart again. */

import { messageOf, stackOf } from '../core/base/text.ts';
import { type Bootstrap, bootstrapApiKeys } from '../credentials/api-key-start.ts';
import type { SigningKeys } from '../credentials/signing-keys.ts';
import { RateLimiter } from '../limits/rate-limit.ts';
import type { LoadedPolicies } from '../policy-files/policy-file.ts';
import { StoreUnwritable } from '../ports/ports.ts';
import { createLmdbAgents } from '../stores/embedded/agents.ts';
import { createLmdbApiKeyStore } from '../stores/embedded/api-keys.ts';
import { createLmdbBudgets } from '../stores/embedded/budgets.ts';
import { createLmdbRevocationStore } from '../stores/embedded/revocations.ts';
import { createClock, createSteadyClock, within } from '../system/clock.ts';
import type { Logger } from '../system/log.ts';
import { createMetrics } from '../system/metrics.ts';
import { openSigningKeys } from '../system/signing-keys.ts';
import { AuditLink, type Trouble } from '../threads/audit/audit-link.ts';
import { AuditReaderLink } from '../threads/audit/reader-link.ts';
import { type CryptoPool, createCryptoPool } from '../threads/crypto/pool.ts';
import { Switchboard } from '../threads/main/switchboard.ts';
import { type Listening, Supervisor } from '../threads/supervisor.ts';
import { publicUrlOf } from './account-settings.ts';
import type { Config } from './config.ts';
import { metricsOf } from './metrics.ts';
import { packageVersion, STARTER_POLICY } from './package-files.ts';
import {
  fileTrouble,
  holdDataDir,
  lookForParts,
  missingParts,
  openStore,
  orStartError,
  probeAddresses,
  readPolicies,
  refuseUnknownFormat,
  startErrorOf,
  valueOrStartError,
} from './start-checks.ts';
import { openCredentials } from './start-credentials.ts';
import { restoreGovernor } from './start-governor.ts';
import { createPolicyKeeper, PolicyChanges, reloadChanged } from './start-policies.ts';
import { startRecorder } from './start-recorder.ts';
import { StoreOutage } from './store-outage.ts';
import { flushKeys, startTimers } from './timers.ts';
import { useCasesOf } from './use-cases.ts';
import { auditDataOf, auditFolderOf, ioDataOf } from './worker-data.ts';

export type Gateway = {
  readonly listening: Listening;
  readonly policies: LoadedPolicies;
  /** What the start did about the first API key. */
  readonly bootstrap: Bootstrap;
  /**
   * Reads policies and signing keys again. Where one cannot be read or is wrong, that is logged and the old one stays
   * in force.
   */
  reload(actor: string): Promise<void>;
  /**
   * Takes no more requests, answers those in flight, writes what is on its way, and closes everything it opened.
   * `onStep` is told what it waits for, before each wait.
   */
  stop(onStep: (waitsFor: string) => void): Promise<void>;
  /** Entries on their way to the audit log. */
  readonly unwrittenEntries: () => number;
};

/**
 * Promised mails and the stores get at least this long, even where requests have used up the grace period of the
 * shutdown.
 */
const LEAST_LATE_GRACE_MS = 1_000;
/** After that, an embedded database gets at least this long. */
const LEAST_DATABASE_GRACE_MS = 500;
/** Entries that may be on their way to the audit log at once: what a few seconds at full speed bring. */
const MAX_UNRECORDED_ENTRIES = 200_000;

/** The steps that close what a start has opened so far, in the order of opening. */
type Undo = (() => unknown)[];
type Resources = Awaited<ReturnType<typeof openResources>>;
type Parts = Awaited<ReturnType<typeof assemble>>;

/**
 * Rejects with a `StartError` where something given to it is wrong. When `signal` is aborted it rejects with the reason
 * of the signal, unless it was too late for that: then the gateway is started and has to be stopped.
 */
export async function startGateway(config: Config, log: Logger, signal: AbortSignal): Promise<Gateway> {
  const undo: Undo = [];
  try {
    const resources = await openResources(config, log, signal, undo);
    return await start(await assemble(resources, undo), signal, undo);
  } catch (error) {
    for (const step of undo.reverse()) await step();
    throw startErrorOf(error, config.SVC_DATA_DIR);
  }
}

/** Everything outside the process that a gateway holds on to. */
async function openResources(config: Config, log: Logger, signal: AbortSignal, undo: Undo) {
  const dataDir = config.SVC_DATA_DIR;
  const lock = await holdDataDir(dataDir);
  undo.push(() => lock.release());
  await refuseUnknownFormat(dataDir);
  const found = lookForParts(dataDir);
  const httpPort = await probeAddresses({
    http: config.SVC_HTTP_ADDR,
    grpc: config.SVC_GRPC_ADDR,
    isHttpShared: config.SVC_IO_THREADS > 1,
  });

  const policyPath = config.SVC_POLICY_PATH ?? STARTER_POLICY;
  const policyChanges = new PolicyChanges(policyPath);
  undo.push(() => policyChanges.close());
  const policies = await readPolicies(
    policyPath,
    config.SVC_POLICY_PATH === undefined ? 'the policies' : 'the policies in SVC_POLICY_PATH',
  );
  const store = await openStore(dataDir);
  undo.push(() => store.close());
  const crypto = startCrypto(config, log);
  undo.push(() => crypto.close());

  const clock = createClock();
  const signingKeys = await orStartError(openSigningKeys({ dataDir, given: config.SVC_JWT_PRIVATE_KEY, clock }));
  const url = config.SVC_DATABASE_URL;
  // Loaded only where there is a database: the libraries of accounts take a tenth of a start.
  const database =
    url === undefined
      ? undefined
      : await orStartError((await import('./start-accounts.ts')).openDatabase({ url, config, store, log, signal }));
  undo.push(() => database?.close());
  signal.throwIfAborted();
  return {
    clock,
    config,
    crypto,
    database,
    found,
    httpPort,
    lock,
    log,
    policies,
    policyChanges,
    policyPath,
    signingKeys,
    store,
  };
}

/** Connects the parts. Only the threads of the audit log and of the doors are not started yet. */
async function assemble(resources: Resources, undo: Undo) {
  const {
    clock,
    config,
    crypto,
    database,
    httpPort,
    log,
    policies: { policies },
    policyPath,
    signingKeys,
    store,
  } = resources;
  const storeOutage = new StoreOutage(() => store.probe(), log);
  undo.push(() => storeOutage.stop());
  const onError = failureLog(log, storeOutage, config.SVC_DATA_DIR);
  const agents = createLmdbAgents(store);
  const budgets = createLmdbBudgets(store);
  const governor = restoreGovernor({ config, policies, agents, budgets, nowMs: clock.nowMs() });
  const audit = new AuditLink(clock, config.SVC_AUDIT_ON_FAILURE, (trouble) => logTrouble(trouble, config, log));
  const auditReader = new AuditReaderLink({ directory: auditFolderOf(config) }, (message) =>
    log.error('reading the audit log failed', { error: message }),
  );
  undo.push(() => auditReader.close());

  const credentials = valueOrStartError(
    await openCredentials({
      config,
      signingKeys,
      crypto,
      audit,
      clock,
      onError,
      keyStore: database?.apiKeys ?? createLmdbApiKeyStore(store),
      isKeyStoreShared: database !== undefined,
      revocationStore: createLmdbRevocationStore(store),
    }),
    database?.postgres.trouble,
  );
  const { apiKeys, authenticator, issuer, revocations } = credentials;
  const recording = startRecorder({
    governor,
    audit,
    agents,
    budgets,
    clock,
    onError,
    onAuditFailure: config.SVC_AUDIT_ON_FAILURE,
  });
  const { events, threads } = recording;
  const limiters = limitersOf(config);
  const policyKeeper = createPolicyKeeper({ path: policyPath, policies, governor, audit, clock, log, onError });
  const accounts =
    database &&
    (await import('./start-accounts.ts')).startAccounts({
      config,
      database,
      audit,
      log,
      revocations,
      clock: createSteadyClock(),
      passwords: crypto.passwords,
      tokens: issuer,
      isKeyRevoked: (subject) => apiKeys.isRevoked(subject),
      publicUrl: () => publicUrlOf(config, supervisor.httpPort),
      events: {
        publish: ({ orgId, atMs, accountId, ...payload }) =>
          events.publish({
            kind: 'account',
            orgId,
            agentId: null,
            atMs,
            payload: { account_id: accountId, ...payload },
          }),
      },
    });
  undo.push(() => accounts?.stop(0));

  const useCases = useCasesOf({
    ...credentials,
    config,
    clock,
    audit,
    auditReader,
    database,
    policyKeeper,
    limiters,
    storeOutage,
    accounts: accounts?.useCases,
    isStopping: () => supervisor.isStopping,
    metrics: () => metrics,
    onKeyRotated: (rotated) => log.info('rotated the key that signs tokens', rotated),
  });
  const switchboard = new Switchboard({
    governor,
    ...recording,
    audit,
    useCases,
    clock,
    onError,
    onAuditFailure: config.SVC_AUDIT_ON_FAILURE,
    maxUnrecorded: MAX_UNRECORDED_ENTRIES,
    checkLimiter: config.SVC_RATE_LIMIT_CHECK === 0 ? undefined : limiters.check,
  });
  authenticator.onRevoked((subject) => threads.broadcast({ type: 'revoked', subject }));
  const supervisor = new Supervisor({
    threads,
    audit,
    clock,
    ioData: ioDataOf(config),
    ioThreads: config.SVC_IO_THREADS,
    ports: { httpPort, grpcPort: config.SVC_GRPC_ADDR.port },
    auditData: auditDataOf(config, audit.counters),
    note: (level, message, fields) => log[level](message, fields),
  });
  const metrics = createMetrics(
    metricsOf({
      ...recording,
      governor,
      supervisor,
      audit,
      crypto,
      policies: policyKeeper,
      storeOutage,
      isDatabaseAway: database && (() => database.postgres.isAway),
      limiters,
      version: packageVersion(),
    }),
  );
  undo.push(() => metrics.close());
  return {
    ...resources,
    ...credentials,
    accounts,
    audit,
    auditReader,
    governor,
    onError,
    policyKeeper,
    storeOutage,
    spend: recording.spend,
    supervisor,
    switchboard,
  };
}

/** Of an outage of the store, which may meet thousands of requests, each kind of failure is logged once. */
const failureLog =
  (log: Logger, storeOutage: StoreOutage, dataDir: string) =>
  (error: unknown, doing: string): void => {
    const isStore = error instanceof StoreUnwritable;
    if (isStore && !storeOutage.noteFailure(error, doing)) return;
    log.error(`${doing} failed`, { error: (isStore ? fileTrouble(error, dataDir) : undefined) ?? stackOf(error) });
  };

function logTrouble(trouble: Trouble, config: Config, log: Logger): void {
  if (trouble.isWritable) log.warn('the audit log can be written again', { entriesLost: trouble.entriesLost });
  else log.error('the audit log cannot be written', { reason: trouble.reason, checks: config.SVC_AUDIT_ON_FAILURE });
}

const limitersOf = (config: Config) => ({
  credential: new RateLimiter(config.SVC_RATE_LIMIT_API),
  address: new RateLimiter(config.SVC_RATE_LIMIT_AUTH),
  check: new RateLimiter(config.SVC_RATE_LIMIT_CHECK),
});

/** The audit log first, because what follows is recorded; the doors last. */
async function start(parts: Parts, signal: AbortSignal, undo: Undo): Promise<Gateway> {
  const {
    accounts,
    apiKeys,
    audit,
    config,
    database,
    found,
    governor,
    log,
    onError,
    policyChanges,
    policyKeeper,
    signingKeys,
    supervisor,
    switchboard,
  } = parts;
  const opened = await orStartError(supervisor.startAudit());
  undo.push(() => supervisor.closeAudit());
  for (const note of opened.notes) log.warn(note);
  const before = {
    dataDir: config.SVC_DATA_DIR,
    found,
    entries: opened.headId,
    agents: governor.agents.registeredCount,
    apiKeys: apiKeys.size,
  };
  for (const missing of missingParts({
    ...before,
    hasDatabase: database !== undefined,
    isKeyGiven: config.SVC_JWT_PRIVATE_KEY !== undefined,
  }))
    log.warn(missing);

  const bootstrap = valueOrStartError(
    await bootstrapApiKeys(apiKeys, config.SVC_BOOTSTRAP_API_KEY),
    database?.postgres.trouble,
  );
  if (accounts !== undefined) valueOrStartError(await accounts.start(), database?.postgres.trouble);
  signal.throwIfAborted();
  undo.push(() => supervisor.drainIo(0).then(() => supervisor.endIo()));
  const listening = await orStartError(supervisor.startIo(switchboard));

  const timers = startTimers({ ...parts, isShared: database !== undefined });
  policyChanges.follow((fingerprint) => void reloadChanged(policyKeeper, onError, fingerprint));
  let stopping: Promise<void> | undefined;
  return {
    listening,
    policies: parts.policies,
    bootstrap,
    reload: async (actor) => {
      await policyKeeper.reload(actor).catch((error: unknown) => onError(error, 'reloading policies'));
      await reloadSigningKeys(signingKeys, log);
    },
    stop: (onStep) => (stopping ??= stop(parts, timers, onStep)),
    unwrittenEntries: () => audit.entriesInFlight,
  };
}

/** Stops the parts in the order in which nothing is lost. */
async function stop(
  parts: Parts,
  timers: readonly NodeJS.Timeout[],
  onStep: (waitsFor: string) => void,
): Promise<void> {
  const {
    accounts,
    apiKeys,
    auditReader,
    config,
    crypto,
    database,
    lock,
    log,
    onError,
    policyChanges,
    spend,
    store,
    storeOutage,
    supervisor,
  } = parts;
  for (const timer of timers) clearInterval(timer);
  storeOutage.stop();
  policyChanges.close();
  const graceMs = config.SVC_SHUTDOWN_SECS * 1000;
  const endMs = performance.now() + graceMs;
  onStep('requests in flight');
  await supervisor.drainIo(graceMs);
  const leftMs = Math.max(LEAST_LATE_GRACE_MS, endMs - performance.now());
  onStep('e-mails and API keys');
  // A database that does not answer delays neither of them longer than that.
  await Promise.all([accounts?.stop(leftMs), within(leftMs, flushKeys(apiKeys, log, onError))]);
  onStep('the spend store');
  await spend.save().catch((error: unknown) => onError(error, 'saving budgets'));
  onStep('the audit log');
  await auditReader.close();
  await supervisor.closeAudit();
  onStep('the stores; everything is written');
  await crypto.close();
  await database?.close(Math.max(LEAST_DATABASE_GRACE_MS, endMs - performance.now()));
  await store.close();
  await lock.release();
  await supervisor.endIo();
}

const startCrypto = (config: Config, log: Logger): CryptoPool =>
  createCryptoPool({
    threads: config.SVC_CRYPTO_THREADS,
    cost: {
      memoryKib: config.SVC_ARGON2_MEMORY_KIB,
      iterations: config.SVC_ARGON2_ITERATIONS,
      parallelism: config.SVC_ARGON2_PARALLELISM,
    },
    maxPasswordQueue: config.SVC_CRYPTO_QUEUE,
    uvThreads: config.UV_THREADPOOL_SIZE,
    onError: (message, cause) => log.error(message, { cause }),
  });

async function reloadSigningKeys(signingKeys: SigningKeys, log: Logger): Promise<void> {
  try {
    const { kid, changed } = await signingKeys.reload();
    log.info('signing keys reloaded', { kid, changed });
  } catch (error) {
    log.error('signing keys were not reloaded', { reason: messageOf(error) });
  }
}
