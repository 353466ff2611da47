import { describe, expect, test } from 'vitest';
import { parsePolicyCases, runPolicyCases } from '../../../src/core/policy/cases.ts';
import { parsePolicyDocument } from '../../../src/core/policy/document.ts';
import { compilePolicies } from '../../../src/core/policy/policy.ts';

const { document } = parsePolicyDocument(
  {
    name: 'search',
    scope: 'org:acme',
    rules: [
      { id: 'web', resources: ['web_*'], effect: 'allow' },
      {
        id: 'obliging',
        resources: ['web_form'],
        effect: 'allow',
        obligations: [{ id: 'look', type: 'notify', message: 'a form was sent' }],
      },
      { id: 'costly', when: 'estimated_cost_usd > 1.0', effect: 'deny' },
      { id: 'by-boss', when: 'caller != null && caller.agent_id == "boss"', effect: 'allow' },
    ],
  },
  'search.yaml',
);

function run(...cases: readonly object[]) {
  const compiled = compilePolicies(document === undefined ? [] : [document]);
  const parsed = parsePolicyCases({ cases });
  if (!compiled.ok || !parsed.ok) throw new Error(JSON.stringify([compiled, parsed]));
  return runPolicyCases(compiled.value, parsed.value);
}

const base = { agent: 'acme/search/a1', action: 'tool.call', resource: 'web_search' };

describe('policy cases', () => {
  test('a case that gets its expectation passes; an unnamed one is named by its check', () => {
    expect(run({ ...base, expect: 'allow', rule: 'web' })).toEqual([
      {
        name: 'tool.call on web_search',
        passed: true,
        expected: { kind: 'allow', ruleId: 'web' },
        difference: undefined,
        actual: { kind: 'allow', reason: 'allowed by rule web of policy search', policy: 'search', ruleId: 'web' },
      },
    ]);
  });

  test('a failed case says which decision or which other rule it got', () => {
    expect(
      run(
        { name: 'one', ...base, expect: 'deny' },
        { name: 'two', ...base, expect: 'allow', rule: 'by-boss' },
        { name: 'three', ...base, resource: 'mail', expect: 'deny', rule: 'costly' },
      ).map(({ passed, difference }) => [passed, difference]),
    ).toEqual([
      [false, 'expected deny, got allow: allowed by rule web of policy search'],
      [false, 'expected allow by rule by-boss, got allow by rule web: allowed by rule web of policy search'],
      [
        false,
        'expected deny by rule costly, got deny by no rule: no policy allows tool.call on mail for acme/search/a1',
      ],
    ]);
  });

  test('a case may name all obligations, or that there are none', () => {
    const form = { ...base, resource: 'web_form', expect: 'allow' };
    expect(
      run(
        { ...form, obligations: ['look'] },
        { ...form, obligations: [] },
        { ...base, expect: 'allow', obligations: [] },
        { ...base, expect: 'allow', obligations: ['look'] },
      ).map(({ difference }) => difference),
    ).toEqual([
      undefined,
      'expected the obligations none, got look',
      undefined,
      'expected the obligations look, got none',
    ]);
  });

  test('a case may name a caller and an estimated cost', () => {
    expect(
      run(
        { ...base, estimated_cost_usd: 1.5, expect: 'deny', rule: 'costly' },
        { ...base, resource: 'mail', caller: 'acme/ops/boss', expect: 'allow', rule: 'by-boss' },
      ).map(({ passed }) => passed),
    ).toEqual([true, true]);
  });

  test('a case may leave out the resource, as a check may', () => {
    expect(
      run({ ...base, resource: '', expect: 'deny' }).map(({ name, passed, actual }) => [name, passed, actual.reason]),
    ).toEqual([['tool.call', true, 'no policy allows tool.call for acme/search/a1']]);
  });

  test('a fraction of a micro-dollar rounds up in a case as in a check', () => {
    expect(
      run(
        { ...base, estimated_cost_usd: 1.000_000_1, expect: 'deny', rule: 'costly' },
        { ...base, estimated_cost_usd: 1, expect: 'allow', rule: 'web' },
      ).map(({ passed }) => passed),
    ).toEqual([true, true]);
  });

  test.each([
    ['no list', {}, [], 'a policy test file must be a mapping with one key, cases, that holds a list'],
    ['another key beside', { cases: [], policies: 'x' }, ['policies'], 'unknown key; the only valid key is cases'],
    [
      'an agent that is no triple',
      { cases: [{ ...base, agent: 'a1', expect: 'deny' }] },
      ['cases', 0, 'agent'],
      'must be <org>/<team>/<agent>, or /<team>/<agent> for an agent without an org',
    ],
    [
      'attributes that are no mapping',
      { cases: [{ ...base, attributes: [], expect: 'deny' }] },
      ['cases', 0, 'attributes'],
      'must be a mapping',
    ],
    [
      'an empty action',
      { cases: [{ ...base, action: '', expect: 'deny' }] },
      ['cases', 0, 'action'],
      'must be a non-empty string',
    ],
    [
      'a resource that is no text',
      { cases: [{ ...base, resource: 5, expect: 'deny' }] },
      ['cases', 0, 'resource'],
      'must be a string, which may be empty',
    ],
    [
      'a negative cost',
      { cases: [{ ...base, estimated_cost_usd: -1, expect: 'deny' }] },
      ['cases', 0, 'estimated_cost_usd'],
      'must be an amount in US dollars from 0 to 1000000',
    ],
    ['no expectation', { cases: [base] }, ['cases', 0, 'expect'], 'must be allow, require_approval or deny'],
  ])('%s is refused', (_, raw, path, problem) => {
    const parsed = parsePolicyCases(raw);
    expect(parsed.ok ? [] : parsed.fault).toMatchObject([{ path, problem }]);
  });
});
