/** `svc ops ls|show|pause|resume|terminate|complete`: operations in flight. */
import { Api } from '../api.ts';
import { CliError } from '../errors.ts';
import type { Invocation, Run } from '../invocation.ts';
import { note, show, showTable, writeLines } from '../output.ts';
import { printable } from '../printable.ts';
import { fieldLines, valueAt, awayAt, type Column, type Row } from '../table.ts';
import { agentText, limitOf, moreNote } from './listing.ts';

const COLUMNS: readonly Column[] = [
  { title: 'OPERATION', cell: 'op_id', isWhole: true },
  { title: 'STATE', cell: 'state' },
  { title: 'AGENT', cell: ({ agent }) => agentText(agent), isSpare: true },
  { title: 'SINCE', cell: awayAt('updated_at'), isSpare: true },
];

const pathOf = (opId: string): string => `/api/v1/ops/${encodeURIComponent(opId)}`;

export async function ls(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const api = await Api.of(invocation);
  const query = { state: options.text('state'), org_id: options.text('org'), team_id: options.text('team'), agent_id: options.text('agent') };
  const { rows, nextCursor } = await api.list('/api/v1/ops', 'ops', query, limitOf(options));
  await showTable(globals.output, { ops: rows, next_cursor: nextCursor }, COLUMNS, rows, 'No operation is in flight.');
  if (nextCursor !== null) note(moreNote(rows.length));
}

export async function showOne(invocation: Invocation): Promise<void> {
  const { args: [opId = ''], globals } = invocation;
  const op = await (await Api.of(invocation)).get(pathOf(opId));
  await show(globals.output, op, () => fieldsOf(op));
}

const fieldsOf = (op: Row): readonly string[] => fieldLines([
  ['operation', op.op_id],
  ['state', op.state],
  ['agent', agentText(valueAt(op, 'agent'))],
  ['registered', op.registered_at],
  ['updated', op.updated_at],
  ['acknowledged', op.acknowledged_at],
]);

/** Several ids are handled in their order; the first that fails ends it, and what was done before is still told, and what was not tried. */
export const control = (trigger: 'pause' | 'resume' | 'terminate' | 'complete'): Run => async (invocation) => {
  const { args, globals } = invocation;
  const api = await Api.of(invocation);
  const done: Row[] = [];
  try {
    for (const [at, opId] of args.entries()) {
      const op = await api.post(`${pathOf(opId)}/${trigger}`).catch((error: unknown) => { throw withUntried(error, args.slice(at + 1)); });
      done.push(op);
      if (globals.output === 'table') writeLines([printable(`${String(op.op_id)} is ${String(op.state)}.`)]);
    }
  } finally {
    if (globals.output !== 'table' && done.length > 0) await show(globals.output, args.length === 1 ? done[0] : done, () => []);
  }
};

/** Who stops several at once must know which of them run on. */
function withUntried(error: unknown, untried: readonly string[]): unknown {
  if (!(error instanceof CliError) || untried.length === 0) return error;
  const said = `Not tried: ${untried.join(' ')}`;
  return new CliError(error.message, error.advice === undefined ? said : `${error.advice} ${said}`, error.status, error);
}
