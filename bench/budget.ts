/**
 * Measures the cost of a budget on the hot path. With every tier capped, one operation after another by agents in
 * random order: first the tracker alone, then its share of a whole check in the governor.
 */

import type { OpId, SecretDigest } from '../src/core/base/ids.ts';
import { ok } from '../src/core/base/result.ts';
import { BudgetTracker } from '../src/core/budget/budget.ts';
import { parseBudgetConfig } from '../src/core/budget/config.ts';
import type { BudgetHandle } from '../src/core/budget/envelope.ts';
import type { CheckCommand } from '../src/core/commands.ts';
import { Governor } from '../src/core/governor.ts';
import { randomHashKey } from '../src/system/hash-key.ts';
import { isBrief } from './lib/options.ts';
import { heading, line } from './lib/report.ts';

const ORGS = 1_000;
const TEAMS_PER_ORG = 5;
const AGENTS = isBrief ? 5_000 : 100_000;
const ROUNDS = isBrief ? 20_000 : 500_000;
const NOW_MS = Date.parse('2026-11-04T12:00:00Z');

const parsed = parseBudgetConfig({
  daily_limit_usd: 1e9,
  monthly_limit_usd: 1e9,
  org_daily_limit_usd: 1e6,
  org_monthly_limit_usd: 1e7,
  team_daily_limit_usd: 1e6,
  team_monthly_limit_usd: 1e7,
  agent_daily_limit_usd: 1e4,
  agent_monthly_limit_usd: 1e5,
  timezone: 'Europe/Berlin',
});
if (!parsed.ok) throw new Error(parsed.fault[0]?.problem);

heading(`Budgets of ${AGENTS.toLocaleString('en')} agents in ${ORGS.toLocaleString('en')} orgs, every tier capped`);
const memoryBytes = () => {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};
const agents = Array.from({ length: AGENTS }, (_, index) => ({
  orgId: `org-${index % ORGS}`,
  teamId: `team-${index % TEAMS_PER_ORG}`,
  agentId: `agent-${index}`,
}));
const budget = new BudgetTracker(parsed.value, NOW_MS);
const before = memoryBytes();
const handles = agents.map((agent) => budget.handleOf(agent, true)!);
for (const handle of handles) budget.record(handle, 1, {}, NOW_MS);
// numbers too large to be stored in place
for (const handle of handles) budget.record(handle, 3_000_000_000, {}, NOW_MS);
budget.drainChanges();
line(
  'memory of an agent',
  (memoryBytes() - before) / AGENTS,
  'bytes',
  globalThis.gc === undefined ? 'run with --expose-gc for the exact figure' : '',
);

const order = Uint32Array.from({ length: ROUNDS }, () => Math.floor(Math.random() * AGENTS));
const picked = Array.from(order, (index) => handles[index] as BudgetHandle);

function measure(name: string, each: (handle: BudgetHandle, op: number, nowMs: number) => void): void {
  let bestNs = Infinity;
  for (let run = 0; run < 3; run += 1) {
    const start = process.hrtime.bigint();
    for (let index = 0; index < ROUNDS; index += 1)
      each(picked[index] as BudgetHandle, index & 0xffff, NOW_MS + index / 500);
    bestNs = Math.min(bestNs, Number(process.hrtime.bigint() - start) / ROUNDS);
  }
  line(name, bestNs, 'ns');
}

measure('reserve nothing', (handle, op, nowMs) => budget.reserve(handle, op, 0, nowMs));
measure('reserve and release', (handle, op, nowMs) => {
  budget.reserve(handle, op, 1_000, nowMs);
  budget.release(op);
});
// The hot path in practice: some thousand operations in flight at a time.
measure('reserve and release, 4,000 in flight', (handle, op, nowMs) => {
  budget.reserve(handle, op, 1_000, nowMs);
  budget.release((op - 4_000) & 0xffff);
});
measure('record a cost', (handle, _op, nowMs) => budget.record(handle, 1, {}, nowMs));

/** Takes every reservation and counts nothing: what is left is the governor without budgets. */
class NoBudget extends BudgetTracker {
  override reserve() {
    return ok(undefined);
  }
  override release() {
    return false;
  }
}

function governorWith(budgets: BudgetTracker): Governor {
  const decision = {
    kind: 'allow',
    reason: 'allowed',
    policy: undefined,
    ruleId: undefined,
    cause: undefined,
  } as const;
  const governor = new Governor({
    policies: { decide: () => decision },
    budgets,
    maxOps: 10_000_000,
    maxOrgOps: 10_000_000,
    maxAgents: 10_000_000,
    maxOrgAgents: 10_000_000,
    maxLimitStates: 1_000_000,
    sessionTtlMs: 86_400_000,
    redact: (attributes) => attributes,
    newApprovalId: () => 'approval',
    sha256: () => 'digest',
    sweepTtlMs: 0,
    hashKey: randomHashKey(),
  });
  for (const [index, identity] of agents.entries())
    governor.restoreAgent({ identity, credential: credentialOf(index), registeredAtMs: NOW_MS, parent: undefined });
  return governor;
}
const credentialOf = (index: number) => `digest-${index}`.padEnd(43, 'x') as SecretDigest;

/** Check, complete and sweep of operations that are all new; nanoseconds for each. */
function checksTakeNs(governor: Governor, run: number): number {
  const commands = Array.from({ length: 40_000 }, (_, index): CheckCommand => {
    const agent = order[index]!;
    return {
      type: 'check',
      agent: agents[agent]!,
      credential: credentialOf(agent),
      principal: undefined,
      caller: undefined,
      dryRun: false,
      opId: `4bf92f3577b34da6a3ce929d0e0e47${run}:${index.toString(16).padStart(16, '0')}` as OpId,
      action: 'llm.call',
      resource: 'model',
      attributes: undefined,
      estimatedCostMicroUsd: 1_000,
    };
  });
  const start = process.hrtime.bigint();
  for (const [index, command] of commands.entries()) {
    governor.apply(command, NOW_MS);
    governor.apply(
      {
        type: 'complete-op',
        agent: command.agent,
        credential: command.credential,
        principal: undefined,
        opId: command.opId,
      },
      NOW_MS,
    );
    if (index % 1_000 === 0) governor.sweep(NOW_MS);
  }
  return Number(process.hrtime.bigint() - start) / commands.length;
}

const withBudget = governorWith(new BudgetTracker(parsed.value, NOW_MS));
const without = governorWith(new NoBudget(undefined, NOW_MS));
let [bestWith, bestWithout] = [Infinity, Infinity];
for (let run = 0; run < 5; run += 1) {
  bestWithout = Math.min(bestWithout, checksTakeNs(without, run));
  bestWith = Math.min(bestWith, checksTakeNs(withBudget, run));
}
line('check and complete, without budgets', bestWithout, 'ns');
line('check and complete, with a reservation', bestWith, 'ns');
line('rate with / without budgets', bestWithout / bestWith, '×');
