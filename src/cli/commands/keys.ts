/** `svc keys create|ls|revoke|rotate-signing`: API keys of the gateway, and the key that signs its tokens. */

import type { Invocation, Run } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { show } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { awayAt, type Column, type Row } from '../terminal/table.ts';
import { timeAhead } from '../terminal/words.ts';
import { showList } from './listing.ts';
import { askAboutMade } from './made-keys.ts';

const COLUMNS: readonly Column[] = [
  { title: 'ID', cell: 'id', isWhole: true },
  { title: 'NAME', cell: 'name' },
  { title: 'SCOPES', cell: 'scopes' },
  { title: 'ORG', cell: 'org_id' },
  { title: 'STATE', cell: (row) => stateOf(row, Date.now()) },
  { title: 'USED', cell: awayAt('last_used_at') },
  { title: 'AGE', cell: awayAt('created_at') },
];

function stateOf({ revoked_at: revokedAt, expires_at: expiresAt }: Row, nowMs: number): string {
  if (typeof revokedAt === 'string') return 'revoked';
  return typeof expiresAt === 'string' && Date.parse(expiresAt) <= nowMs ? 'expired' : 'active';
}

export const ls: Run = (invocation) =>
  showList(invocation, {
    path: '/api/v1/iam/api-keys',
    key: 'api_keys',
    query: { org_id: invocation.options.text('org') },
    columns: COLUMNS,
    none: 'There are no API keys.',
  });

export async function create(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const [name = ''] = invocation.args;
  const answer = await (await Api.of(invocation)).post('/api/v1/iam/api-keys', 'key', {
    name,
    scopes: options.list('scope'),
    org_id: options.text('org'),
    expires_at: timeAhead('--expires', options.text('expires'), Date.now()),
  });
  await show(globals.output, answer, () => [
    printable(
      `Created API key ${String(answer.id)} with ${Array.isArray(answer.scopes) ? answer.scopes.join(', ') : 'no scopes'}. It is shown only once:`,
    ),
    `  ${printable(String(answer.key))}`,
  ]);
}

export async function revoke(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const [id = ''] = invocation.args;
  const api = await Api.of(invocation);
  const made = await askAboutMade(api, `key:${id}`, options);
  const answer = await api.order('POST', `/api/v1/iam/api-keys/${encodeURIComponent(id)}/revoke${made.query}`);
  await show(globals.output, { revoked: id, ...made.named, ...answer }, () => [
    `Revoked API key ${printable(id)} and every session created with it.${made.sentence}`,
  ]);
}

export async function rotateSigning(invocation: Invocation): Promise<void> {
  const answer = await (await Api.of(invocation)).post('/api/v1/iam/signing-keys/rotate', 'kid');
  await show(invocation.globals.output, answer, () => [
    printable(
      `Tokens are now signed with key ${String(answer.kid)}; those signed with the previous key stay valid until they expire.`,
    ),
  ]);
}
