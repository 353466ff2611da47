import { describe, expect, test } from 'vitest';
import type { CheckSubject } from '../../../src/core/condition/condition.ts';
import { parsePolicyDocument } from '../../../src/core/policy/document.ts';
import { compilePolicies, type PolicySet } from '../../../src/core/policy/policy.ts';

function policiesOf(rules: readonly object[]): PolicySet {
  const { document, problems } = parsePolicyDocument({ name: 'p', scope: 'global', rules }, 'test.yaml');
  if (document === undefined) throw new Error(JSON.stringify(problems));
  const compiled = compilePolicies([document]);
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.fault));
  return compiled.value;
}

const check = (attributes: Readonly<Record<string, unknown>>): CheckSubject => ({
  agent: { orgId: 'acme', teamId: 'search', agentId: 'a1' },
  action: 'tool.call',
  resource: 'web_search',
  attributes,
  caller: undefined,
  estimatedCostMicroUsd: 0,
});

const SPENT =
  'the conditions of all rules for this check take more than 1000000 steps together: one for each operator, each value' +
  ' that a loop comes to and each 8 characters of text, and more for matches(); send less data, or have fewer rules' +
  ' with loops or matches() apply to its action and resource';
const values = (count: number) => Array.from({ length: count }, (_, nth) => `v${nth}`);
/** A set in which so many rules ask this, and one more allows everything. */
const asking = (count: number, when: string): PolicySet =>
  policiesOf([
    { id: 'all', effect: 'allow' },
    ...Array.from({ length: count }, (_, nth) => ({ id: `r${nth}`, effect: 'deny', when })),
  ]);

describe('policy condition steps', () => {
  test.each([
    [
      'hundreds of rules over one list',
      {
        count: 600,
        when: 'attributes.tags.exists(tag, tag == "x")',
        attributes: { tags: values(500) },
        ruleId: 'r499',
      },
    ],
    [
      'a few rules over the characters of a text',
      {
        count: 10,
        when: 'attributes.text.split("").exists(letter, letter == "b")',
        attributes: { text: 'a'.repeat(22_000) },
        ruleId: 'r7',
      },
    ],
    [
      'a few rules of two loops',
      {
        count: 10,
        when: 'attributes.tags.exists(tag, attributes.tags.exists(other, other == tag + "x"))',
        attributes: { tags: values(200) },
        ruleId: 'r4',
      },
    ],
    [
      'hundreds of rules that fail on each value',
      {
        count: 450,
        when: 'attributes.tags.exists(tag, tag.kind == 1) && false',
        attributes: { tags: values(500) },
        ruleId: 'r399',
      },
    ],
    [
      'hundreds of rules that miss something in each value',
      {
        count: 300,
        when: 'attributes.tags.exists(tag, !(tag.kind == 1 || true))',
        attributes: { tags: values(500) },
        ruleId: 'r249',
      },
    ],
    [
      'a few rules that split a long text without a loop',
      {
        count: 40,
        when: 'attributes.text.split("").size() == 0',
        attributes: { text: 'a'.repeat(400_000) },
        ruleId: 'r1',
      },
    ],
  ])(
    '%s cannot block the gateway together, and the reason says what to do',
    (_what, { count, when, attributes, ruleId }) => {
      const policies = asking(count, when);
      expect(policies.decide(check(attributes))).toEqual({
        kind: 'deny',
        reason: `the condition of rule ${ruleId} of policy p failed: ${SPENT}`,
        policy: 'p',
        ruleId,
        cause: 'condition_error',
      });
      expect(policies.decide(check({ tags: ['a'], text: 'a' })).kind).toBe('allow'); // one check leaves nothing behind for the next
    },
  );

  test.each([
    ['many rules over a long text', { count: 1_000, pattern: '[0-9]x$', text: 'a'.repeat(8_192), ruleId: 'r121' }],
    [
      'one rule whose pattern begins anew at each character',
      { count: 1, pattern: '[a-z]{450}[0-9]{450}$', text: 'a'.repeat(8_192), ruleId: 'r0' },
    ],
    [
      'one rule whose pattern knows very many letters',
      { count: 1, pattern: '\\\\pL{900}$', text: 'a'.repeat(8_192), ruleId: 'r0' },
    ],
    [
      'a few such rules over a short text',
      { count: 100, pattern: '[a-z]{300}[0-9]{300}$', text: 'abc'.repeat(150), ruleId: 'r1' },
    ],
    [
      'a few rules whose patterns can go on in very many ways',
      { count: 100, pattern: '(.{1,20}){1,20}[0-9]$', text: 'abcdefghijk 12345 '.repeat(450), ruleId: 'r2' },
    ],
  ])(
    'matches() of %s cannot block the gateway, and the reason says what to do',
    (_what, { count, pattern, text, ruleId }) => {
      const policies = asking(count, `attributes.text.matches("${pattern}")`);
      expect(policies.decide(check({ text }))).toEqual({
        kind: 'deny',
        reason: `the condition of rule ${ruleId} of policy p failed: ${SPENT}`,
        policy: 'p',
        ruleId,
        cause: 'condition_error',
      });
      expect(policies.decide(check({ text: 'x' })).kind).toBe('allow');
    },
  );

  test('dozens of rules may search a usual text for a secret, even on first use', () => {
    const patterns = [
      '(?i)(?:password|secret|token|api[_-]?key)[ ]*[:=][ ]*[^ ]+',
      '(?:[0-9][ -]*?){13,16}',
      '(?i)[A-Z0-9._%+-]+@[A-Z0-9.-]+[.][A-Z]{2,}',
      'AKIA[0-9A-Z]{16}',
      'gh[pousr]_[A-Za-z0-9]{36,}',
      '(?i)(?:drop|truncate|delete) +(?:table|from|database)',
      '(?i)ignore (?:all |any )?(?:previous|prior|above) instructions',
      '(?i)(?:select|union).{1,100}(?:from|where)',
      '(?:[A-Za-z0-9+/]{4}){20,}={0,2}',
    ];
    const rules = Array.from({ length: 27 }, (_, nth) => ({
      id: `r${nth}`,
      effect: 'deny',
      when: `attributes.text.matches("${patterns[nth % patterns.length]!}")`,
    }));
    const policies = policiesOf([{ id: 'all', effect: 'allow' }, ...rules]);
    const text =
      'The quarterly report is attached; please read it until Monday, and tell Ada if 12 of 40 pages are enough. '.repeat(
        20,
      );
    expect(policies.decide(check({ text }))).toMatchObject({ kind: 'allow' });
  });

  test.each([
    [
      'a long text beside the list',
      400,
      'attributes.tags.exists(tag, tag == "x")',
      { tags: values(10), text: 'a'.repeat(500_000) },
    ],
    [
      'values that no loop comes to, because the first decides',
      1_000,
      '!attributes.tags.exists(tag, tag == "v0")',
      { tags: values(2_000) },
    ],
    [
      'a long list that no loop is over',
      1_000,
      '"x" in attributes.tags || attributes.tags.size() == 3',
      { tags: values(2_000) },
    ],
    ['loops over short lists of the rules', 500, `[${values(400).map(() => 7)}].exists(n, n == 8)`, {}],
    ['values that are missing, in rules without a loop', 9_999, 'attributes.absent == 1 && false', {}],
  ])('%s is within the limit of a check', (_, count, when, attributes) => {
    expect(asking(count, when).decide(check(attributes)).kind).toBe('allow');
  });

  test('an expression takes a step for each of its parts, in each round of a loop', () => {
    const kindOf = (length: number) =>
      asking(1, '!attributes.list.all(n, true)').decide(check({ list: Array.from({ length }, () => 1) })).kind;
    // `!`, `all`, `.list` and `attributes`; for each value one, and one for `true`
    expect([kindOf(499_998), kindOf(499_999)]).toEqual(['allow', 'deny']);
  });

  test('the loop limit of a check does not depend on the order of the rules', () => {
    const loopOver = (list: string) => ({ id: list, effect: 'allow', when: `attributes.${list}.all(n, n == 1)` });
    const listOf = (length: number) => Array.from({ length }, () => 1);
    const decide = (rules: readonly object[], length: number) =>
      policiesOf(rules).decide(check({ few: listOf(length), many: listOf(17_000) })).kind;
    const few = loopOver('few');
    const several = Array.from({ length: 11 }, (_, nth) => ({ ...loopOver('many'), id: `many${nth}` })); // each 4 steps a value, and 3
    const kinds = (length: number) => [
      decide([few, ...several], length),
      decide([...several.slice(5), few, ...several.slice(0, 5)], length),
      decide([...several, few], length),
    ];
    expect([kinds(62_991), kinds(62_992)]).toEqual([
      ['allow', 'allow', 'allow'],
      ['deny', 'deny', 'deny'],
    ]);
  });

  test('explain applies the loop limit as a decision does', () => {
    const { decision, documents } = asking(600, 'attributes.tags.exists(tag, tag == "x")').explain(
      check({ tags: values(500) }),
    );
    expect(decision.ruleId).toBe('r499');
    expect(documents[0]!.rules.filter(({ outcome }) => outcome === 'condition-false').length).toBe(499);
    expect(documents[0]!.rules.find(({ decided }) => decided)).toEqual({
      id: 'r499',
      effect: 'deny',
      outcome: 'condition-failed',
      detail: `condition failed: ${SPENT}`,
      decided: true,
    });
  });
});
