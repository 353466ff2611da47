import { describe, expect, test } from 'vitest';
import type { AuditEntry, Budget } from '../src/base/api-types.ts';
import { alertsOf, type Sources } from '../src/standing/alert.ts';

const NOTHING: Sources = {
  violations: [],
  halts: [],
  budgets: [],
  limits: [],
  reloadError: undefined,
  readiness: undefined,
};

const violation = (id: number, victim = 'billing-2'): AuditEntry => ({
  id,
  timestamp: `2026-03-01T12:00:0${id}.000Z`,
  event_type: 'A2AImpersonationAttempted',
  lineage: { org_id: 'globex', team_id: 'support', agent_id: 'thief' },
  op_id: null,
  decision: 'deny',
  reason: 'the token is not its own',
  policy: null,
  rule_id: null,
  actor: 'agent:globex/support/thief',
  payload: { action: 'payment.refund', claimed_org_id: 'acme', claimed_team_id: 'billing', claimed_agent_id: victim },
  prev_hash: '',
  hash: '',
});

const budget = (spent: number, limit: number | null): Budget => ({
  tier: 'org',
  org_id: 'acme',
  team_id: null,
  agent_id: null,
  daily: { spent_usd: spent, limit_usd: limit, period_start: '2026-03-01T00:00:00Z', reset: '2026-03-02T00:00:00Z' },
  monthly: { spent_usd: spent, limit_usd: null, period_start: '2026-03-01T00:00:00Z', reset: '2026-04-01T00:00:00Z' },
  reserved_usd: 0,
});

describe('alerts', () => {
  test('name culprit and victim of an impersonation, and lead to the entry', () => {
    const [alert] = alertsOf({ ...NOTHING, violations: [violation(7)] });
    expect(alert).toMatchObject({
      id: 'violation  7',
      kind: 'violation',
      severity: 'critical',
      agent: { org_id: 'globex', team_id: 'support', agent_id: 'thief' },
      victim: { org_id: 'acme', team_id: 'billing', agent_id: 'billing-2' },
      href: '/audit?event_type=A2AImpersonationAttempted&since=2026-03-01T12%3A00%3A07.000Z&until=2026-03-01T12%3A00%3A07.001Z&entry=7',
    });
  });

  test('are one for all attempts at one victim, and new again with each', () => {
    const alerts = alertsOf({ ...NOTHING, violations: [violation(3), violation(2), violation(1, 'other')] });
    expect(alerts.map(({ id, times }) => [id, times])).toEqual([
      ['violation  3', 2],
      ['violation  1', 1],
    ]);
  });

  test('come of budgets at 80 and at 100 percent, which are two', () => {
    const ofBudget = (spent: number, limit: number | null) =>
      alertsOf({ ...NOTHING, budgets: [budget(spent, limit)] }).map(({ id, severity }) => [id, severity]);
    expect(ofBudget(7.9, 10)).toEqual([]);
    expect(ofBudget(8, 10)).toEqual([['budget org acme daily 2026-03-02T00:00:00Z 80', 'warning']]);
    expect(ofBudget(10, 10)).toEqual([['budget org acme daily 2026-03-02T00:00:00Z 100', 'critical']]);
    expect(ofBudget(1_000, null)).toEqual([]);
  });

  test('come of a failed reload, with file and line, and of an unwritable audit log', () => {
    const alerts = alertsOf({
      ...NOTHING,
      reloadError: { at: '2026-03-01T12:00:00Z', reason: '1 problem', problems: ['a.yaml:3:5: no such key'] },
      readiness: { status: 'degraded', audit: 'unwritable', database: 'reachable' },
    });
    expect(alerts.map(({ kind, detail }) => [kind, detail])).toEqual([
      ['audit', 'Checks are answered but not recorded.'],
      ['policy', 'a.yaml:3:5: no such key. The previous set stays in force.'],
    ]);
  });
});
