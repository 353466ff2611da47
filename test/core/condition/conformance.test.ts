import { describe, expect, test } from 'vitest';
import { ConditionVariables, compileCondition } from '../../../src/core/condition/condition.ts';
import { CONFORMANCE_CASES, type ConformanceCase } from './conformance-cases.ts';
import exceptions from './conformance-exceptions.json' with { type: 'json' };

const NOBODY = { orgId: '', teamId: '', agentId: '' };

type Verdict = { readonly kind: 'agrees' | 'differs' } | { readonly kind: 'undecided'; readonly why: string };

function verdictOf({ condition, problem, wantsError, attributes }: ConformanceCase): Verdict {
  if (condition === undefined) return { kind: 'undecided', why: problem ?? '' };
  const compiled = compileCondition(condition);
  if (!compiled.ok) {
    const [first] = compiled.fault;
    return wantsError ? { kind: 'agrees' } : { kind: 'undecided', why: first?.problem ?? '' };
  }
  const outcome = compiled.value.evaluate(
    new ConditionVariables().fill({
      agent: NOBODY,
      action: '',
      resource: '',
      attributes,
      caller: undefined,
      estimatedCostMicroUsd: 0,
    }),
  );
  return { kind: (wantsError ? typeof outcome === 'object' : outcome === true) ? 'agrees' : 'differs' };
}

const verdicts = CONFORMANCE_CASES.map((each) => ({ name: each.name, verdict: verdictOf(each) }));

describe('the conformance tests of CEL', () => {
  test('are decided as they say, but for those that are named with a reason', () => {
    const differing = verdicts.filter(({ verdict }) => verdict.kind === 'differs').map(({ name }) => name);
    expect(differing.sort()).toEqual(Object.keys(exceptions.differing).sort());
  });

  test('list undecided ones by suite, reason and number', () => {
    const counts: Record<string, Record<string, number>> = {};
    for (const { name, verdict } of verdicts) {
      if (verdict.kind !== 'undecided') continue;
      const [suite = ''] = name.split('/');
      const ofSuite = (counts[suite] ??= {});
      ofSuite[verdict.why] = (ofSuite[verdict.why] ?? 0) + 1;
    }
    expect(counts).toEqual(exceptions.undecided);
  });

  test('are all run', () => {
    const decided = verdicts.filter(({ verdict }) => verdict.kind !== 'undecided').length;
    expect({ all: verdicts.length, decided }).toEqual(exceptions.count);
  });
});
