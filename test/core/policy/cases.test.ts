import { describe, expect, test } from 'vitest';
import { parseHaltsFile } from '../../../src/core/policy/assumed-halts.ts';
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

function policies() {
  const compiled = compilePolicies(document === undefined ? [] : [document]);
  if (!compiled.ok) throw new Error(JSON.stringify(compiled));
  return compiled.value;
}

function run(...cases: readonly object[]) {
  const parsed = parsePolicyCases({ cases });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed));
  return runPolicyCases(policies(), parsed.value);
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
    ['global', 'halt', 'halt'],
    ['org:acme', 'halt', 'no_rule'],
    ['agent:acme/search/a1', 'halt', 'no_rule'],
    ['lineage:acme/search/a1', 'halt', 'no_rule'],
    ['org:globex', undefined, 'halt'],
  ])('a halt of %s decides before any rule, for whom it covers', (scope, own, other) => {
    const parsed = parsePolicyCases({
      halts: [{ scope, actions: ['tool.*'], reason: 'leak' }],
      cases: [
        { ...base, expect: 'deny', cause: 'halt' },
        { ...base, agent: 'globex/search/a1', expect: 'deny', cause: 'halt' },
        { ...base, action: 'llm.call', resource: 'web_page', expect: 'allow', rule: 'web' },
      ],
    });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.fault));
    const [first, second, third] = runPolicyCases(policies(), parsed.value);
    expect([first?.actual.cause, second?.actual.cause, third?.actual.cause]).toEqual([own, other, undefined]);
    if (own === 'halt') expect(first?.actual.reason).toBe(`a halt of ${scope} is in force: leak`);
  });

  test('a case that expects another cause fails, and says which it got', () => {
    expect(
      run(
        { ...base, resource: 'mail', expect: 'deny', cause: 'rule' },
        { ...base, resource: 'mail', estimated_cost_usd: 2, expect: 'deny', cause: 'rule' },
      ).map(({ difference }) => difference),
    ).toEqual([
      'expected the cause rule, got no_rule: no policy allows tool.call on mail for acme/search/a1',
      undefined,
    ]);
  });

  test('a list of halts of a gateway is taken, without those released', () => {
    const listed = {
      id: 'h1',
      scope: 'org:acme',
      mode: 'terminate',
      actions: ['*'],
      reason: 'leak',
      created_by: 'key:1',
      created_at: '2026-11-04T12:00:00.000Z',
      expires_at: null,
      released_at: null,
      released_by: null,
      release_reason: null,
    };
    const parsed = parseHaltsFile({
      halts: [listed, { ...listed, scope: 'global', released_at: '2026-11-04T13:00:00.000Z' }],
      next_cursor: null,
    });
    expect(parsed.ok && parsed.value.map(({ text }) => text)).toEqual(['org:acme']);
    expect(parseHaltsFile({ halts: [{ scope: 'org:acme', resons: 'x' }] })).toEqual({
      ok: false,
      fault: [{ path: ['halts', 0, 'resons'], problem: 'unknown key; did you mean reason?', onKey: true }],
    });
  });

  test.each([
    ['no list', {}, [], 'a policy test file must be a mapping with the key cases, that holds a list'],
    ['another key beside', { cases: [], policies: 'x' }, ['policies'], 'unknown key; valid keys are cases, halts'],
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
