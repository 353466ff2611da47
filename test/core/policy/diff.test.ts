import { describe, expect, test } from 'vitest';
import { diffPolicies } from '../../../src/core/policy/diff.ts';
import { policiesOf, webOnly } from './harness.ts';

const doc = (over: object = {}) => ({ name: 'p', scope: 'global', rules: [webOnly], ...over });
const diff = (before: readonly object[], after: readonly object[]) =>
  diffPolicies(policiesOf(...before).documents, policiesOf(...after).documents).map(
    ({ kind, document, ruleId, scope }) => `${kind} ${document} ${scope} ${ruleId ?? '-'}`,
  );

describe('the difference of two sets', () => {
  test('is empty for the same set, in whatever order it is written', () => {
    const other = { id: 'b', effect: 'deny', actions: ['x', 'y'] };
    const swapped = { effect: 'deny', id: 'b', actions: ['y', 'x'] };
    expect(diff([doc()], [doc()])).toEqual([]);
    expect(diff([doc({ rules: [webOnly, other] })], [doc({ rules: [swapped, webOnly] })])).toEqual([]);
    const budget = { daily_limit_usd: 5, monthly_limit_usd: 50 };
    expect(diff([doc({ budget })], [doc({ budget: { monthly_limit_usd: 50, daily_limit_usd: 5 } })])).toEqual([]);
  });

  test('names rules and documents that were added, removed and changed', () => {
    const before = [doc({ rules: [webOnly, { id: 'gone', effect: 'deny' }] }), doc({ name: 'old', scope: 'org:a' })];
    const after = [
      doc({
        rules: [
          { ...webOnly, effect: 'deny', remedy: 'ask' },
          { id: 'new', effect: 'allow' },
        ],
      }),
      doc({ name: 'fresh', scope: 'team:a/t', rules: [] }),
    ];
    expect(diff(before, after).sort()).toEqual([
      'added fresh team:a/t -',
      'added p global new',
      'changed p global web-only',
      'removed old org:a -',
      'removed old org:a web-only',
      'removed p global gone',
    ]);
  });

  test('shows what changed as an author writes it', () => {
    const [change] = diffPolicies(
      policiesOf(doc()).documents,
      policiesOf(doc({ rules: [{ ...webOnly, when: 'attributes.size < 5' }] })).documents,
    );
    expect(change?.before).toEqual({
      id: 'web-only',
      actions: ['tool.call'],
      resources: ['web_*'],
      effect: 'allow',
    });
    expect(change?.after).toEqual({
      id: 'web-only',
      actions: ['tool.call'],
      resources: ['web_*'],
      when: 'attributes.size < 5',
      effect: 'allow',
    });
  });

  test('has the scope and the budget of a document, not where it was read from', () => {
    expect(diff([doc({ scope: 'org:a' })], [doc({ scope: 'org:b' })])).toEqual(['changed p org:b -']);
    expect(diff([doc()], [doc({ budget: { daily_limit_usd: 1 } })])).toEqual(['changed p global -']);
  });
});
