/** `svc policy shadow start|status|stop`: a second set of policies, which is asked and decides nothing. */
import { basename } from 'node:path';
import { textsOfFiles } from '../../policy-files/policy-file.ts';
import { usageError } from '../errors.ts';
import type { Invocation } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { note, show, showTable } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { type Column, cellText, isRows } from '../terminal/table.ts';
import { isCaseFile, needPolicies, refusedFiles } from './policy-files.ts';

const PATH = '/api/v1/policies/shadow';
const SECS_OF = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;
const MAX_DAYS = 30;

function secsIn(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, number, unit] = /^([1-9]\d{0,6})([smhd])$/.exec(text) ?? [];
  const secs = Number(number) * SECS_OF[unit as keyof typeof SECS_OF];
  if (secs > 0 && secs <= MAX_DAYS * SECS_OF.d) return secs;
  throw usageError(`--for must be a duration of up to ${MAX_DAYS} days, such as 7d or 12h`);
}

/** Files as the gateway takes them. Mistakes are found here first, at their line and column. */
export async function filesIn({ globals }: Invocation, given: readonly string[]) {
  const paths = given.filter((path) => !isCaseFile(path));
  const { warnings } = await needPolicies(globals.output, paths);
  for (const warning of warnings) note(`warning: ${warning}`);
  const texts = await textsOfFiles(...paths);
  if (!texts.ok) throw await refusedFiles(globals.output, texts.fault);
  return texts.value.map(({ file, text }) => ({ name: basename(file), text }));
}

async function start(invocation: Invocation, paths: readonly string[]): Promise<void> {
  const { globals, options } = invocation;
  const expires = secsIn(options.text('for'));
  const files = await filesIn(invocation, paths);
  const answer = await (await Api.of(invocation)).put(PATH, 'version', { files, expires_in_secs: expires });
  await show(globals.output, answer, () => [
    printable(
      `Version ${cellText(answer.version)} is asked beside the one in force until ${cellText(answer.expires_at)}.`,
    ),
    'It decides nothing. See what it would change: svc policy shadow status',
  ]);
}

const COLUMNS: readonly Column[] = [
  { title: 'COUNT', cell: 'count' },
  { title: 'FROM', cell: 'from', isWhole: true },
  { title: 'TO', cell: 'to', isWhole: true },
  { title: 'POLICY', cell: 'policy' },
  { title: 'RULE', cell: 'rule_id', isWhole: true },
];

async function status(invocation: Invocation): Promise<void> {
  const answer = await (await Api.of(invocation)).get(PATH, 'version');
  const { version, expires_at: expiresAt, checks, differing, errors } = answer;
  const rows = isRows(answer.changes) ? answer.changes : [];
  await showTable(invocation.globals, {
    value: answer,
    columns: COLUMNS,
    rows,
    none: 'It decides every check as the set in force does.',
  });
  note(
    printable(
      `version ${cellText(version)} until ${cellText(expiresAt)}: ${cellText(checks)} checks compared, ${cellText(differing)} decided otherwise, ${cellText(errors)} failed`,
    ),
  );
  if (rows.length > 0) note('The checks: svc logs --shadow differs');
}

async function stop(invocation: Invocation): Promise<void> {
  const answer = await (await Api.of(invocation)).order('DELETE', PATH);
  await show(invocation.globals.output, answer, () => ['No set is asked beside the one in force any more.']);
}

export async function run(invocation: Invocation): Promise<void> {
  const [verb, ...paths] = invocation.args;
  if (verb === 'start' && paths.length > 0) return start(invocation, paths);
  if (paths.length === 0 && verb === 'status') return status(invocation);
  if (paths.length === 0 && verb === 'stop') return stop(invocation);
  throw usageError(
    verb === 'start' ? 'policy shadow start needs policy files or folders' : 'name what to do: start, status or stop',
    'For example svc policy shadow start ./policies --for 7d',
  );
}
