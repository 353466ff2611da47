/** `svc policy replay`: recorded checks, decided again by other policies. */

import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { AuditEntry } from '../../core/audit/audit.ts';
import { Replay, type ReplayResult } from '../../core/policy/replay.ts';
import { EXIT, type ExitStatus } from '../errors.ts';
import type { Invocation } from '../invocation.ts';
import { note, showTable } from '../terminal/output.ts';
import type { Column } from '../terminal/table.ts';
import { counted } from '../terminal/words.ts';
import { exportedEntries } from './audit.ts';
import { setOf } from './policy-life.ts';

const COLUMNS: readonly Column[] = [
  { title: 'COUNT', cell: 'count' },
  { title: 'FROM', cell: 'from', isWhole: true },
  { title: 'TO', cell: 'to', isWhole: true },
  { title: 'RULE', cell: 'rule_id', isWhole: true },
  { title: 'AGENT', cell: (row) => [row.org_id ?? '', row.team_id, row.agent_id].join('/') },
  { title: 'ACTION', cell: 'action' },
  { title: 'RESOURCE', cell: 'resource' },
  { title: 'ENTRY', cell: 'audit_id' },
];

const PROGRESS_EVERY = 100_000;

/** The entries come from the gateway, or from its data directory with --dir; they are decided here. */
export async function run(invocation: Invocation): Promise<ExitStatus> {
  const { args, globals, options } = invocation;
  const replay = new Replay(await setOf(invocation, args[0] ?? ''));
  await decideAll(await exportedEntries(invocation), replay);
  const result = viewOf(replay.result());
  await showTable(globals.output, {
    value: result,
    columns: COLUMNS,
    rows: result.changes,
    none: 'No recorded check would be decided otherwise.',
  });
  const skipped = Object.entries(result.skipped).map(([reason, number]) => `${number} ${reason}`);
  note(
    `${counted(result.checks, 'check')} read: ${result.same} the same, ${result.changed} decided otherwise${skipped.length === 0 ? '' : `; not decided again: ${skipped.join(', ')}`}`,
  );
  return options.isSet('failOnChange') && result.changed > 0 ? EXIT.failed : EXIT.done;
}

async function decideAll(entries: Readable, replay: Replay): Promise<void> {
  let read = 0;
  for await (const line of createInterface({ input: entries, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line === '') continue;
    replay.add(JSON.parse(line) as AuditEntry);
    read += 1;
    if (read % PROGRESS_EVERY === 0) note(`${read} entries read`);
  }
}

const viewOf = ({ changes, ...counts }: ReplayResult) => ({
  ...counts,
  changes: changes.map(({ policy, ruleId, lineage, auditId, ...change }) => ({
    ...change,
    ...lineage,
    policy: policy ?? null,
    rule_id: ruleId ?? null,
    audit_id: auditId,
  })),
});
