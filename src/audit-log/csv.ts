/** Audit entries as CSV (RFC 4180), one column per field of the line. */
import type { AuditEntry } from '../core/audit/audit.ts';

type CsvColumn = readonly [name: string, of: (entry: AuditEntry) => string | null];

const COLUMNS: readonly CsvColumn[] = [
  ['id', (entry) => String(entry.id)],
  ['timestamp', (entry) => entry.timestamp],
  ['event_type', (entry) => entry.event_type],
  ['org_id', (entry) => entry.lineage.org_id],
  ['team_id', (entry) => entry.lineage.team_id],
  ['agent_id', (entry) => entry.lineage.agent_id],
  ['op_id', (entry) => entry.op_id],
  ['decision', (entry) => entry.decision],
  ['reason', (entry) => entry.reason],
  ['policy', (entry) => entry.policy],
  ['rule_id', (entry) => entry.rule_id],
  ['cause', (entry) => entry.cause ?? null],
  ['actor', (entry) => entry.actor],
  ['payload', (entry) => JSON.stringify(entry.payload)],
  ['prev_hash', (entry) => entry.prev_hash],
  ['hash', (entry) => entry.hash],
];

export type Csv = {
  readonly header: string;
  row(entry: AuditEntry): string;
  /** A line that was damaged, and is not JSON, is shown unchanged in the payload column. */
  damaged(line: string): string;
};

const csvOf = (columns: readonly CsvColumn[]): Csv => ({
  header: `${columns.map(([name]) => name).join()}\r\n`,
  row: (entry) => `${columns.map(([, of]) => csvCell(of(entry))).join()}\r\n`,
  damaged: (line) => `${columns.map(([name]) => csvCell(name === 'payload' ? line : null)).join()}\r\n`,
});

export const CSV = csvOf(COLUMNS);
/** Adds, in a cluster, the gateway that wrote the entry. */
export const CSV_OF_CLUSTER = csvOf([...COLUMNS, ['gateway', (entry) => entry.gateway ?? null]]);

// An agent chooses its ids and attributes; a spreadsheet would run a cell that begins like this as a formula.
const FORMULA_START = /^[=+\-@\t\r]/;
const NEEDS_QUOTES = /[",\r\n]/;
// A terminal that shows the file must not be moved, coloured or reordered by an agent.
const UNSAFE = /[^\P{Cc}\t\r\n]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;
/** As in JSON. */
const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

export function csvCell(value: string | null): string {
  if (value === null) return '';
  const shown = value.replace(UNSAFE, escaped);
  const text = FORMULA_START.test(shown) ? `'${shown}` : shown;
  return text !== shown || NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
