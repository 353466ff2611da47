import type { MessagePort } from 'node:worker_threads';
import { CSV, CSV_OF_CLUSTER, type Csv } from '../../audit-log/csv.ts';
import { AuditReader, lineForOrg } from '../../audit-log/reader.ts';
import type { AuditEntry } from '../../core/audit/audit.ts';
import type { Page } from '../../core/base/page.ts';
import { ok, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import type { LogFormat, LogRequest, LogText } from '../../use-cases/logs.ts';
import { answerQuestions } from '../thread-link.ts';

export type AuditReaderOptions = {
  readonly directory: string;
  /** Whether this gateway acts as one with others: then CSV says which of them has written an entry. */
  readonly isInCluster?: boolean;
};
/** `orgId` is the org that the reader is bound to; null: it sees all. */
export type ReadQuestion = { readonly request: LogRequest; readonly orgId: string | null };

/** How often indexes are brought up to date while nobody asks. */
const REFRESH_EVERY_MS = 10_000;

/**
 * The thread that reads the audit log, so that no search ever holds up the thread that decides or the one that writes.
 */
export function runAuditReaderThread(main: MessagePort, { directory, isInCluster = false }: AuditReaderOptions): void {
  const reader = new AuditReader(directory);
  const csv = isInCluster ? CSV_OF_CLUSTER : CSV;
  answerQuestions(main, ({ request, orgId }: ReadQuestion) => read(reader, request, orgId, csv));

  // A failure here will recur for the next read, which reports it.
  const refresh = (): void =>
    void reader.refresh().then(
      (hasMore) => {
        if (hasMore) setImmediate(refresh);
      },
      () => {},
    );
  setInterval(refresh, REFRESH_EVERY_MS).unref();
}

async function read(
  reader: AuditReader,
  { filter, format, perPage, cursor }: LogRequest,
  orgId: string | null,
  csv: Csv,
): Promise<Result<LogText, Fault>> {
  const found = await reader.query(filter, { perPage, cursor });
  if (!found.ok) return found;
  const { items, next } = found.value;
  const shown = orgId === null ? items : items.map(lineForOrg);
  return ok({ text: Buffer.from(RENDER[format]({ items: shown, next }, cursor === undefined, csv)), next });
}

const RENDER: Readonly<Record<LogFormat, (found: Page<string>, isFirst: boolean, csv: Csv) => string>> = {
  page: ({ items, next }) => `{"entries":[${items.join()}],"next_cursor":${JSON.stringify(next ?? null)}}`,
  lines: ({ items }) => items.join('\n'),
  ndjson: ({ items }) => items.map((line) => `${line}\n`).join(''),
  csv: ({ items }, isFirst, csv) =>
    (isFirst ? csv.header : '') + items.map((line) => csv.row(JSON.parse(line) as AuditEntry)).join(''),
};
