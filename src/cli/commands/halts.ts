/** `svc halt <scope>`, `svc halts ls|release`: a stop that holds. */
import type { Invocation, Run } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { show } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { awayAt, type Column, type Row } from '../terminal/table.ts';
import { timeAhead } from '../terminal/words.ts';
import { showList } from './listing.ts';

const COLUMNS: readonly Column[] = [
  { title: 'ID', cell: 'id', isWhole: true },
  { title: 'SCOPE', cell: 'scope' },
  { title: 'MODE', cell: 'mode' },
  { title: 'STATE', cell: (row) => stateOf(row) },
  { title: 'AGE', cell: awayAt('created_at') },
  { title: 'REASON', cell: 'reason' },
];

const stateOf = ({ released_at: releasedAt }: Row): string =>
  typeof releasedAt === 'string' ? 'released' : 'in force';

export async function create(invocation: Invocation): Promise<void> {
  const {
    args: [scope = ''],
    options,
    globals,
  } = invocation;
  const actions = options.list('action');
  const answer = await (await Api.of(invocation)).post('/api/v1/halts', 'halt', {
    scope,
    reason: options.text('reason'),
    mode: options.isSet('pause') ? 'pause' : 'terminate',
    actions: actions.length === 0 ? undefined : actions,
    expires_at: timeAhead('--expires', options.text('expires'), Date.now()),
  });
  const halt = answer.halt as Row;
  await show(globals.output, answer, () => [
    printable(`Halted ${String(halt.scope)}: halt ${String(halt.id)}, ${count(answer.ops_affected)} stopped.`),
    printable(`It holds until: svc halts release ${String(halt.id)} --reason …`),
  ]);
}

export const ls: Run = (invocation) =>
  showList(invocation, {
    path: '/api/v1/halts',
    key: 'halts',
    query: { active: invocation.options.isSet('all') ? undefined : 'true' },
    columns: COLUMNS,
    none: invocation.options.isSet('all') ? 'There are no halts.' : 'No halt is in force.',
  });

export async function release(invocation: Invocation): Promise<void> {
  const {
    args: [id = ''],
    options,
    globals,
  } = invocation;
  const path = `/api/v1/halts/${encodeURIComponent(id)}/release`;
  const answer = await (await Api.of(invocation)).post(path, 'halt', { reason: options.text('reason') });
  const halt = answer.halt as Row;
  await show(globals.output, answer, () => [
    printable(`Released halt ${String(halt.id)} of ${String(halt.scope)}. What it had paused runs again.`),
  ]);
}

const count = (ops: unknown): string => (ops === 1 ? '1 operation' : `${String(ops)} operations`);
