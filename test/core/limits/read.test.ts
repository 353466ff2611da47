import { describe, expect, test } from 'vitest';
import { diffPolicies } from '../../../src/core/policy/diff.ts';
import { parsePolicyDocument } from '../../../src/core/policy/document.ts';
import { limitedPolicies } from '../../support/limits.ts';

const problemsOf = (...limits: readonly unknown[]) =>
  parsePolicyDocument({ name: 'p', scope: 'org:acme', limits }, 'p.yaml').problems.map(
    ({ path, problem }) => `${path.join('.')}: ${problem}`,
  );

describe('limits of a document', () => {
  test('are read, with what they leave out filled in', () => {
    const { document, problems } = parsePolicyDocument(
      {
        name: 'p',
        scope: 'org:acme',
        limits: [
          { id: 'calls', per: 'session', calls: 5 },
          {
            id: 'usd',
            per: 'team',
            usd: 0.5,
            every: '10m',
            actions: ['a.*'],
            resources: ['b'],
            on_exceed: 'ask',
            step: 0.25,
          },
        ],
      },
      'p.yaml',
    );
    expect(problems).toEqual([]);
    expect(document?.limits).toEqual([
      {
        id: 'calls',
        per: 'session',
        unit: 'calls',
        max: 5,
        everyMs: undefined,
        actions: ['*'],
        resources: ['*'],
        onExceed: 'deny',
        step: 5,
      },
      {
        id: 'usd',
        per: 'team',
        unit: 'usd',
        max: 500_000,
        everyMs: 600_000,
        actions: ['a.*'],
        resources: ['b'],
        onExceed: 'ask',
        step: 250_000,
      },
    ]);
  });

  test.each([
    [
      'no mapping',
      5,
      'limits.0: a limit must be a mapping with the keys id, per, calls, usd, tokens, every, actions, resources, on_exceed, step; this is a number',
    ],
    ['no maximum', { id: 'a', per: 'session' }, 'limits.0: one of calls, usd, tokens is missing'],
    [
      'two maxima',
      { id: 'a', per: 'session', calls: 1, usd: 1 },
      'limits.0.usd: a limit has one maximum, and calls is one already',
    ],
    [
      'no call at all',
      { id: 'a', per: 'session', calls: 0 },
      'limits.0.calls: must be a whole number from 1 to 1000000000000; to allow none, deny by a rule',
    ],
    [
      'half a token',
      { id: 'a', per: 'session', tokens: 1.5 },
      'limits.0.tokens: must be a whole number from 1 to 1000000000000; to allow none, deny by a rule',
    ],
    [
      'no money',
      { id: 'a', per: 'session', usd: 0 },
      'limits.0.usd: must be an amount in US dollars above 0, up to 1000000000',
    ],
    [
      'no span for an agent',
      { id: 'a', per: 'agent', calls: 1 },
      'limits.0: every is missing; only limits per session or lineage may leave it out',
    ],
    [
      'a span that is too short',
      { id: 'a', per: 'agent', calls: 1, every: '9s' },
      'limits.0.every: must be a duration such as 30s, 10m, 1h or 1d, from 10s to 31d',
    ],
    [
      'a span that is too long',
      { id: 'a', per: 'agent', calls: 1, every: '32d' },
      'limits.0.every: must be a duration such as 30s, 10m, 1h or 1d, from 10s to 31d',
    ],
    [
      'an unknown per',
      { id: 'a', per: 'user', calls: 1 },
      'limits.0.per: must be one of session, lineage, agent, team, org',
    ],
    [
      'an unknown word',
      { id: 'a', per: 'session', calls: 1, on_exceed: 'pause' },
      'limits.0.on_exceed: must be deny or ask',
    ],
    [
      'a step that nobody is asked for',
      { id: 'a', per: 'session', calls: 1, step: 1 },
      'limits.0.step: is only for limits whose on_exceed is ask',
    ],
    [
      'a mistyped key',
      { id: 'a', per: 'session', calls: 1, evry: '1m' },
      'limits.0.evry: unknown key; did you mean every?',
    ],
  ])('with %s are refused at their place', (_, limit, problem) => {
    expect(problemsOf(limit)).toEqual([problem]);
  });

  test('are at most 100, with ids of their own', () => {
    const many = Array.from({ length: 101 }, (_, nth) => ({ id: `l${nth}`, per: 'session', calls: 1 }));
    expect(problemsOf(...many)).toEqual(['limits: has 101 limits; the maximum per document is 100']);
    const twin = { id: 'twin', per: 'session', calls: 1 };
    expect(problemsOf(twin, twin)).toEqual([
      'limits.1.id: twin is also the id of limits[0]; ids must be unique within a document',
    ]);
  });

  test('are part of the version and of the history of the policies', () => {
    const before = limitedPolicies([{ id: 'a', per: 'session', calls: 1 }]);
    const after = limitedPolicies([{ id: 'a', per: 'agent', usd: 2, every: '60m', on_exceed: 'ask' }]);
    expect(before.version).not.toBe(after.version);
    const limits = (all: readonly object[]) => ({ name: 'limited', scope: 'global', limits: all });
    expect(diffPolicies(before.documents, after.documents)).toEqual([
      {
        kind: 'changed',
        document: 'limited',
        scope: 'global',
        ruleId: undefined,
        before: limits([{ id: 'a', per: 'session', calls: 1, actions: ['*'], resources: ['*'], on_exceed: 'deny' }]),
        after: limits([
          { id: 'a', per: 'agent', usd: 2, every: '1h', actions: ['*'], resources: ['*'], on_exceed: 'ask', step: 2 },
        ]),
      },
    ]);
  });
});
