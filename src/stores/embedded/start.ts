/** Preconditions of the data directory, each with an error message for the operator. */
import { chmodSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { messageOf } from '../../core/base/text.ts';
import { makeFolder } from '../../system/files.ts';
import type { Logger } from '../../system/log.ts';
import { environmentTrouble, fileTrouble, isFileTrouble, StartError } from '../../system/start-error.ts';
import { type DataDirLock, lockDataDir } from './data-dir.ts';
import { StoreDamaged, StoreOfLaterRelease } from './database.ts';
import { DATA_FORMAT, unknownFormat, upgradeDataDir } from './old-store.ts';
import { isOfCluster } from './runs.ts';
import { type EmbeddedStore, openEmbeddedStore } from './store.ts';

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

/** Explains errors of the system; every other error is returned unchanged. */
export function startErrorOf(error: unknown, dataDir: string): unknown {
  const damage = storeTrouble(error);
  if (damage !== undefined) return damage;
  const trouble = environmentTrouble(error) ?? fileTrouble(error, dataDir);
  return trouble === undefined ? error : new StartError(trouble, { cause: error });
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
