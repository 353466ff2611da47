/** `svc changes`: what people and files have changed. */
import { usageError } from '../errors.ts';
import type { Run } from '../invocation.ts';
import { awayAt, type Column } from '../terminal/table.ts';
import { timeAgo } from '../terminal/words.ts';
import { showList } from './listing.ts';

const COLUMNS: readonly Column[] = [
  { title: 'AGE', cell: awayAt('at'), isWhole: true },
  { title: 'KIND', cell: 'kind', isWhole: true },
  { title: 'WHAT', cell: 'summary' },
  { title: 'BY', cell: 'by', isSpare: true },
  { title: 'ENTRY', cell: 'audit_id', isSpare: true },
];

export const ls: Run = (invocation) => {
  const { options } = invocation;
  const nowMs = Date.now();
  const since = timeAgo('--since', options.text('since'), nowMs);
  const until = timeAgo('--until', options.text('until'), nowMs);
  if (since !== undefined && until !== undefined && Date.parse(since) >= Date.parse(until))
    throw usageError('--until must be later than --since', `They are ${until} and ${since}.`);
  return showList(invocation, {
    path: '/api/v1/changes',
    key: 'changes',
    query: { org_id: options.text('org'), since, until },
    columns: COLUMNS,
    none: 'Nothing was changed in this time.',
  });
};
