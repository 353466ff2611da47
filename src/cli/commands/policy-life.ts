/** `svc policy history|diff|show`: the sets of policies that were in force, and how they differ. */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { diffPolicies, type PolicyChange } from '../../core/policy/diff.ts';
import type { PolicySet } from '../../core/policy/policy.ts';
import { loadPolicyTexts } from '../../policy-files/policy-file.ts';
import { CliError, EXIT, type ExitStatus } from '../errors.ts';
import type { Invocation, Run } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { green, note, red, show, yellow } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { type Column, isRows } from '../terminal/table.ts';
import { counted } from '../terminal/words.ts';
import { showList } from './listing.ts';
import { needPolicies, refusedFiles } from './policy-files.ts';

const COLUMNS: readonly Column[] = [
  { title: 'VERSION', cell: 'version', isWhole: true },
  { title: 'STATE', cell: 'state' },
  { title: 'SINCE', cell: 'since' },
  { title: 'UNTIL', cell: 'until' },
  { title: 'DOCUMENTS', cell: 'documents' },
  { title: 'RULES', cell: 'rules' },
  { title: 'BY', cell: 'by', isSpare: true },
];

export const history: Run = (invocation) =>
  showList(invocation, {
    path: '/api/v1/policies/versions',
    key: 'versions',
    columns: COLUMNS,
    none: 'No set of policies is kept yet.',
  });

/** The files of a set that the gateway keeps. */
async function filesOfVersion(api: Api, version: string) {
  const { files } = await api.get(`/api/v1/policies/versions/${encodeURIComponent(version)}`, 'files');
  return isRows(files) ? files.map(({ name, text }) => ({ file: String(name), text: String(text) })) : [];
}

export async function showVersion(invocation: Invocation): Promise<void> {
  const { args, globals, options } = invocation;
  const api = await Api.of(invocation);
  const answer = await api.get(`/api/v1/policies/versions/${encodeURIComponent(args[0] ?? '')}`, 'files');
  const files = isRows(answer.files) ? answer.files : [];
  const folder = options.text('out');
  if (folder !== undefined) {
    await mkdir(folder, { recursive: true });
    for (const { name, text } of files) {
      // The name comes from the gateway and is only ever used as a name, never as a path.
      await writeNew(join(folder, basename(String(name))), String(text));
    }
    note(`${counted(files.length, 'file')} in ${printable(folder)}`);
    return;
  }
  await show(globals.output, answer, () =>
    files.flatMap(({ name, text }) => [`# ${printable(String(name))}`, ...String(text).split('\n').map(printable)]),
  );
}

/** Fails where there is a file already: nobody's own policies are written over. */
export async function writeNew(path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text, { flag: 'wx' });
  } catch (error) {
    if (!existsSync(path)) throw error;
    throw new CliError(`${printable(path)} is there already`, 'Name another folder, or remove it.');
  }
}

/** Exit status 1 where they differ, as diff has it. */
export async function diff(invocation: Invocation): Promise<ExitStatus> {
  const { args, globals } = invocation;
  const [from = '', to = ''] = args;
  const [before, after] = [await setOf(invocation, from), await setOf(invocation, to)];
  const changes = diffPolicies(before.documents, after.documents);
  await show(
    globals.output,
    {
      from: before.version,
      to: after.version,
      changes: changes.map(({ ruleId, before: was, after: is, ...change }) => ({
        ...change,
        rule_id: ruleId ?? null,
        before: was ?? null,
        after: is ?? null,
      })),
    },
    () => [
      ...changes.flatMap(linesOf),
      changes.length === 0 ? 'They do not differ.' : `${counted(changes.length, 'change')}.`,
    ],
  );
  return changes.length === 0 ? EXIT.done : EXIT.failed;
}

/** A file or folder if there is one of that name, else a version that the gateway keeps. */
export async function setOf(invocation: Invocation, name: string): Promise<PolicySet> {
  const { output } = invocation.globals;
  if (existsSync(name)) return (await needPolicies(output, [name])).policies;
  const version = versionIn(name);
  const loaded = loadPolicyTexts(await filesOfVersion(await Api.of(invocation), version));
  if (!loaded.ok) throw await refusedFiles(output, loaded.fault);
  return loaded.value.policies;
}

/** A name that is neither file nor folder must look like a version. */
export function versionIn(name: string): string {
  if (/^[0-9a-f]{16}$/.test(name)) return name;
  throw new CliError(
    `${printable(name)} is neither a file or folder nor a version`,
    'Versions have 16 hexadecimal digits: svc policy history',
  );
}

const SIGN = { added: '+', removed: '-', changed: '~' } as const;
const COLOUR = { added: green, removed: red, changed: yellow } as const;

function linesOf({ kind, document, scope, ruleId, before, after }: PolicyChange): readonly string[] {
  const what = ruleId === undefined ? `policy ${document} (${scope})` : `policy ${document}, rule ${ruleId}`;
  const keys = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const shown = (value: unknown): string => (value === undefined ? 'left out' : JSON.stringify(value));
  const details =
    kind !== 'changed'
      ? []
      : keys
          .filter((key) => shown(before?.[key]) !== shown(after?.[key]))
          .map((key) => printable(`    ${key}: ${shown(before?.[key])} -> ${shown(after?.[key])}`));
  return [COLOUR[kind](printable(`${SIGN[kind]} ${what}`)), ...details];
}
