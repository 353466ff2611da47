import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AuditEntry } from '../../../src/core/audit/audit.ts';
import { redactAttributes } from '../../../src/core/audit/redact.ts';
import { DEFAULT_REDACTED_KEYS, redactedKeys } from '../../../src/core/audit/redact-text.ts';
import type { CheckCommand } from '../../../src/core/commands.ts';
import type { PolicySet } from '../../../src/core/policy/policy.ts';
import { Replay } from '../../../src/core/policy/replay.ts';
import { CRAWLER, checkOf, openGovernor } from '../../support/governor.ts';
import { runs } from '../../support/runs.ts';
import { policiesOf } from './harness.ts';

const SET = policiesOf({
  name: 'p',
  scope: 'global',
  rules: [
    { id: 'reads', effect: 'allow', actions: ['file.read'], resources: ['/srv/*'] },
    { id: 'small', effect: 'allow', actions: ['tool.call'], when: 'attributes.size < 5.0' },
    { id: 'cheap', effect: 'allow', actions: ['llm.call'], when: 'estimated_cost_usd < 0.7' },
    { id: 'no-etc', effect: 'deny', resources: ['/etc/*'] },
    { id: 'asked', effect: 'require_approval', actions: ['mail.send'], when: 'attributes.size < 5.0' },
  ],
});

const governorOf = (policies: PolicySet) =>
  openGovernor({
    policies,
    redact: (attributes) => redactAttributes(attributes, redactedKeys(DEFAULT_REDACTED_KEYS)),
  });

/** As the audit log has it, through JSON. */
function recorded(policies: PolicySet, command: CheckCommand, id = 1, governor = governorOf(policies)): AuditEntry {
  const { effects } = governor.apply<'check'>(command, 10);
  const [draft] = effects.flatMap((effect) => (effect.kind === 'audit' ? [effect.draft] : []));
  if (draft === undefined) throw new Error('not recorded');
  const { lineage, eventType, opId, policy, ruleId, ...rest } = draft;
  return JSON.parse(
    JSON.stringify({
      ...{ id, event_type: eventType, op_id: opId, policy: policy ?? null, rule_id: ruleId ?? null, cause: null },
      lineage: { org_id: lineage.orgId, team_id: lineage.teamId, agent_id: lineage.agentId },
      ...rest,
    }),
  ) as AuditEntry;
}

function replayed(policies: PolicySet, ...entries: readonly AuditEntry[]) {
  const replay = new Replay(policies);
  for (const entry of entries) replay.add(entry);
  return replay.result();
}

describe('replay', () => {
  test('decides each check the same by the set that decided it', () => {
    const command = fc.record({
      action: fc.constantFrom('file.read', 'tool.call', 'llm.call', 'mail.send', 'other'),
      resource: fc.constantFrom('/srv/x', '/etc/x', '', 'ä€😀', 'a "quoted" \\ one'),
      attributes: fc.option(
        fc.record({ size: fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.string()) }),
        { nil: undefined },
      ),
      estimatedCostMicroUsd: fc.oneof(fc.constantFrom(0, 699_999, 700_000, 700_001), fc.nat(1e12)),
      caller: fc.option(fc.constant({ orgId: '', teamId: 't', agentId: 'a' }), { nil: undefined }),
      dryRun: fc.boolean(),
    });
    const governor = governorOf(SET); // to open one takes longer than to decide hundreds of checks
    let made = 0;
    fc.assert(
      fc.property(command, (fields) => {
        fc.pre(!(fields.dryRun && fields.action === 'mail.send')); // a dry run asks nobody, and is not recorded then
        const check = checkOf(CRAWLER, `t:${(made += 1)}`, fields);
        const { checks, same } = replayed(SET, recorded(SET, check, 1, governor));
        expect({ checks, same }).toEqual({ checks: 1, same: 1 });
      }),
      { numRuns: runs(300) },
    );
  });

  test('says what another set decides otherwise, once for what is alike', () => {
    const entry = recorded(SET, checkOf(CRAWLER, 't:1', { action: 'file.read', resource: '/srv/x' }), 7);
    expect(replayed(policiesOf({ name: 'q', scope: 'global', rules: [] }), entry, { ...entry, id: 8 })).toEqual({
      ...{ checks: 2, same: 0, changed: 2, skipped: {} },
      changes: [
        {
          ...{ from: 'allow', to: 'deny', policy: 'p', ruleId: 'reads', action: 'file.read', resource: '/srv/x' },
          lineage: { org_id: 'acme', team_id: 'search', agent_id: 'crawler' },
          ...{ count: 2, auditId: 7 },
        },
      ],
    });
  });

  test('decides again what was left to people, unless an older release recorded it', () => {
    const entry = recorded(SET, checkOf(CRAWLER, 't:1', { action: 'mail.send', attributes: { size: 3 } }), 7);
    expect(entry).toMatchObject({ event_type: 'ApprovalRequested', payload: { attributes: { size: 3 } } });
    const { attributes: _, ...payload } = entry.payload;
    const allows = policiesOf({ name: 'q', scope: 'global', rules: [{ id: 'all', effect: 'allow' }] });
    expect(replayed(allows, entry, { ...entry, payload })).toMatchObject({
      ...{ checks: 2, same: 0, changed: 1, skipped: { approval: 1 } },
      changes: [{ from: 'pending', to: 'allow', policy: 'q', ruleId: 'all', action: 'mail.send', auditId: 7 }],
    });
  });

  test('counts by reason what cannot be decided again', () => {
    const entry = (fields: Partial<CheckCommand>) => recorded(SET, checkOf(CRAWLER, 't:1', fields));
    const { skipped, checks } = replayed(
      SET,
      entry({ attributes: { password: 'hunter2' } }),
      entry({ attributes: { text: 'x'.repeat(5_000) } }),
      entry({ credential: undefined }),
      { ...entry({}), cause: 'halt' },
      { ...entry({}), cause: 'operation_state' },
      { ...entry({}), event_type: 'BudgetLimitExceeded', cause: 'budget' },
      { ...entry({}), payload: { action: 'a', approval_id: 'x' } },
      { ...entry({}), event_type: 'OpCompleted' },
    );
    expect({ skipped, checks }).toEqual({
      skipped: { redacted: 1, cut: 1, unidentified: 1, halt: 1, operation_state: 1, budget: 1, approval: 1 },
      checks: 7,
    });
  });
});
