/** The folder `~/.svc`: seen by its owner only, its files replaced as a whole (docs/spec.md, Login). */
import { chmod, readFile, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { codeOf, messageOf } from '../../core/base/text.ts';
import { LockHeldError, replaceInTurn } from '../../system/file-lock.ts';
import { ifThere, makeFolder } from '../../system/files.ts';
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
    await replaceInTurn(path, async () => change(await readPrivateFile(name)));
  } catch (error) {
    if (error instanceof CliError) throw error;
    if (error instanceof LockHeldError)
      throw new CliError(
        `another svc command holds ${error.path}`,
        'If none is running, delete that file and try again.',
        { cause: error },
      );
    throw cannot('write', path, error);
  }
}

/** A folder that was there before, and open to others, is tightened. */
async function makePrivateFolder(): Promise<void> {
  const folder = svcFolder();
  makeFolder(resolve(folder), FOLDER_MODE);
  if (((await stat(folder)).mode & 0o777) !== FOLDER_MODE) await chmod(folder, FOLDER_MODE);
}

function cannot(verb: 'read' | 'write', path: string, error: unknown): CliError {
  return new CliError(
    `cannot ${verb} ${path}: ${fileFault(error) ?? messageOf(error)}`,
    `${svcFolder()} must be a folder that you own and can write to.`,
    { cause: error },
  );
}
