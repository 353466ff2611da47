/**
 * A folder for the whole run, which test files may share what takes long to make in; it is empty at first and gone at
 * the end, however that comes.
 */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { onceOrphaned } from './orphans.ts';

declare module 'vitest' {
  interface ProvidedContext {
    scratch: string;
  }
}

const MEMORY = '/dev/shm';
const ROOMY_BYTES = 4 * 1024 ** 3;

/**
 * In memory where that is roomy and runs programs: a database is some 1,300 files, which to copy there takes a tenth of
 * the time.
 */
function parentFolder(): string {
  const mounts = existsSync('/proc/mounts') ? readFileSync('/proc/mounts', 'utf8') : '';
  const [, options] = new RegExp(`^\\S+ ${MEMORY} tmpfs (\\S+)`, 'm').exec(mounts) ?? [];
  if (options === undefined || /\b(?:ro|noexec)\b/.test(options)) return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize < ROOMY_BYTES ? tmpdir() : MEMORY;
}

export function setup(project: TestProject): () => void {
  const scratch = mkdtempSync(join(parentFolder(), 'svc-scratch-'));
  chmodSync(scratch, 0o711); // where root's PostgreSQL runs as another account, that must reach what is in it
  project.provide('scratch', scratch);
  // A run that is killed removes nothing itself. First the databases end, whose files say which processes they are.
  const callOff = onceOrphaned('sleep 5; rm -rf "$1"', scratch);
  return () => {
    callOff();
    rmSync(scratch, { recursive: true, force: true });
  };
}
