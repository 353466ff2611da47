/** What must be right before a gateway starts, each with an error message for the operator. */
import { chmodSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { resolve } from 'node:path';
import { makeFolder } from './adapters/make-folder.ts';
import { type LoadedPolicies, loadPolicies, renderPolicyProblem } from './adapters/policy-file.ts';
import { type DataDirLock, lockDataDir } from './adapters/store/data-dir-lock.ts';
import { DATA_FORMAT, unknownFormat } from './adapters/store/data-format.ts';
import { type EmbeddedStore, openEmbeddedStore } from './adapters/store/lmdb.ts';
import { damagedStoreFile, STORE_VERSION, strangeStoreFile } from './adapters/store/lmdb-damage.ts';
import type { Address } from './config.ts';
import { codeOf, messageOf } from './core/error-text.ts';
import { explain, type Fault } from './core/fault.ts';
import type { Result } from './core/result.ts';
import { fileTrouble, isFileTrouble } from './file-trouble.ts';

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
  const trouble = environmentTrouble(error) ?? fileTrouble(error, dataDir);
  return trouble === undefined ? error : new StartError(trouble, { cause: error });
}

/** `trouble` is what the database said last, if there is one. */
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
 * Rejects with a `StartError` where the store is damaged or of another version, and with the error of the system where
 * it has one.
 */
export async function openStore(dataDir: string): Promise<EmbeddedStore> {
  const strange = strangeStoreFile(dataDir);
  if (strange !== undefined)
    throw new StartError(
      `${strange.path} has format version ${strange.version}, but this release supports only ${STORE_VERSION}; ${GO_BACK}`,
    );
  const damaged = await damagedStoreFile(dataDir);
  if (damaged !== undefined)
    throw new StartError(
      `${damaged} is damaged; restore it from a backup, or remove it to start without the previous API keys, registrations and spend`,
    );
  try {
    return openEmbeddedStore(dataDir);
  } catch (error) {
    throw isFileTrouble(error) ? error : new StartError(`cannot open the store in ${dataDir}: ${messageOf(error)}`);
  }
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
