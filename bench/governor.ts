/**
 * How many checks a second can the governor decide, what does an operation in flight cost, and how long does a sweep
 * hold it up? Two workloads: *same* asks about one action and resource, *distinct* about a resource of 40 characters of
 * its own for each operation. What ten limits that apply add to a check is measured with *same*, in turns of a slice.
 * The cost of a shadow is measured with both.
 */

import { encodeDraft } from '../src/core/audit/audit-line.ts';
import type { OpId, SecretDigest } from '../src/core/base/ids.ts';
import { BudgetTracker } from '../src/core/budget/budget.ts';
import type { CheckCommand } from '../src/core/commands.ts';
import { Governor } from '../src/core/governor.ts';
import type { Principal } from '../src/core/identity/roles.ts';
import { Shadow } from '../src/core/policy/shadow.ts';
import { TimedSlices } from '../src/fairness/timed-slices.ts';
import { randomHashKey } from '../src/system/hash-key.ts';
import { isBrief } from './lib/options.ts';

import { heading, line } from './lib/report.ts';
import { governorPolicies, limitedPolicies, policiesOf } from './policies/governor.ts';

const AGENTS = 1_000;
const OPS = isBrief ? 20_000 : 1_000_000;
const SLICE = 10_000;
const RECHECKS = isBrief ? 1 : 50;
const SHADOW_ROUNDS = isBrief ? 1 : 40;
const ADMIN: Principal = { subject: 'key:bench', scopes: ['admin'], orgId: null };
const NOW_MS = Date.parse('2026-11-04T12:00:00Z');

const agents = Array.from({ length: AGENTS }, (_, at) => ({
  agent: { orgId: `org-${at % 50}`, teamId: `team-${at % 7}`, agentId: `agent-${at}` },
  credential: `digest-${at}`.padEnd(43, 'x') as SecretDigest,
}));

function newGovernor(policies = governorPolicies()): Governor {
  const governor = new Governor({
    policies,
    budgets: new BudgetTracker(policies.budget, NOW_MS),
    maxOps: 10_000_000,
    maxOrgOps: 10_000_000,
    maxAgents: 10_000_000,
    maxOrgAgents: 10_000_000,
    maxLimitStates: 1_000_000,
    sessionTtlMs: 86_400_000,
    redact: (attributes) => attributes,
    newApprovalId: () => 'approval',
    sha256: () => 'digest',
    sweepTtlMs: 60_000,
    hashKey: randomHashKey(),
  });
  governor.limitsInForce = policies.limits;
  for (const each of agents)
    governor.apply<'register-agent'>({ type: 'register-agent', principal: ADMIN, ...each, parent: undefined }, NOW_MS);
  return governor;
}

// As decoded from a message: one flat string, not a concatenation that the first look-up would have to flatten.
const flat = (text: string): string => Buffer.from(text).toString('latin1');
const opIdOf = (at: number): OpId => flat(`4bf92f3577b34da6${String(at).padStart(16, '0')}:00f067aa0ba902b7`) as OpId;

type Workload = { readonly name: string; question(at: number): Pick<CheckCommand, 'action' | 'resource'> };
const WORKLOADS: readonly Workload[] = [
  { name: 'same', question: () => ({ action: 'tool.call', resource: 'web_search' }) },
  {
    name: 'distinct',
    question: (at) => ({ action: 'file.read', resource: flat(`/workspace/${String(at).padStart(29, '0')}`) }),
  },
];

const commandOf = ({ question }: Workload, at: number): CheckCommand => ({
  type: 'check',
  ...agents[at % AGENTS]!,
  principal: undefined,
  opId: opIdOf(at),
  ...question(at),
  attributes: undefined,
  estimatedCostMicroUsd: 0,
  caller: undefined,
  dryRun: false,
});

const memoryBytes = (): number => {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};

function measureNewOperations(governor: Governor, workload: Workload): void {
  for (let at = 0; at < SLICE; at += 1) governor.apply<'check'>(commandOf(workload, OPS + at), NOW_MS); // warm
  const before = memoryBytes();
  let spentMs = 0;
  let allowed = 0;
  for (let from = 0; from < OPS; from += SLICE) {
    const commands = Array.from({ length: SLICE }, (_, at) => commandOf(workload, from + at));
    const startedMs = performance.now();
    for (const command of commands) {
      const { reply } = governor.apply<'check'>(command, NOW_MS);
      if (reply.ok && reply.value.decision === 'allow') allowed += 1;
    }
    spentMs += performance.now() - startedMs;
  }
  if (allowed !== OPS) throw new Error(`only ${allowed} of ${OPS} checks were allowed`);
  line(`${workload.name}: checks of new operations`, (OPS / spentMs) * 1000, 'checks/s');
  if (globalThis.gc !== undefined)
    line(
      `${workload.name}: memory per operation in flight`,
      (memoryBytes() - before) / OPS,
      'bytes',
      'id and resource included',
    );
}

function measureRechecks(governor: Governor, workload: Workload): void {
  const rechecks = Array.from({ length: SLICE }, (_, at) => commandOf(workload, at));
  let bytes = 0;
  const startedMs = performance.now();
  for (let round = 0; round < RECHECKS; round += 1) {
    for (const command of rechecks) {
      for (const effect of governor.apply<'check'>(command, NOW_MS).effects)
        if (effect.kind === 'audit') bytes += encodeDraft(effect.draft, NOW_MS).length;
    }
  }
  line(
    `${workload.name}: running operations, with audit line`,
    ((RECHECKS * SLICE) / (performance.now() - startedMs)) * 1000,
    'checks/s',
    `${Math.round(bytes / (RECHECKS * SLICE))} bytes a line`,
  );
}

/** In turns, and the least of each, so that a mood of the machine meets none of them. */
function measureShadow(governor: Governor, workload: Workload): void {
  const checks = Array.from({ length: SLICE }, (_, at) => commandOf(workload, at));
  const shadows = {
    none: undefined,
    agreeing: new Shadow('agreeing', governorPolicies()),
    differing: new Shadow('differing', policiesOf([])),
  };
  const tookUs: Record<keyof typeof shadows, number[]> = { none: [], agreeing: [], differing: [] };
  for (let round = 0; round < SHADOW_ROUNDS; round += 1)
    for (const [name, shadow] of Object.entries(shadows) as [keyof typeof shadows, Shadow | undefined][]) {
      governor.shadow = shadow;
      const startedMs = performance.now();
      for (const command of checks)
        for (const effect of governor.apply<'check'>(command, NOW_MS).effects)
          if (effect.kind === 'audit') encodeDraft(effect.draft, NOW_MS);
      tookUs[name].push(((performance.now() - startedMs) * 1000) / SLICE);
    }
  governor.shadow = undefined;
  const least = (name: keyof typeof shadows): number => Math.min(...tookUs[name]);
  line(`${workload.name}: a check takes longer with a shadow that agrees`, least('agreeing') - least('none'), 'µs');
  line(
    `${workload.name}: a check takes longer with a shadow that differs`,
    least('differing') - least('none'),
    'µs',
    'goal: at most 2; audit line included',
  );
}

function measureSweep(governor: Governor): void {
  for (let at = 0; at < OPS; at += 1)
    governor.apply<'control-op'>(
      { type: 'control-op', principal: ADMIN, opId: opIdOf(at), trigger: 'complete' },
      NOW_MS,
    );
  const slices = new TimedSlices({ aimMs: 3, first: 500, least: 100, most: 5_000 }, performance); // as the gateway's timer
  let longestMs = 0;
  let isMore = true;
  const startedMs = performance.now();
  while (isMore) {
    const sliceStartedMs = performance.now();
    isMore = slices.run((most) => governor.sweep(NOW_MS + 60_000, most));
    longestMs = Math.max(longestMs, performance.now() - sliceStartedMs);
  }
  line(
    `sweep of ${OPS.toLocaleString('en')} operations`,
    performance.now() - startedMs,
    'ms',
    'in slices, with checks in between',
  );
  line('longest slice', longestMs, 'ms', 'goal: at most 20');
}

/** In turns and by processor time, since the machine does other things. The quickest slices count. */
function measureLimits(): void {
  const [workload] = WORKLOADS;
  const governors = [newGovernor(), newGovernor(limitedPolicies())];
  const best = [Infinity, Infinity];
  for (let from = 0; from < 20 * SLICE; from += SLICE) {
    for (const [nth, governor] of governors.entries()) {
      const commands = Array.from({ length: SLICE }, (_, at) => commandOf(workload!, from + at));
      const before = process.cpuUsage();
      for (const command of commands) governor.apply<'check'>(command, NOW_MS + from);
      best[nth] = Math.min(best[nth]!, process.cpuUsage(before).user / 1_000);
      if (from % (5 * SLICE) === 0) governor.limits.drainChanges(); // as it is when a store saves them
    }
  }
  const addedUs = ((best[1]! - best[0]!) / SLICE) * 1_000;
  line('same: what ten limits add to a check', addedUs, 'µs', 'goal: at most 1.5');
}

heading('The governor alone, in one thread');
for (const [at, workload] of WORKLOADS.entries()) {
  const governor = newGovernor();
  measureNewOperations(governor, workload);
  measureRechecks(governor, workload);
  measureShadow(governor, workload);
  if (at === WORKLOADS.length - 1) measureSweep(governor);
}
measureLimits();
