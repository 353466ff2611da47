/** `svc policy ls|rules|reload|publish`: the policies in force at the gateway. */

import { basename } from 'node:path';
import { termsText } from '../../core/policy/approval-terms.ts';
import { textsOfFiles } from '../../policy-files/policy-file.ts';
import { usageError } from '../errors.ts';
import type { Invocation, Run } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { note, show } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { type Column, cellText, isRows, type Row } from '../terminal/table.ts';
import { counted } from '../terminal/words.ts';
import { showList } from './listing.ts';
import { gatewayPolicyPath, isCaseFile, needPolicies, refusedFiles } from './policy-files.ts';

// `svc policy validate [path...]`: every mistake at its line and column.

export async function run({ args, globals, env }: Invocation): Promise<void> {
  const [first] = args;
  const paths = first === undefined ? [gatewayPolicyPath(env)] : args.filter((path) => !isCaseFile(path));
  // Among policies, as `*.yaml` names them, tests are left out; to call them valid policies would be wrong.
  if (first !== undefined && paths.length === 0)
    throw usageError(
      `${printable(first)} contains policy tests, not policies`,
      `Run them with \`svc policy test ${args.map(printable).join(' ')}\`.`,
    );
  const { policies, files, warnings } = await needPolicies(globals.output, paths);
  const { version, documents } = policies.summary();
  const ruleCount = documents.reduce((sum, document) => sum + document.ruleCount, 0);
  for (const warning of warnings) note(`warning: ${warning}`);
  await show(
    globals.output,
    { ok: true, version, files, documents: documents.length, rules: ruleCount, warnings },
    () => [
      `${counted(documents.length, 'document')} with ${counted(ruleCount, 'rule')} in ${counted(files.length, 'file')}: ${warnings.length === 0 ? 'no problems' : `no errors, ${counted(warnings.length, 'warning')}`}.`,
      // Users who name no files must not take another set for their own.
      ...(first === undefined
        ? [printable(`Checked ${files.join(', ')}, which a gateway started here would read.`)]
        : []),
    ],
  );
}

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
  { title: 'EFFECT', cell: 'effect', isWhole: true },
  { title: 'ACTIONS', cell: 'actions' },
  { title: 'RESOURCES', cell: 'resources' },
  { title: 'WHEN', cell: 'when', isSpare: true },
  { title: 'APPROVAL', cell: (row) => approvalOf(row.approval), isSpare: true },
  { title: 'OBLIGES TO', cell: (row) => typesOf(row.obligations), isSpare: true },
];

const typesOf = (obligations: unknown): readonly string[] | undefined =>
  isRows(obligations) && obligations.length > 0 ? [...new Set(obligations.map(({ type }) => String(type)))] : undefined;

/** The terms of a rule that requires an approval. */
function approvalOf(terms: unknown): string | undefined {
  if (typeof terms !== 'object' || terms === null) return undefined;
  const row = terms as Row;
  return termsText({
    min: Number(row.min),
    expiresMs: Number(row.expires_secs) * 1000,
    validMs: row.valid_secs === null ? undefined : Number(row.valid_secs) * 1000,
    approvers: Array.isArray(row.approvers) ? row.approvers.map(String) : [],
  });
}

/** In the order in which a check goes through them. Halts come before all of them. */
export async function rules(invocation: Invocation): Promise<void> {
  await showList(invocation, {
    path: '/api/v1/policies/rules',
    key: 'rules',
    query: { policy: invocation.args[0] },
    columns: RULE_COLUMNS,
    none: 'No rules match.',
  });
  const api = await Api.of(invocation);
  const { rows: halts } = await api.list('/api/v1/halts', 'halts', { query: { active: 'true' }, limit: 100 });
  if (halts.length > 0) note(`${counted(halts.length, 'halt')} in force, which no rule overrides: svc halts ls`);
}

/** A set with a mistake is refused by the gateway, which keeps the one before. */
export async function reload(invocation: Invocation): Promise<void> {
  const answer = await (await Api.of(invocation)).post('/api/v1/policies/reload', 'changed');
  await show(invocation.globals.output, answer, () => [
    printable(
      `The policies were reloaded${typeof answer.version === 'string' ? `; version ${cellText(answer.version)} is in force` : ''}.`,
    ),
  ]);
}

/** Mistakes are found here first, at their line and column; the gateway looks again. */
export async function publish(invocation: Invocation): Promise<void> {
  const { args, globals, options } = invocation;
  const set = options.text('set');
  const paths = args.filter((path) => !isCaseFile(path));
  if ((set === undefined) === (paths.length === 0))
    throw usageError('name either policy files or folders, or a set with --set', 'Versions are in `svc cluster ls`.');
  const body = set === undefined ? { files: await filesOf(invocation, paths) } : { version: set };
  const answer = await (await Api.of(invocation)).post('/api/v1/policies', 'version', body);
  await show(globals.output, answer, () => [
    printable(
      answer.changed === true
        ? `Version ${cellText(answer.version)} is in force${answer.unconfirmed === undefined ? ' at all gateways' : ''}.`
        : `Version ${cellText(answer.version)} was in force already.`,
    ),
  ]);
}

async function filesOf({ globals }: Invocation, paths: readonly string[]) {
  const { warnings } = await needPolicies(globals.output, paths);
  for (const warning of warnings) note(`warning: ${warning}`);
  const texts = await textsOfFiles(...paths);
  if (!texts.ok) throw await refusedFiles(globals.output, texts.fault);
  return texts.value.map(({ file, text }) => ({ name: basename(file), text }));
}
