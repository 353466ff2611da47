/** Obligations, from the policies to the answer of a check. */
import { describe, expect, test } from 'vitest';
import { parsePolicyDocument } from '../../../src/core/policy/document.ts';
import { compilePolicies, type PolicySet } from '../../../src/core/policy/policy.ts';
import { ADMIN, CRAWLER, checkOf, decisionOf, openGovernor } from '../../support/governor.ts';

const notify = (id: string, message: string) => ({ id, type: 'notify', message });
const cap = (id: string, max: number) => ({ id, type: 'cap', path: 'amount', max });
const ALL = ['redact', 'set', 'cap', 'notify'];

function policiesOf(...documents: readonly object[]): PolicySet {
  const parsed = documents.map((raw, n) => parsePolicyDocument({ name: `p${n}`, ...raw }, `${n}.yaml`));
  expect(parsed.flatMap(({ problems }) => problems)).toEqual([]);
  const compiled = compilePolicies(parsed.flatMap(({ document }) => document ?? []));
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.fault));
  return compiled.value;
}

const rule = (id: string, obligations?: readonly object[], more: object = {}) => ({
  id,
  effect: 'allow',
  ...(obligations && { obligations }),
  ...more,
});

const answer = (policies: PolicySet, fields: Partial<ReturnType<typeof checkOf>> = {}) => {
  const { reply } = openGovernor({ policies }).apply<'check'>(checkOf(CRAWLER, 't:s', fields), 1);
  if (!reply.ok) throw new Error(reply.fault.kind);
  return reply.value;
};
const shown = (policies: PolicySet): readonly string[] =>
  (answer(policies, { supportedObligations: ALL }).obligations ?? []).map(
    ({ id, properties }) => `${id} ${String(properties.message ?? properties.max)}`,
  );

describe('the obligations of an answer', () => {
  test('are those of all matching rules that allow, the broader scope first', () => {
    const policies = policiesOf(
      { scope: 'agent:acme/search/crawler', rules: [rule('a', [notify('agent', 'agent')])] },
      { scope: 'global', rules: [rule('g', [notify('one', 'g1'), notify('two', 'g2')]), rule('plain')] },
      {
        scope: 'org:acme',
        rules: [rule('o', [notify('org', 'org')]), rule('other', [cap('no', 1)], { when: 'false' })],
      },
      { scope: 'org:globex', rules: [rule('x', [notify('globex', 'no')])] },
    );
    expect(shown(policies)).toEqual(['one g1', 'two g2', 'org org', 'agent agent']);
  });

  test('resolves a repeated id to the narrower scope, within a scope to the first', () => {
    const policies = policiesOf(
      { scope: 'team:acme/search', rules: [rule('t', [cap('amount', 10)])] },
      { scope: 'global', rules: [rule('g', [cap('amount', 100), notify('n', 'global')])] },
      { scope: 'global', rules: [rule('g2', [notify('n', 'second')])] },
    );
    expect(shown(policies)).toEqual(['n global', 'amount 10']);
  });

  test('are there where no rule has any, neither in the answer nor in the entry', () => {
    const policies = policiesOf({ scope: 'global', rules: [rule('g')] });
    expect(answer(policies).obligations).toBeUndefined();
  });

  test('are none of a deny, also one by a narrower rule', () => {
    const policies = policiesOf(
      { scope: 'global', rules: [rule('g', [notify('n', 'm')])] },
      { scope: 'org:acme', rules: [{ id: 'no', effect: 'deny' }] },
    );
    expect(answer(policies, { supportedObligations: ALL })).toMatchObject({ decision: 'deny', cause: 'rule' });
    expect(answer(policies).obligations).toBeUndefined();
  });
});

describe('a caller that does not support an obligation', () => {
  const policies = policiesOf({ scope: 'global', rules: [rule('g', [cap('little', 5), notify('n', 'm')])] });

  test.each([
    ['none', undefined],
    ['an empty list', []],
    ['one of two', ['cap']],
    ['another case', ['CAP', 'Notify']],
  ])('is denied with %s', (_, supportedObligations) => {
    expect(answer(policies, { supportedObligations })).toMatchObject({
      decision: 'deny',
      cause: 'obligation',
      opState: 'terminated',
      policy: 'p0',
      ruleId: 'g',
      obligations: undefined,
    });
  });

  test('is denied in a dry run too, which begins nothing', () => {
    expect(answer(policies, { dryRun: true })).toMatchObject({ decision: 'deny', cause: 'obligation' });
    expect(answer(policies, { dryRun: true, supportedObligations: ALL })).toMatchObject({ decision: 'allow' });
  });

  test('reserves nothing', () => {
    const reservedWith = (supportedObligations: readonly string[]): number => {
      const governor = openGovernor({ policies });
      governor.apply<'check'>(checkOf(CRAWLER, 't:s', { estimatedCostMicroUsd: 5_000_000, supportedObligations }), 1);
      const { reply } = governor.apply<'list-budgets'>(
        { type: 'list-budgets', principal: ADMIN, orgId: 'acme', perPage: 10, cursor: undefined },
        2,
      );
      return reply.ok ? Math.max(0, ...reply.value.items.map(({ reservedMicroUsd }) => reservedMicroUsd)) : Number.NaN;
    };
    expect({ supported: reservedWith(ALL), unsupported: reservedWith(['cap']) }).toEqual({
      supported: 5_000_000,
      unsupported: 0,
    });
  });

  test('reads which one it is, and the entry names those that hold', () => {
    expect(answer(policies).reason).toBe(
      'allowed only with obligation little, of type cap, which is not among the supported_obligations',
    );
    const { effects } = openGovernor({ policies }).apply<'check'>(
      checkOf(CRAWLER, 't:s', { supportedObligations: ALL }),
      1,
    );
    const drafts = effects.flatMap((effect) => (effect.kind === 'audit' ? [effect.draft] : []));
    expect(drafts).toMatchObject([
      { eventType: 'ActionAllowed', payload: { obligations: ['little', 'n'], notices: ['m'] } },
    ]);
  });
});

describe('an allow after an approval', () => {
  const policies = policiesOf({
    scope: 'global',
    rules: [rule('g', [cap('little', 5)]), { id: 'ask', effect: 'require_approval' }],
  });

  test('has obligations; without support it is denied, and stays approved', () => {
    const governor = openGovernor({ policies });
    const check = (op: string, supportedObligations?: readonly string[]) => {
      const { reply } = governor.apply<'check'>(checkOf(CRAWLER, op, { supportedObligations }), 1);
      if (!reply.ok) throw new Error(reply.fault.kind);
      return reply.value;
    };
    const asked = check('t:a');
    expect(asked).toMatchObject({ decision: 'pending', opState: 'pending' });
    expect(asked.obligations).toBeUndefined();
    const id = asked.approvalId ?? '';
    governor.apply(decisionOf(governor, ADMIN, id), 2);
    expect(check('t:b')).toMatchObject({ decision: 'deny', cause: 'obligation', approvalId: id });
    expect(governor.approvals.get(id)?.state).toBe('approved');
    expect(check('t:a', ['cap'])).toMatchObject({
      decision: 'allow',
      approvalId: id,
      obligations: [{ id: 'little', type: 'cap', properties: { path: 'amount', max: 5 } }],
    });
    expect(governor.approvals.get(id)?.state).toBe('used');
  });
});
