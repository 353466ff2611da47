import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ifThere, removeRemains, replaceFile, syncDirectory, syncFile } from '../../system/files.ts';
import { workerFile } from '../../system/worker-file.ts';
import { StoreDamaged } from './database.ts';
import type { OldStoreOutcome } from './lmdb.ts';
import { STORE_FILE } from './store.ts';

/** Increase it with every change in the data directory that older releases would misread. */
export const DATA_FORMAT = '2';
/** It had an LMDB store. */
const FIRST_FORMAT = '1';

/** Files of the first format, and the folder in which they are kept once they were read. */
const OLD_FILES = ['data.mdb', 'lock.mdb'] as const;
const KEPT_FOLDER = 'before-format-2';

/**
 * The content of `<dataDir>/format` if this release does not know it, else undefined. Call it before anything else is
 * opened: the data of another release would be taken for damaged, set aside or overwritten.
 */
export async function unknownFormat(dataDir: string): Promise<string | undefined> {
  const path = formatFile(dataDir);
  await removeRemains(path);
  const format = await formatOf(dataDir);
  return format === undefined || format === DATA_FORMAT || format === FIRST_FORMAT ? undefined : format;
}

export type UpgradedStore = {
  readonly rows: number;
  /** The folder of the old files. */
  readonly kept: string;
};

/**
 * Brings a data directory that is new, or has an earlier format, to the current one. The store of the first format is
 * read once, and its files are kept. Resolves with what was read, undefined where there was nothing to read. Until the
 * new format is noted, the old store is what counts: interrupted, the next start begins again. Rejects with the error
 * of the system or `StoreDamaged`, and leaves the old store as it was.
 */
export async function upgradeDataDir(dataDir: string): Promise<UpgradedStore | undefined> {
  const folder = join(dataDir, 'store');
  const hasOld = existsSync(join(folder, OLD_FILES[0]));
  const format = (await formatOf(dataDir)) ?? (hasOld ? FIRST_FORMAT : undefined);
  const rows =
    hasOld && (format === FIRST_FORMAT || !existsSync(join(folder, STORE_FILE)))
      ? await readOldStore(folder)
      : undefined;
  if (format !== DATA_FORMAT) await replaceFile(formatFile(dataDir), `${DATA_FORMAT}\n`);
  if (!hasOld) return undefined;
  const kept = join(folder, KEPT_FOLDER);
  mkdirSync(kept, { recursive: true, mode: 0o700 });
  for (const name of OLD_FILES) if (existsSync(join(folder, name))) renameSync(join(folder, name), join(kept, name));
  for (const changed of [kept, folder]) syncDirectory(changed);
  return rows === undefined ? undefined : { rows, kept };
}

const formatFile = (dataDir: string): string => join(dataDir, 'format');

const formatOf = async (dataDir: string): Promise<string | undefined> =>
  (await ifThere(readFile(formatFile(dataDir), 'utf8')))?.trim();

/** The new file appears under its name when it is complete and on disk. Resolves with the number of rows. */
async function readOldStore(folder: string): Promise<number> {
  const target = join(folder, STORE_FILE);
  const part = `${target}.part`;
  for (const path of [part, target]) removeDatabase(path);
  const old = join(folder, OLD_FILES[0]);
  const output = await new Promise<string>((resolve, reject) => {
    execFile(process.execPath, [workerFile('old-store'), folder, part], (error, stdout) => {
      if (stdout !== '') resolve(stdout);
      else
        reject(new StoreDamaged(old, `LMDB, which reads it, ended with ${error?.signal ?? `status ${error?.code}`}`));
    });
  });
  const outcome = JSON.parse(output) as OldStoreOutcome;
  if (!('rows' in outcome)) throw failureOf(outcome, old);
  await syncFile(part);
  renameSync(part, target);
  removeDatabase(part); // its log of writes is empty
  syncDirectory(folder);
  return outcome.rows;
}

function removeDatabase(path: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true });
}

function failureOf({ code, message, path }: Exclude<OldStoreOutcome, { rows: number }>, old: string): Error {
  if (code === 'ERR_MODULE_NOT_FOUND')
    return new Error(`the package lmdb, which reads ${old} once, is not installed: install without --omit=optional`);
  const isSystem = code !== undefined && /^E[A-Z]+$/.test(code);
  return isSystem
    ? Object.assign(new Error(message), { code, path: path ?? old })
    : new StoreDamaged(old, message.replaceAll(/\s+/g, ' '));
}
