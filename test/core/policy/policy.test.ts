import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CheckSubject } from '../../../src/core/condition/condition.ts';
import { type PolicyDocument, parsePolicyDocument, type Rule } from '../../../src/core/policy/document.ts';
import { compilePolicies, type PolicySet } from '../../../src/core/policy/policy.ts';

function documentOf(raw: unknown): PolicyDocument {
  const { document, problems } = parsePolicyDocument(raw, 'test.yaml');
  expect(problems).toEqual([]);
  if (document === undefined) throw new Error('no document');
  return document;
}

function policiesOf(...raw: readonly unknown[]): PolicySet {
  const compiled = compilePolicies(raw.map(documentOf));
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.fault));
  return compiled.value;
}

const check = (over: Partial<CheckSubject> = {}): CheckSubject => ({
  agent: { orgId: 'acme', teamId: 'search', agentId: 'a1' },
  action: 'tool.call',
  resource: 'web_search',
  attributes: undefined,
  caller: undefined,
  estimatedCostMicroUsd: 0,
  ...over,
});

const webOnly = { id: 'web-only', actions: ['tool.call'], resources: ['web_*'], effect: 'allow' };

describe('policy', () => {
  test('without a policy everything is denied, and the reason repeats the request', () => {
    expect(policiesOf().decide(check())).toEqual({
      kind: 'deny',
      reason: 'no policy allows tool.call on web_search for acme/search/a1',
      policy: undefined,
      ruleId: undefined,
      cause: 'no_rule',
    });
    expect(policiesOf().decide(check({ agent: { orgId: '', teamId: 'search', agentId: 'a1' } })).reason).toBe(
      'no policy allows tool.call on web_search for search/a1',
    );
    expect(policiesOf().decide(check({ resource: '' })).reason).toBe('no policy allows tool.call for acme/search/a1');
  });

  test("a decision names its rule and policy beside the author's reason", () => {
    const policies = policiesOf({
      name: 'search-team',
      scope: 'team:acme/search',
      rules: [webOnly, { id: 'no-shell', actions: ['process.*'], effect: 'deny', reason: 'no shells here' }],
    });
    expect(policies.decide(check())).toEqual({
      kind: 'allow',
      reason: 'allowed by rule web-only of policy search-team',
      policy: 'search-team',
      ruleId: 'web-only',
    });
    expect(policies.decide(check({ action: 'process.exec' }))).toEqual({
      kind: 'deny',
      reason: 'no shells here (rule no-shell of policy search-team)',
      policy: 'search-team',
      ruleId: 'no-shell',
      cause: 'rule',
    });
  });

  test('a check without conditions allocates no decision and returns the same object', () => {
    const policies = policiesOf({ name: 'p', scope: 'global', rules: [webOnly] });
    expect(policies.decide(check())).toBe(policies.decide(check()));
  });

  test.each([
    ['global', true, true, true, true],
    ['org:acme', true, true, false, false],
    ['team:acme/search', true, false, false, false],
    ['agent:acme/search/a1', true, false, false, false],
    ['agent:acme/search/a2', false, false, false, false],
    ['org:other', false, false, true, false],
  ])('a policy of scope %s reaches the agents in it and no other', (scope, sameAgent, otherTeam, otherOrg, noOrg) => {
    const policies = policiesOf({ name: 'p', scope, rules: [{ id: 'all', effect: 'allow' }] });
    const allowed = (orgId: string, teamId: string) =>
      policies.decide(check({ agent: { orgId, teamId, agentId: 'a1' } })).kind === 'allow';
    expect([
      allowed('acme', 'search'),
      allowed('acme', 'ops'),
      allowed('other', 'search'),
      allowed('', 'search'),
    ]).toEqual([sameAgent, otherTeam, otherOrg, noOrg]);
  });

  test('a deny in any tier wins over an allow in any tier', () => {
    const tiers = ['global', 'org:acme', 'team:acme/search', 'agent:acme/search/a1'];
    for (const denying of tiers) {
      for (const allowing of tiers) {
        const policies = policiesOf(
          { name: 'yes', scope: allowing, rules: [{ id: 'yes', effect: 'allow' }] },
          { name: 'no', scope: denying, rules: [{ id: 'no', effect: 'deny' }] },
        );
        expect(policies.decide(check()).reason).toBe('denied by rule no of policy no');
      }
    }
  });

  test('of several allows, reports the most specific tier and its first rule', () => {
    const policies = policiesOf(
      {
        name: 'agent',
        scope: 'agent:acme/search/a1',
        rules: [
          { id: 'one', effect: 'allow' },
          { id: 'two', effect: 'allow' },
        ],
      },
      { name: 'org', scope: 'org:acme', rules: [{ id: 'one', effect: 'allow' }] },
      { name: 'global', scope: 'global', rules: [{ id: 'one', effect: 'allow' }] },
      { name: 'agent-too', scope: 'agent:acme/search/a1', rules: [{ id: 'one', effect: 'allow' }] },
    );
    expect(policies.decide(check())).toMatchObject({ policy: 'agent', ruleId: 'one' });
    expect(policies.decide(check({ agent: { orgId: 'acme', teamId: 'ops', agentId: 'a1' } }))).toMatchObject({
      policy: 'org',
    });
  });

  test('a failing condition denies, whatever its effect and whatever else would allow', () => {
    for (const effect of ['allow', 'deny']) {
      const policies = policiesOf(
        { name: 'sizes', scope: 'global', rules: [{ id: 'small', when: 'attributes.size < 1000', effect }] },
        { name: 'open', scope: 'agent:acme/search/a1', rules: [{ id: 'all', effect: 'allow' }] },
      );
      expect(policies.decide(check())).toEqual({
        kind: 'deny',
        reason: 'the condition of rule small of policy sizes failed: No such key: size',
        policy: 'sizes',
        ruleId: 'small',
        cause: 'condition_error',
      });
    }
  });

  test('a condition is evaluated only where action and resource match', () => {
    const policies = policiesOf({
      name: 'p',
      scope: 'global',
      rules: [webOnly, { id: 'broken', actions: ['llm.call'], when: 'attributes.nope', effect: 'deny' }],
    });
    expect(policies.decide(check()).kind).toBe('allow');
  });

  test('finds a literal action or resource beside patterns that match it too', () => {
    const policies = policiesOf({
      name: 'p',
      scope: 'global',
      rules: [
        { id: 'exact', actions: ['tool.call'], resources: ['calculator', 'clock'], effect: 'allow' },
        { id: 'pattern', actions: ['tool.*'], resources: ['calc*'], effect: 'deny' },
        { id: 'mixed', actions: ['llm.call', 'tool.?et'], resources: ['clock', 'cal?'], effect: 'allow' },
      ],
    });
    const ruleOf = (action: string, resource: string) => policies.decide(check({ action, resource })).ruleId;
    expect(ruleOf('tool.call', 'clock')).toBe('exact');
    expect(ruleOf('tool.call', 'calculator')).toBe('pattern');
    expect(ruleOf('tool.other', 'calculator')).toBe('pattern');
    expect(ruleOf('tool.other', 'clock')).toBe(undefined);
    expect(ruleOf('tool.get', 'cale')).toBe('mixed');
    expect(ruleOf('llm.call', 'clock')).toBe('mixed');
    expect(ruleOf('llm.call', 'clocks')).toBe(undefined);
  });

  test('explain shows every document and rule with why it did or did not decide', () => {
    const policies = policiesOf(
      {
        name: 'team',
        scope: 'team:acme/search',
        rules: [
          webOnly,
          { id: 'llm', actions: ['llm.call'], effect: 'allow' },
          { id: 'files', resources: ['/tmp/*'], effect: 'allow' },
          { id: 'big', when: 'attributes.size > 1000', effect: 'deny' },
        ],
      },
      { name: 'other', scope: 'org:other', rules: [{ id: 'all', effect: 'deny' }] },
      { name: 'base', scope: 'global', rules: [{ id: 'flag', when: 'attributes.flag', effect: 'deny' }] },
    );
    expect(policies.explain(check({ attributes: { size: 5 } }))).toEqual({
      decision: {
        kind: 'deny',
        reason: 'the condition of rule flag of policy base failed: No such key: flag',
        policy: 'base',
        ruleId: 'flag',
        cause: 'condition_error',
      },
      documents: [
        {
          name: 'base',
          scope: 'global',
          source: 'test.yaml',
          applies: true,
          rules: [
            {
              id: 'flag',
              effect: 'deny',
              outcome: 'condition-failed',
              detail: 'condition failed: No such key: flag',
              decided: true,
            },
          ],
        },
        { name: 'other', scope: 'org:other', source: 'test.yaml', applies: false, rules: [] },
        {
          name: 'team',
          scope: 'team:acme/search',
          source: 'test.yaml',
          applies: true,
          rules: [
            { id: 'web-only', effect: 'allow', outcome: 'matched', detail: 'matched: allow', decided: false },
            { id: 'llm', effect: 'allow', outcome: 'action-differs', detail: 'action does not match', decided: false },
            {
              id: 'files',
              effect: 'allow',
              outcome: 'resource-differs',
              detail: 'resource does not match',
              decided: false,
            },
            { id: 'big', effect: 'deny', outcome: 'condition-false', detail: 'condition is false', decided: false },
          ],
        },
      ],
    });
  });

  test("the summary's version changes with the documents' content, not their location", () => {
    const raw = { name: 'p', scope: 'org:acme', rules: [webOnly] };
    const policies = policiesOf(raw);
    expect(policies.summary()).toEqual({
      version: policies.version,
      documents: [{ name: 'p', scope: 'org:acme', ruleCount: 1, source: 'test.yaml' }],
    });
    expect(policies.version).toMatch(/^[0-9a-f]{16}$/);
    const moved = compilePolicies([{ ...documentOf(raw), source: 'elsewhere.yaml' }]);
    expect(moved.ok && moved.value.version).toBe(policies.version);
    expect(policiesOf({ ...raw, rules: [{ ...webOnly, effect: 'deny' }] }).version).not.toBe(policies.version);
  });

  test('the version changes with each key of a rule', () => {
    const other = {
      id: 'other',
      actions: ['other'],
      resources: ['other'],
      when: 'action == "other"',
      effect: 'deny',
      reason: 'other',
      approval: { min: 2 },
      obligations: [{ id: 'o', type: 'notify', message: 'm' }],
    } as const satisfies Record<keyof Rule, unknown>;
    const versions = [
      {},
      ...Object.entries(other).map(([key, value]) => ({
        ...(key === 'approval' && { effect: 'require_approval' }),
        [key]: value,
      })),
    ].map((change) => policiesOf({ name: 'p', scope: 'global', rules: [{ ...webOnly, ...change }] }).version);
    expect(new Set(versions).size).toBe(versions.length);
  });

  test('the version changes with a cap, and not with the order of the caps', () => {
    const versionWith = (budget: object): string =>
      policiesOf({ name: 'p', scope: 'global', rules: [webOnly], budget }).version;
    const version = versionWith({ daily_limit_usd: 5, monthly_limit_usd: 50 });
    expect(versionWith({ monthly_limit_usd: 50, daily_limit_usd: 5 })).toBe(version);
    expect(versionWith({ daily_limit_usd: 6, monthly_limit_usd: 50 })).not.toBe(version);
  });

  test('an org sees only its own policies, and no change in those of another', () => {
    const everywhere = { name: 'everywhere', scope: 'global', rules: [webOnly] };
    const mine = { name: 'mine', scope: 'team:acme/search', rules: [webOnly] };
    const told = policiesOf(everywhere, mine, { name: 'theirs', scope: 'org:globex', rules: [] }).summary('acme');
    expect(told.documents.map(({ name }) => name)).toEqual(['everywhere', 'mine']);
    expect(told).toEqual(policiesOf(everywhere, mine).summary('acme'));
    expect(told).not.toEqual(
      policiesOf(everywhere, { ...mine, rules: [{ ...webOnly, effect: 'deny' }] }).summary('acme'),
    );
  });

  test('the version for an org is read without reading its rules again', () => {
    let reads = 0;
    const document = documentOf({ name: 'p', scope: 'global', rules: [webOnly] });
    const rules = document.rules.map((rule) =>
      Object.defineProperty({ ...rule }, 'reason', { enumerable: true, get: () => ((reads += 1), undefined) }),
    );
    const compiled = compilePolicies([{ ...document, rules }]);
    const readsOfLoading = reads;
    expect(readsOfLoading).toBeGreaterThan(0);
    expect(compiled.ok && compiled.value.summary('acme').version).toMatch(/^[0-9a-f]{16}$/);
    expect(reads).toBe(readsOfLoading);
  });

  test.each(['allow', 'deny'])('of several rules that %s, names the first, literal or pattern', (effect) => {
    const rules = {
      'written-out': { id: 'written-out', actions: ['tool.call'], resources: ['web_search'], effect },
      patterns: { id: 'patterns', actions: ['tool.*'], resources: ['web_*'], effect },
      condition: { id: 'condition', actions: ['*'], when: 'attributes.n < 5', effect },
    };
    const firstOf = (...order: (keyof typeof rules)[]) =>
      policiesOf({ name: 'p', scope: 'global', rules: order.map((id) => rules[id]) }).decide(
        check({ attributes: { n: 1 } }),
      ).ruleId;
    expect([
      firstOf('written-out', 'patterns', 'condition'),
      firstOf('patterns', 'written-out', 'condition'),
      firstOf('condition', 'written-out', 'patterns'),
    ]).toEqual(['written-out', 'patterns', 'condition']);
  });

  test.each([
    'org:globex',
    'team:globex/search',
    'team:acme/ads',
    'agent:globex/search/a1',
    'agent:acme/ads/a1',
    'agent:acme/search/a2',
  ])('a document for %s does not govern acme/search/a1, in decision or explanation', (scope) => {
    const policies = policiesOf({ name: 'p', scope, rules: [webOnly] });
    expect(policies.decide(check())).toMatchObject({ kind: 'deny', ruleId: undefined });
    expect(policies.explain(check()).documents).toMatchObject([{ applies: false, rules: [] }]);
  });

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
      `a rule must be a mapping with the keys id, actions, resources, when, effect, reason, approval, obligations; this is ${kind}`;
    const id = 'id: must be a string of 1 to 128 printable characters, without spaces at either end; this is a number';
    expect(
      problemsOf({
        name: 'p',
        scope: 'global',
        rules: [null, [], { id: 5, effect: 'allow' }, { id: 5, effect: 'allow' }],
      }),
    ).toEqual([`rules.0: ${rule('empty')}`, `rules.1: ${rule('a list')}`, `rules.2.${id}`, `rules.3.${id}`]);
  });

  test("a check's data decides nothing of the next check", () => {
    const policies = policiesOf({
      name: 'p',
      scope: 'global',
      rules: [{ id: 'red', when: 'attributes.constructor == "Ferrari"', effect: 'allow' }],
    });
    expect(
      ['Ferrari', 'Lotus', 'Ferrari'].map(
        (constructor) => policies.decide(check({ attributes: { constructor } })).kind,
      ),
    ).toEqual(['allow', 'deny', 'allow']);
  });

  test('refuses a document without rules or with invalid ones, unless it has a budget', () => {
    expect(['text', null, ['x'], 5].map(problemsOf)).toEqual(
      Array.from({ length: 4 }, () => [
        ': a policy document must be a mapping with the keys name, scope, rules, budget',
      ]),
    );
    expect(problemsOf({ name: 'p', scope: 'global' })).toEqual([': rules is missing']);
    expect(problemsOf({ name: 'p', scope: 'global', rules: { id: 'r' } })).toEqual([
      'rules: must be a list of rules; this is a mapping',
    ]);
    expect(problemsOf({ name: 'p', scope: 'global', budget: {} })).toEqual([]);
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
        { name: 'b', scope: 'org:acme', rules: [], budget: {} },
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
          problem: 'policy a in test.yaml already has a budget; only one is allowed in all documents together',
        },
        {
          document: 2,
          path: ['budget'],
          onKey: true,
          problem: 'a budget is allowed only in a document with global scope',
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

  test('a misplaced budget does not shadow the valid one, and the first is named', () => {
    const found = compilePolicies([
      documentOf({ name: 'misplaced', scope: 'org:acme', rules: [], budget: {} }),
      ...['first', 'second', 'third'].map((name) => documentOf({ name, scope: 'global', rules: [], budget: {} })),
    ]);
    expect(found.ok ? [] : found.fault.map(({ document, problem }) => `${document}: ${problem}`)).toEqual([
      '0: a budget is allowed only in a document with global scope',
      '2: policy first in test.yaml already has a budget; only one is allowed in all documents together',
      '3: policy first in test.yaml already has a budget; only one is allowed in all documents together',
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

  // Small alphabets, so that rules and checks meet often.
  const pattern = fc.constantFrom('*', 'a', 'b', 'a*', '?', '*b', 'ab', 'a?b*');
  const scopes = ['global', 'org:x', 'org:y', 'team:x/t', 'team:x/u', 'agent:x/t/1', 'agent:y/t/1'];
  const anyRule = fc.record({
    actions: fc.array(pattern, { minLength: 1, maxLength: 2 }),
    resources: fc.array(pattern, { minLength: 1, maxLength: 2 }),
    when: fc.constantFrom(undefined, undefined, 'attributes.n < 5', 'attributes.nope', 'agent.org_id == "x"'),
    effect: fc.constantFrom('allow', 'deny'),
  } satisfies Record<Exclude<keyof Rule, 'id' | 'reason' | 'approval' | 'obligations'>, fc.Arbitrary<unknown>>); // whatever else a rule says has a part in the decision
  const anyDocument = fc.record({ scope: fc.constantFrom(...scopes), rules: fc.array(anyRule, { maxLength: 4 }) });
  type AnyDocument = { readonly scope: string; readonly rules: readonly object[] };
  const anyCheck = fc.record({
    agent: fc.record({
      orgId: fc.constantFrom('', 'x', 'y'),
      teamId: fc.constantFrom('t', 'u'),
      agentId: fc.constantFrom('1', '2'),
    }),
    action: fc.constantFrom('a', 'b', 'ab', 'aab', 'c'),
    resource: fc.constantFrom('a', 'b', 'ab', 'aab', 'c'),
    attributes: fc.constantFrom({ n: 1 }, { n: 9 }, {}),
  });
  const named = (documents: readonly AnyDocument[]): PolicySet =>
    policiesOf(
      ...documents.map(({ scope, rules }, d) => ({
        name: `d${d}`,
        scope,
        rules: rules.map((rule, r) =>
          Object.fromEntries(Object.entries({ id: `r${r}`, ...rule }).filter(([, value]) => value !== undefined)),
        ),
      })),
    );

  test('whether a check is allowed does not depend on the order of documents and rules', () => {
    fc.assert(
      fc.property(fc.array(anyDocument, { maxLength: 5 }), anyCheck, (documents, over) => {
        const reversed = [...documents].reverse().map(({ scope, rules }) => ({ scope, rules: [...rules].reverse() }));
        expect(named(reversed).decide(check(over)).kind).toBe(named(documents).decide(check(over)).kind);
      }),
      { numRuns: 300 },
    );
  });

  test('a reason that quotes a long resource ends the quote with a whole character', () => {
    expect(named([]).decide(check({ resource: `${'x'.repeat(199)}🙂y` })).reason).toBe(
      `no policy allows tool.call on ${'x'.repeat(199)}… for acme/search/a1`,
    );
  });

  test('adding a deny for everybody denies everything', () => {
    fc.assert(
      fc.property(fc.array(anyDocument, { maxLength: 5 }), anyCheck, (documents, over) => {
        expect(named([...documents, { scope: 'global', rules: [{ effect: 'deny' }] }]).decide(check(over)).kind).toBe(
          'deny',
        );
      }),
      { numRuns: 100 },
    );
  });

  test('adding an allow in another org never changes a decision', () => {
    fc.assert(
      fc.property(fc.array(anyDocument, { maxLength: 5 }), anyCheck, (documents, over) => {
        const more = named([...documents, { scope: 'org:stranger', rules: [{ effect: 'allow' }] }]);
        expect(more.decide(check(over))).toEqual(named(documents).decide(check(over)));
      }),
      { numRuns: 200 },
    );
  });

  test('decide and explain agree with a reading of every rule', () => {
    fc.assert(
      fc.property(fc.array(anyDocument, { maxLength: 6 }), anyCheck, (documents, over) => {
        const { decision, documents: traces } = named(documents).explain(check(over));
        const rules = traces.flatMap(({ rules: of }) => of);
        const stopped = rules.some(
          ({ outcome, effect }) => outcome === 'condition-failed' || (outcome === 'matched' && effect === 'deny'),
        );
        const allowed = rules.some(({ outcome, effect }) => outcome === 'matched' && effect === 'allow');
        expect(decision.kind).toBe(!stopped && allowed ? 'allow' : 'deny');
        expect(rules.filter(({ decided }) => decided).length).toBe(decision.ruleId === undefined ? 0 : 1);
      }),
      { numRuns: 300 },
    );
  });

  // Patterns that overlap, and texts on which they could go wrong: empty, of several lines, beyond the BMP, very long.
  const hardPattern = fc.constantFrom(
    '*',
    '**',
    '?',
    '*?',
    'a',
    'ä',
    '😀',
    'a*',
    '*a',
    'a**b',
    'a?b',
    '?😀*',
    '*\n*',
    'a\nb',
    'a*b*c',
    'constructor',
    '__proto__',
    ' a',
    'A',
    '(a|b)',
    '*.a',
    'a.*',
  );
  const hardText = fc.oneof(
    fc.constantFrom(
      '',
      'a',
      'ä',
      '😀',
      'ab',
      'a😀b',
      'a\nb',
      'a\n',
      '\n',
      'axbyc',
      'constructor',
      '__proto__',
      ' a',
      'A',
      '(a|b)',
      'x.a',
      'a.x',
      '*',
      '?',
      'a*',
      'a'.repeat(300),
      `a${'\n😀'.repeat(100)}b`,
    ),
    fc.string({ unit: fc.constantFrom('a', 'b', '.', '\n', '😀'), maxLength: 6 }),
  );
  /** What a condition stands for, told without CEL: true, false, or undefined where it fails. */
  const CONDITIONS: Readonly<Record<string, (subject: CheckSubject) => boolean | undefined>> = {
    'attributes.n < 5': ({ attributes }) => (attributes?.n === undefined ? undefined : Number(attributes.n) < 5),
    'has(attributes.n) && attributes.n in [1, 2.5]': ({ attributes }) => [1, 2.5].includes(Number(attributes?.n)),
    'agent.team_id in ["t", "v"]': ({ agent }) => ['t', 'v'].includes(agent.teamId),
    'caller != null && caller.org_id == agent.org_id': ({ caller, agent }) => caller?.orgId === agent.orgId,
    'caller.org_id == "x"': ({ caller }) => (caller === undefined ? undefined : caller.orgId === 'x'),
    'estimated_cost_usd > (agent.org_id == "x" ? 2 : 0.5)': ({ estimatedCostMicroUsd, agent }) =>
      estimatedCostMicroUsd > (agent.orgId === 'x' ? 2_000_000 : 500_000),
    'resource.size() > 2 || action == "a"': ({ resource, action }) => [...resource].length > 2 || action === 'a',
  };
  // Half of the time 'a', so that many rules meet in one check.
  const often = (hard: fc.Arbitrary<string>) => fc.oneof(fc.constant('a'), hard);
  const hardRule = fc.record({
    actions: fc.array(often(hardPattern), { minLength: 1, maxLength: 3 }),
    resources: fc.array(often(hardPattern), { minLength: 1, maxLength: 3 }),
    when: fc.option(fc.constantFrom(...Object.keys(CONDITIONS)), { nil: undefined, freq: 1 }),
    effect: fc.constantFrom('allow' as const, 'allow' as const, 'deny' as const),
  });
  const hardDocument = fc.record({
    scope: fc.constantFrom(...scopes),
    rules: fc.array(hardRule, { maxLength: 6, size: 'max' }),
  });
  type HardDocument = typeof hardDocument extends fc.Arbitrary<infer Value> ? Value : never;
  const someone = fc.record({
    orgId: fc.constantFrom('', 'x', 'y'),
    teamId: fc.constantFrom('t', 'u'),
    agentId: fc.constantFrom('1', '2'),
  });
  const hardCheck: fc.Arbitrary<CheckSubject> = fc.record({
    agent: someone,
    action: often(hardText),
    resource: often(hardText),
    caller: fc.option(someone, { nil: undefined }),
    attributes: fc.constantFrom(undefined, {}, { n: 1 }, { n: 2.5 }, { n: 9 }),
    estimatedCostMicroUsd: fc.constantFrom(0, 1_000_000, 3_000_000),
  });

  function matchesGlob([head, ...rest]: readonly string[], text: readonly string[]): boolean {
    if (head === undefined) return text.length === 0;
    if (head === '*')
      return rest.length === 0 || text.some((_, from) => matchesGlob(rest, text.slice(from))) || matchesGlob(rest, []);
    return text.length > 0 && (head === '?' || head === text[0]) && matchesGlob(rest, text.slice(1));
  }
  const matchesSome = (patterns: readonly string[], text: string) =>
    patterns.some((pattern) => matchesGlob([...pattern], [...text]));

  /**
   * Every rule of every document in the documented order, without index: the rule that decides, as document and rule
   * number.
   */
  function naively(documents: readonly HardDocument[], subject: CheckSubject) {
    const { orgId, teamId, agentId } = subject.agent;
    const reached = ['global', `org:${orgId}`, `team:${orgId}/${teamId}`, `agent:${orgId}/${teamId}/${agentId}`];
    const matched = reached.flatMap((scope, tier) =>
      documents.flatMap((document, d) =>
        document.scope !== scope
          ? []
          : document.rules.flatMap((rule, r) => {
              const holds = rule.when === undefined || CONDITIONS[rule.when]?.(subject);
              const takesPart =
                matchesSome(rule.actions, subject.action) &&
                matchesSome(rule.resources, subject.resource) &&
                holds !== false;
              return takesPart
                ? [{ tier, kind: holds === undefined ? 'deny' : rule.effect, policy: `d${d}`, ruleId: `r${r}` }]
                : [];
            }),
      ),
    );
    const most = matched.at(-1)?.tier;
    const {
      kind = 'deny',
      policy,
      ruleId,
    } = matched.find((each) => each.kind === 'deny') ?? matched.find(({ tier }) => tier === most) ?? {};
    return { kind, policy, ruleId };
  }

  test('the index, decision and explanation agree with a reading of every rule in order', () => {
    fc.assert(
      fc.property(
        fc.array(hardDocument, { maxLength: 6, size: 'max' }),
        fc.array(hardCheck, { minLength: 1, maxLength: 4 }),
        (documents, subjects) => {
          const policies = named(documents);
          for (const subject of subjects) {
            const expected = naively(documents, subject);
            const { kind, policy, ruleId } = policies.decide(subject);
            expect({ kind, policy, ruleId }).toEqual(expected);
            const { decision, documents: traces } = policies.explain(subject);
            expect({ kind: decision.kind, policy: decision.policy, ruleId: decision.ruleId }).toEqual(expected);
            expect(
              traces.flatMap(({ name, rules }) => rules.filter(({ decided }) => decided).map(({ id }) => [name, id])),
            ).toEqual(ruleId === undefined ? [] : [[policy, ruleId]]);
          }
        },
      ),
      { numRuns: 400 },
    );
  });

  test('finds the rule of a check among ten thousand, half of them with patterns', () => {
    const rules = Array.from({ length: 10_000 }, (_, n) =>
      n % 2 === 0
        ? { id: `r${n}`, actions: [`act.${n}`], effect: 'allow' }
        : { id: `r${n}`, actions: [`a*.${n}*`], resources: [`x${n}*`], effect: 'deny' },
    );
    const policies = policiesOf({ name: 'large', scope: 'global', rules });
    expect(policies.decide(check({ action: 'act.9998', resource: 'y' })).kind).toBe('allow');
    expect(policies.decide(check({ action: 'act.9998', resource: 'x9' }))).toMatchObject({
      kind: 'deny',
      ruleId: 'r9',
    });
    expect(policies.decide(check({ action: 'act.18', resource: 'x1' }))).toMatchObject({
      kind: 'deny',
      ruleId: 'r1',
    });
  });
});
