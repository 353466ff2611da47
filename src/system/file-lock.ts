/** Replaces a file that several processes change, one after the other. */
import { randomBytes } from 'node:crypto';
import { constants, copyFile, link, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { codeOf } from '../core/base/text.ts';
import { ifThere, removeRemains, replaceFile } from './files.ts';

const LOCK_RETRY_MS = 15;
const LOCK_PATIENCE_MS = 10_000;
/**
 * A lock is held for the milliseconds of one write; one that is this old was left by a process that crashed or is
 * stopped.
 */
const LOCK_STALE_MS = 5_000;
/** A process that waits for a lock, and was stopped meanwhile, would fail without its file. */
const REMAINS_MS = 3_600_000;

export class LockHeldError extends Error {
  readonly path: string;

  constructor(path: string) {
    super(`another process holds ${path}; if no svc command is running, delete that file`);
    this.name = 'LockHeldError';
    this.path = path;
  }
}

/**
 * Replaces the file by the text that `next` makes of it; when that is undefined, nothing is written. `next` reads the
 * file itself, and is called again where another process has taken the lock meanwhile. Rejects with the error of the
 * system, or with a `LockHeldError`.
 */
export async function replaceInTurn(path: string, next: () => Promise<string | undefined>): Promise<void> {
  while (!(await replacedInTurn(path, next)));
}

/**
 * False, with nothing written, where this process was stopped for so long that another has taken the lock: the text may
 * be another by now.
 */
async function replacedInTurn(path: string, next: () => Promise<string | undefined>): Promise<boolean> {
  const held = await lock(`${path}.lock`);
  try {
    const text = await next();
    if (text === undefined) return true;
    await clearRemains(path);
    if (!(await held.isOurs())) return false;
    await replaceFile(path, text);
    return true;
  } finally {
    await held.end();
  }
}

/** Removes what killed processes left behind. Those that wait for the lock keep their files fresh, unless stopped. */
async function clearRemains(path: string): Promise<void> {
  await removeRemains(path); // only the process that has the lock replaces the file
  const [folder, name] = [dirname(path), basename(path)];
  for (const entry of await readdir(folder)) {
    if (!entry.startsWith(name) || !/^\.lock\.\d+\.[0-9a-f]{16}(\.stale)?$/.test(entry.slice(name.length))) continue;
    const age = await ageOf(join(folder, entry));
    if (age !== undefined && age > REMAINS_MS) await rm(join(folder, entry), { force: true });
  }
}

/** In milliseconds; undefined where there is no such file. */
async function ageOf(path: string): Promise<number | undefined> {
  const found = await ifThere(stat(path));
  return found && Date.now() - found.mtimeMs;
}

/** Holds the lock until `end`, or until others think that it was left behind. Its text is the name of its holder. */
type HeldLock = { readonly isOurs: () => Promise<boolean>; readonly end: () => Promise<void> };

async function lock(path: string): Promise<HeldLock> {
  const holder = `${process.pid}.${randomBytes(8).toString('hex')}`;
  const own = `${path}.${holder}`;
  const giveUpAtMs = Date.now() + LOCK_PATIENCE_MS;
  await writeFile(own, holder, { flag: 'wx', mode: 0o600 });
  try {
    while (!(await linkedFresh(own, path))) {
      await clearWhenStale(path, `${own}.stale`);
      if (Date.now() > giveUpAtMs) throw new LockHeldError(path);
      await setTimeout(LOCK_RETRY_MS);
    }
  } finally {
    await rm(own, { force: true });
  }
  const isOurs = async (): Promise<boolean> => (await ifThere(readFile(path, 'utf8'))) === holder;
  return {
    isOurs,
    end: async () => {
      if (await isOurs()) await rm(path, { force: true });
    },
  };
}

/**
 * A lock has the age of the file that it is a link to: one that was waited for must not look as if it had been held
 * that long.
 */
async function linkedFresh(from: string, to: string): Promise<boolean> {
  const now = new Date();
  await utimes(from, now, now);
  return linked(from, to);
}

/** Gives the name to exactly one of several processes. Where the file system has no links, a copy does the same. */
async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to).catch((error: unknown) => {
      if (codeOf(error) === 'EEXIST') throw error;
      return copyFile(from, to, constants.COPYFILE_EXCL);
    });
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Renames a stale lock to a private name before deleting it, so that no fresh lock of another process is deleted. */
async function clearWhenStale(path: string, aside: string): Promise<void> {
  const age = await ageOf(path);
  if (age === undefined || age < LOCK_STALE_MS) return;
  try {
    await rename(path, aside);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return; // another process was faster
    throw error;
  }
  // Between the look and the renaming another process may have cleared the stale lock and taken its own: give that
  // back. Its age tells, and not its inode: that of the stale lock may have been given to it.
  const moved = await ageOf(aside);
  if (moved !== undefined && moved < LOCK_STALE_MS) await linked(aside, path);
  await rm(aside, { force: true });
}
