/** A folder for the whole run, which test files may share what takes long to make in; it is empty at first and gone at the end. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext { scratch: string }
}

export function setup(project: TestProject): () => void {
  const scratch = mkdtempSync(join(tmpdir(), 'svc-scratch-'));
  chmodSync(scratch, 0o711); // where root's PostgreSQL runs as another account, that must reach what is in it
  project.provide('scratch', scratch);
  return () => rmSync(scratch, { recursive: true, force: true });
}
