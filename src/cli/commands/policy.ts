/** `svc policy ls|reload`: the policies in force at the gateway. */
import { Api } from '../api.ts';
import type { Invocation } from '../invocation.ts';
import { note, show, showTable } from '../output.ts';
import { printable } from '../printable.ts';
import { cellText, type Column } from '../table.ts';
import { limitOf, moreNote } from './listing.ts';

const COLUMNS: readonly Column[] = [
  { title: 'POLICY', cell: 'name', isWhole: true },
  { title: 'SCOPE', cell: 'scope' },
  { title: 'RULES', cell: 'rule_count' },
  { title: 'FILE', cell: 'source' },
];

export async function ls(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const api = await Api.of(invocation);
  const { rows, nextCursor } = await api.list('/api/v1/policies', 'documents', {}, limitOf(options));
  await showTable(globals.output, { documents: rows, next_cursor: nextCursor }, COLUMNS, rows, 'There is no policy document, so every check is denied.');
  if (nextCursor !== null) note(moreNote(rows.length));
}

/** A set with a mistake is refused by the gateway, which keeps the one before. */
export async function reload(invocation: Invocation): Promise<void> {
  const answer = await (await Api.of(invocation)).post('/api/v1/policies/reload');
  await show(invocation.globals.output, answer, () => [printable(`The policies were read again${typeof answer.version === 'string' ? `; version ${cellText(answer.version)} is in force` : ''}.`)]);
}
