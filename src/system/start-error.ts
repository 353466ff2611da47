/** Why a start fails, in words for the operator: which path, which setting, and what to do. */
import { relative, resolve } from 'node:path';
import { codeOf, messageOf } from '../core/base/text.ts';

/** Why the gateway does not start, as a message for the operator. */
export class StartError extends Error {}

/** For promises that reject with such a message. Errors of the system are told later, with their path. */
export const orStartError = <T>(starting: Promise<T>): Promise<T> =>
  starting.catch((error: unknown) => {
    throw isFileTrouble(error) || environmentTrouble(error) !== undefined ? error : new StartError(messageOf(error));
  });

/**
 * Explains why the environment is unsuitable: limits of the system, or the current folder. Undefined for other errors.
 */
export function environmentTrouble(error: unknown): string | undefined {
  if ((error as NodeJS.ErrnoException | undefined)?.syscall === 'uv_cwd')
    return 'the current folder has been deleted; start the gateway from another folder';
  // Matched by its text, which is all that is known of an error in another thread, or one that could not start.
  if (messageOf(error).includes('EMFILE'))
    return 'too many open files (EMFILE); raise the limit (ulimit -n, LimitNOFILE)';
  if (codeOf(error) === 'ERR_WORKER_INIT_FAILED')
    return 'too many threads (EAGAIN); raise the limit (ulimit -u, TasksMax, pids limit of the container)';
  return undefined;
}

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
export const isFileTrouble = (error: unknown): boolean => troubleOf(error) !== undefined;

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
