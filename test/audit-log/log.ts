/** Logs made for tests: real files in a folder of their own. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { AuditPageRequest, AuditReader } from '../../src/audit-log/reader.ts';
import { type AuditWriter, type AuditWriterOptions, openAuditWriter } from '../../src/audit-log/writer.ts';
import { type AuditDraft, type AuditEntry, type AuditFilter, NO_LINEAGE } from '../../src/core/audit/audit.ts';
import { encodeDraft } from '../../src/core/audit/audit-line.ts';
import type { Page } from '../../src/core/base/page.ts';
import { ok, type Result } from '../../src/core/base/result.ts';
import type { Fault } from '../../src/core/fault.ts';

export const NOON_MS = Date.UTC(2026, 2, 1, 12);

export function freshDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-audit-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export function openWriter(directory: string, options: Partial<AuditWriterOptions> = {}): AuditWriter {
  const opened = openAuditWriter({ directory, fsync: 'never', nowMs: () => NOON_MS, ...options });
  if (!opened.ok) throw new Error(`locked by ${opened.fault.holder}`);
  return opened.value.writer;
}

/** One batch; returns the id of its first entry. */
export function append(
  writer: AuditWriter,
  drafts: readonly (Partial<AuditDraft> & { readonly timestampMs?: number })[],
): number {
  const bodies = drafts.map(({ timestampMs = NOON_MS, ...draft }) =>
    encodeDraft({ eventType: 'ActionAllowed', lineage: NO_LINEAGE, actor: 'gateway', ...draft }, timestampMs),
  );
  const appended = writer.append(bodies.join('\n'), bodies.length);
  if (!appended.ok) throw new Error(appended.fault.detail);
  return appended.value.firstId;
}

/** A page of the log, with its entries read. */
export async function queried(
  reader: AuditReader,
  filter: AuditFilter,
  request: AuditPageRequest,
): Promise<Result<Page<AuditEntry>, Fault>> {
  const page = await reader.query(filter, request);
  return page.ok ? ok({ ...page.value, items: page.value.items.map((line) => JSON.parse(line) as AuditEntry) }) : page;
}
