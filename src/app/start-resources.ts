/** Everything outside the process that a gateway holds on to. */

import { stackOf } from '../core/base/text.ts';
import { openSigningKeys } from '../credentials/signing-key-files.ts';
import type { SigningKeys } from '../credentials/signing-keys.ts';
import { type LoadedPolicies, loadPolicies, renderPolicyProblem } from '../policy-files/policy-file.ts';
import { PolicyChanges } from '../policy-files/policy-watch.ts';
import { type Clock, StoreUnwritable } from '../ports/ports.ts';
import type { Database } from '../stores/database.ts';
import { type FoundParts, lookForParts } from '../stores/embedded/missing-parts.ts';
import { StoreOutage } from '../stores/embedded/outage.ts';
import { holdDataDir, openStore, refuseMember, refuseUnknownFormat } from '../stores/embedded/start.ts';
import type { EmbeddedStore } from '../stores/embedded/store.ts';
import type { Logger } from '../system/log.ts';
import { OpenFiles } from '../system/open-files.ts';
import { STARTER_POLICY } from '../system/package-files.ts';
import { probeAddresses } from '../system/probe-addresses.ts';
import { fileTrouble, orStartError, StartError } from '../system/start-error.ts';
import { type CryptoPool, createCryptoPool } from '../threads/crypto/pool.ts';
import { startPrices } from '../threads/prices/start.ts';
import type { PriceKeeper } from '../use-cases/prices.ts';
import type { StartContext } from './start-context.ts';

/** An embedded database gets at least this long, even where the rest has used up the grace period of the shutdown. */
const LEAST_DATABASE_GRACE_MS = 500;

export type Resources = {
  /** Which parts the data directory had before the start. */
  readonly found: FoundParts;
  /** A free port where the system was to choose one. */
  readonly httpPort: number;
  readonly policyPath: string;
  readonly policies: LoadedPolicies;
  readonly policyChanges: PolicyChanges;
  readonly store: EmbeddedStore;
  readonly storeOutage: StoreOutage;
  readonly openFiles: OpenFiles;
  readonly onError: (error: unknown, doing: string) => void;
  readonly signingKeys: SigningKeys;
  readonly database: Database | undefined;
  readonly crypto: CryptoPool;
  readonly prices: PriceKeeper;
};

export async function openResources(context: StartContext, clock: Clock): Promise<Resources> {
  const { config, log, signal, closers } = context;
  const dataDir = config.SVC_DATA_DIR;
  const lock = await holdDataDir(dataDir);
  closers.add('the lock of the data directory; everything is written', () => lock.release());
  await refuseUnknownFormat(dataDir);
  const found = lookForParts(dataDir);
  const httpPort = await probeAddresses({
    http: config.SVC_HTTP_ADDR,
    grpc: config.SVC_GRPC_ADDR,
    isHttpShared: config.SVC_IO_THREADS > 1,
  });

  const policyPath = config.SVC_POLICY_PATH ?? STARTER_POLICY;
  const policyChanges = new PolicyChanges(policyPath);
  closers.add('the watch over the policies; everything is written', () => policyChanges.close());
  const policies = await readPolicies(
    policyPath,
    config.SVC_POLICY_PATH === undefined ? 'the policies' : 'the policies in SVC_POLICY_PATH',
  );
  const store = await openStore(dataDir, log);
  closers.add('the embedded store; everything is written', () => store.close());
  if (config.SVC_CLUSTER === undefined) refuseMember(dataDir, store);
  const storeOutage = new StoreOutage(store, log);
  closers.add('the look after the embedded store; everything is written', () => storeOutage.stop());
  const openFiles = new OpenFiles(log);
  closers.add('the look after open files; everything is written', () => openFiles.stop());
  const onError = failureLog(log, storeOutage, dataDir);
  const signingKeys = await orStartError(openSigningKeys({ dataDir, given: config.SVC_JWT_PRIVATE_KEY, clock }));
  const database = await openDatabaseOf(context, store);
  const crypto = startCrypto(context);
  const prices = await startPrices(config, { log, closers, clock });
  signal.throwIfAborted();
  return {
    found,
    httpPort,
    policyPath,
    policies,
    policyChanges,
    store,
    storeOutage,
    openFiles,
    onError,
    signingKeys,
    database,
    crypto,
    prices,
  };
}

/** Loaded only where there is a database: the libraries of accounts take a tenth of a start. */
async function openDatabaseOf(context: StartContext, store: EmbeddedStore): Promise<Database | undefined> {
  const { config, log, signal, wait, closers } = context;
  const { SVC_DATABASE_URL: url, SVC_DATA_DIR: dataDir, SVC_DATABASE_POOL: maxConnections } = config;
  if (url === undefined) return undefined;
  const { openDatabase } = await import('../stores/database.ts');
  const database = await orStartError(openDatabase({ url, dataDir, maxConnections, store, log, signal, wait }));
  closers.add('the database; everything is written', (grace) => database.close(grace.leftMs(LEAST_DATABASE_GRACE_MS)));
  return database;
}

function startCrypto({ config, log, closers }: StartContext): CryptoPool {
  const crypto = createCryptoPool({
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
  closers.add('the crypto threads; everything is written', () => crypto.close());
  return crypto;
}

/** `what`: what the message calls them. */
async function readPolicies(path: string, what: string): Promise<LoadedPolicies> {
  const loaded = await loadPolicies(path);
  if (loaded.ok) return loaded.value;
  throw new StartError(
    [`${what} are invalid:`, ...loaded.fault.map((problem) => `  ${renderPolicyProblem(problem)}`)].join('\n'),
  );
}

/** An outage of the store, which may meet thousands of requests, is logged once for each kind of failure. */
const failureLog =
  (log: Logger, storeOutage: StoreOutage, dataDir: string) =>
  (error: unknown, doing: string): void => {
    const isStore = error instanceof StoreUnwritable;
    if (isStore && !storeOutage.noteFailure(error, doing)) return;
    log.error(`${doing} failed`, { error: (isStore ? fileTrouble(error, dataDir) : undefined) ?? stackOf(error) });
  };
