/**
 * Errors of the system about files that the gateway needs to start, in words: which path, which setting, and what to
 * do.
 */
import { relative, resolve } from 'node:path';
import { getSystemErrorName } from 'node:util';

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
  const name = syscall === 'connect' || 'port' in error ? undefined : nameOf(code);
  const found = name === undefined ? undefined : TROUBLES[name];
  const trouble = found === NOT_OURS && syscall === 'mkdir' ? NOT_OURS_TO_MAKE : found;
  return name === undefined || trouble === undefined ? undefined : { name, path, trouble };
}

const isWithin = (path: string, folder: string): boolean => !relative(resolve(folder), resolve(path)).startsWith('..');

/** The embedded store gives the number of the system instead of the name. */
function nameOf(code: unknown): string | undefined {
  if (typeof code === 'string') return code;
  return typeof code === 'number' && code > 0 ? getSystemErrorName(-code) : undefined;
}
