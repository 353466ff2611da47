import { describe, expect, test } from 'vitest';
import { BudgetTracker } from '../../../src/core/budget/budget.ts';
import { parseBudgetConfig } from '../../../src/core/budget/config.ts';
import { reasonWithRemedy } from '../../../src/core/check/remedy.ts';
import type { CheckCommand } from '../../../src/core/commands.ts';
import type { Governor } from '../../../src/core/governor.ts';
import { ADMIN, CRAWLER, checkOf, openGovernor } from '../../support/governor.ts';
import { policiesOf } from '../policy/harness.ts';

const NOON = Date.UTC(2026, 10, 27, 12);

function ask(governor: Governor, fields: Partial<CheckCommand>) {
  const { reply, effects } = governor.apply<'check'>(checkOf(CRAWLER, 't:1', fields), NOON);
  if (!reply.ok) throw new Error(reply.fault.kind);
  const [entry] = effects.flatMap((effect) => (effect.kind === 'audit' ? [effect.draft] : []));
  return { answer: reply.value.remedy, recorded: entry?.payload?.remedy };
}

function halted(expiresAtMs: number | undefined): Governor {
  const governor = openGovernor();
  const halt = { id: 'h1', scope: 'global', mode: 'pause', actions: ['*'], reason: 'leak', expiresAtMs } as const;
  governor.apply<'create-halt'>({ type: 'create-halt', principal: ADMIN, halt }, NOON);
  return governor;
}

describe('remedy', () => {
  const policies = policiesOf({
    name: 'p',
    scope: 'global',
    rules: [
      { id: 'free', effect: 'allow' },
      { id: 'no-etc', effect: 'deny', resources: ['/etc/*'], remedy: 'write below /tmp' },
      { id: 'big', effect: 'deny', resources: ['/big'], when: 'attributes.size > 9', remedy: 'send less' },
    ],
  });

  test("a rule's comes with its deny and its entry, and with no allow", () => {
    const governor = openGovernor({ policies });
    expect(ask(governor, { resource: '/etc/passwd' })).toEqual({
      answer: 'write below /tmp',
      recorded: 'write below /tmp',
    });
    expect(ask(openGovernor({ policies }), { resource: '/tmp/x' })).toEqual({ answer: undefined, recorded: undefined });
  });

  test('a dry run has it too, and so has a rule whose condition fails', () => {
    const governor = openGovernor({ policies });
    expect(ask(governor, { resource: '/etc/x', dryRun: true }).answer).toBe('write below /tmp');
    expect(ask(governor, { resource: '/big', dryRun: true }).answer).toBe('send less');
  });

  test('a budget says when it resets', () => {
    const config = parseBudgetConfig({ agent_daily_limit_usd: 1 });
    if (!config.ok) throw new Error('budget');
    const governor = openGovernor({ budgets: new BudgetTracker(config.value, NOON) });
    const remedy =
      'wait until 2026-11-28T00:00:00.000Z, when the daily budget of the agent tier resets, or ask a person to raise it';
    expect(ask(governor, { estimatedCostMicroUsd: 2_000_000 })).toEqual({ answer: remedy, recorded: remedy });
  });

  test('a halt says that a person must release it, or when it expires', () => {
    const remedy = 'stop, and ask a person to release halt h1; no rule overrides it';
    expect(ask(halted(undefined), {})).toEqual({ answer: remedy, recorded: remedy });
    expect(ask(halted(NOON + 60_000), {}).answer).toBe(
      'stop until 2026-11-27T12:01:00.000Z, when halt h1 expires, or ask a person to release it before',
    );
  });

  test('stands behind the reason where a door has only a text', () => {
    expect(reasonWithRemedy('no', 'ask')).toBe('no. Instead: ask');
    expect(reasonWithRemedy('no', undefined)).toBe('no');
  });
});
