/** `svc agents ls|register|rm`: agents and their credentials. */

import type { Invocation, Run } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { show } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { awayAt, type Column } from '../terminal/table.ts';
import { agentFilter, agentText, parseAgent, showList, wireAgent } from './listing.ts';

const COLUMNS: readonly Column[] = [
  { title: 'AGENT', cell: agentText, isWhole: true },
  { title: 'PARENT', cell: ({ parent }) => agentText(parent) ?? parent },
  { title: 'OPS', cell: 'active_ops' },
  { title: 'SEEN', cell: awayAt('last_seen_at'), isSpare: true },
  { title: 'AGE', cell: awayAt('registered_at'), isSpare: true },
];

export const ls: Run = (invocation) => {
  const query = agentFilter(invocation.options);
  const isSearch = Object.values(query).some((sought) => sought !== undefined);
  return showList(invocation, {
    path: '/api/v1/agents',
    key: 'agents',
    query,
    columns: COLUMNS,
    none: isSearch ? 'No agents match.' : 'No agents are registered.',
  });
};

/**
 * The agent's token comes from SVC_CLI_AGENT_TOKEN, not from an argument, which every user of the machine could read.
 */
export async function register(invocation: Invocation): Promise<void> {
  const { options, globals, env } = invocation;
  const [text = ''] = invocation.args;
  const agent = parseAgent(text);
  const parent = options.text('parent');
  const answer = await (await Api.of(invocation)).post('/api/v1/agents', 'agent', {
    agent: wireAgent(agent),
    credential_token: env.SVC_CLI_AGENT_TOKEN || undefined,
    parent: parent === undefined ? undefined : wireAgent(parseAgent(parent)),
  });
  await show(globals.output, answer, () => [
    `${answer.rotated === true ? 'Rotated the token of' : 'Registered'} ${printable(text)}.`,
    ...(typeof answer.credential_token === 'string'
      ? ['Its token, shown only once:', `  ${printable(answer.credential_token)}`]
      : []),
  ]);
}

export async function rm(invocation: Invocation): Promise<void> {
  const { globals } = invocation;
  const [text = ''] = invocation.args;
  const { orgId, teamId, agentId } = parseAgent(text);
  const api = await Api.of(invocation);
  const answer = await api.order(
    'DELETE',
    `/api/v1/agents/${[orgId === '' ? '-' : orgId, teamId, agentId].map(encodeURIComponent).join('/')}`,
  );
  await show(globals.output, { removed: text, ...answer }, () => [
    `Removed ${printable(text)}; its token is no longer valid.`,
  ]);
}
