/** The governor as the configuration wants it, with what the embedded store kept of the last run. */

import { createHash } from 'node:crypto';
import type { Config } from '../config/config.ts';
import type { Approval } from '../core/approvals/approval.ts';
import { redactAttributes } from '../core/audit/redact.ts';
import { DEFAULT_REDACTED_KEYS, redactedKeys } from '../core/audit/redact-text.ts';
import { BudgetTracker } from '../core/budget/budget.ts';
import { BudgetGrants } from '../core/budget/grants.ts';
import { usageLimitsFor } from '../core/budget/usage.ts';
import { Governor } from '../core/governor.ts';
import type { Halt } from '../core/halts/halt.ts';
import { LimitGrants } from '../core/limits/grants.ts';
import { type LimitRow, withoutLimits } from '../core/limits/rows.ts';
import type { PolicySet } from '../core/policy/policy.ts';
import type { AgentStore, BudgetStore, DecisionStore } from '../ports/ports.ts';
import { randomHashKey } from '../system/hash-key.ts';
import { usableMemoryMib } from '../system/machine.ts';

/** An org may have a quarter of all budgets: it cannot take those of the others. */
const ORGS_WORTH = 4;

export type GovernorStart = {
  readonly config: Config;
  readonly policies: PolicySet;
  readonly agents: AgentStore;
  readonly budgets: BudgetStore;
  readonly states: Pick<DecisionStore, 'load'>;
  readonly nowMs: number;
  /** In a cluster: for how long a grant of the ledger is to last. */
  readonly sliceMs?: number | undefined;
  readonly newApprovalId: () => string;
};

export function restoreGovernor(start: GovernorStart): Governor {
  const { config, policies, agents, budgets, states, nowMs, sliceMs } = start;
  const tracker = new BudgetTracker(policies.budget, nowMs, usageLimitsFor(usableMemoryMib()), {
    ofOrg: config.SVC_MAX_ORG_BUDGETS,
    ofAll: ORGS_WORTH * config.SVC_MAX_ORG_BUDGETS,
    forRegistered: 2 * config.SVC_MAX_AGENTS, // each with its team
  });
  if (sliceMs !== undefined) tracker.useLedger(new BudgetGrants(sliceMs), policies.budget, nowMs);
  const limitRows: LimitRow[] = [];
  tracker.restore(withoutLimits(budgets.load(), limitRows), nowMs);
  const redacted = redactedKeys([...DEFAULT_REDACTED_KEYS, ...config.SVC_AUDIT_REDACT]);
  const governor = new Governor({
    policies,
    budgets: tracker,
    maxOps: config.SVC_MAX_OPS,
    maxOrgOps: config.SVC_MAX_ORG_OPS,
    maxAgents: config.SVC_MAX_AGENTS,
    maxOrgAgents: config.SVC_MAX_ORG_AGENTS,
    sweepTtlMs: config.SVC_OPS_TTL_SECS * 1000,
    hashKey: randomHashKey(),
    maxLimitStates: config.SVC_MAX_LIMIT_STATES,
    sessionTtlMs: config.SVC_SESSION_TTL_SECS * 1000,
    grants: sliceMs === undefined ? undefined : new LimitGrants(sliceMs),
    redact: (attributes) => redactAttributes(attributes, redacted),
    newApprovalId: start.newApprovalId,
    sha256: (text) => createHash('sha256').update(text).digest('hex'),
  });
  governor.limitsInForce = policies.limits;
  governor.limits.restore(limitRows);
  for (const registration of agents.load()) governor.restoreAgent(registration);
  for (const { row } of states.load('halts')) governor.restoreHalt(row as Halt);
  const approvals = [...states.load('approvals')].map(({ row }) => row as Approval);
  for (const approval of approvals.sort((one, other) => one.requestedAtMs - other.requestedAtMs))
    governor.restoreApproval(approval);
  return governor;
}
