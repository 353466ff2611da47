/** A policy file of a test's own, which it may change while a gateway runs on it. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export const ALLOW_ALL = `
name: everything
scope: global
rules:
  - { id: all, actions: ["*"], resources: ["*"], effect: allow, reason: allowed for the test }
`;

export type PolicyFile = { readonly path: string; write(text: string): void };

/**
 * Written as an editor does it: a new file, renamed over the old one. It lasts until the test is over, or all of a file
 * with `afterAll`.
 */
export function policyFile(text: string, onceOver: (remove: () => void) => void = onTestFinished): PolicyFile {
  const folder = mkdtempSync(join(tmpdir(), 'svc-policies-'));
  onceOver(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'policies.yaml');
  const write = (content: string): void => {
    writeFileSync(`${path}.new`, content);
    renameSync(`${path}.new`, path);
  };
  write(text);
  return { path, write };
}
