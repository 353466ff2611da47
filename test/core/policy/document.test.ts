import { describe, expect, test } from 'vitest';
import { parsePolicyDocument } from '../../../src/core/policy/document.ts';
import { compilePolicies } from '../../../src/core/policy/policy.ts';
import { documentOf, policiesOf, webOnly } from './harness.ts';

describe('document', () => {
  const ruleWith = (over: object) => ({ name: 'p', scope: 'global', rules: [{ id: 'r', effect: 'allow', ...over }] });
  const problemsOf = (raw: unknown) =>
    parsePolicyDocument(raw, 'test.yaml').problems.map(({ path, problem }) => `${path.join('.')}: ${problem}`);

  test.each<[string, (length: number) => unknown, number, string]>([
    [
      'name',
      (length) => ({ ...ruleWith({}), name: 'n'.repeat(length) }),
      128,
      'name: must be a string of 1 to 128 printable characters, without spaces at either end; this is a string of 129 characters',
    ],
    [
      'rule id',
      (length) => ruleWith({ id: 'i'.repeat(length) }),
      128,
      'rules.0.id: must be a string of 1 to 128 printable characters, without spaces at either end; this is a string of 129 characters',
    ],
    [
      'reason',
      (length) => ruleWith({ reason: 'r'.repeat(length) }),
      512,
      'rules.0.reason: must be a string of at most 512 characters; this is a string of 513 characters',
    ],
    [
      'remedy',
      (length) => ruleWith({ effect: 'deny', remedy: 'r'.repeat(length) }),
      256,
      'rules.0.remedy: must be a string of 1 to 256 characters; this is a string of 257 characters',
    ],
    [
      'pattern',
      (length) => ruleWith({ actions: ['a'.repeat(length)] }),
      512,
      'rules.0.actions.0: must be a pattern of 1 to 512 characters; this is a string of 513 characters',
    ],
    [
      'list of rules',
      (length) => ({
        name: 'p',
        scope: 'global',
        rules: Array.from({ length }, (_, n) => ({ id: `r${n}`, effect: 'deny' })),
      }),
      10_000,
      'rules: has 10001 rules; the maximum per document is 10000',
    ],
  ])('a %s may be as long as its limit, and no longer', (_, raw, limit, problem) => {
    expect(problemsOf(raw(limit))).toEqual([]);
    expect(problemsOf(raw(limit + 1))).toEqual([problem]);
  });

  test.each<[unknown, string]>([
    [' padded', 'a string of 7 characters'],
    ['two\nlines', 'a string of 9 characters'],
    ['bell\u0007', 'a string of 5 characters'],
    ['\u202egnp', 'a string of 4 characters'],
    ['', 'an empty string'],
    [null, 'empty'],
    [['p'], 'a list'],
    [{ p: 1 }, 'a mapping'],
    [7, 'a number'],
    [true, 'a boolean'],
  ])('the name %j is refused: it appears in audit entries and on terminals', (name, kind) => {
    const problem = `must be a string of 1 to 128 printable characters, without spaces at either end; this is ${kind}`;
    expect(problemsOf({ name, scope: 'global', rules: [] })).toEqual([`name: ${problem}`]);
    expect(problemsOf(ruleWith({ id: name }))).toEqual([`rules.0.id: ${problem}`]);
  });

  test('rules without a readable id are reported once each, and are no duplicates', () => {
    const rule = (kind: string) =>
      `a rule must be a mapping with the keys id, actions, resources, when, effect, reason, remedy, approval, obligations; this is ${kind}`;
    const id = 'id: must be a string of 1 to 128 printable characters, without spaces at either end; this is a number';
    expect(
      problemsOf({
        name: 'p',
        scope: 'global',
        rules: [null, [], { id: 5, effect: 'allow' }, { id: 5, effect: 'allow' }],
      }),
    ).toEqual([`rules.0: ${rule('empty')}`, `rules.1: ${rule('a list')}`, `rules.2.${id}`, `rules.3.${id}`]);
  });

  test('refuses a document without rules or with invalid ones, unless it has a budget', () => {
    expect(['text', null, ['x'], 5].map(problemsOf)).toEqual(
      Array.from({ length: 4 }, () => [
        ': a policy document must be a mapping with the keys name, scope, rules, budget, limits',
      ]),
    );
    expect(problemsOf({ name: 'p', scope: 'global' })).toEqual([': rules is missing']);
    expect(problemsOf({ name: 'p', scope: 'global', rules: { id: 'r' } })).toEqual([
      'rules: must be a list of rules; this is a mapping',
    ]);
    expect(problemsOf({ name: 'p', scope: 'global', budget: {} })).toEqual([]);
    expect(problemsOf(ruleWith({ effect: 'deny', remedy: ' ' }))).toEqual([
      'rules.0.remedy: must be a string of 1 to 256 characters; this is an empty string',
    ]);
    expect(problemsOf(ruleWith({ effect: 'allow', remedy: 'x' }))).toEqual([
      'rules.0.remedy: is only for rules whose effect is deny',
    ]);
    expect(problemsOf(ruleWith({ reason: ' ' }))).toEqual([
      'rules.0.reason: must be a string of at most 512 characters; this is an empty string',
    ]);
    expect(problemsOf(ruleWith({ resources: [''] }))).toEqual([
      'rules.0.resources.0: must be a pattern of 1 to 512 characters; this is an empty string',
    ]);
    expect(problemsOf({ ...ruleWith({}), scope: 7 })).toEqual([
      'scope: must be global, org:<id>, team:<org>/<team> or agent:<org>/<team>/<agent>',
    ]);
  });

  test.each(['org:-', 'team:-/search', 'agent:-/search/a1'])(
    'the scope %s is refused: no org is called -, so it would govern nobody',
    (scope) => {
      expect(parsePolicyDocument({ name: 'p', scope, rules: [webOnly] }, 'test.yaml').problems).toEqual([
        { path: ['scope'], problem: 'must be global, org:<id>, team:<org>/<team> or agent:<org>/<team>/<agent>' },
      ]);
    },
  );

  test('refuses duplicate names and duplicate, misplaced or invalid budgets by place', () => {
    const compiled = compilePolicies(
      [
        { name: 'a', scope: 'global', rules: [], budget: { daily_limit_usd: 50 } },
        { name: 'a', scope: 'global', rules: [], budget: { daily_limit_usd: 50 } },
        { name: 'b', scope: 'org:acme', rules: [], budget: { timezone: 'UTC' } },
      ].map(documentOf),
    );
    expect(compiled).toEqual({
      ok: false,
      fault: [
        { document: 1, path: ['name'], problem: 'a is also the name of a policy in test.yaml; names must be unique' },
        {
          document: 1,
          path: ['budget'],
          onKey: true,
          problem:
            'policy a in test.yaml already has a budget; only one is allowed for scope global in all documents together',
        },
        {
          document: 2,
          path: ['budget', 'timezone'],
          onKey: true,
          problem:
            'is only for a wider scope; of scope org, valid keys are monthly_limit_usd, daily_limit_usd, team_monthly_limit_usd, team_daily_limit_usd, agent_monthly_limit_usd, agent_daily_limit_usd',
        },
      ],
    });
    expect(compilePolicies([documentOf({ name: 'c', scope: 'global', budget: { timezone: 'Mars/Base' } })])).toEqual({
      ok: false,
      fault: [
        { document: 0, path: ['budget', 'timezone'], problem: 'must be an IANA time zone name, such as Europe/Berlin' },
      ],
    });
  });

  test('each scope may have one budget, and the first is named', () => {
    const found = compilePolicies([
      documentOf({ name: 'own', scope: 'org:acme', rules: [], budget: {} }),
      documentOf({ name: 'again', scope: 'org:acme', rules: [], budget: {} }),
      ...['first', 'second', 'third'].map((name) => documentOf({ name, scope: 'global', rules: [], budget: {} })),
    ]);
    expect(found.ok ? [] : found.fault.map(({ document, problem }) => `${document}: ${problem}`)).toEqual([
      '1: policy own in test.yaml already has a budget; only one is allowed for scope org:acme in all documents together',
      '3: policy first in test.yaml already has a budget; only one is allowed for scope global in all documents together',
      '4: policy first in test.yaml already has a budget; only one is allowed for scope global in all documents together',
    ]);
  });

  test('the budget of the global document is the budget of the set, in micro-dollars', () => {
    const policies = policiesOf({
      name: 'p',
      scope: 'global',
      budget: { daily_limit_usd: 50, timezone: 'Europe/Berlin' },
    });
    expect(policies.budget?.limitsMicroUsd.global).toEqual({ monthly: undefined, daily: 50_000_000 });
    expect(policies.budget?.timezone).toBe('Europe/Berlin');
    expect(policiesOf().budget).toBe(undefined);
  });
});
