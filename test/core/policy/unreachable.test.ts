import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type PolicyDocument, parsePolicyDocument } from '../../../src/core/policy/document.ts';
import { compilePolicies } from '../../../src/core/policy/policy.ts';
import { unreachableAllows } from '../../../src/core/policy/unreachable.ts';
import { runs } from '../../support/runs.ts';

type Raw = {
  readonly scope: string;
  readonly effect: 'allow' | 'deny';
  readonly actions?: readonly string[];
  readonly resources?: readonly string[];
  readonly when?: string;
};

/** Makes a document for each rule. */
const documentsOf = (rules: readonly Raw[]): readonly PolicyDocument[] =>
  rules.map(({ scope, ...rule }, index) => {
    const { document } = parsePolicyDocument({ name: `d${index}`, scope, rules: [{ id: 'r', ...rule }] }, 'test.yaml');
    if (document === undefined) throw new Error('no document');
    return document;
  });
const unreachable = (...rules: readonly Raw[]) =>
  unreachableAllows(documentsOf(rules)).map(({ document, deniedBy }) => `d${document} by ${deniedBy.policy}`);

const allow = (scope: string, action = '*'): Raw => ({ scope, actions: [action], effect: 'allow' });
const deny = (scope: string, action = '*'): Raw => ({ scope, actions: [action], effect: 'deny' });

describe('policy unreachable', () => {
  test.each([
    ['global', 'agent:x/t/1', true],
    ['global', 'global', true],
    ['org:x', 'team:x/t', true],
    ['team:x/t', 'agent:x/t/1', true],
    ['org:x', 'org:x', true],
    ['org:x', 'global', false],
    ['org:x', 'org:y', false],
    ['team:x/t', 'org:x', false],
    ['agent:x/t/1', 'team:x/t', false],
    ['team:x/t', 'agent:x/u/1', false],
  ])('a deny in %s covers an allow in %s: %s', (denying, allowing, expected) => {
    expect(unreachable(deny(denying), allow(allowing))).toEqual(expected ? ['d1 by d0'] : []);
  });

  test.each([
    ['a*', 'a*', true],
    ['a*', 'ab', true],
    ['a*', 'a?*b', true],
    ['*b', 'a*b', true],
    ['a?c', 'a?c', true],
    ['a?', 'ab', true],
    ['*.com', '*.ads.com', true],
    ['*.com', '*.com', true],
    ['a*a', 'aa', true],
    ['*', 'ab', true],
    ['a*a', 'a', false],
    ['*.ads.com', '*.com', false],
    ['a?', 'a*', false],
    ['ab', 'a?', false],
    ['a*b', 'a*', false],
    ['a', 'b', false],
    ['?*', '*', false],
    ['a?*', 'a*', false],
  ])('a deny of %s covers an allow of %s: %s', (denied, allowed, expected) => {
    expect(unreachable(deny('global', denied), allow('global', allowed))).toEqual(expected ? ['d1 by d0'] : []);
  });

  test('a deny with a condition, or of other resources, covers nothing for certain', () => {
    expect(unreachable({ ...deny('global'), when: 'attributes.x == 1' }, allow('global'))).toEqual([]);
    expect(unreachable({ ...deny('global'), resources: ['a'] }, allow('global'))).toEqual([]);
  });

  test('names the first of several rules that deny an allow', () => {
    const denials = [
      deny('org:x', 'fs.write'),
      deny('global', 'fs.w?'),
      { ...deny('global', 'fs.*'), resources: ['/etc/*', '/etc/ssh/*'] },
      deny('global', 'fs*'),
      deny('global'),
    ];
    expect(
      unreachable(
        ...denials,
        { ...allow('team:y/t', 'fs.write'), resources: ['/etc/ssh/keys'] },
        allow('global', 'fs.wr'),
        allow('org:x', 'fs.write'),
        allow('global', 'f*'),
      ),
    ).toEqual(['d5 by d2', 'd6 by d1', 'd7 by d0', 'd8 by d4']);
  });

  test('a rule of several resources covers what any of them covers', () => {
    const hosts = (effect: 'allow' | 'deny', ...resources: readonly string[]): Raw => ({
      scope: 'global',
      effect,
      actions: ['net.connect'],
      resources,
    });
    expect(
      unreachable(
        hosts('deny', '*.ads.com', '*.spam.org', 'evil.com'),
        hosts('allow', 'eu.ads.com'),
        hosts('allow', 'evil.com', '*.eu.spam.org'),
        hosts('allow', '*.com'),
      ),
    ).toEqual(['d1 by d0', 'd2 by d0']);
  });

  test('finds the one allow covered by a deny among twenty thousand leading stars', () => {
    const document = (name: string, effect: 'allow' | 'deny', host: (nth: number) => string) =>
      parsePolicyDocument(
        {
          name,
          scope: 'global',
          rules: Array.from({ length: 10_000 }, (_, nth) => ({
            id: `r${nth}`,
            effect,
            actions: ['net.connect'],
            resources: [host(nth)],
          })),
        },
        'test.yaml',
      ).document!;
    const documents = [
      document('blocked', 'deny', (nth) => `*.ads${nth}.com`),
      document('known', 'allow', (nth) => (nth === 9_999 ? '*.eu.ads77.com' : `*.shop${nth}.com`)),
    ];
    expect(unreachableAllows(documents).map(({ rule, deniedBy }) => [rule, deniedBy.rule.id])).toEqual([
      [9_999, 'r77'],
    ]);
  });

  const pattern = fc
    .array(fc.constantFrom('*', '?', 'a', 'b'), { minLength: 1, maxLength: 4 })
    .map((letters) => letters.join(''));
  const text = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 5 }).map((letters) => letters.join(''));

  test('a rule reported as unreachable allows no check', () => {
    const allowing = fc.record({
      scope: fc.constant('global'),
      effect: fc.constant('allow' as const),
      actions: fc.array(pattern, { minLength: 1, maxLength: 2 }),
    });
    const denying = fc.record({
      scope: fc.constant('global'),
      effect: fc.constant('deny' as const),
      actions: fc.array(pattern, { minLength: 1, maxLength: 2 }),
    });
    fc.assert(
      fc.property(
        allowing,
        fc.array(denying, { minLength: 1, maxLength: 3 }),
        fc.array(text, { maxLength: 20 }),
        (allowed, denied, actions) => {
          const documents = documentsOf([allowed, ...denied]);
          if (unreachableAllows(documents).length === 0) return;
          const policies = compilePolicies(documents);
          for (const action of actions) {
            const subject = {
              agent: { orgId: 'x', teamId: 't', agentId: '1' },
              action,
              resource: '',
              attributes: undefined,
              caller: undefined,
              estimatedCostMicroUsd: 0,
            };
            expect(policies.ok && policies.value.decide(subject).kind).toBe('deny');
          }
        },
      ),
      { numRuns: runs(600) },
    );
  });
});
