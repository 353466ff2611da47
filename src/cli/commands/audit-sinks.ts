/** `svc audit sinks ls|test|replay`: where the audit log is sent as well, and how far each receiver is. */
import { EXIT, type ExitStatus, usageError } from '../errors.ts';
import type { Invocation } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { show, showTable } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import type { Column } from '../terminal/table.ts';
import { isRows } from '../terminal/table.ts';

const COLUMNS: readonly Column[] = [
  { title: 'NAME', cell: 'name', isWhole: true },
  { title: 'TYPE', cell: 'type' },
  { title: 'FORMAT', cell: 'format' },
  { title: 'TO', cell: 'place' },
  { title: 'SENT', cell: 'sent_id' },
  { title: 'LAG', cell: 'lag_entries' },
  { title: 'LOST', cell: 'lost_entries' },
  { title: 'TROUBLE', cell: 'trouble' },
];

async function ls(invocation: Invocation): Promise<ExitStatus> {
  const answer = await (await Api.of(invocation)).get(PATH, 'sinks');
  const rows = isRows(answer.sinks) ? answer.sinks : [];
  const none = 'There are no sinks; SVC_AUDIT_SINKS of the gateway names their file.';
  await showTable(invocation.globals, { value: answer, columns: COLUMNS, rows, none });
  return EXIT.done;
}

async function test(invocation: Invocation, name: string): Promise<ExitStatus> {
  const answer = await (await Api.of(invocation)).post(`${pathOf(name)}/test`, 'ok');
  const said = answer.ok === true ? 'takes what is sent.' : `did not take a test: ${String(answer.trouble)}`;
  await show(invocation.globals.output, answer, () => [printable(`${name} ${said}`)]);
  return answer.ok === true ? EXIT.done : EXIT.failed;
}

async function replay(invocation: Invocation, name: string): Promise<ExitStatus> {
  const from = invocation.options.text('from') ?? '';
  if (!/^[1-9]\d{0,14}$/.test(from))
    throw usageError('--from must be the id of an entry', '`svc logs --output json` shows ids.');
  const answer = await (await Api.of(invocation)).post(`${pathOf(name)}/replay`, 'from', { from: Number(from) });
  await show(invocation.globals.output, answer, () => [printable(`${name} is sent everything from entry ${from} on.`)]);
  return EXIT.done;
}

const PATH = '/api/v1/audit/sinks';
const pathOf = (name: string): string => `${PATH}/${encodeURIComponent(name)}`;

export async function run(invocation: Invocation): Promise<ExitStatus> {
  const [what, name, ...others] = invocation.args;
  if (what !== 'ls' && what !== 'test' && what !== 'replay')
    throw usageError(`${what ?? 'nothing'} is not one of ls, test, replay`);
  if (what !== 'replay' && invocation.options.text('from') !== undefined) throw usageError('--from belongs to replay');
  if (others.length > 0 || (what === 'ls' && name !== undefined)) throw usageError('too many arguments');
  if (what === 'ls') return ls(invocation);
  if (name === undefined) throw usageError(`${what} needs the name of a sink`, '`svc audit sinks ls` shows them.');
  return what === 'test' ? test(invocation, name) : replay(invocation, name);
}
