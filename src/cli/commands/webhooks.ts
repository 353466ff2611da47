/** `svc webhooks create|ls|test|take-over|rm`: HTTP calls that report what people must know. */
import type { Invocation, Run } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { show } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { awayAt, type Column, type Row } from '../terminal/table.ts';
import { showList } from './listing.ts';

const COLUMNS: readonly Column[] = [
  { title: 'ID', cell: 'id', isWhole: true },
  { title: 'URL', cell: 'url' },
  { title: 'EVENTS', cell: 'events' },
  { title: 'ORG', cell: 'org_id' },
  { title: 'STATE', cell: (row) => stateOf(row) },
  { title: 'WAITING', cell: 'waiting' },
  { title: 'AGE', cell: awayAt('created_at') },
  { title: 'MADE BY', cell: 'created_by', isSpare: true },
];

function stateOf({ disabled_at: disabledAt, failing_since: failingSince }: Row): string {
  if (typeof disabledAt === 'string') return 'disabled';
  return typeof failingSince === 'string' ? 'failing' : 'active';
}

export const ls: Run = (invocation) =>
  showList(invocation, {
    path: '/api/v1/webhooks',
    key: 'webhooks',
    query: { org_id: invocation.options.text('org') },
    columns: COLUMNS,
    none: 'There are no webhooks.',
  });

export async function create(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const [url = ''] = invocation.args;
  const answer = await (await Api.of(invocation)).post('/api/v1/webhooks', 'secret', {
    url,
    events: options.list('event'),
    org_id: options.text('org'),
  });
  await show(globals.output, answer, () => [
    printable(`Created webhook ${String(answer.id)}. The secret that signs its calls is shown only once:`),
    `  ${printable(String(answer.secret))}`,
    printable(`Try it: svc webhooks test ${String(answer.id)}`),
  ]);
}

const pathOf = ({ args: [id = ''] }: Invocation): string => `/api/v1/webhooks/${encodeURIComponent(id)}`;

export async function test(invocation: Invocation): Promise<void> {
  const answer = await (await Api.of(invocation)).post(`${pathOf(invocation)}/test`, 'message_id');
  await show(invocation.globals.output, answer, () => [
    printable(`Sent a test: its webhook-id is ${String(answer.message_id)}. Whether it arrived: svc webhooks ls`),
  ]);
}

export async function takeOver(invocation: Invocation): Promise<void> {
  const answer = await (await Api.of(invocation)).post(`${pathOf(invocation)}/take-over`, 'webhook');
  const { id, created_by: maker } = answer.webhook as Row;
  await show(invocation.globals.output, answer.webhook as Row, () => [
    printable(`Webhook ${String(id)} is now ${String(maker)}'s: it ends with that credential.`),
  ]);
}

export async function rm(invocation: Invocation): Promise<void> {
  const [id = ''] = invocation.args;
  const answer = await (await Api.of(invocation)).order('DELETE', pathOf(invocation));
  await show(invocation.globals.output, { deleted: id, ...answer }, () => [printable(`Deleted webhook ${id}.`)]);
}
