/** Keeps two processes from writing one audit log: interleaved chains could not be told from tampering. */
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  ftruncateSync,
  openSync,
  readFileSync,
  rmSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '../../core/error-text.ts';
import { fail, ok, type Result } from '../../core/result.ts';
import { textIfThereSync } from '../if-there.ts';
import { isProcess } from '../is-process.ts';

export type Lock = { release(): void };
/** `holder` is the process id found in the lock, as text for a human; it may be of another pid namespace. */
export type LockFault = { readonly kind: 'locked'; readonly holder: string };

/**
 * An advisory lock of the kernel where the `flock` command exists: it holds across containers that share a volume and
 * ends with the process, however that ends. The lock belongs to the open file, so it outlives the command that took it.
 * Elsewhere a file made exclusively, which counts as stale once its process is gone.
 */
export function acquireLock(directory: string): Result<Lock, LockFault> {
  const path = join(directory, 'lock');
  const fd = openSync(path, 'a+', 0o600);
  const { status, error } = spawnSync('flock', ['-n', '-x', '3'], { stdio: ['ignore', 'ignore', 'ignore', fd] });
  if (error === undefined && status === 0) {
    nameHolder(fd);
    return ok({ release: () => closeSync(fd) });
  }
  closeSync(fd);
  if (error === undefined && status === 1) return fail({ kind: 'locked', holder: readFileSync(path, 'utf8').trim() });
  return acquirePidFile(join(directory, 'lock.pid'));
}

// The kernel holds the lock; the name in it only helps a human, and a full disk must not keep the gateway from
// starting.
function nameHolder(fd: number): void {
  try {
    ftruncateSync(fd, 0);
    writeSync(fd, `${process.pid}\n`);
  } catch (error) {
    if (codeOf(error) !== 'ENOSPC' && codeOf(error) !== 'EDQUOT') throw error;
  }
}

/** Exported for its tests; `acquireLock` falls back to it. */
export function acquirePidFile(path: string): Result<Lock, LockFault> {
  const own = `${process.pid} ${startOf(process.pid)}`;
  for (let attempt = 0; attempt < 3; attempt += 1) {
    try {
      writeFileSync(path, own, { flag: 'wx', mode: 0o600 });
      return ok({ release: () => unlinkSync(path) });
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
    }
    const holder = textIfThereSync(path);
    if (holder === undefined) continue;
    // Our own mark is left by a thread of this process that crashed: the gateway runs one writer at a time.
    if (holder !== own && isAlive(holder)) return fail({ kind: 'locked', holder: holder.split(' ')[0] ?? '' });
    rmSync(path, { force: true });
  }
  return fail({ kind: 'locked', holder: textIfThereSync(path) ?? '' });
}

function isAlive(holder: string): boolean {
  const [pid, start] = holder.split(' ');
  return isProcess(Number(pid)) && startOf(Number(pid)) === start;
}

/** Tells two processes apart that got the same id one after the other. Empty where the system does not say. */
function startOf(pid: number): string {
  const stat = textIfThereSync(`/proc/${pid}/stat`) ?? '';
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}
