/**
 * A folder for the whole run, which test files may share what takes long to make in; it is empty at first and gone at
 * the end, however that comes.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { onceOrphaned } from './orphans.ts';

declare module 'vitest' {
  interface ProvidedContext {
    scratch: string;
  }
}

export function setup(project: TestProject): () => void {
  const scratch = mkdtempSync(join(tmpdir(), 'svc-scratch-'));
  chmodSync(scratch, 0o711); // where root's PostgreSQL runs as another account, that must reach what is in it
  project.provide('scratch', scratch);
  // A run that is killed removes nothing itself. First the databases end, whose files say which processes they are.
  const callOff = onceOrphaned('sleep 5; rm -rf "$1"', scratch);
  return () => {
    callOff();
    rmSync(scratch, { recursive: true, force: true });
  };
}
