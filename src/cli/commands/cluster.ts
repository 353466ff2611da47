/** `svc cluster ls|forget`: the gateways that act as one. */
import { CliError, RefusedError } from '../errors.ts';
import type { Invocation } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { show, showTable } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { confirmed } from '../terminal/prompt.ts';
import { awayAt, type Column, isRows, type Row } from '../terminal/table.ts';

/** Enough of the hash to compare by eye. */
const HASH_SHOWN = 12;

function headOf({ audit_head: head }: Row): string {
  const { id, hash } = Object(head) as { readonly id?: number; readonly hash?: string };
  return hash === undefined ? '-' : `${id} ${hash.slice(0, HASH_SHOWN)}`;
}

const leaseLeft = awayAt('lease_until');
/** How long it lasts yet; of one that is over, since when. */
const leaseOf = (row: Row): unknown =>
  Date.parse(String(row.lease_until)) < Date.now() ? `${String(leaseLeft(row))} ago` : leaseLeft(row);

const COLUMNS: readonly Column[] = [
  { title: 'NAME', cell: 'name', isWhole: true },
  { title: 'STATE', cell: 'state' },
  { title: 'VERSION', cell: 'version' },
  { title: 'LEASE', cell: leaseOf },
  { title: 'SKEW', cell: ({ skew_ms: ms }) => `${String(ms)} ms` },
  { title: 'UNCONFIRMED', cell: 'unconfirmed' },
  { title: 'STRANDED', cell: ({ stranded_usd: usd }) => (usd === 0 ? '-' : `$${String(usd)}`) },
  { title: 'BUS', cell: ({ bus }) => (bus === 'cut_off' ? 'cut off' : '-'), isSpare: true },
  { title: 'AUDIT HEAD', cell: headOf, isSpare: true },
  { title: 'POLICY', cell: 'policy_version', isSpare: true },
  { title: 'RUN', cell: 'run', isSpare: true },
];

export async function ls(invocation: Invocation): Promise<void> {
  const answer = await (await Api.of(invocation)).get('/api/v1/cluster', 'members').catch(aloneInstead);
  const members: unknown = answer.members;
  if (!isRows(members)) throw new CliError('the gateway did not answer with a list of members');
  const table = { value: answer, columns: COLUMNS, rows: members, none: 'There are no gateways.' };
  await showTable(invocation.globals, table);
}

/** There is no cluster to be found, and no other name to try. */
function aloneInstead(error: unknown): never {
  if (!(error instanceof RefusedError) || error.refusal.code !== 'not_found') throw error;
  throw new CliError(
    'this gateway is not part of a cluster',
    'Gateways with SVC_CLUSTER=on and the same SVC_DATABASE_URL act as one.',
  );
}

export async function forget(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const [name = ''] = invocation.args;
  const isFreed = options.isSet('unspent');
  const fate = isFreed ? 'freed' : 'charged';
  // A script means what it says; a person may have mistaken the name.
  if (!options.isSet('yes') && process.stdin.isTTY === true) {
    const question = `Forget gateway ${printable(name)}? Its unspent grants are ${fate}.`;
    if (!(await confirmed(question))) throw new CliError('cancelled; nothing was changed');
  }
  const answer = await (await Api.of(invocation)).post('/api/v1/cluster/forget', 'unspent_usd', {
    name,
    unspent: isFreed ? 'free' : 'charge',
  });
  await show(globals.output, answer, () => [
    printable(`Forgot gateway ${name}; $${String((answer as Row).unspent_usd)} it had not spent was ${fate}.`),
  ]);
}
