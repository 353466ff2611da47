/** `svc ops ls|show|pause|resume|terminate|complete`: operations in flight. */
import { Api } from '../api.ts';
import { CliError, EXIT, renderError } from '../errors.ts';
import type { Invocation, Run } from '../invocation.ts';
import { note, show, writeLines } from '../output.ts';
import { printable } from '../printable.ts';
import { fieldLines, valueAt, awayAt, type Column, type Row } from '../table.ts';
import { agentText } from './agent-names.ts';
import { showList } from './listing.ts';

const COLUMNS: readonly Column[] = [
  { title: 'OPERATION', cell: 'op_id', isWhole: true },
  { title: 'STATE', cell: 'state' },
  { title: 'AGENT', cell: ({ agent }) => agentText(agent), isSpare: true },
  { title: 'SINCE', cell: awayAt('updated_at'), isSpare: true },
];

const pathOf = (opId: string): string => `/api/v1/ops/${encodeURIComponent(opId)}`;

export const ls: Run = (invocation) => {
  const { options } = invocation;
  const query = { state: options.text('state'), org_id: options.text('org'), team_id: options.text('team'), agent_id: options.text('agent') };
  return showList(invocation, { path: '/api/v1/ops', key: 'ops', query, columns: COLUMNS, none: 'No operation is in flight.' });
};

export async function showOne(invocation: Invocation): Promise<void> {
  const { args: [opId = ''], globals } = invocation;
  const op = await (await Api.of(invocation)).get(pathOf(opId), 'state');
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

/** Tries every id, whatever happened to those before: when many are stopped at once, one failure must not leave the others running. */
export const control = (trigger: 'pause' | 'resume' | 'terminate' | 'complete'): Run => async (invocation) => {
  const { args, globals } = invocation;
  const api = await Api.of(invocation);
  const done: Row[] = [];
  const advice = new Set<string>();
  let failed = 0;
  for (const opId of args) {
    try {
      const op = await api.post(`${pathOf(opId)}/${trigger}`, 'state');
      done.push(op);
      if (globals.output === 'table') writeLines([printable(`${String(op.op_id)} is ${String(op.state)}.`)]);
    } catch (error) {
      if (args.length === 1 || !(error instanceof CliError)) throw error;
      failed += 1;
      if (error.advice !== undefined) advice.add(error.advice);
      process.stderr.write(renderError(withName(error, opId), globals.debug === true));
    }
  }
  if (globals.output !== 'table') await show(globals.output, args.length === 1 ? done[0] : done, () => []);
  for (const sentence of advice) note(sentence); // once, however many it is for
  return failed === 0 ? EXIT.done : EXIT.failed;
};

const withName = (error: CliError, opId: string): CliError =>
  new CliError(error.message.includes(opId) ? error.message : `${opId}: ${error.message}`, undefined, error.status, error);
