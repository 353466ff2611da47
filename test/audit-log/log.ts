/** Logs made for tests: real files in a folder of their own. */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createCheckpointer, loadCheckpointKey } from '../../src/audit-log/checkpoint.ts';
import type { ChainHead } from '../../src/audit-log/line.ts';
import type { AuditPageRequest, AuditReader } from '../../src/audit-log/reader.ts';
import { type ShrinkOptions, shrinkLog } from '../../src/audit-log/shrink.ts';
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

/** Appends a batch; returns the id of its first entry. */
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

/** Makes a log fit into so many bytes; the names of the segments that were deleted. */
export async function shrunk(
  directory: string,
  maxBytes: number,
  key: KeyObject,
  options: Partial<ShrinkOptions> = {},
): Promise<readonly string[]> {
  const pace = async (): Promise<void> => undefined;
  const whole: ShrinkOptions = { directory, maxBytes, segmentBytes: 3000, key, nowMs: () => NOON_MS, pace, ...options };
  return (await shrinkLog(whole)).deletedSegments;
}

export const SEGMENT_ONE = '0000000000000001.ndjson';
export const segmentsOf = (directory: string): string[] =>
  readdirSync(directory)
    .filter((name) => /^\d{16}\.ndjson$/.test(name))
    .sort();
/** Makes drafts with distinct reasons. */
export const numbered = (count: number): { reason: string }[] =>
  Array.from({ length: count }, (_, index) => ({ reason: `reason ${index}` }));

/** A log of ten entries in one segment. */
export function tenEntries(): { directory: string; head: ChainHead; path: string; lines: string[] } {
  const directory = freshDirectory();
  const writer = openWriter(directory);
  append(writer, numbered(10));
  const head = writer.head();
  writer.close();
  const path = join(directory, SEGMENT_ONE);
  return { directory, head, path, lines: readFileSync(path, 'utf8').trimEnd().split('\n') };
}

/** A log of three segments with ten entries in each. */
export function threeSegments(): string {
  const directory = freshDirectory();
  const writer = openWriter(directory, { segmentBytes: 3000 });
  for (let nth = 0; nth < 3; nth += 1) append(writer, numbered(10));
  writer.close();
  return directory;
}

/** A log of 30 entries with checkpoints at 10 and 20, and the key in a file beside it. */
export function checkpointed(): {
  base: string;
  directory: string;
  key: KeyObject;
  publicKey: KeyObject;
  head: ChainHead;
} {
  const base = freshDirectory();
  const directory = join(base, 'audit');
  const key = loadCheckpointKey(join(base, 'audit-checkpoint.pem'));
  const writer = openWriter(directory, { segmentBytes: 3000 });
  const checkpointer = createCheckpointer({ directory, key, nowMs: () => NOON_MS });
  checkpointer.record(writer.head()); // Nor is that of an empty log.
  for (let nth = 0; nth < 3; nth += 1) {
    append(writer, numbered(10));
    if (nth < 2) checkpointer.record(writer.head());
    if (nth < 2) checkpointer.record(writer.head()); // The same head again is not recorded.
  }
  const head = writer.head();
  writer.close();
  return { base, directory, key, publicKey: createPublicKey(key), head };
}

/** The same draft so many times. */
export const copies = (count: number, draft: Partial<AuditDraft> = {}): Partial<AuditDraft>[] =>
  Array.from({ length: count }, () => draft);

export const ofOrg = (orgId: string | null): Partial<AuditDraft> => ({ lineage: { orgId, teamId: 't', agentId: 'a' } });

/** The ids of the entries that fit, page by page. */
export async function ids(reader: AuditReader, filter: AuditFilter, perPage = 1000): Promise<number[]> {
  const found: number[] = [];
  let cursor: string | undefined;
  do {
    const page = await queried(reader, filter, { perPage, cursor });
    if (!page.ok) throw new Error(page.fault.kind);
    found.push(...page.value.items.map(({ id }) => id));
    cursor = page.value.next;
  } while (cursor !== undefined);
  return found;
}
