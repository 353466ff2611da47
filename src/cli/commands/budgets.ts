/** `svc budgets`: what was spent, what is set aside, and what may be spent. */
import { Api } from '../api.ts';
import type { Invocation } from '../invocation.ts';
import { note, showTable } from '../output.ts';
import { valueAt, awayAt, type Column, type Row } from '../table.ts';
import { limitOf, moreNote } from './listing.ts';

function usd(value: unknown): string | undefined {
  if (typeof value !== 'number') return undefined;
  const digits = Math.abs(value) < 0.01 && value !== 0 ? 6 : 2;
  return `$${value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
}

const periodCell = (period: 'daily' | 'monthly') => (row: Row): string => {
  const limit = usd(valueAt(row, `${period}.limit_usd`));
  return `${usd(valueAt(row, `${period}.spent_usd`)) ?? '-'}${limit === undefined ? '' : ` of ${limit}`}`;
};

const COLUMNS: readonly Column[] = [
  { title: 'TIER', cell: 'tier', isWhole: true },
  { title: 'OF', cell: ({ org_id: org, team_id: team, agent_id: agent }) => [org, team, agent].filter((part) => typeof part === 'string').join('/') },
  { title: 'TODAY', cell: periodCell('daily'), isWhole: true },
  { title: 'THIS MONTH', cell: periodCell('monthly'), isWhole: true },
  { title: 'RESERVED', cell: ({ reserved_usd: reserved }) => usd(reserved), isWhole: true, isSpare: true },
  { title: 'DAY LEFT', cell: awayAt('daily.reset'), isSpare: true },
];

export async function run(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const api = await Api.of(invocation);
  const { rows, nextCursor } = await api.list('/api/v1/budgets', 'budgets', { org_id: options.text('org') }, limitOf(options));
  await showTable(globals.output, { budgets: rows, next_cursor: nextCursor }, COLUMNS, rows, 'Nothing was spent and nothing is capped.');
  if (nextCursor !== null) note(moreNote(rows.length));
}
