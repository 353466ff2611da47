/** `svc limits ls`: what limits have counted, the fullest first. */
import type { Run } from '../invocation.ts';
import { awayAt, type Column, type Row } from '../terminal/table.ts';
import { usd } from '../terminal/words.ts';
import { showList } from './listing.ts';

const amountCell =
  (key: 'used' | 'reserved' | 'max' | 'raised') =>
  (row: Row): string => {
    const amount = row[key];
    if (key !== 'used' && key !== 'max' && amount === 0) return '-';
    return row.unit === 'usd' ? (usd(amount) ?? '-') : `${amount}`;
  };

const COLUMNS: readonly Column[] = [
  { title: 'POLICY', cell: 'policy' },
  { title: 'LIMIT', cell: 'id' },
  { title: 'PER', cell: 'per', isWhole: true },
  { title: 'KEY', cell: 'key' },
  { title: 'UNIT', cell: 'unit', isWhole: true },
  { title: 'USED', cell: amountCell('used'), isWhole: true },
  { title: 'OF', cell: amountCell('max'), isWhole: true },
  { title: 'RESERVED', cell: amountCell('reserved'), isWhole: true, isSpare: true },
  { title: 'RAISED', cell: amountCell('raised'), isWhole: true, isSpare: true },
  { title: 'RESETS', cell: awayAt('resets_at'), isSpare: true },
];

export const run: Run = (invocation) =>
  showList(invocation, {
    path: '/api/v1/limits',
    key: 'limits',
    query: {
      org_id: invocation.options.text('org'),
      per: invocation.options.text('per'),
      policy: invocation.options.text('policy'),
      limit: invocation.options.text('id'),
    },
    columns: COLUMNS,
    none: 'No limit has counted anything.',
  });
