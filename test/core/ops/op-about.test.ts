import { describe, expect, test } from 'vitest';
import { BudgetTracker } from '../../../src/core/budget/budget.ts';
import type { CheckCommand, CommandOf } from '../../../src/core/commands.ts';
import type { Governor } from '../../../src/core/governor.ts';
import { noPolicyAllows } from '../../../src/core/policy/rule.ts';
import { budgetConfig } from '../../support/budgets.ts';
import {
  ADMIN,
  CRAWLER,
  checkOf,
  controlOf,
  decisionOf,
  digestOf,
  openGovernor,
  opId,
  POLICIES,
} from '../../support/governor.ts';

const OTHER_ADMIN = { ...ADMIN, subject: 'key:other' };

/** Asks people for `asked`, allows nothing under `nothing.*`, and is otherwise as the usual ones. */
const ASKING = {
  decide: (subject: CheckCommand) =>
    subject.resource === 'asked'
      ? ({
          kind: 'require_approval',
          reason: 'people decide',
          policy: 'test',
          ruleId: 'ask',
          cause: undefined,
        } as const)
      : subject.action.startsWith('nothing.')
        ? noPolicyAllows(subject)
        : POLICIES.decide(subject),
};
const open = (): Governor => openGovernor({ policies: ASKING });

const about = (governor: Governor, op = 't:s') => {
  const { reply } = governor.apply<'get-op'>({ type: 'get-op', principal: ADMIN, opId: opId(op) }, 9_000);
  if (!reply.ok) throw new Error(reply.fault.kind);
  const { action, resource, policy, ruleId, reason, estimatedMicroUsd, spentMicroUsd, approvalId, error, ended } =
    reply.value;
  return { action, resource, policy, ruleId, reason, estimatedMicroUsd, spentMicroUsd, approvalId, error, ended };
};
const check = (governor: Governor, fields: Partial<CheckCommand> = {}, op = 't:s') =>
  governor.apply<'check'>(checkOf(CRAWLER, op, fields), 1_000);
const complete = (governor: Governor, more: Pick<CommandOf<'complete-op'>, 'outcome' | 'error'>) =>
  governor.apply<'complete-op'>(
    {
      type: 'complete-op',
      agent: CRAWLER,
      credential: digestOf(CRAWLER),
      principal: undefined,
      opId: opId('t:s'),
      ...more,
    },
    2_000,
  );
const halt = (governor: Governor, actions: readonly string[], mode: 'terminate' | 'pause' = 'terminate') => {
  const halted = {
    id: 'h1',
    scope: 'org:acme',
    mode,
    actions,
    reason: 'stop',
    expiresAtMs: undefined,
  };
  governor.apply<'create-halt'>({ type: 'create-halt', principal: ADMIN, halt: halted }, 3_000);
  return governor.apply<'enforce-halt'>({ type: 'enforce-halt', id: 'h1', from: undefined, most: 100 }, 3_000);
};

describe('the subject of an operation', () => {
  test('equals the check that it began with, and the rule that decided it', () => {
    const governor = open();
    check(governor, { estimatedCostMicroUsd: 250_000 });
    expect(about(governor)).toEqual({
      action: 'tool.call',
      resource: 'web_search',
      policy: 'test',
      ruleId: 'yes',
      reason: 'allowed',
      estimatedMicroUsd: 250_000,
      spentMicroUsd: 0,
      approvalId: undefined,
      error: undefined,
      ended: undefined,
    });
    check(governor, { action: 'other', resource: 'other', estimatedCostMicroUsd: 1 });
    expect(about(governor)).toMatchObject({ action: 'tool.call', resource: 'web_search', estimatedMicroUsd: 250_000 });
    check(governor, { resource: 'forbidden' });
    expect(about(governor)).toMatchObject({ resource: 'web_search', ruleId: 'yes', ended: undefined });
  });

  test('counts what was spent once, and keeps it', () => {
    const governor = open();
    check(governor);
    for (const usageId of ['u1', 'u1', 'u2'])
      governor.apply<'record-usage'>(
        {
          type: 'record-usage',
          agent: CRAWLER,
          credential: digestOf(CRAWLER),
          principal: undefined,
          costMicroUsd: 30,
          opId: opId('t:s'),
          usageId,
        },
        1_500,
      );
    expect(about(governor).spentMicroUsd).toBe(60);
  });

  test('has no secret, and at most 256 characters, of which none is cut in two', () => {
    const governor = open();
    const secret = `svcagent_${'a1'.repeat(20)}`;
    check(governor, { resource: `https://user:hunter2@example.com/${'x'.repeat(300)}` }, 't:url');
    check(governor, { resource: `${'a'.repeat(240)} ${secret}` }, 't:late');
    check(governor, { resource: `${'a'.repeat(255)}😀b` }, 't:pair');
    expect(about(governor, 't:url').resource).toBe(`https://user:[redacted]@example.com/${'x'.repeat(220)}`);
    expect(about(governor, 't:late').resource).toBe('[redacted]');
    expect(about(governor, 't:pair').resource).toBe('a'.repeat(255));
  });

  test('says why nothing allowed it without keeping a text for every operation', () => {
    const governor = open();
    check(governor, { action: 'nothing.at_all' });
    expect(about(governor)).toMatchObject({
      policy: undefined,
      reason: 'no policy allows nothing.at_all on web_search for acme/search/crawler',
      ended: 'denied',
    });
  });

  test('takes the long errors of failed operations only until they are too many together', () => {
    const governor = openGovernor({ maxOps: 100_000, maxOrgOps: 100_000 });
    const error = 'e'.repeat(1_000);
    for (let at = 0; at <= 16_000; at += 1) {
      check(governor, {}, `t:${at}`);
      governor.apply<'control-op'>({ ...controlOf(`t:${at}`, 'complete'), outcome: 'failure', error }, 2_000);
    }
    expect(about(governor, 't:15999').error).toBe(error);
    expect(about(governor, 't:16000').error).toBe('e'.repeat(64));
  });
});

describe('how an operation ended', () => {
  test.each([
    ['success', undefined, { ended: 'completed', error: undefined }],
    ['failure', 'password=hunter2 refused', { ended: 'failed', error: 'password=[redacted] refused' }],
    [undefined, undefined, { ended: 'completed', error: undefined }],
  ] as const)('reported as %s', (outcome, error, expected) => {
    const governor = open();
    check(governor);
    complete(governor, { outcome, error });
    expect(about(governor)).toMatchObject(expected);
  });

  test('denied by a rule, and by a budget', () => {
    const governor = open();
    check(governor, { resource: 'forbidden' });
    expect(about(governor)).toMatchObject({ ended: 'denied', policy: 'test', ruleId: 'no', reason: 'forbidden' });
    const poor = openGovernor({ budgets: new BudgetTracker(budgetConfig({ daily_limit_usd: 0.000001 }), 0) });
    check(poor, { estimatedCostMicroUsd: 2 });
    expect(about(poor)).toMatchObject({ ended: 'denied', policy: undefined, reason: expect.stringContaining('daily') });
  });

  test('terminated by an operator, and halted by a halt', () => {
    const governor = open();
    check(governor);
    governor.apply<'control-op'>(controlOf('t:s', 'terminate'), 2_000);
    expect(about(governor).ended).toBe('terminated');
    check(governor, {}, 't:2');
    halt(governor, ['*']);
    expect(about(governor, 't:2').ended).toBe('halted');
  });

  test('denied by a person, cancelled, expired, or halted while it waited for people', () => {
    const governor = open();
    for (const op of ['t:deny', 't:cancel', 't:expire', 't:halt'])
      check(governor, { resource: 'asked', attributes: { op } }, op);
    const waiting = about(governor, 't:deny');
    expect(waiting).toMatchObject({ ended: undefined, ruleId: 'ask', reason: 'people decide' });
    const idOf = (op: string): string => about(governor, op).approvalId ?? expect.unreachable();
    governor.apply<'decide-approval'>(decisionOf(governor, OTHER_ADMIN, idOf('t:deny'), 'deny', 'too risky'), 2_000);
    governor.apply<'cancel-approval'>({ type: 'cancel-approval', principal: ADMIN, id: idOf('t:cancel') }, 2_000);
    expect(about(governor, 't:deny')).toMatchObject({ ended: 'denied', reason: expect.stringContaining('too risky') });
    expect(about(governor, 't:cancel')).toMatchObject({ ended: 'denied', approvalId: idOf('t:cancel') });
    halt(governor, ['tool.*']);
    expect(about(governor, 't:halt').ended).toBe('halted');
    const other = open();
    check(other, { resource: 'asked' });
    other.apply<'tick-approvals'>({ type: 'tick-approvals', most: 10 }, 1e9);
    expect(about(other)).toMatchObject({ ended: 'expired', ruleId: 'ask' });
  });

  test('is taken back, with its details, if it could not be recorded', () => {
    const governor = open();
    check(governor);
    const running = about(governor);
    const failed = complete(governor, { outcome: 'failure', error: 'broken' });
    expect(about(governor)).toMatchObject({ ended: 'failed', error: 'broken' });
    governor.rollBack([failed.undo!], [], 99, 2_000);
    expect(about(governor)).toEqual(running);
    const again = complete(governor, {});
    expect(about(governor)).toMatchObject({ ended: 'completed', error: undefined });
    governor.rollBack([again.undo!], [], 99, 2_000);
    const recheck = check(governor, { action: 'files.delete' });
    governor.rollBack([recheck.undo!], [], 99, 2_700);
    expect(halt(governor, ['files.*']).reply).toEqual({ ok: true, value: { changed: 0, next: undefined } });
  });
});

describe('a halt of some actions', () => {
  test('stops what runs for them, and nothing else', () => {
    const governor = open();
    check(governor, { action: 'tool.call' }, 't:tool');
    check(governor, { action: 'file.write' }, 't:file');
    governor.apply<'register-op'>(
      { type: 'register-op', principal: ADMIN, opId: opId('t:unchecked'), agent: CRAWLER },
      1_000,
    );
    expect(halt(governor, ['file.*']).reply).toEqual({ ok: true, value: { changed: 1, next: undefined } });
    expect(['t:tool', 't:file', 't:unchecked'].map((op) => about(governor, op).ended)).toEqual([
      undefined,
      'halted',
      undefined,
    ]);
  });

  test('stops an operation that was allowed for one of them after it began with another', () => {
    const governor = open();
    check(governor, { action: 'noop' });
    check(governor, { action: 'file.write' });
    check(governor, { action: 'noop' });
    halt(governor, ['file.*']);
    expect(about(governor)).toMatchObject({ action: 'noop', ended: 'halted' });
  });

  test('keeps what it paused from being resumed', () => {
    const governor = open();
    check(governor, { action: 'file.write' });
    halt(governor, ['file.*'], 'pause');
    expect(governor.apply<'control-op'>(controlOf('t:s', 'resume'), 4_000).reply).toMatchObject({
      ok: false,
      fault: { kind: 'halted', haltId: 'h1' },
    });
  });
});

describe('listing operations by subject', () => {
  const listed = (governor: Governor, more: Partial<CommandOf<'list-ops'>>): string[] => {
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const { reply } = governor.apply<'list-ops'>(
        { type: 'list-ops', principal: ADMIN, orgId: undefined, perPage: 2, cursor, ...more },
        9_000,
      );
      if (!reply.ok) throw new Error(reply.fault.kind);
      found.push(...reply.value.items.map((op) => op.opId));
      cursor = reply.value.next;
    } while (cursor !== undefined);
    return found;
  };

  test.each([
    ['all orgs', undefined],
    ['one org', 'acme'],
  ])('filters by %s: patterns, names and ends, together and page by page', (_which, orgId) => {
    const governor = open();
    check(governor, { action: 'tool.call', resource: 'web_search' }, 't:1');
    check(governor, { action: 'tool.call', resource: 'forbidden' }, 't:2');
    check(governor, { action: 'file.write', resource: '/tmp/notes' }, 't:3');
    check(governor, { action: 'nothing.here', resource: '/tmp/x' }, 't:4');
    governor.apply<'register-op'>({ type: 'register-op', principal: ADMIN, opId: opId('t:5'), agent: CRAWLER }, 1_000);
    governor.apply<'control-op'>({ ...controlOf('t:3', 'complete'), outcome: 'failure' }, 2_000);
    const by = (more: Partial<CommandOf<'list-ops'>>) => listed(governor, { orgId, ...more });
    expect(by({})).toEqual(['t:1', 't:2', 't:3', 't:4', 't:5']);
    expect(by({ action: '*' })).toEqual(['t:1', 't:2', 't:3', 't:4']);
    expect(by({ action: 'tool.*' })).toEqual(['t:1', 't:2']);
    expect(by({ resource: '/tmp/?' })).toEqual(['t:4']);
    expect(by({ policy: 'test', ruleId: 'yes' })).toEqual(['t:1', 't:3']);
    expect(by({ ended: 'denied' })).toEqual(['t:2', 't:4']);
    expect(by({ ended: 'failed', action: 'file.*' })).toEqual(['t:3']);
    expect(by({ state: 'running', resource: 'web_*' })).toEqual(['t:1']);
    expect(by({ policy: 'none' })).toEqual([]);
  });

  test('does not say what was left out of a text', () => {
    const governor = open();
    check(governor, { resource: `svcagent_${'a1'.repeat(20)}` });
    expect(listed(governor, { resource: '*a1a1*' })).toEqual([]);
    expect(listed(governor, { resource: '[redacted]' })).toEqual(['t:s']);
  });

  test('returns pages of bounded work', () => {
    const governor = openGovernor({ maxOps: 120_000, maxOrgOps: 120_000 });
    for (let at = 0; at < 110_000; at += 1) check(governor, {}, `t:${at}`);
    for (const orgId of [undefined, 'acme']) {
      const asked = {
        type: 'list-ops',
        principal: ADMIN,
        orgId,
        perPage: 10,
        action: 'rare',
        cursor: undefined,
      } as const;
      const first = governor.apply<'list-ops'>(asked, 9_000).reply;
      expect(first).toMatchObject({ ok: true, value: { items: [], next: expect.any(String) } });
    }
  });
});
