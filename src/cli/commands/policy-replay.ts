/** `svc policy replay`: recorded checks, decided again by other policies. */

import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { CHECK_EVENTS, Replay, viewOfReplay } from '../../core/policy/replay.ts';
import { CliError, EXIT, type ExitStatus } from '../errors.ts';
import type { Invocation } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import type { Query } from '../remote/http.ts';
import { note, showTable } from '../terminal/output.ts';
import { type ProgressLine, progressLine } from '../terminal/progress.ts';
import type { Column } from '../terminal/table.ts';
import { counted } from '../terminal/words.ts';
import { offlineLog } from './audit.ts';
import { logQuery } from './logs.ts';
import { setOf, versionIn } from './policy-life.ts';
import { filesIn } from './policy-shadow.ts';

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

type Result = ReturnType<typeof viewOfReplay>;

/** Decided by the gateway, or here with --dir, from its data directory. */
export async function run(invocation: Invocation): Promise<ExitStatus> {
  const { globals, options } = invocation;
  const line = progressLine();
  const query = logQuery(options, Date.now());
  const dir = options.text('dir');
  let result: Result;
  try {
    result = await (dir === undefined
      ? replayThere(invocation, query, line)
      : replayHere(invocation, dir, query, line));
  } finally {
    line?.clear();
  }
  await showTable(globals, {
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

async function replayHere(
  invocation: Invocation,
  dir: string,
  query: Query,
  line: ProgressLine | undefined,
): Promise<Result> {
  const replay = new Replay(await setOf(invocation, invocation.args[0] ?? ''));
  const { reader, filter } = await offlineLog(dir, { ...query, event_type: CHECK_EVENTS.join() });
  const total = await reader.extent(filter);
  let read = 0;
  let drawMs = 0;
  for await (const step of reader.entries(filter)) {
    for (const entry of step.matches) replay.add(entry);
    read += step.read;
    if (performance.now() < drawMs) continue;
    line?.draw(progressText({ read, total }));
    drawMs = performance.now() + REDRAW_MS;
  }
  return viewOfReplay(replay.result());
}

const REDRAW_MS = 200;

async function replayThere(
  invocation: Invocation,
  { org_id, team_id, agent_id, since, until }: Query,
  line: ProgressLine | undefined,
): Promise<Result> {
  const name = invocation.args[0] ?? '';
  const set = existsSync(name) ? { files: await filesIn(invocation, [name]) } : { version: versionIn(name) };
  const body = { ...set, org_id, team_id, agent_id, since, until };
  const answer = await (await Api.of(invocation)).streamOf('/api/v1/policies/replay', 'application/x-ndjson', body);
  try {
    for await (const text of createInterface({ input: answer, crlfDelay: Number.POSITIVE_INFINITY })) {
      const { progress, result } = JSON.parse(text) as {
        readonly progress?: { readonly read: number; readonly total: number };
        readonly result?: Result;
      };
      if (result !== undefined) return result;
      if (progress !== undefined) line?.draw(progressText(progress));
    }
  } catch (error) {
    throw cut(error);
  }
  throw cut(undefined);
}

const progressText = ({ read, total }: { readonly read: number; readonly total: number }): string =>
  `Replaying: ${read.toLocaleString('en-US')} of ${total.toLocaleString('en-US')} entries`;

const cut = (cause: unknown): CliError =>
  new CliError(
    'the gateway ended the replay before it was complete',
    'Its log says why. Replay less with --since, or from a copy of the data directory with --dir.',
    { cause },
  );
