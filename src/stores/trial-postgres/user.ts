/** Which user PostgreSQL runs as: it refuses to run as root. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { chmod, chown, readdir, readFile, stat } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';

export type RunAs =
  /** As the gateway itself, which is not root. */
  | { readonly kind: 'self' }
  /**
   * In a user namespace of its own, in which root has another name and no powers. Files stay root's, so no folder need
   * be opened for anybody. Linux only, and not in every container.
   */
  | { readonly kind: 'namespace' }
  /** As another account, which must be able to walk to the files and own them. */
  | { readonly kind: 'account'; readonly uid: number; readonly gid: number };

const INTO_NAMESPACE = ['--user', '--map-user=65534', '--map-group=65534', '--'] as const;

/** Rejects where the gateway is root and there is nobody else to run it as. */
export async function chooseRunAs(): Promise<RunAs> {
  if (process.getuid?.() !== 0) return { kind: 'self' };
  if (await succeeds('unshare', [...INTO_NAMESPACE, 'true'])) return { kind: 'namespace' };
  // Root borrows the account `postgres`, or else `nobody`; it makes none of its own.
  const lines = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'));
  const entry = lines.find(([name]) => name === 'postgres') ?? lines.find(([name]) => name === 'nobody');
  if (entry === undefined)
    throw new Error(
      'PostgreSQL refuses to run as root, and there is no account named postgres or nobody; run the gateway as another user',
    );
  return { kind: 'account', uid: Number(entry[2]), gid: Number(entry[3]) };
}

/** PostgreSQL makes a database only for a user of whom the system knows the name; a container may run as any number. */
export function requireAccount(): void {
  try {
    userInfo();
  } catch {
    throw new Error(
      `PostgreSQL needs a user with a name, and user ${process.getuid?.()} has none; run the gateway as a named user, or set SVC_DATABASE_URL to your own PostgreSQL`,
    );
  }
}

export function spawnAs(runAs: RunAs, program: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  switch (runAs.kind) {
    case 'self':
      return spawn(program, args, options);
    case 'namespace':
      // replaces itself: the process is the program's
      return spawn('unshare', [...INTO_NAMESPACE, program, ...args], options);
    case 'account':
      return spawn(program, args, { ...options, uid: runAs.uid, gid: runAs.gid });
  }
}

/**
 * Lets another account walk to `root`, in the gateway's data directory: these two folders let others through (0711) but
 * show them nothing, and what lies in them keeps its own 0600 and 0700. Rejects when a folder is in the way.
 */
export async function openTheWay(runAs: RunAs, dataDir: string, root: string): Promise<void> {
  if (runAs.kind === 'account') for (const folder of [dataDir, root]) await chmod(folder, 0o711);
  const closed = await firstClosedFolder(root, runAs);
  if (closed === undefined) return;
  throw new Error(
    `PostgreSQL refuses to run as root, and cannot reach ${root} as another user, because ${closed} is closed to it; run the gateway as the account that owns the folder, or choose another SVC_DATA_DIR`,
  );
}

/** Gives a path, with all that is in it, to the user that PostgreSQL runs as; only root ever has to. */
export async function handOver(path: string, runAs: RunAs): Promise<void> {
  if (runAs.kind === 'self') return;
  const owner = ownerOf(runAs);
  const stats = await stat(path);
  if (stats.uid === owner.uid) return; // and so is what it made
  if (stats.isDirectory()) for (const name of await readdir(path)) await handOver(join(path, name), runAs);
  await chown(path, owner.uid, owner.gid); // the top last: an interrupted change is taken up again
}

/** Root in a namespace still owns what is root's, and may no more than that. */
const ownerOf = (runAs: Exclude<RunAs, { readonly kind: 'self' }>) =>
  runAs.kind === 'account' ? runAs : { uid: 0, gid: 0 };

/** Whether it may enter `path` and every folder above. */
export const reaches = async (path: string, runAs: RunAs): Promise<boolean> =>
  (await firstClosedFolder(path, runAs)) === undefined;

async function firstClosedFolder(path: string, runAs: RunAs): Promise<string | undefined> {
  if (runAs.kind === 'self') return undefined;
  const owner = ownerOf(runAs);
  for (let folder = path; ; folder = dirname(folder)) {
    const { mode, uid, gid } = await stat(folder);
    const bit = uid === owner.uid ? 0o100 : gid === owner.gid ? 0o010 : 0o001;
    if ((mode & bit) === 0) return folder;
    if (folder === dirname(folder)) return undefined;
  }
}

function succeeds(program: string, args: readonly string[]): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: 'ignore' });
    child.once('error', () => resolve(false));
    child.once('close', (code) => resolve(code === 0));
  });
}
