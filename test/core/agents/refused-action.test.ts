import { describe, expect, test } from 'vitest';
import type { RefuseCommand } from '../../../src/core/commands.ts';
import { ADMIN, CRAWLER, digestOf, openGovernor, SIBLING } from '../../support/governor.ts';

const refuse = (fields: Partial<RefuseCommand> = {}) =>
  openGovernor().apply<'refuse-action'>(
    {
      type: 'refuse-action',
      agent: CRAWLER,
      credential: digestOf(CRAWLER),
      principal: undefined,
      action: 'read',
      resource: 'record-1',
      reason: 'resource.type: is required',
      ...fields,
    },
    1,
  );
const KEY = { credential: undefined, principal: ADMIN } as const;
const entriesOf = ({ effects }: ReturnType<typeof refuse>) =>
  effects.flatMap((effect) => (effect.kind === 'audit' ? [effect.draft] : []));

describe('an action that is refused before it becomes a check', () => {
  test('is recorded under the agent', () => {
    expect(entriesOf(refuse())).toEqual([
      {
        eventType: 'ActionDenied',
        lineage: CRAWLER,
        actor: 'agent:acme/search/crawler',
        decision: 'deny',
        reason: 'resource.type: is required',
        payload: { action: 'read', resource: 'record-1' },
      },
    ]);
  });

  test('is recorded under the key that named no agent', () => {
    expect(entriesOf(refuse({ ...KEY, agent: undefined }))).toMatchObject([
      { actor: 'key:admin', lineage: { orgId: null, teamId: null, agentId: null } },
    ]);
    expect(entriesOf(refuse(KEY))).toMatchObject([{ actor: 'key:admin', lineage: CRAWLER }]);
  });

  test("counts as impersonation with another's token, whatever else is wrong", () => {
    const refused = refuse({ credential: digestOf(SIBLING) });
    expect(refused.reply).toEqual({
      ok: true,
      value: { reason: 'the credential token is registered to a different agent' },
    });
    expect(entriesOf(refused)).toMatchObject([{ eventType: 'A2AImpersonationAttempted', lineage: SIBLING }]);
  });

  test('counts as impersonation with a key of another org', () => {
    const principal = { ...ADMIN, orgId: 'globex' };
    expect(entriesOf(refuse({ credential: undefined, principal }))).toMatchObject([
      { eventType: 'A2AImpersonationAttempted', lineage: { orgId: 'globex' }, payload: { claimed_org_id: 'acme' } },
    ]);
  });

  test('leaves no record of strangers, and none that is long or secret', () => {
    expect(refuse({ credential: undefined }).effects).toEqual([]);
    const [entry] = entriesOf(refuse({ action: 'x'.repeat(5_000), resource: `svcagent_${'a'.repeat(43)}` }));
    expect(entry?.payload).toEqual({ action: 'x'.repeat(256), resource: '[redacted]' });
  });
});
