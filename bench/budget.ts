/**
 * What a budget costs on the hot path: 100,000 agents in 1,000 orgs, every tier capped, one operation after another by
 * agents in random order. Run: node bench/budget.ts (Node 22.18 or later), or node dist/bench/budget.js after a build.
 */
import { parseBudgetConfig } from '../src/core/budget-config.ts';
import { BudgetTracker, type BudgetHandle } from '../src/core/budget.ts';

const ORGS = 1_000;
const TEAMS_PER_ORG = 5;
const AGENTS = 100_000;
const ROUNDS = 500_000;
const NOW_MS = Date.parse('2026-11-04T12:00:00Z');

const parsed = parseBudgetConfig({
  daily_limit_usd: 1e9, monthly_limit_usd: 1e9, org_daily_limit_usd: 1e6, org_monthly_limit_usd: 1e7,
  team_daily_limit_usd: 1e6, team_monthly_limit_usd: 1e7, agent_daily_limit_usd: 1e4, agent_monthly_limit_usd: 1e5, timezone: 'Europe/Berlin',
});
if (!parsed.ok) throw new Error(parsed.fault.problem);

const memoryBytes = () => {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};
const agents = Array.from({ length: AGENTS }, (_, index) => ({ orgId: `org-${index % ORGS}`, teamId: `team-${index % TEAMS_PER_ORG}`, agentId: `agent-${index}` }));
const budget = new BudgetTracker(parsed.value, NOW_MS);
const before = memoryBytes();
const handles = agents.map((agent) => budget.handleOf(agent));
for (const handle of handles) budget.record(handle, 1, {}, NOW_MS);
for (const handle of handles) budget.record(handle, 3_000_000_000, {}, NOW_MS); // numbers too large to be stored in place
budget.drainChanges();
console.log(`memory            ${Math.round((memoryBytes() - before) / AGENTS)} bytes per agent${globalThis.gc ? '' : ' (run with --expose-gc for the exact figure)'}`);

const order = Uint32Array.from({ length: ROUNDS }, () => Math.floor(Math.random() * AGENTS));
const picked = Array.from(order, (index) => handles[index] as BudgetHandle);

function measure(name: string, each: (handle: BudgetHandle, op: number, nowMs: number) => void): void {
  let bestNs = Infinity;
  for (let run = 0; run < 4; run += 1) {
    const start = process.hrtime.bigint();
    for (let index = 0; index < ROUNDS; index += 1) each(picked[index] as BudgetHandle, index & 0xffff, NOW_MS + index / 500);
    bestNs = Math.min(bestNs, Number(process.hrtime.bigint() - start) / ROUNDS);
  }
  console.log(`${name.padEnd(17)} ${Math.round(bestNs)} ns`);
}

measure('check of cost 0', (handle, op, nowMs) => budget.reserve(handle, op, 0, nowMs));
measure('reserve + release', (handle, op, nowMs) => {
  budget.reserve(handle, op, 1_000, nowMs);
  budget.release(op);
});
// What the hot path sees in practice: some thousand operations in flight at a time.
measure('… 4,000 in flight', (handle, op, nowMs) => {
  budget.reserve(handle, op, 1_000, nowMs);
  budget.release((op - 4_000) & 0xffff);
});
measure('record', (handle, _op, nowMs) => budget.record(handle, 1, {}, nowMs));
