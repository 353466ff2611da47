import { describe, expect, test } from 'vitest';
import type { Rule } from '../../../src/core/policy/document.ts';
import { compilePolicies } from '../../../src/core/policy/policy.ts';
import { check, documentOf, policiesOf, webOnly } from './harness.ts';

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
    ['global', { sameAgent: true, otherTeam: true, otherOrg: true, noOrg: true }],
    ['org:acme', { sameAgent: true, otherTeam: true, otherOrg: false, noOrg: false }],
    ['team:acme/search', { sameAgent: true, otherTeam: false, otherOrg: false, noOrg: false }],
    ['agent:acme/search/a1', { sameAgent: true, otherTeam: false, otherOrg: false, noOrg: false }],
    ['agent:acme/search/a2', { sameAgent: false, otherTeam: false, otherOrg: false, noOrg: false }],
    ['org:other', { sameAgent: false, otherTeam: false, otherOrg: true, noOrg: false }],
  ])('a policy of scope %s reaches the agents in it and no other', (scope, reached) => {
    const policies = policiesOf({ name: 'p', scope, rules: [{ id: 'all', effect: 'allow' }] });
    const allowed = (orgId: string, teamId: string) =>
      policies.decide(check({ agent: { orgId, teamId, agentId: 'a1' } })).kind === 'allow';
    expect({
      sameAgent: allowed('acme', 'search'),
      otherTeam: allowed('acme', 'ops'),
      otherOrg: allowed('other', 'search'),
      noOrg: allowed('', 'search'),
    }).toEqual(reached);
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

  test('reports the most specific tier and its first rule among several allows', () => {
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
      remedy: 'other',
      approval: { min: 2 },
      obligations: [{ id: 'o', type: 'notify', message: 'm' }],
    } as const satisfies Record<keyof Rule, unknown>;
    const versions = [
      {},
      ...Object.entries(other).map(([key, value]) => ({
        ...(key === 'approval' && { effect: 'require_approval' }),
        ...(key === 'remedy' && { effect: 'deny' }),
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
    const summary = policiesOf(everywhere, mine, { name: 'theirs', scope: 'org:globex', rules: [] }).summary('acme');
    expect(summary.documents.map(({ name }) => name)).toEqual(['everywhere', 'mine']);
    expect(summary).toEqual(policiesOf(everywhere, mine).summary('acme'));
    expect(summary).not.toEqual(
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
});
