/**
 * How many checks a second can the governor decide, what does an operation in flight cost, and how long does a sweep
 * hold it up?
 */

import { STARTER_POLICY } from '../src/app/package-files.ts';
import { encodeDraft } from '../src/core/audit/audit-line.ts';
import type { OpId, SecretDigest } from '../src/core/base/ids.ts';
import { BudgetTracker } from '../src/core/budget/budget.ts';
import type { CheckCommand } from '../src/core/commands.ts';
import { Governor } from '../src/core/governor.ts';
import type { Principal } from '../src/core/identity/roles.ts';
import { TimedSlices } from '../src/limits/timed-slices.ts';
import { loadPolicies } from '../src/policy-files/policy-file.ts';
import { randomHashKey } from '../src/system/hash-key.ts';
import { isBrief } from './lib/options.ts';
import { heading, line } from './lib/report.ts';

const AGENTS = 1_000;
const OPS = isBrief ? 20_000 : 1_000_000;
const ADMIN: Principal = { subject: 'key:bench', scopes: ['admin'], orgId: null };
const NOW_MS = Date.parse('2026-11-04T12:00:00Z');

heading('The governor alone, in one thread');
const loaded = await loadPolicies(STARTER_POLICY);
if (!loaded.ok) throw new Error('the starter policy does not load');
const { policies } = loaded.value;
const governor = new Governor({
  policies,
  budgets: new BudgetTracker(policies.budget, NOW_MS),
  maxOps: 10_000_000,
  maxOrgOps: 10_000_000,
  maxAgents: 10_000_000,
  maxOrgAgents: 10_000_000,
  redact: (attributes) => attributes,
  newApprovalId: () => 'approval',
  sha256: () => 'digest',
  sweepTtlMs: 60_000,
  hashKey: randomHashKey(),
});

const agents = Array.from({ length: AGENTS }, (_, at) => {
  const agent = { orgId: `org-${at % 50}`, teamId: `team-${at % 7}`, agentId: `agent-${at}` };
  const credential = `digest-${at}`.padEnd(43, 'x') as SecretDigest;
  governor.apply<'register-agent'>(
    { type: 'register-agent', principal: ADMIN, agent, credential, parent: undefined },
    NOW_MS,
  );
  return { agent, credential };
});
// As decoded from a message: one flat string, not a concatenation that the first look-up would have to flatten.
const opIdOf = (at: number): OpId =>
  Buffer.from(`4bf92f3577b34da6${String(at).padStart(16, '0')}:00f067aa0ba902b7`).toString('latin1') as OpId;
/** Forty characters, and no two alike: what every operation keeps for itself. */
const resourceOf = (at: number): string => Buffer.from(`/workspace/${String(at).padStart(29, '0')}`).toString('latin1');
const commandOf = (at: number): CheckCommand => ({
  type: 'check',
  ...agents[at % AGENTS]!,
  principal: undefined,
  opId: opIdOf(at),
  action: 'file.read',
  resource: resourceOf(at),
  attributes: undefined,
  estimatedCostMicroUsd: 0,
  caller: undefined,
  dryRun: false,
});

const SLICE = 10_000;
const memoryBytes = (): number => {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};

for (let at = 0; at < SLICE; at += 1) governor.apply<'check'>(commandOf(OPS + at), NOW_MS); // warm
const before = memoryBytes();
let spentMs = 0;
for (let from = 0; from < OPS; from += SLICE) {
  const commands = Array.from({ length: SLICE }, (_, at) => commandOf(from + at));
  const startedMs = performance.now();
  for (const command of commands) governor.apply<'check'>(command, NOW_MS);
  spentMs += performance.now() - startedMs;
}
line('checks of new operations', (OPS / spentMs) * 1000, 'checks/s', 'goal: 500,000');
if (globalThis.gc !== undefined)
  line(
    'memory per operation in flight',
    (memoryBytes() - before) / OPS,
    'bytes',
    'goal: under 400; id and resource included',
  );

const rechecks = Array.from({ length: SLICE }, (_, at) => commandOf(at));
let bytes = 0;
const startedMs = performance.now();
for (let round = 0; round < (isBrief ? 1 : 50); round += 1) {
  for (const command of rechecks) {
    for (const effect of governor.apply<'check'>(command, NOW_MS).effects)
      if (effect.kind === 'audit') bytes += encodeDraft(effect.draft, NOW_MS).length;
  }
}
line(
  'checks of running operations, with audit line',
  (((isBrief ? 1 : 50) * SLICE) / (performance.now() - startedMs)) * 1000,
  'checks/s',
  `${Math.round(bytes / ((isBrief ? 1 : 50) * SLICE))} bytes a line`,
);

for (let at = 0; at < OPS; at += 1)
  governor.apply<'control-op'>({ type: 'control-op', principal: ADMIN, opId: opIdOf(at), trigger: 'complete' }, NOW_MS);
let longestMs = 0;
let isMore = true;
const slices = new TimedSlices({ aimMs: 3, first: 500, least: 100, most: 5_000 }, performance); // as the gateway's timer
const sweepStartedMs = performance.now();
while (isMore) {
  const sliceStartedMs = performance.now();
  isMore = slices.run((most) => governor.sweep(NOW_MS + 60_000, most));
  longestMs = Math.max(longestMs, performance.now() - sliceStartedMs);
}
line(
  `sweep of ${OPS.toLocaleString('en')} operations`,
  performance.now() - sweepStartedMs,
  'ms',
  'in slices, with checks in between',
);
line('longest slice', longestMs, 'ms', 'goal: at most 20');
