/** The folder `~/.svc`: seen by its owner only, its files replaced as a whole (docs/spec.md, Login). */
import { randomBytes } from 'node:crypto';
import { chmod, link, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { codeOf, messageOf } from '../../core/base/text.ts';
import { ifThere, makeFolder, replaceFile } from '../../system/files.ts';
import { CliError } from '../errors.ts';
import { note } from '../terminal/output.ts';

// Errors of the system about a file, in words.

const WORDS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'it belongs to another user',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of the path is a file',
  EEXIST: 'a part of the path is a file', // of a folder to be made
  ENOENT: 'no such file or folder',
};

/** Undefined for anything else. */
export const fileFault = (error: unknown): string | undefined => WORDS[codeOf(error) ?? ''];

const FOLDER_MODE = 0o700;
const LOCK_RETRY_MS = 15;
const LOCK_PATIENCE_MS = 10_000;
/**
 * A lock is held for the milliseconds of one write; one that is this old was left by a command that crashed or is
 * stopped.
 */
const LOCK_STALE_MS = 5_000;
/** A process that waits for a lock, and was stopped meanwhile, would fail without its file. */
const REMAINS_MS = 3_600_000;

/** Undefined for an account without a home, as a number that no user has in a container. */
function homeFolder(): string | undefined {
  try {
    return homedir() || undefined;
  } catch {
    return undefined;
  }
}

const svcFolder = (): string => join(homeFolder() ?? '~', '.svc');
export const pathInFolder = (name: string): string => join(svcFolder(), name);

/** The text of a file of the folder; undefined when there is none. */
export async function readPrivateFile(name: string): Promise<string | undefined> {
  if (homeFolder() === undefined) return undefined;
  const path = pathInFolder(name);
  try {
    return await ifThere(readFile(path, 'utf8'));
  } catch (error) {
    if (codeOf(error) === 'ENOTDIR') return undefined; // the home is no folder, such as /dev/null
    throw cannot('read', path, error);
  }
}

const warnedOf = new Set<string>();

/**
 * Warns once, on standard error, of a file that holds a secret and is open to others, as ssh does of its keys. On
 * Windows the mode tells nothing. The next command that writes the file makes it private again.
 */
export async function warnIfOpen(name: string, holds: string): Promise<void> {
  const path = pathInFolder(name);
  const mode = process.platform === 'win32' ? 0 : ((await ifThere(stat(path)))?.mode ?? 0) & 0o777;
  if ((mode & 0o077) === 0 || warnedOf.has(path)) return;
  warnedOf.add(path);
  note(`warning: ${path} contains ${holds} and is accessible to others (mode ${mode.toString(8).padStart(4, '0')})`);
  note(`Run \`chmod 600 ${path}\`; if someone may have read it, revoke the API key with \`svc keys revoke\`.`);
}

/**
 * Replaces a file of the folder by the result of `change` on its current text, which is undefined for a missing file.
 * Concurrent commands are serialized by a lock. When `change` returns undefined, nothing is written.
 */
export async function changePrivateFile(
  name: string,
  change: (text: string | undefined) => Promise<string | undefined>,
): Promise<void> {
  if (homeFolder() === undefined)
    throw new CliError(
      'there is no home folder to store this in',
      'Set HOME, or set SVC_CLI_API_URL and SVC_CLI_API_KEY for every command.',
    );
  const path = pathInFolder(name);
  try {
    await makePrivateFolder();
    while (!(await changedInTurn(name, path, change)));
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw cannot('write', path, error);
  }
}

/**
 * False, with nothing written, where the command was stopped for so long that another has taken the lock: the text may
 * be another by now.
 */
async function changedInTurn(
  name: string,
  path: string,
  change: (text: string | undefined) => Promise<string | undefined>,
): Promise<boolean> {
  const held = await lock(`${path}.lock`);
  try {
    const next = await change(await readPrivateFile(name));
    if (next === undefined) return true;
    await clearRemains(name);
    if (!(await held.isOurs())) return false;
    await replaceFile(path, next);
    return true;
  } finally {
    await held.end();
  }
}

/**
 * Removes what killed commands left behind. Half a file may hold a key that nobody would look for there; only the
 * process that has the lock writes one. Processes that wait for the lock keep theirs fresh, unless they are stopped.
 */
async function clearRemains(name: string): Promise<void> {
  for (const entry of await readdir(svcFolder())) {
    if (!entry.startsWith(`${name}.`)) continue;
    const rest = entry.slice(name.length);
    if (
      /^\.[0-9a-f]{8}\.partial$/.test(rest) ||
      (/^\.lock\.\d+\.[0-9a-f]{16}(\.stale)?$/.test(rest) && (await isOld(pathInFolder(entry))))
    )
      await rm(pathInFolder(entry), { force: true });
  }
}

const isOld = async (path: string): Promise<boolean> =>
  Date.now() - ((await ifThere(stat(path)))?.mtimeMs ?? Date.now()) > REMAINS_MS;

/** A folder that was there before, and open to others, is tightened. */
async function makePrivateFolder(): Promise<void> {
  const folder = svcFolder();
  makeFolder(resolve(folder), FOLDER_MODE);
  if (((await stat(folder)).mode & 0o777) !== FOLDER_MODE) await chmod(folder, FOLDER_MODE);
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
      if (Date.now() > giveUpAtMs)
        throw new CliError(`another svc command holds ${path}`, 'If none is running, delete that file and try again.');
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

/** A link appears complete or not at all, so of two commands exactly one gets the name. */
async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Renames a stale lock to a private name before deleting it, so that no fresh lock of another command is deleted. */
async function clearWhenStale(path: string, aside: string): Promise<void> {
  const seen = await ifThere(stat(path));
  if (seen === undefined || Date.now() - seen.mtimeMs < LOCK_STALE_MS) return;
  try {
    await rename(path, aside);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return; // another command was faster
    throw error;
  }
  // Between the look and the renaming another command may have cleared the stale lock and taken its own: give that
  // back.
  if ((await ifThere(stat(aside)))?.ino !== seen.ino) await linked(aside, path);
  await rm(aside, { force: true });
}

function cannot(verb: 'read' | 'write', path: string, error: unknown): CliError {
  return new CliError(
    `cannot ${verb} ${path}: ${fileFault(error) ?? messageOf(error)}`,
    `${svcFolder()} must be a folder that you own and can write to.`,
    { cause: error },
  );
}
