/** The audit log of a gateway as it stands on the disk. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AuditEntry } from '../../src/core/audit/audit.ts';

/** Oldest first. */
export function auditEntries(dataDir: string): AuditEntry[] {
  const folder = join(dataDir, 'audit');
  const segments = readdirSync(folder)
    .filter((name) => /^\d{16}\.ndjson$/.test(name))
    .sort();
  const lines = segments.flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1));
  return lines.map((line) => JSON.parse(line) as AuditEntry);
}
