import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { codeOf } from '../core/base/text.ts';

/**
 * Makes the folder and its missing parents; `path` is absolute. Made one by one: Node.js' recursive mkdir hides that a
 * file system is read-only, and never ends in /proc. Throws what the system says.
 */
export function makeFolder(path: string, mode: number): void {
  if (isFolder(path)) return;
  if (dirname(path) !== path) makeFolder(dirname(path), mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (!isFolder(path)) throw error; // else another process that starts at the same time was faster
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // mkdir will report why
  }
}

/** Whether the process, or the system, has as many files and connections open as it may. */
export const isOutOfDescriptors = (error: unknown): boolean => {
  const code = codeOf(error);
  return code === 'EMFILE' || code === 'ENFILE';
};

/** Resolves as `reading` does; undefined if the file or folder does not exist. Rejects with any other system error. */
export const ifThere = <T>(reading: Promise<T>): Promise<T | undefined> => reading.catch(undefinedWhereMissing);

export function ifThereSync<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    return undefinedWhereMissing(error);
  }
}

export const textIfThereSync = (path: string): string | undefined => ifThereSync(() => readFileSync(path, 'utf8'));

function undefinedWhereMissing(error: unknown): undefined {
  if (codeOf(error) !== 'ENOENT') throw error;
}

/** Keeps a file open while `use` runs. A file that this creates is accessible only to its owner. */
export function withOpenFile<T>(path: string, flags: string, use: (fd: number) => T): T {
  const fd = openSync(path, flags, 0o600);
  try {
    return use(fd);
  } finally {
    closeSync(fd);
  }
}

/**
 * Replaces a file as a whole, readable only by its owner. After a crash it holds either the old text or the new one.
 * Rejects with the error of the system.
 */
export async function replaceFile(path: string, text: string): Promise<void> {
  const next = `${path}.${randomBytes(4).toString('hex')}.partial`;
  try {
    await written(next, text);
    await rename(next, path);
  } catch (error) {
    await rm(next, { force: true });
    throw error;
  }
  await syncFile(dirname(path)); // the new name, too, must outlive a loss of power
}

/**
 * Removes what `replaceFile` has left beside the file where it was killed: half a text, which may hold a secret that
 * nobody would look for there. Call it only where no other process replaces the file, as for those of a data directory
 * that is locked.
 */
export async function removeRemains(path: string): Promise<void> {
  const [folder, name] = [dirname(path), basename(path)];
  for (const entry of await readdir(folder)) {
    if (entry.startsWith(`${name}.`) && /^\.[0-9a-f]{8}\.partial$/.test(entry.slice(name.length)))
      await rm(join(folder, entry), { force: true });
  }
}

/** Makes what was written survive a loss of power; of a folder, the names in it. */
export async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

async function written(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** As `replaceFile`, for a file with a single writer: what a crash leaves beside it is overwritten by the next call. */
export function replaceFileSync(path: string, text: string): void {
  const next = `${path}.tmp`;
  withOpenFile(next, 'w', (fd) => {
    // writes all of it or throws: of a single write, a disk that is nearly full may take only the first part
    writeFileSync(fd, text);
    fsyncSync(fd);
  });
  renameSync(next, path);
  syncDirectory(dirname(path));
}

/** Makes the names of a folder's files as durable as their content. */
export function syncDirectory(directory: string): void {
  withOpenFile(directory, 'r', fsyncSync);
}
