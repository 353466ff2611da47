/** `svc halt <scope>`, `svc halts ls|release`: a stop that stays in force. */
import { CliError, usageError } from '../errors.ts';
import type { Invocation } from '../invocation.ts';
import { Api, MAX_PAGE } from '../remote/api.ts';
import { note, show, showTable } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { confirmed } from '../terminal/prompt.ts';
import { awayAt, type Column, type Row } from '../terminal/table.ts';
import { timeAhead } from '../terminal/words.ts';
import { limitOf, moreNote } from './listing.ts';
import { noteCounts } from './ops-control.ts';
import { shortIds, wholeId } from './short-ids.ts';

const HALTS = '/api/v1/halts';

/** Which parts are stopped, and until when, stay in view longest on a narrow screen. */
const columnsFor = (ids: ReadonlyMap<string, string>, isAll: boolean): readonly Column[] => [
  { title: 'ID', cell: ({ id }) => ids.get(String(id)) ?? id, isWhole: true },
  { title: 'SCOPE', cell: 'scope', isWhole: true },
  { title: 'ACTIONS', cell: 'actions' },
  { title: 'MODE', cell: 'mode', isWhole: true },
  ...(isAll ? [{ title: 'STATE', cell: stateOf, isWhole: true }] : []),
  { title: 'AGE', cell: awayAt('created_at'), isSpare: true },
  { title: 'ENDS IN', cell: (row) => (row.released_at === null ? awayAt('expires_at')(row) : null), isSpare: true },
  { title: 'BY', cell: 'created_by', isSpare: true },
  { title: 'REASON', cell: 'reason' },
];

const stateOf = ({ released_at: releasedAt }: Row): string =>
  typeof releasedAt === 'string' ? 'released' : 'in force';

export async function create(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const [scope = ''] = invocation.args;
  const actions = options.list('action');
  const api = await Api.of(invocation);
  if (scope === 'global' && !options.isSet('yes'))
    await askAboutAll(api, options.isSet('pause') ? 'pause' : 'terminate', actions);
  const answer = await api.post(HALTS, 'halt', {
    scope,
    reason: options.text('reason'),
    mode: options.isSet('pause') ? 'pause' : 'terminate',
    actions: actions.length === 0 ? undefined : actions,
    expires_at: timeAhead('--expires', options.text('expires'), Date.now()),
  });
  const { id, scope: halted, mode, expires_at: expiresAt } = answer.halt as Row;
  const ops = `${count(answer.ops_affected)} ${mode === 'pause' ? 'paused' : 'terminated'}`;
  const end = typeof expiresAt === 'string' ? ` ${expiresAt}, or` : '';
  await show(globals.output, answer, () => [
    printable(`Halted ${String(halted)}: halt ${String(id)}, ${ops}.`),
    printable(`It stays in force until${end}: svc halts release ${String(id)} --reason …`),
  ]);
  if (answer.agents_matched === 0 && answer.ops_affected === 0) note(missNote(answer));
}

/** Rejects if it is not meant. Running operations are shown by org. */
async function askAboutAll(api: Api, verb: 'pause' | 'terminate', actions: readonly string[]): Promise<void> {
  const stats = await api.get('/api/v1/topology/stats', 'groups', { per_page: MAX_PAGE });
  const inFlight = (row: Row): number => {
    const { pending, running, paused } = Object(row.ops) as Record<string, number | undefined>;
    return (running ?? 0) + (verb === 'pause' ? 0 : (pending ?? 0) + (paused ?? 0));
  };
  // Which of them were allowed for these actions, only the gateway knows.
  const these = `${actions.length === 0 ? '' : 'at most '}${count(inFlight(stats))}`;
  const what = actions.length === 0 ? 'every agent' : `${actions.map(printable).join(', ')} of every agent`;
  if (process.stdin.isTTY !== true)
    throw usageError(
      `this would halt ${what}, and ${verb} ${these}`,
      'There is no terminal for confirmation; add --yes to go ahead.',
    );
  const groups = (stats.groups as readonly Row[])
    .map((group) => [printable(String(group.org_id) || '(no org)'), inFlight(group)] as const)
    .filter(([, ops]) => ops > 0)
    .sort(([, one], [, other]) => other - one);
  noteCounts(groups, 'org');
  if (!(await confirmed(`Halt ${what}, and ${verb} ${these}?`))) throw new CliError('cancelled; nothing was changed');
}

/** A mistyped name halts nobody. */
function missNote({ halt, nearest_scope: nearest }: Row): string {
  const { id, scope } = halt as Row;
  const guess = typeof nearest === 'string' ? ` Did you mean ${nearest}?` : '';
  return printable(
    `No known agent is in ${String(scope)}.${guess} The halt applies to future ones; if that is a mistake: svc halts release ${String(id)} --reason mistyped`,
  );
}

export async function ls(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const isAll = options.isSet('all');
  const api = await Api.of(invocation);
  const query = { active: isAll ? undefined : 'true' };
  const { rows, nextCursor } = await api.list(HALTS, 'halts', { query, limit: limitOf(options) });
  await showTable(globals, {
    value: { halts: rows, next_cursor: nextCursor },
    columns: columnsFor(shortIds(rows), isAll),
    rows,
    none: isAll ? 'There are no halts.' : 'No halt is in force.',
  });
  if (nextCursor !== null) note(moreNote(rows.length));
}

export async function release(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const [id = ''] = invocation.args;
  const api = await Api.of(invocation);
  // A released halt may be named as well: the gateway answers as before.
  const whole = await wholeId(api, id, { path: HALTS, key: 'halts', query: {} });
  const path = `${HALTS}/${encodeURIComponent(whole)}/release`;
  const answer = await api.post(path, 'halt', { reason: options.text('reason') });
  const { id: released, scope, mode } = answer.halt as Row;
  const after =
    mode === 'pause'
      ? 'Operations it had paused run again, unless another halt covers them.'
      : 'Operations it has terminated stay terminated.';
  await show(globals.output, answer, () => [
    printable(`Released halt ${String(released)} of ${String(scope)}. ${after}`),
  ]);
}

const count = (ops: unknown): string => (ops === 1 ? '1 operation' : `${String(ops)} operations`);
