/** What decides, and what records and carries out the decisions. */

import type { Governor } from '../core/governor.ts';
import { createLmdbAgents } from '../stores/embedded/agents.ts';
import { createLmdbBudgets } from '../stores/embedded/budgets.ts';
import type { PolicyKeeper } from '../use-cases/policies.ts';
import type { StartContext } from './start-context.ts';
import { restoreGovernor } from './start-governor.ts';
import { createPolicyKeeper } from './start-policies.ts';
import { type Recording, startRecorder } from './start-recorder.ts';
import type { Resources } from './start-resources.ts';
import type { Threads } from './start-threads.ts';

export type Decisions = {
  readonly governor: Governor;
  readonly policyKeeper: PolicyKeeper;
  readonly recording: Recording;
};

export function startDecisions(
  { config, log }: StartContext,
  { policies: { policies }, policyPath, store, onError }: Resources,
  { audit, clock, threads }: Threads,
): Decisions {
  const agents = createLmdbAgents(store);
  const budgets = createLmdbBudgets(store);
  const governor = restoreGovernor({ config, policies, agents, budgets, nowMs: clock.nowMs() });
  const recording = startRecorder({
    governor,
    audit,
    threads,
    agents,
    budgets,
    clock,
    onError,
    onAuditFailure: config.SVC_AUDIT_ON_FAILURE,
  });
  const policyKeeper = createPolicyKeeper({ path: policyPath, policies, governor, audit, clock, log, onError });
  return { governor, policyKeeper, recording };
}
