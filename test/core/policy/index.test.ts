import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { finish } from '../../../src/core/base/steps.ts';
import { parsePolicyDocument } from '../../../src/core/policy/document.ts';
import { RuleIndex } from '../../../src/core/policy/index.ts';
import { type CompiledRule, compileRule, covered } from '../../../src/core/policy/rule.ts';
import { runs } from '../../support/runs.ts';

type Patterns = { readonly actions: readonly string[]; readonly resources: readonly string[] };

function compiled(rules: readonly Patterns[]): readonly CompiledRule[] {
  const raw = rules.map((rule, at) => ({ id: `r${at}`, effect: 'allow', ...rule }));
  const { document, problems } = parsePolicyDocument({ name: 'p', scope: 'global', rules: raw }, 'test');
  if (document === undefined || problems.length > 0) throw new Error(JSON.stringify(problems));
  return document.rules.map((rule) => compileRule(rule, document));
}

/** Reads every rule in order. */
const matching = (rules: readonly CompiledRule[], action: string, resource: string): readonly number[] =>
  [...rules.keys()].filter((at) => covered(rules[at]!.actions, action) && covered(rules[at]!.resources, resource));

const mayMatch = (index: RuleIndex, action: string, resource: string): readonly number[] => [
  ...(index.mayMatch?.(action, resource) ?? index.rules.keys()),
];

describe('the index of rules', () => {
  const part = fc.string({ unit: fc.constantFrom('a', 'b', '_', '😀'), maxLength: 4 });
  const longPart = fc.constantFrom('x'.repeat(64), 'x'.repeat(70), `${'x'.repeat(70)}a`, `b${'x'.repeat(70)}`);
  const wildcard = fc.constantFrom('*', '?', '**', '*?');
  const pattern = fc
    .array(
      fc.oneof({ weight: 6, arbitrary: part }, { weight: 1, arbitrary: longPart }, { weight: 5, arbitrary: wildcard }),
      {
        minLength: 1,
        maxLength: 5,
      },
    )
    .map((parts) => parts.join(''))
    .filter((each) => each !== '' && each.trim() === each);
  const patterns = fc.oneof(
    { weight: 8, arbitrary: fc.array(pattern, { minLength: 1, maxLength: 3 }) },
    { weight: 1, arbitrary: fc.array(pattern, { minLength: 9, maxLength: 20 }) }, // too many for pairs
  );
  const rules = fc.array(fc.record({ actions: patterns, resources: patterns }), { maxLength: 12 });
  /** A text that the pattern matches, or something like it. */
  const filled = (source: string, filling: string): string => source.replaceAll(/[*?]/g, filling);

  test('leads to every rule that matches, in their order and each once', () => {
    fc.assert(
      fc.property(rules, fc.nat(), fc.nat(), part, (given, first, second, filling) => {
        const all = compiled(given);
        const index = finish(RuleIndex.building(all));
        const actions = given.flatMap((rule) => rule.actions);
        const resources = given.flatMap((rule) => rule.resources);
        const action = filled(actions[first % actions.length] ?? 'a', filling);
        const resource = filled(resources[second % resources.length] ?? 'b', filling);
        const places = mayMatch(index, action, resource);
        expect(places).toEqual([...new Set(places)].sort((a, b) => a - b));
        expect(
          places.filter((at) => covered(all[at]!.actions, action) && covered(all[at]!.resources, resource)),
        ).toEqual(matching(all, action, resource));
      }),
      { numRuns: runs(130) },
    );
  });

  test('leads past ten thousand patterns to those that match', () => {
    const kinds: readonly ((at: number) => Patterns)[] = [
      (at) => ({ actions: ['tool.call'], resources: [`tool_${at}_*`] }),
      (at) => ({ actions: ['tool.*'], resources: [`*_suffix_${at}`] }),
      (at) => ({ actions: ['*'], resources: [`*.middle_${at}.*`] }),
      (at) => ({ actions: [`act${at}.*`], resources: ['*'] }),
      (at) => ({ actions: ['tool.call'], resources: [`tool_*_${at}`, `home/*/${at}/?`] }),
    ];
    const rules = compiled(Array.from({ length: 10_000 }, (_, at) => kinds[at % kinds.length]!(at)));
    const index = finish(RuleIndex.building(rules));
    expect(mayMatch(index, 'tool.call', 'tool_500_x')).toEqual([500]);
    expect(mayMatch(index, 'tool.call', 'tool_500_suffix_501')).toEqual([500, 501]);
    expect(mayMatch(index, 'file.read', 'a.middle_502.b')).toEqual([502]);
    expect(mayMatch(index, 'act503.read', 'a.middle_502.b')).toEqual([502, 503]);
    expect(mayMatch(index, 'tool.call', 'home/joe/504/1')).toEqual([504]);
    expect(mayMatch(index, 'tool.call', 'web_search')).toEqual([]);
  });

  test('can be built in short steps', () => {
    const rules = compiled(
      Array.from({ length: 5_000 }, (_, at) => ({ actions: ['*'], resources: [`*middle_${at}*`] })),
    );
    const steps = RuleIndex.building(rules);
    let count = 0;
    while (steps.next().done !== true) count += 1;
    expect(count).toBeGreaterThan(5_000);
  });
});
