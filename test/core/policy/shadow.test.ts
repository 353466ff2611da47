import { describe, expect, test } from 'vitest';
import { BudgetTracker } from '../../../src/core/budget/budget.ts';
import { parseBudgetConfig } from '../../../src/core/budget/config.ts';
import type { CheckCommand } from '../../../src/core/commands.ts';
import type { Governor } from '../../../src/core/governor.ts';
import { addedCounts, Shadow } from '../../../src/core/policy/shadow.ts';
import { ADMIN, CRAWLER, checkOf, openGovernor } from '../../support/governor.ts';
import { policiesOf } from './harness.ts';

const IN_FORCE = policiesOf({
  name: 'now',
  scope: 'global',
  rules: [
    { id: 'all', effect: 'allow' },
    { id: 'no-etc', effect: 'deny', resources: ['/etc/*'] },
  ],
});
const NEXT = policiesOf({
  name: 'next',
  scope: 'global',
  rules: [
    { id: 'web', effect: 'allow', resources: ['web_*'] },
    { id: 'ask', effect: 'require_approval', resources: ['mail'] },
    { id: 'small', effect: 'deny', resources: ['web_big'], when: 'attributes.size > 5' },
  ],
});

let op = 0;
function ask(governor: Governor, fields: Partial<CheckCommand>, nowMs = 10) {
  const { reply, effects } = governor.apply<'check'>(checkOf(CRAWLER, `t:${(op += 1)}`, fields), nowMs);
  const entry = effects.flatMap((effect) => (effect.kind === 'audit' ? [effect.draft] : []))[0];
  return { decision: reply.ok && reply.value.decision, reply, shadow: entry?.payload?.shadow };
}

function shadowed(shadow = new Shadow('v2', NEXT)) {
  const governor = openGovernor({ policies: IN_FORCE });
  governor.shadow = shadow;
  return { governor, shadow };
}

describe('the shadow', () => {
  test('decides nothing, and its differences are in the entries and in the counts', () => {
    const { governor, shadow } = shadowed();
    expect(ask(governor, { resource: 'web_search' })).toMatchObject({ decision: 'allow', shadow: undefined });
    expect(ask(governor, { resource: 'files' })).toMatchObject({
      decision: 'allow',
      shadow: { version: 'v2', decision: 'deny', policy: null, rule_id: null, cause: 'no_rule' },
    });
    expect(ask(governor, { resource: 'mail' })).toMatchObject({
      decision: 'allow',
      shadow: { version: 'v2', decision: 'pending', policy: 'next', rule_id: 'ask', cause: null },
    });
    expect(ask(governor, { resource: '/etc/passwd' })).toMatchObject({ decision: 'deny', shadow: undefined });
    expect(shadow.counts()).toEqual({
      checks: 4,
      differing: 2,
      errors: 0,
      changes: [
        { from: 'allow', to: 'deny', policy: 'now', ruleId: 'all', count: 1 },
        { from: 'allow', to: 'pending', policy: 'next', ruleId: 'ask', count: 1 },
      ],
    });
  });

  test('leaves every answer as it is without one', () => {
    const plain = openGovernor({ policies: IN_FORCE });
    const { governor } = shadowed();
    for (const resource of ['web_search', 'files', 'mail', '/etc/x', 'web_big'])
      for (const dryRun of [false, true]) {
        const command = checkOf(CRAWLER, `same:${resource}${dryRun}`, { resource, dryRun });
        expect(governor.apply<'check'>(command, 10).reply).toEqual(plain.apply<'check'>(command, 10).reply);
      }
  });

  test('a condition that fails is a deny, and an error', () => {
    const { governor, shadow } = shadowed();
    expect(ask(governor, { resource: 'web_big' })).toMatchObject({
      decision: 'allow',
      shadow: { decision: 'deny', rule_id: 'small', cause: 'condition_error' },
    });
    expect(shadow.counts()).toMatchObject({ checks: 1, differing: 1, errors: 1 });
  });

  test('touches no check if it throws', () => {
    const broken = new Shadow('v3', {
      decide: () => {
        throw new Error('defect');
      },
    });
    const { governor, shadow } = shadowed(broken);
    expect(ask(governor, { resource: 'web_search' })).toMatchObject({ decision: 'allow', shadow: undefined });
    expect(shadow.counts()).toEqual({ checks: 0, differing: 0, errors: 1, changes: [] });
  });

  test('skips halted and unidentified checks, and includes dry runs', () => {
    const { governor, shadow } = shadowed();
    ask(governor, { resource: 'files', credential: 'unknown' as never });
    expect(ask(governor, { resource: 'files', dryRun: true }).shadow).toMatchObject({ decision: 'deny' });
    const halt = {
      id: 'h1',
      scope: 'global',
      mode: 'pause',
      actions: ['*'],
      reason: 'x',
      expiresAtMs: undefined,
    } as const;
    governor.apply<'create-halt'>({ type: 'create-halt', principal: ADMIN, halt }, 10);
    ask(governor, { resource: 'files' });
    expect(shadow.counts()).toMatchObject({ checks: 1, differing: 1 });
  });

  test('no budget is asked for it: what a budget denies is compared by policy', () => {
    const config = parseBudgetConfig({ agent_daily_limit_usd: 1 });
    if (!config.ok) throw new Error('budget');
    const governor = openGovernor({ policies: IN_FORCE, budgets: new BudgetTracker(config.value, 0) });
    const shadow = new Shadow('v2', NEXT);
    governor.shadow = shadow;
    const { decision, shadow: noted } = ask(governor, { resource: 'web_search', estimatedCostMicroUsd: 2_000_000 });
    expect({ decision, noted }).toEqual({ decision: 'deny', noted: undefined });
    expect(shadow.counts()).toMatchObject({ checks: 1, differing: 0 });
  });

  test('stays when other policies come into force, and is gone once it is ended', () => {
    const { governor, shadow } = shadowed();
    governor.policies = NEXT;
    ask(governor, { resource: 'files' });
    expect(shadow.counts()).toMatchObject({ checks: 1, differing: 0 });
    governor.shadow = undefined;
    ask(governor, { resource: 'files' });
    expect(shadow.counts().checks).toBe(1);
  });

  test('goes on from the counts of the run before; those of several gateways add up', () => {
    const { governor, shadow } = shadowed();
    ask(governor, { resource: 'files' });
    const next = new Shadow('v2', NEXT, shadow.counts());
    expect(next.counts()).toEqual(shadow.counts());
    expect(addedCounts([shadow.counts(), next.counts()])).toEqual({
      checks: 2,
      differing: 2,
      errors: 0,
      changes: [{ from: 'allow', to: 'deny', policy: 'now', ruleId: 'all', count: 2 }],
    });
  });
});
