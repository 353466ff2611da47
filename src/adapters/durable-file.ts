import { randomBytes } from 'node:crypto';
import { fsyncSync, renameSync, writeFileSync } from 'node:fs';
import { open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { withOpenFile } from './open-file.ts';

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
