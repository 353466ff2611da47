/** A governor for tests: policies that a test can read at a glance, no caps, and a clock that is an argument. */

import { createHash } from 'node:crypto';
import { type AgentIdentity, agentKeyOf, type OpId, type SecretDigest } from '../../src/core/base/ids.ts';
import { BudgetTracker } from '../../src/core/budget/budget.ts';
import type { CheckCommand, CommandOf } from '../../src/core/commands.ts';
import type { Effect } from '../../src/core/effects.ts';
import { Governor, type GovernorOptions } from '../../src/core/governor.ts';
import type { Principal } from '../../src/core/identity/roles.ts';
import { HASH_KEY_LENGTH } from '../../src/core/ops/op-index.ts';
import type { Signal } from '../../src/core/ops/op-view.ts';
import type { OpSlot } from '../../src/core/ops/ops.ts';

export const ADMIN: Principal = { subject: 'key:admin', scopes: ['admin'], orgId: null };
export const CRAWLER: AgentIdentity = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
export const SIBLING: AgentIdentity = { orgId: 'acme', teamId: 'search', agentId: 'sibling' };
export const STRANGER: AgentIdentity = { orgId: 'globex', teamId: 'search', agentId: 'crawler' };

/** The digest that stands for the agent's secret. */
export const digestOf = (agent: AgentIdentity): SecretDigest => `digest-of-${agentKeyOf(agent)}` as SecretDigest;

/** Any numbers will do. */
export const HASH_KEY = Int32Array.from({ length: HASH_KEY_LENGTH }, (_, at) => Math.imul(at + 1, 0x9e37_79b1));

/** Allows every resource but `forbidden`. */
export const POLICIES = {
  decide: ({ resource }: { readonly resource: string }) =>
    resource === 'forbidden'
      ? ({ kind: 'deny', reason: 'forbidden', policy: 'test', ruleId: 'no', cause: 'rule' } as const)
      : ({ kind: 'allow', reason: 'allowed', policy: 'test', ruleId: 'yes', cause: undefined } as const),
};

let lastId = 0;
function nextId(): string {
  lastId += 1;
  return `approval-${lastId}`;
}

type Given = Partial<Omit<GovernorOptions, 'hashKey'>> & { readonly agents?: readonly AgentIdentity[] };

export function openGovernor({ agents = [CRAWLER, SIBLING, STRANGER], ...given }: Given = {}): Governor {
  const governor = new Governor({
    policies: POLICIES,
    budgets: new BudgetTracker(undefined, 0),
    maxOps: 1_000,
    maxOrgOps: 1_000,
    maxAgents: 1_000,
    maxOrgAgents: 1_000,
    maxLimitStates: 1_000_000,
    sessionTtlMs: 86_400_000,
    redact: (attributes) => attributes,
    newApprovalId: nextId,
    sha256: (text) => createHash('sha256').update(text).digest('hex'),
    sweepTtlMs: 60_000,
    hashKey: HASH_KEY,
    ...given,
  });
  for (const agent of agents)
    governor.apply<'register-agent'>(
      { type: 'register-agent', principal: ADMIN, agent, credential: digestOf(agent), parent: undefined },
      0,
    );
  return governor;
}

export const opId = (text: string): OpId => text as OpId;

export const checkOf = (agent: AgentIdentity, op: string, fields: Partial<CheckCommand> = {}): CheckCommand => ({
  type: 'check',
  agent,
  credential: digestOf(agent),
  principal: undefined,
  opId: opId(op),
  action: 'tool.call',
  resource: 'web_search',
  attributes: undefined,
  estimatedCostMicroUsd: 0,
  caller: undefined,
  dryRun: false,
  ...fields,
});

export const controlOf = (
  op: string,
  trigger: CommandOf<'control-op'>['trigger'],
  principal: Principal = ADMIN,
): CommandOf<'control-op'> => ({ type: 'control-op', principal, opId: opId(op), trigger });

/** The signal of the crawler's operation that was the `number`th to begin. */
export const signalOf = (op: string, number: number, signal: Signal): Extract<Effect, { readonly kind: 'signal' }> => ({
  kind: 'signal',
  agent: agentKeyOf(CRAWLER),
  opId: opId(op),
  slot: (number - 1) as OpSlot,
  number,
  signal,
});

export const completionOf = (agent: AgentIdentity, op: string): CommandOf<'complete-op'> => ({
  type: 'complete-op',
  agent,
  credential: digestOf(agent),
  principal: undefined,
  opId: opId(op),
});

/** A decision by a credential that no other made, as are those that asked or have decided already. */
export function decisionOf(
  governor: Governor,
  principal: Principal,
  id: string,
  kind: 'approve' | 'deny' = 'approve',
  reason = 'r',
): CommandOf<'decide-approval'> {
  const { requesters = [], decisions = [] } = governor.approvals.get(id) ?? {};
  const subjects = [...requesters, ...decisions.map(({ by }) => by)];
  return {
    type: 'decide-approval',
    principal,
    id,
    kind,
    reason,
    lineage: [{ subject: principal.subject, names: [], isValid: true, isFirst: false }],
    people: Object.fromEntries(subjects.map((subject) => [subject, subject])),
  };
}
