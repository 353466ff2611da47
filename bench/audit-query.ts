/**
 * How long does a page of the audit log take, when what is asked for is rare? Writes a log of a million entries (or as
 * many as the first argument says) to a temporary folder, indexes it and asks. Run: npm run build && node
 * dist/bench/audit-query.js 1000000
 */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AuditReader } from '../src/audit-log/reader.ts';
import { verifyAuditLog } from '../src/audit-log/verify.ts';
import { openAuditWriter } from '../src/audit-log/writer.ts';
import type { AuditFilter } from '../src/core/audit/audit.ts';
import { encodeDraft } from '../src/core/audit/audit-line.ts';
import type { OpId } from '../src/core/base/ids.ts';
import { scratchFolder } from './lib/ending.ts';
import { isBrief, numbers } from './lib/options.ts';
import { heading, line } from './lib/report.ts';

const total = numbers[0] ?? (isBrief ? 20_000 : 1_000_000);
const BATCH = 1000;
const START_MS = Date.UTC(2026, 0, 1);
const RARE_EVERY = 200_000;

const directory = scratchFolder();

heading(`The audit log: finding entries among ${total.toLocaleString('en')}`);

// A small generator of even numbers that repeats from run to run.
let seed = 42;
const below = (bound: number): number => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return Math.floor((seed / 2 ** 32) * bound);
};

function draftBody(nth: number): string {
  const agent = below(100_000);
  const orgId = `org-${agent % 1000}`;
  const teamId = `team-${agent % 10}`;
  const agentId = `agent-${agent}`;
  return encodeDraft(
    {
      eventType: nth % RARE_EVERY === 0 ? 'PolicyReloaded' : nth % 10 === 0 ? 'ActionDenied' : 'ActionAllowed',
      lineage: { orgId, teamId, agentId },
      actor: `agent:${orgId}/${teamId}/${agentId}`,
      opId: `${nth.toString(16).padStart(32, '0')}:00f067aa0ba902b7` as OpId,
      decision: nth % 10 === 0 ? 'deny' : 'allow',
      reason: 'web tools only',
      policy: 'search-team',
      ruleId: 'web-only',
      payload: { action: 'tool.call', resource: 'web_search' },
    },
    START_MS + nth,
  );
}

const timed = async <T>(work: () => T | Promise<T>): Promise<readonly [T, number]> => {
  const startedMs = performance.now();
  const value = await work();
  return [value, performance.now() - startedMs];
};

const opened = openAuditWriter({ directory, fsync: 'never', nowMs: () => Date.now() });
if (!opened.ok) throw new Error('the fresh folder is locked');
const { writer } = opened.value;
let appendMs = 0;
for (let done = 0; done < total; done += BATCH) {
  const bodies = Array.from({ length: BATCH }, (_, index) => draftBody(done + index + 1)).join('\n');
  const [appended, ms] = await timed(() => writer.append(bodies, BATCH));
  if (!appended.ok) throw new Error(appended.fault.detail);
  appendMs += ms;
}
writer.close();
const bytes = (suffix: string): number =>
  readdirSync(directory)
    .filter((name) => name.endsWith(suffix))
    .reduce((sum, name) => sum + statSync(join(directory, name)).size, 0);
line(
  `append in batches of ${BATCH}`,
  (total / appendMs) * 1_000,
  'entries/s',
  `${Math.round(bytes('.ndjson') / 1e6)} MB`,
);

const first = new AuditReader(directory);
const [, buildMs] = await timed(async () => {
  while (await first.refresh());
});
line('building the indexes once', buildMs, 'ms', `${Math.round(bytes('.idx') / 1e6)} MB`);

const questions: readonly (readonly [string, AuditFilter])[] = [
  ['no filter', {}],
  ['org, 1 in 1000', { orgId: 'org-123' }],
  ['agent, 1 in 100,000', { agentId: 'agent-77123' }],
  [`event type, 1 in ${RARE_EVERY}`, { eventTypes: ['PolicyReloaded'] }],
  [
    'op id',
    {
      opId: `${Math.floor(total / 3)
        .toString(16)
        .padStart(32, '0')}:00f067aa0ba902b7`,
    },
  ],
  ['op id that is not there', { opId: 'nowhere:to-be-found' }],
  ['a minute in the middle', { sinceMs: START_MS + total / 2, untilMs: START_MS + total / 2 + 60_000 }],
  ['org and denied', { orgId: 'org-123', decision: 'deny' }],
];
for (const [name, filter] of questions) {
  const reader = new AuditReader(directory);
  const [, coldMs] = await timed(() => reader.query(filter, { perPage: 50 }));
  const [page, warmMs] = await timed(() => reader.query(filter, { perPage: 50 }));
  const found = page.ok
    ? `${page.value.items.length} entries${page.value.next === undefined ? '' : ', more'}`
    : page.fault.kind;
  line(`a page: ${name}`, warmMs, 'ms', `first time ${coldMs.toFixed(1)} ms; ${found}`);
}
const [size, exportMs] = await timed(async () => {
  let characters = 0;
  for await (const piece of first.export({}, 'ndjson')) characters += piece.length;
  return characters;
});
line(
  'export of everything',
  size / 1e3 / exportMs,
  'MB/s',
  `${Math.round(process.memoryUsage().rss / 1e6)} MB resident`,
);
const [report, verifyMs] = await timed(() => verifyAuditLog(directory));
line('verification', (total / verifyMs) * 1_000, 'entries/s', report.ok ? '' : 'BROKEN');
