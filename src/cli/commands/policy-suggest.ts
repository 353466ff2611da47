/** `svc policy suggest`: rules for what was denied for want of one. It puts nothing in force. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { AuditEntry } from '../../core/audit/audit.ts';
import { agentKeyOf } from '../../core/base/ids.ts';
import {
  type Evidence,
  SUGGESTION_SOURCES,
  type Suggested,
  type SuggestedDocument,
  type Suggestion,
  Suggestions,
} from '../../core/policy/suggest.ts';
import { usageError } from '../errors.ts';
import type { Invocation } from '../invocation.ts';
import { jsonText, note, show } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { counted } from '../terminal/words.ts';
import { offlineLog, remoteExport } from './audit.ts';
import { logQuery } from './logs.ts';
import { writeNew } from './policy-life.ts';

const FILE = 'suggested.yaml';
const TEST_FILE = 'suggested.test.yaml';

export async function run(invocation: Invocation): Promise<void> {
  const { globals, options } = invocation;
  const source = SUGGESTION_SOURCES.find((known) => known === options.text('from'));
  if (source === undefined)
    throw usageError('--from must be denials or shadow', 'For example svc policy suggest --from denials --since 7d');
  const suggestions = new Suggestions(source);
  for await (const entry of entriesOf(invocation)) suggestions.add(entry);
  const suggested = suggestions.result();
  const files = [
    { name: FILE, text: policyText(suggested) },
    { name: TEST_FILE, text: testText(suggested) },
  ];
  const folder = options.text('out');
  if (folder !== undefined && suggested.documents.length > 0) {
    await mkdir(folder, { recursive: true });
    for (const { name, text } of files) await writeNew(join(folder, name), text);
  }
  await show(globals.output, { ...viewOf(suggested), files }, () =>
    folder !== undefined || suggested.documents.length === 0
      ? []
      : files.flatMap(({ name, text }) => [`# ${name}`, ...text.trimEnd().split('\n')]),
  );
  report(suggested, folder);
}

function report({ denials, leftOut, documents }: Suggested, folder: string | undefined): void {
  const rules = documents.reduce((sum, { suggestions }) => sum + suggestions.length, 0);
  const without = Object.entries(leftOut).map(([reason, number]) => `${number} ${reason}`);
  note(
    `${counted(denials, 'check')} denied for want of a rule; ${counted(rules, 'rule')} suggested${without.length === 0 ? '' : `; left out: ${without.join(', ')}`}`,
  );
  if (folder !== undefined && rules > 0)
    note(`In ${printable(join(folder, FILE))}, not in force: svc policy test ${printable(join(folder, TEST_FILE))}`);
}

async function* entriesOf(invocation: Invocation): AsyncGenerator<AuditEntry> {
  const dir = invocation.options.text('dir');
  const query = { ...logQuery(invocation.options, Date.now()), event_type: EVENTS };
  if (dir !== undefined) {
    const { reader, filter } = await offlineLog(dir, query);
    for await (const { matches } of reader.entries(filter)) yield* matches;
    return;
  }
  const lines = createInterface({
    input: await remoteExport(invocation, query, 'ndjson'),
    crlfDelay: Number.POSITIVE_INFINITY,
  });
  for await (const line of lines) if (line !== '') yield JSON.parse(line) as AuditEntry;
}

const EVENTS = 'ActionAllowed,ActionDenied,A2ACallIntercepted,ApprovalRequested';

const viewOf = ({ denials, leftOut, documents }: Suggested) => ({
  denials,
  left_out: leftOut,
  rules: documents.flatMap(({ name, scope, suggestions }) =>
    suggestions.map(({ rule, evidence, widens }) => ({
      ...{ document: name, scope, rule_id: rule.id },
      covers: sumOf(evidence),
      agents: agentsOf(evidence),
      audit_ids: evidence.flatMap(({ auditIds }) => auditIds).slice(0, MAX_IDS),
      widens: widens.map(({ agent, action, resource, count, auditIds }) => ({
        ...{ agent: agentKeyOf(agent), action, resource, count, audit_ids: auditIds },
      })),
    })),
  ),
});

const sumOf = (evidence: readonly Evidence[]): number => evidence.reduce((sum, { count }) => sum + count, 0);
const agentsOf = (evidence: readonly Evidence[]): readonly string[] => [
  ...new Set(evidence.map(({ agent }) => agentKeyOf(agent))),
];

const MAX_IDS = 20;
const MAX_SHOWN = 5;

/** JSON is YAML; each text stays what it is, whatever characters are in it. */
const yaml = (value: unknown): string => jsonText(value).trimEnd();

const policyText = ({ documents }: Suggested): string =>
  [
    '# Suggested from the audit log by svc policy suggest. Read each rule before it is put in force.',
    documents.map(documentText).join('---\n'),
  ].join('\n');

const documentText = ({ name, scope, suggestions }: SuggestedDocument): string =>
  `name: ${yaml(name)}\nscope: ${yaml(scope)}\nrules:\n${suggestions.map(ruleText).join('')}`;

function ruleText({ rule, evidence, widens }: Suggestion): string {
  const ids = evidence.flatMap(({ auditIds }) => auditIds);
  const comments = [
    `${counted(sumOf(evidence), 'check')} of ${counted(agentsOf(evidence).length, 'agent')}, such as ${ids.length === 1 ? 'entry' : 'entries'} ${ids.slice(0, MAX_SHOWN).join(', ')}`,
    ...(widens.length === 0 ? [] : [`Also lets through ${counted(sumOf(widens), 'denied check')}:`]),
    ...widens
      .slice(0, MAX_SHOWN)
      .map(({ agent, action, resource, auditIds }) =>
        printable(`  ${agentKeyOf(agent)}: ${action} ${resource} (entry ${auditIds[0]})`),
      ),
  ];
  const [first = '', ...rest] = Object.entries(rule).map(([key, value]) => `${key}: ${yaml(value)}`);
  return [...comments.map((line) => `  # ${line}`), `  - ${first}`, ...rest.map((line) => `    ${line}`), ''].join(
    '\n',
  );
}

const testText = ({ cases }: Suggested): string =>
  `# What was seen is allowed, and to nobody else: svc policy test ${TEST_FILE}\ncases:\n${cases.map((each) => `  - ${yaml(each)}\n`).join('')}`;
