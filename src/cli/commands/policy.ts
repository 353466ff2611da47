/** `svc policy ls|rules|reload`: the policies in force at the gateway. */
import { Api } from '../api.ts';
import type { Invocation, Run } from '../invocation.ts';
import { show } from '../output.ts';
import { printable } from '../printable.ts';
import { type Column, cellText } from '../table.ts';
import { showList } from './listing.ts';

const COLUMNS: readonly Column[] = [
  { title: 'POLICY', cell: 'name', isWhole: true },
  { title: 'SCOPE', cell: 'scope' },
  { title: 'RULES', cell: 'rule_count' },
  { title: 'FILE', cell: 'source' },
];

export const ls: Run = (invocation) =>
  showList(invocation, {
    path: '/api/v1/policies',
    key: 'documents',
    columns: COLUMNS,
    none: 'There are no policies, so every check is denied.',
  });

const RULE_COLUMNS: readonly Column[] = [
  { title: 'POLICY', cell: 'policy', isWhole: true },
  { title: 'RULE', cell: 'id', isWhole: true },
  { title: 'EFFECT', cell: 'effect' },
  { title: 'ACTIONS', cell: 'actions' },
  { title: 'RESOURCES', cell: 'resources' },
  { title: 'WHEN', cell: 'when' },
];

/** In the order in which a check goes through them. */
export const rules: Run = (invocation) =>
  showList(invocation, {
    path: '/api/v1/policies/rules',
    key: 'rules',
    query: { policy: invocation.args[0] },
    columns: RULE_COLUMNS,
    none: 'No rules match.',
  });

/** A set with a mistake is refused by the gateway, which keeps the one before. */
export async function reload(invocation: Invocation): Promise<void> {
  const answer = await (await Api.of(invocation)).post('/api/v1/policies/reload', 'changed');
  await show(invocation.globals.output, answer, () => [
    printable(
      `The policies were reloaded${typeof answer.version === 'string' ? `; version ${cellText(answer.version)} is in force` : ''}.`,
    ),
  ]);
}
