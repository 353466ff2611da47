/** `svc ops ls|show`: operations in flight. */

import { OP_STATES } from '../../core/ops/op-state.ts';
import type { Invocation, Options, Run } from '../invocation.ts';
import { Api, missingNote } from '../remote/api.ts';
import { note, show, showTable } from '../terminal/output.ts';
import { awayAt, type Column, fieldLines, isRows, type Row, valueAt } from '../terminal/table.ts';
import { usd } from '../terminal/words.ts';
import { agentFilter, agentText, limitOf, moreNote } from './listing.ts';
import { OpNames, type OpPlace, shortIds } from './op-name.ts';

/** The outcome of an operation, in one word: how it ended, else its state. */
export const stateText = ({ state, ended }: Row): string =>
  String(ended ?? (state === 'completing' ? 'completed' : state));

const columnsOf = (rows: readonly Row[]): readonly Column[] => {
  const short = shortIds(rows.map(({ op_id: opId }) => String(opId)));
  return [
    { title: 'OPERATION', cell: ({ op_id: opId }) => short.get(String(opId)), isWhole: true },
    { title: 'STATE', cell: stateText, isWhole: true },
    { title: 'AGENT', cell: ({ agent }) => agentText(agent), isKept: true, isWrapped: true },
    { title: 'ACTION', cell: 'action', isKept: true, isWrapped: true },
    { title: 'RESOURCE', cell: 'resource', isKept: true, isWrapped: true },
    { title: 'SINCE', cell: awayAt('updated_at'), isSpare: true },
  ];
};

/** Whose operation is meant, and of which gateway. */
export const whereIn = (options: Options): OpPlace => ({
  org_id: options.text('org'),
  op_home: options.text('opHome'),
});

export const pathOf = (opId: string): string => `/api/v1/ops/${encodeURIComponent(opId)}`;

/** As it is shown: the state of a finished operation is how it ended. */
function inState(options: Options) {
  const [state, ended] = [options.text('state'), options.text('ended')];
  const isState = state === undefined || (OP_STATES as readonly string[]).includes(state);
  return isState ? { state, ended } : { state: undefined, ended: ended ?? state };
}

export async function ls(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const api = await Api.of(invocation);
  const query = {
    ...inState(options),
    action: options.text('action'),
    resource: options.text('resource'),
    policy: options.text('policy'),
    rule_id: options.text('rule'),
    ...agentFilter(options),
  };
  const { rows, nextCursor, incomplete } = await api.list('/api/v1/ops', 'ops', { query, limit: limitOf(options) });
  await showTable(globals, {
    value: { ops: rows, next_cursor: nextCursor },
    columns: columnsOf(rows),
    rows,
    none: 'There are no operations in flight.',
  });
  if (nextCursor !== null) note(moreNote(rows.length));
  if (incomplete.length > 0) note(missingNote(incomplete));
}

export const showOne: Run = async (invocation) => {
  const { globals, options } = invocation;
  const [text = ''] = invocation.args;
  const api = await Api.of(invocation);
  const where = whereIn(options);
  const names = new OpNames(api, where);
  const found = await names.ask(text, (opId) => api.get(pathOf(opId), ['state', 'ops'], where));
  // Two gateways of a cluster may each have one of this id.
  const ops = isRows(found.ops) ? found.ops : [found];
  await show(globals.output, found, () => ops.flatMap((op, at) => [...(at === 0 ? [] : ['']), ...fieldsOf(op)]));
  if (ops.length > 1)
    note(
      `${ops.length} gateways have an operation of this id; an order is for all of them, and --op-home chooses one.`,
    );
};

const fieldsOf = (op: Row): readonly string[] =>
  fieldLines([
    ['operation', op.op_id],
    ...(op.op_home === undefined ? [] : [['op_home', op.op_home] as const]),
    ['state', stateText(op)],
    ['agent', agentText(valueAt(op, 'agent'))],
    ['action', op.action],
    ['resource', op.resource],
    ['policy', op.policy],
    ['rule', op.rule_id],
    ['reason', op.reason],
    ['approval', op.approval_id],
    ['estimated', usd(op.estimated_cost_usd)],
    ['spent', usd(op.spent_usd)],
    ['error', op.error],
    ['registered', op.registered_at],
    ['updated', op.updated_at],
    ['acknowledged', op.acknowledged_at],
  ]);
