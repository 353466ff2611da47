/** `svc budgets ls`: what was spent, what is set aside, and what may be spent. */
import type { Run } from '../invocation.ts';
import { awayAt, type Column, type Row, valueAt } from '../terminal/table.ts';
import { usd } from '../terminal/words.ts';
import { showList } from './listing.ts';

const periodCell =
  (period: 'daily' | 'monthly') =>
  (row: Row): string => {
    const limit = usd(valueAt(row, `${period}.limit_usd`));
    return `${usd(valueAt(row, `${period}.spent_usd`)) ?? '-'}${limit === undefined ? '' : ` of ${limit}`}`;
  };

const COLUMNS: readonly Column[] = [
  { title: 'TIER', cell: 'tier', isWhole: true },
  {
    title: 'OF',
    cell: ({ org_id: org, team_id: team, agent_id: agent }) =>
      [org, team, agent].filter((part) => typeof part === 'string').join('/'),
  },
  { title: 'TODAY', cell: periodCell('daily'), isWhole: true },
  { title: 'THIS MONTH', cell: periodCell('monthly'), isWhole: true },
  { title: 'RESERVED', cell: ({ reserved_usd: reserved }) => usd(reserved), isWhole: true, isSpare: true },
  { title: 'DAY LEFT', cell: awayAt('daily.reset'), isSpare: true },
];

export const run: Run = (invocation) =>
  showList(invocation, {
    path: '/api/v1/budgets',
    key: 'budgets',
    query: { org_id: invocation.options.text('org') },
    columns: COLUMNS,
    none: 'There is no spend and there are no caps.',
  });
