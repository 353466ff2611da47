import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CheckSubject } from '../../../src/core/condition/condition.ts';
import type { Rule } from '../../../src/core/policy/document.ts';
import type { PolicySet } from '../../../src/core/policy/policy.ts';
import { runs } from '../../support/runs.ts';
import { check, policiesOf } from './harness.ts';

describe('policy', () => {
  // Small alphabets, so that rules and checks meet often.
  const pattern = fc.constantFrom('*', 'a', 'b', 'a*', '?', '*b', 'ab', 'a?b*');
  const scopes = ['global', 'org:x', 'org:y', 'team:x/t', 'team:x/u', 'agent:x/t/1', 'agent:y/t/1'];
  const anyRule = fc.record({
    actions: fc.array(pattern, { minLength: 1, maxLength: 2 }),
    resources: fc.array(pattern, { minLength: 1, maxLength: 2 }),
    when: fc.constantFrom(undefined, undefined, 'attributes.n < 5', 'attributes.nope', 'agent.org_id == "x"'),
    effect: fc.constantFrom('allow', 'deny'),
  } satisfies Record<
    Exclude<keyof Rule, 'id' | 'reason' | 'remedy' | 'approval' | 'obligations'>,
    fc.Arbitrary<unknown>
  >); // whatever else a rule says has a part in the decision
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
      { numRuns: runs(100) },
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
      { numRuns: runs(40) },
    );
  });

  test('adding an allow in another org never changes a decision', () => {
    fc.assert(
      fc.property(fc.array(anyDocument, { maxLength: 5 }), anyCheck, (documents, over) => {
        const more = named([...documents, { scope: 'org:stranger', rules: [{ effect: 'allow' }] }]);
        expect(more.decide(check(over))).toEqual(named(documents).decide(check(over)));
      }),
      { numRuns: runs(70) },
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
      { numRuns: runs(100) },
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
  /** Each condition as plain code: true, false, or undefined where it fails. */
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
      { numRuns: runs(130) },
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
