/**
 * `svc accounts ls|role|disable|enable|unlock|invite|invites|uninvite`: the people of a gateway with an account store.
 */

import { messageOf } from '../../core/base/text.ts';
import { isRole, SCOPES, SCOPES_OF_ROLE } from '../../core/identity/roles.ts';
import { CliError } from '../errors.ts';
import { fileFault } from '../files/private-folder.ts';
import type { Invocation, Run } from '../invocation.ts';
import { Api, unconfirmedOf } from '../remote/api.ts';
import { show } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { awayAt, type Column, type Row } from '../terminal/table.ts';
import { showList } from './listing.ts';
import { askAboutMade, NOTHING_ENDS } from './made-keys.ts';

const ACCOUNTS = '/api/v1/accounts';
const INVITES = '/api/v1/auth/invites';

/** Shows a lock with the time until it ends. A single word, as every cell: other programs split the table at spaces. */
const stateOf = (row: Row): string =>
  row.disabled === true
    ? 'disabled'
    : typeof row.locked_until === 'string'
      ? `locked:${String(awayAt('locked_until')(row))}`
      : 'enabled';

const COLUMNS: readonly Column[] = [
  { title: 'E-MAIL', cell: 'email', isWhole: true },
  { title: 'ROLE', cell: 'role' },
  { title: 'ORG', cell: 'org_id' },
  { title: 'STATE', cell: stateOf },
  { title: 'LOGIN', cell: awayAt('last_login_at') },
  // Ids are not shortened, since part of one cannot be used; the e-mail address identifies the row as well.
  { title: 'ID', cell: 'id', isWhole: true, isSpare: true },
];

export const ls: Run = (invocation) =>
  showList(invocation, { path: ACCOUNTS, key: 'accounts', columns: COLUMNS, none: 'There are no accounts.' });

export async function role(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const [who = '', word = ''] = invocation.args;
  const api = await Api.of(invocation);
  const path = await pathOf(api, who);
  const mayHold = isRole(word) ? SCOPES_OF_ROLE[word] : SCOPES;
  const made = await askAboutMade(api, subjectAt(path), options, mayHold);
  const answer = await api.post(`${path}/role${made.query}`, 'account', { role: word });
  await show(globals.output, accountOf(answer), () => [
    `${printable(`${emailIn(answer)} now has the role ${word}.`)}${made.sentence}`,
  ]);
}

export const setDisabled =
  (verb: 'disable' | 'enable'): Run =>
  async (invocation) => {
    const { options, globals } = invocation;
    const [who = ''] = invocation.args;
    const api = await Api.of(invocation);
    const path = await pathOf(api, who);
    const made = verb === 'disable' ? await askAboutMade(api, subjectAt(path), options) : NOTHING_ENDS;
    const answer = await api.post(`${path}/${verb}${made.query}`, 'account');
    const fate = verb === 'disable' ? ' and signed out everywhere' : '';
    await show(globals.output, accountOf(answer), () => [
      `${printable(`${emailIn(answer)} is ${verb}d${fate}.`)}${made.sentence}`,
    ]);
  };

export async function unlock(invocation: Invocation): Promise<void> {
  const { globals } = invocation;
  const [who = ''] = invocation.args;
  const api = await Api.of(invocation);
  const answer = await api.post(`${await pathOf(api, who)}/unlock`, 'account');
  await show(globals.output, accountOf(answer), () => [printable(`${emailIn(answer)} is not locked.`)]);
}

/** A link for a new password; with --dir from the gateway's own machine, where no credential is needed. */
export async function reset(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const [who = ''] = invocation.args;
  const dir = options.text('dir');
  const api = dir === undefined ? await Api.of(invocation) : undefined;
  const answer =
    api === undefined ? await resetAtConsole(dir!, who) : await api.post(`${await pathOf(api, who)}/reset`, 'link');
  await show(globals.output, answer, () => [
    printable(
      `Give ${String(answer.email)} this link to set a new password. It is shown only once, works once, lifts a lock, and expires at ${String(answer.expires_at)}:`,
    ),
    printable(`  ${String(answer.link)}`),
  ]);
}

async function resetAtConsole(dir: string, who: string): Promise<Row> {
  const { orderAtConsole } = await import('../../console/orders.ts');
  const answer = await orderAtConsole(dir, { reset: who }).catch((error: unknown) => {
    throw new CliError(
      `cannot use ${printable(dir)}: ${fileFault(error) ?? messageOf(error)}`,
      'Give the data directory of the gateway, and run the command as its user.',
      { cause: error },
    );
  });
  if (answer === undefined)
    throw new CliError(
      `no gateway with accounts runs on ${printable(dir)}`,
      'Start it, and run the command on the same machine.',
    );
  if (typeof answer.error === 'string') throw new CliError(printable(answer.error));
  return answer;
}

export async function invite(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const [email = ''] = invocation.args;
  const api = await Api.of(invocation);
  const answer = await api.post('/api/v1/auth/invite', 'invite_token', {
    email,
    role: options.text('role'),
    org_id: options.text('org'),
  });
  await show(globals.output, answer, () => [
    printable(
      `Invited ${String(answer.email)} as ${String(answer.role)}. Send them this link. It is shown only once, works once, and expires at ${String(answer.expires_at)}:`,
    ),
    printable(
      `  ${api.target.apiUrl}/#/accept-invite/${String(answer.invite_token)}?email=${encodeURIComponent(String(answer.email))}`,
    ),
  ]);
}

const INVITE_COLUMNS: readonly Column[] = [
  { title: 'E-MAIL', cell: 'email', isWhole: true },
  { title: 'ROLE', cell: 'role' },
  { title: 'ORG', cell: 'org_id' },
  { title: 'EXPIRES IN', cell: awayAt('expires_at') },
  { title: 'INVITED BY', cell: 'invited_by', isSpare: true },
  { title: 'ID', cell: 'id' },
];

export const invites: Run = (invocation) =>
  showList(invocation, {
    path: INVITES,
    key: 'invites',
    query: { org_id: invocation.options.text('org') },
    columns: INVITE_COLUMNS,
    none: 'There are no open invites.',
  });

/** By e-mail, all that were sent there. */
export async function uninvite(invocation: Invocation): Promise<void> {
  const { globals } = invocation;
  const [who = ''] = invocation.args;
  const api = await Api.of(invocation);
  const ids = who.includes('@') ? await idsByEmail(api, INVITES, 'invites', who) : [who];
  if (ids.length === 0) throw new CliError(`no open invite for ${printable(who)}`, 'See `svc accounts invites`.');
  for (const id of ids) await api.order('POST', `${INVITES}/${encodeURIComponent(id)}/revoke`);
  await show(globals.output, { revoked: ids }, () => [
    `Revoked ${ids.length === 1 ? 'the invite' : `${ids.length} invites`} for ${printable(who)}.`,
  ]);
}

const subjectAt = (path: string): string => `account:${decodeURIComponent(path.slice(ACCOUNTS.length + 1))}`;

const accountOf = (answer: Row): Row => ({ ...(answer.account as Row), ...unconfirmedOf(answer) });

const emailIn = ({ account }: Row): string => String((account as Row | undefined)?.email);

/** People say an e-mail address, the API an id. */
async function pathOf(api: Api, who: string): Promise<string> {
  if (!who.includes('@')) return `${ACCOUNTS}/${encodeURIComponent(who)}`;
  const [id] = await idsByEmail(api, ACCOUNTS, 'accounts', who);
  if (id === undefined) throw new CliError(`account ${printable(who)} not found`, 'See `svc accounts ls`.');
  return `${ACCOUNTS}/${encodeURIComponent(id)}`;
}

async function idsByEmail(api: Api, path: string, name: string, who: string): Promise<readonly string[]> {
  const { rows } = await api.list(path, name);
  return rows.flatMap(({ id, email }) =>
    typeof id === 'string' && typeof email === 'string' && email.toLowerCase() === who.toLowerCase() ? [id] : [],
  );
}
