/** `svc ops ls|show`: operations in flight. */

import type { Invocation, Run } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { show } from '../terminal/output.ts';
import { awayAt, type Column, fieldLines, type Row, valueAt } from '../terminal/table.ts';
import { agentFilter, agentText, showList } from './listing.ts';

const COLUMNS: readonly Column[] = [
  { title: 'OPERATION', cell: 'op_id', isWhole: true },
  { title: 'STATE', cell: 'state' },
  { title: 'AGENT', cell: ({ agent }) => agentText(agent), isSpare: true },
  { title: 'SINCE', cell: awayAt('updated_at'), isSpare: true },
];

export const pathOf = (opId: string): string => `/api/v1/ops/${encodeURIComponent(opId)}`;

export const ls: Run = (invocation) => {
  const { options } = invocation;
  const query = { state: options.text('state'), ...agentFilter(options) };
  return showList(invocation, {
    path: '/api/v1/ops',
    key: 'ops',
    query,
    columns: COLUMNS,
    none: 'There are no operations in flight.',
  });
};

export async function showOne(invocation: Invocation): Promise<void> {
  const {
    args: [opId = ''],
    globals,
  } = invocation;
  const op = await (await Api.of(invocation)).get(pathOf(opId), 'state');
  await show(globals.output, op, () => fieldsOf(op));
}

const fieldsOf = (op: Row): readonly string[] =>
  fieldLines([
    ['operation', op.op_id],
    ['state', op.state],
    ['agent', agentText(valueAt(op, 'agent'))],
    ['registered', op.registered_at],
    ['updated', op.updated_at],
    ['acknowledged', op.acknowledged_at],
  ]);
