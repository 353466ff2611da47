/** Preconditions of a start, each with an error message for the operator. */
import { chmodSync, existsSync, statSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { dirname, join, relative, resolve } from 'node:path';
import type { Address } from '../config/parse.ts';
import type { Result } from '../core/base/result.ts';
import { codeOf, messageOf } from '../core/base/text.ts';
import { explain, type Fault } from '../core/fault.ts';
import { type LoadedPolicies, loadPolicies, renderPolicyProblem } from '../policy-files/policy-file.ts';
import { type DataDirLock, lockDataDir } from '../stores/embedded/data-dir.ts';
import { StoreDamaged, StoreOfLaterRelease } from '../stores/embedded/database.ts';
import { DATA_FORMAT, unknownFormat, upgradeDataDir } from '../stores/embedded/old-store.ts';
import { isOfCluster } from '../stores/embedded/runs.ts';
import { type EmbeddedStore, openEmbeddedStore, STORE_FILE } from '../stores/embedded/store.ts';
import { makeFolder } from '../system/files.ts';
import type { Logger } from '../system/log.ts';

// Errors of the system about files that the gateway needs to start, in words: which path, which setting, and what to
// do.

type Trouble = { readonly reason: string; readonly remedy: string };

const uid = process.getuid?.();
const ACCOUNT = `the account that runs the gateway${uid === undefined ? '' : ` (user ${uid})`}`;
const NOT_OURS: Trouble = { reason: `${ACCOUNT} has no permission`, remedy: 'give it to that account' };
/** The folder that is to hold it may rightly belong to others, who should not give it away. */
const NOT_OURS_TO_MAKE: Trouble = {
  reason: `${ACCOUNT} has no permission to create it`,
  remedy: 'create it and give it to that account',
};
const FULL: Trouble = { reason: 'the disk is full', remedy: 'free some space' };
const IN_THE_WAY: Trouble = { reason: 'there is a file where a folder must be', remedy: 'move that file away' };

const TROUBLES: Readonly<Record<string, Trouble>> = {
  EACCES: NOT_OURS,
  EPERM: NOT_OURS,
  ENOSPC: FULL,
  EDQUOT: FULL,
  EROFS: { reason: 'the file system is read-only', remedy: 'mount it writable' },
  ENOTDIR: IN_THE_WAY,
  EEXIST: IN_THE_WAY,
  ENOENT: { reason: 'it cannot be created there', remedy: 'check the path' },
  ENAMETOOLONG: { reason: 'the name is too long', remedy: 'shorten it' },
  EIO: { reason: 'disk error', remedy: 'check the disk' },
};

/** Whether it is an error of the system about a file that there are words for. */
const isFileTrouble = (error: unknown): boolean => troubleOf(error) !== undefined;

/** Undefined for anything else. */
export function fileTrouble(error: unknown, dataDir: string): string | undefined {
  const found = troubleOf(error);
  if (found === undefined) return undefined;
  const { name, path, trouble } = found;
  const isOfDataDir = path === undefined || isWithin(path, dataDir) || isWithin(dataDir, path);
  const remedy = isOfDataDir ? `${trouble.remedy}, or choose another SVC_DATA_DIR` : trouble.remedy;
  return `cannot use ${path ?? `the data directory ${dataDir}`}: ${trouble.reason} (${name}); ${remedy}`;
}

function troubleOf(
  error: unknown,
): { readonly name: string; readonly path: string | undefined; readonly trouble: Trouble } | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, path, syscall } = error as NodeJS.ErrnoException;
  // Errors of listening and connecting are reported with their address elsewhere.
  if (code === undefined || syscall === 'connect' || 'port' in error) return undefined;
  const found = TROUBLES[code];
  const trouble = found === NOT_OURS && syscall === 'mkdir' ? NOT_OURS_TO_MAKE : found;
  return trouble === undefined ? undefined : { name: code, path, trouble };
}

const isWithin = (path: string, folder: string): boolean => !relative(resolve(folder), resolve(path)).startsWith('..');

// Detects what a partial restore has left out, so that startup can warn: missing parts are created anew, as on a first
// start.

/** Call it before anything is opened. */
export const lookForParts = (dataDir: string) => ({
  store: hasContent(join(dataDir, 'store', STORE_FILE)) || hasContent(join(dataDir, 'store', 'data.mdb')),
  signingKey: existsSync(join(dataDir, 'keys', 'signing.json')),
});

/** An empty file is what a full disk leaves of a copy. */
const hasContent = (path: string): boolean => existsSync(path) && statSync(path).size > 0;

export type FoundParts = ReturnType<typeof lookForParts>;

/** The state before this start adds to it. */
export type OpenedParts = {
  readonly dataDir: string;
  readonly found: FoundParts;
  /** In the audit log. */
  readonly entries: number;
  readonly agents: number;
  /** In the database, where there is one, else in the store. A gateway that has run has made at least one. */
  readonly apiKeys: number;
  readonly hasDatabase: boolean;
  /** By SVC_JWT_PRIVATE_KEY. */
  readonly isKeyGiven: boolean;
};

const REMEDY = 'if a restore left it out, stop the gateway and restore all parts from the same backup';

/** A warning for each missing part that must have existed, judging by the others. */
export function missingParts({
  dataDir,
  found,
  entries,
  agents,
  apiKeys,
  hasDatabase,
  isKeyGiven,
}: OpenedParts): readonly string[] {
  const missing: string[] = [];
  const isStoreUsed = agents > 0 || (!hasDatabase && apiKeys > 0);
  if (entries === 0 && isStoreUsed) missing.push(`${join(dataDir, 'audit')} was empty and starts over at entry 1`);
  if (entries > 0 && !found.store)
    missing.push(
      `${join(dataDir, 'store')} was missing and starts over, without the previous registrations${hasDatabase ? ' and spend' : ', spend and API keys'}`,
    );
  if (entries > 0 && !found.signingKey && !isKeyGiven)
    missing.push(
      `${join(dataDir, 'keys', 'signing.json')} was missing and starts over, so all previous tokens are invalid`,
    );
  if (entries > 0 && hasDatabase && apiKeys === 0)
    missing.push(
      'the database in SVC_DATABASE_URL was empty and starts over, without the previous accounts and API keys',
    );
  return missing.map((what) => `${what}: ${REMEDY}`);
}

/**
 * For a gateway that is to be alone. What its store has is from before the cluster: tokens that were rotated or removed
 * since would be valid again, and halts would be forgotten. Throws a `StartError`.
 */
export function refuseMember(dataDir: string, store: Pick<EmbeddedStore, 'table'>): void {
  if (isOfCluster(store))
    throw new StartError(
      `the data directory ${dataDir} is that of a gateway in a cluster, and SVC_CLUSTER is not set; set SVC_CLUSTER=on, also for a single gateway, or leave the cluster by \`svc cluster leave\` (docs/cluster.md, Leaving a cluster)`,
    );
}

/** Why the gateway does not start, as a message for the operator. */
export class StartError extends Error {}

/** For promises that reject with such a message. Errors of the system are left to `startErrorOf`. */
export const orStartError = <T>(starting: Promise<T>): Promise<T> =>
  starting.catch((error: unknown) => {
    throw isFileTrouble(error) || environmentTrouble(error) !== undefined ? error : new StartError(messageOf(error));
  });

/**
 * Explains why the environment is unsuitable: limits of the system, or the current folder. Undefined for other errors.
 */
function environmentTrouble(error: unknown): string | undefined {
  if ((error as NodeJS.ErrnoException | undefined)?.syscall === 'uv_cwd')
    return 'the current folder has been deleted; start the gateway from another folder';
  // Matched by its text, which is all that is known of an error in another thread, or one that could not start.
  if (messageOf(error).includes('EMFILE'))
    return 'too many open files (EMFILE); raise the limit (ulimit -n, LimitNOFILE)';
  if (codeOf(error) === 'ERR_WORKER_INIT_FAILED')
    return 'too many threads (EAGAIN); raise the limit (ulimit -u, TasksMax, pids limit of the container)';
  return undefined;
}

/** Explains errors of the system; every other error is returned unchanged. */
export function startErrorOf(error: unknown, dataDir: string): unknown {
  const damage = storeTrouble(error);
  if (damage !== undefined) return damage;
  const trouble = environmentTrouble(error) ?? fileTrouble(error, dataDir);
  return trouble === undefined ? error : new StartError(trouble, { cause: error });
}

/** `trouble` is the last message of the database, if there is one. */
export function valueOrStartError<T>(result: Result<T, Fault>, trouble: string | undefined): T {
  if (result.ok) return result.value;
  const isDatabase = result.fault.kind === 'store_unreachable' && trouble !== undefined;
  throw new StartError(isDatabase ? `cannot use the database in SVC_DATABASE_URL: ${trouble}` : explain(result.fault));
}

/**
 * Makes the data directory (0700) and locks it for this process. Rejects with a `StartError` where another gateway
 * holds it.
 */
export async function holdDataDir(path: string): Promise<DataDirLock> {
  makeFolder(resolve(path), 0o700);
  chmodSync(path, 0o700); // it may have been there before
  const lock = await lockDataDir(path);
  if (!lock.ok)
    throw new StartError(
      `the data directory ${path} is in use by another gateway (${lock.fault.holder}); stop it, or choose another SVC_DATA_DIR`,
    );
  return lock.value;
}

const GO_BACK = 'start the release that wrote it, or restore the backup from before the upgrade';

/**
 * Rejects with a `StartError` where another release has laid out the data directory in a way that this one does not
 * know.
 */
export async function refuseUnknownFormat(path: string): Promise<void> {
  const format = await unknownFormat(path);
  if (format !== undefined)
    throw new StartError(
      `the data directory ${path} has format ${format}, but this release supports only ${DATA_FORMAT}; ${GO_BACK}`,
    );
}

/**
 * Opens the store; that of an earlier release is read first. Rejects with a `StartError` where it is damaged or of a
 * later release, and with the error of the system where it has one.
 */
export async function openStore(dataDir: string, log: Pick<Logger, 'warn'>): Promise<EmbeddedStore> {
  try {
    const upgraded = await upgradeDataDir(dataDir);
    if (upgraded !== undefined)
      log.warn('the store of an earlier release was read; its files are kept until you delete them', upgraded);
    return openEmbeddedStore(dataDir);
  } catch (error) {
    if (isFileTrouble(error)) throw error;
    throw storeTrouble(error) ?? new StartError(`cannot open the store in ${dataDir}: ${messageOf(error)}`);
  }
}

/** Rows are read after the store was opened, so damage is found there, too. Undefined for other errors. */
function storeTrouble(error: unknown): StartError | undefined {
  if (error instanceof StoreDamaged)
    return new StartError(
      `${error.message}; restore the folder ${dirname(error.path)} from a backup, or remove it to start without the previous API keys, registrations and spend`,
      { cause: error },
    );
  return error instanceof StoreOfLaterRelease ? new StartError(`${error.message}; ${GO_BACK}`) : undefined;
}

/** `what`: what the message calls them. */
export async function readPolicies(path: string, what: string): Promise<LoadedPolicies> {
  const loaded = await loadPolicies(path);
  if (loaded.ok) return loaded.value;
  throw new StartError(
    [`${what} are invalid:`, ...loaded.fault.map((problem) => `  ${renderPolicyProblem(problem)}`)].join('\n'),
  );
}

/**
 * Resolves with the port for HTTP; rejects with a `StartError` where an address is taken. The I/O threads share a port
 * among themselves, but not with another program, and HTTP does not share one with gRPC. So both addresses are bound at
 * once, which also finds clashes between host names. A port chosen by the system cannot be shared between sockets, so
 * where several threads need one for HTTP, a free one is chosen here.
 */
export async function probeAddresses({
  http,
  grpc,
  isHttpShared,
}: {
  readonly http: Address;
  readonly grpc: Address;
  readonly isHttpShared: boolean;
}): Promise<number> {
  const probes: Server[] = [];
  try {
    if (http.port !== 0 || isHttpShared) probes.push(await take('SVC_HTTP_ADDR', http));
    const chosen = probes[0]?.address() as AddressInfo | undefined;
    if (grpc.port !== 0) probes.push(await take('SVC_GRPC_ADDR', grpc));
    return chosen?.port ?? 0;
  } finally {
    await Promise.all(
      probes.map(
        (probe) =>
          new Promise((closed) => {
            probe.close(closed);
          }),
      ),
    );
  }
}

const take = (variable: string, { host, port }: Address): Promise<Server> =>
  new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        new StartError(
          `cannot listen on ${host}:${port} (${error.code ?? error.message}); stop the program that listens there, or choose another ${variable}`,
        ),
      ),
    );
    probe.listen({ host, port }, () => resolve(probe));
  });
