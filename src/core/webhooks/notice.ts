/** Webhook events, made from the governor's decisions (docs/spec.md, Webhooks). */

import { claimOf } from '../agents/identify.ts';
import type { Approval } from '../approvals/approval.ts';
import { approvalView } from '../approvals/view.ts';
import type { AuditDraft } from '../audit/audit.ts';
import { redactText } from '../audit/redact-text.ts';
import { microToUsd } from '../base/money.ts';
import { rfc3339 } from '../base/time.ts';
import type { Period } from '../budget/config.ts';
import type { BudgetAlert } from '../budget/envelope.ts';
import type { Effect } from '../effects.ts';
import { type Halt, orgOfScope, parseHaltScope } from '../halts/halt.ts';
import { haltView } from '../halts/view.ts';
import type { Notice } from './webhook.ts';

/** In characters of JSON: whatever attributes an agent sends, a call stays small. */
const MAX_ATTRIBUTES = 16_384;

export type ReportedEffect = Extract<
  Effect,
  { readonly kind: 'approval-changed' | 'halt-changed' | 'budget-alert' | 'violation' }
>;

/** Undefined where nobody is notified of the change. */
export function noticeOf(effect: ReportedEffect, resetsAtMs: (period: Period) => number): Notice | undefined {
  switch (effect.kind) {
    case 'approval-changed':
      return approvalNotice(effect.approval);
    case 'halt-changed':
      return haltNotice(effect.halt);
    case 'budget-alert':
      return alertNotice(effect.alert, resetsAtMs(effect.alert.period));
    default: {
      const { agent, reason, action, claimed } = effect;
      const data = { ...wireAgent(agent), reason, action: redactText(action), ...claimOf(claimed) };
      return { type: 'violation', org: { id: orgOrNull(agent.orgId) }, data };
    }
  }
}

/** A check that a cap denied; undefined for any other entry, and for a rehearsal. */
export function exceededNotice({ eventType, lineage, payload = {} }: AuditDraft): Notice | undefined {
  if (eventType !== 'BudgetLimitExceeded' || payload.dry_run === true) return undefined;
  const { tier, period, spent_usd, limit_usd, resets_at } = payload;
  const orgId = tier === 'global' ? null : orgOrNull(lineage.orgId);
  const data = {
    tier,
    org_id: orgId,
    team_id: tier === 'team' || tier === 'agent' ? lineage.teamId : null,
    agent_id: tier === 'agent' ? lineage.agentId : null,
    period,
    spent_usd,
    limit_usd,
    resets_at,
  };
  return { type: 'budget.exceeded', org: { id: orgId }, data };
}

/** Which cap it is, in which period: two notices of the same say the same. */
export const capOf = ({ tier, org_id, team_id, agent_id, period, resets_at }: Notice['data']): string =>
  JSON.stringify([tier, org_id, team_id, agent_id, period, resets_at]);

function approvalNotice(approval: Approval): Notice | undefined {
  const type = typeOf(approval);
  if (type === undefined) return undefined;
  const data = approvalView(approval);
  const isLarge = (JSON.stringify(data.attributes) ?? '').length > MAX_ATTRIBUTES;
  return {
    type,
    org: { id: orgOrNull(approval.agent.orgId) },
    data: isLarge ? { ...data, attributes: null, attributes_omitted: true } : data,
  };
}

function typeOf({ state, decisions }: Approval): Notice['type'] | undefined {
  switch (state) {
    case 'pending':
      return decisions.length === 0 ? 'approval.requested' : undefined;
    case 'approved':
    case 'denied':
      return 'approval.decided';
    case 'expired':
      return 'approval.expired';
    default:
      return undefined;
  }
}

/** A global halt stops everybody's agents, so everybody is notified. */
function haltNotice(halt: Halt): Notice {
  const scope = parseHaltScope(halt.scope);
  const id = scope === undefined ? null : orgOfScope(scope);
  return {
    type: halt.released === undefined ? 'halt.created' : 'halt.released',
    org: scope?.tier === 'global' ? 'every' : { id: orgOrNull(id) },
    data: haltView(halt),
  };
}

function alertNotice(alert: BudgetAlert, resetsAtMs: number): Notice {
  const { tier, orgId, teamId, agentId, period, percent, spentMicroUsd, limitMicroUsd } = alert;
  const org = orgOrNull(orgId);
  return {
    type: percent === 100 ? 'budget.exceeded' : 'budget.threshold',
    org: { id: org },
    data: {
      tier,
      org_id: org,
      team_id: teamId,
      agent_id: agentId,
      period,
      percent,
      spent_usd: microToUsd(spentMicroUsd),
      limit_usd: microToUsd(limitMicroUsd),
      resets_at: rfc3339(resetsAtMs),
    },
  };
}

const wireAgent = ({ orgId, teamId, agentId }: Approval['agent']) => ({
  org_id: orgOrNull(orgId),
  team_id: teamId,
  agent_id: agentId,
});

const orgOrNull = (orgId: string | null): string | null => (orgId === '' ? null : orgId);
