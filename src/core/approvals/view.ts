import { microToUsd } from '../base/money.ts';
import { rfc3339 } from '../base/time.ts';
import type { Approval, LimitQuestion } from './approval.ts';

const limitView = ({ policy, id, per, key, unit, used, max }: LimitQuestion) => ({
  policy,
  id,
  per,
  key,
  unit,
  used,
  max,
});

/** An approval as the API and webhooks show it. */
export const approvalView = (approval: Approval) => ({
  id: approval.id,
  kind: approval.limit === undefined ? 'action' : 'limit',
  state: approval.state,
  digest: approval.digest,
  agent: {
    org_id: approval.agent.orgId,
    team_id: approval.agent.teamId,
    agent_id: approval.agent.agentId,
  },
  op_id: approval.opIds[0] ?? null,
  op_ids: approval.opIds,
  action: approval.action,
  resource: approval.resource,
  attributes: approval.attributes,
  estimated_cost_usd: microToUsd(approval.estimatedCostMicroUsd),
  policy: approval.policy,
  rule_id: approval.ruleId,
  reason: approval.ruleReason,
  limit: approval.limit === undefined ? null : limitView(approval.limit),
  step: approval.limit?.step ?? null,
  requested_by: approval.requesters,
  requested_at: rfc3339(approval.requestedAtMs),
  expires_at: rfc3339(approval.expiresAtMs),
  frozen_at: approval.frozenAtMs === undefined ? null : rfc3339(approval.frozenAtMs),
  min: approval.terms.min,
  approvers: approval.terms.approvers,
  valid_secs: approval.terms.validMs === undefined ? null : approval.terms.validMs / 1000,
  decisions: approval.decisions.map(({ kind, by, reason, atMs }) => ({
    decision: kind,
    by,
    reason,
    at: rfc3339(atMs),
  })),
  used_by: approval.usedBy,
  cancel_reason: approval.cancelReason ?? null,
  changed_at: rfc3339(approval.changedAtMs),
});
