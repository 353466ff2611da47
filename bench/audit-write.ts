/**
 * How many entries can one thread encode, and one thread seal and append, by size of batch? Run: npm run build && node
 * dist/bench/audit-write.js
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { openAuditWriter } from '../src/audit-log/writer.ts';
import type { AuditDraft } from '../src/core/audit/audit.ts';
import { encodeDraft } from '../src/core/audit/audit-line.ts';
import { redactAttributes } from '../src/core/audit/redact.ts';
import { redactedKeys } from '../src/core/audit/redact-text.ts';
import type { OpId } from '../src/core/base/ids.ts';
import { scratchFolder } from './lib/ending.ts';
import { isBrief } from './lib/options.ts';
import { heading } from './lib/report.ts';

heading('The audit log: encoding and appending, by size of batch');

const AGENTS = 2000;
const ENCODES = isBrief ? 2_000 : 200_000;
const drafts: readonly AuditDraft[] = Array.from({ length: AGENTS }, (_, nth) => ({
  eventType: 'ActionAllowed',
  lineage: { orgId: 'acme', teamId: 'search', agentId: `agent-${nth}` },
  actor: `agent:acme/search/agent-${nth}`,
  opId: `${nth.toString(16).padStart(32, '4bf92f3577b34da6')}:00f067aa0ba902b7` as OpId,
  decision: 'allow',
  reason: 'web tools only',
  policy: 'search-team',
  ruleId: 'web-only',
  payload: { action: 'tool.call', resource: 'web_search' },
}));
const START_MS = Date.UTC(2026, 0, 1);

/** Nanoseconds per call, best of five runs. */
function nsPerCall(calls: number, work: (nth: number) => unknown): number {
  let best = Infinity;
  for (let run = 0; run < 5; run += 1) {
    const started = process.hrtime.bigint();
    for (let nth = 0; nth < calls; nth += 1) work(nth);
    best = Math.min(best, Number(process.hrtime.bigint() - started) / calls);
  }
  return best;
}

const jsonNs = nsPerCall(ENCODES, (nth) => JSON.stringify(drafts[nth % AGENTS]).length);
const encodeNs = nsPerCall(
  ENCODES,
  (nth) => encodeDraft(drafts[nth % AGENTS] as AuditDraft, START_MS + (nth >> 6)).length,
);
console.log(
  `encodeDraft: ${Math.round(encodeNs)} ns (JSON.stringify of the draft alone: ${Math.round(jsonNs)} ns, ratio ${(encodeNs / jsonNs).toFixed(2)})`,
);

const keys = redactedKeys();
const attributes = { query: 'quarterly report', size: 12, tags: ['a', 'b'], caller: 'batch' };
console.log(
  `redactAttributes, four harmless ones: ${Math.round(nsPerCall(ENCODES, () => redactAttributes(attributes, keys)))} ns`,
);

const directory = scratchFolder();
for (const fsync of ['never', 'always'] as const) {
  const opened = openAuditWriter({ directory, fsync, nowMs: () => Date.now() });
  if (!opened.ok) throw new Error('the fresh folder is locked');
  const { writer } = opened.value;
  for (const size of [1, 10, 100, 1000]) {
    const bodies = Array.from({ length: size }, (_, nth) =>
      encodeDraft(drafts[nth % AGENTS] as AuditDraft, START_MS),
    ).join('\n');
    const plain = Buffer.alloc(bodies.length + size * 180, 'x');
    const fd = openSync(join(directory, 'baseline'), 'w');
    const calls = fsync === 'always' ? (isBrief ? 5 : 50) : Math.max(50, (isBrief ? 500 : 20_000) / size);
    const baselineNs = nsPerCall(calls, () => writeSync(fd, plain));
    closeSync(fd);
    const appendNs = nsPerCall(calls, () => writer.append(bodies, size));
    console.log(
      `append of ${String(size).padStart(4)}, fsync ${fsync.padEnd(6)}: ${(appendNs / 1000).toFixed(1).padStart(7)} µs, ` +
        `${Math.round((size / appendNs) * 1e6)
          .toLocaleString('en')
          .padStart(5)} k entries/s (a bare write of as many bytes: ${(baselineNs / 1000).toFixed(1)} µs)`,
    );
  }
  writer.close();
}
