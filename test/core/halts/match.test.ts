import { describe, expect, test } from 'vitest';
import { parseHaltScope } from '../../../src/core/halts/halt.ts';
import { matchOf } from '../../../src/core/halts/match.ts';
import { ADMIN, CRAWLER, checkOf, digestOf, openGovernor } from '../../support/governor.ts';

const governor = openGovernor();
const child = { ...CRAWLER, agentId: 'child' };
governor.apply<'register-agent'>(
  { type: 'register-agent', principal: ADMIN, agent: child, credential: digestOf(child), parent: CRAWLER },
  1,
);
const match = (scope: string) => matchOf(governor.agents, parseHaltScope(scope)!);
const create = (scope: string) => {
  const halt = { id: scope, mode: 'pause', actions: ['never'], reason: 'drill', expiresAtMs: undefined } as const;
  return governor.apply<'create-halt'>({ type: 'create-halt', principal: ADMIN, halt: { ...halt, scope } }, 2).reply;
};

describe('whom a halt is about', () => {
  test.each([
    ['global', 4],
    ['org:acme', 3],
    ['team:acme/search', 3],
    ['agent:acme/search/crawler', 1],
    ['lineage:acme/search/crawler', 2],
    ['org:globex', 1],
  ])('%s: %i registered agents', (scope, agents) => {
    expect(match(scope)).toEqual({ agents, nearest: undefined });
  });

  test.each([
    ['org:acmee', 'org:acme'],
    ['org:Globx', 'org:globex'],
    ['team:acme/serch', 'team:acme/search'],
    ['team:acmee/search', 'team:acme/search'],
    ['agent:acme/search/crawlr', 'agent:acme/search/crawler'],
    ['lineage:acme/serch/crawler', 'lineage:acme/search/crawler'],
    ['org:nothing-like-it', undefined],
    [`org:${'acme'.repeat(60)}`, undefined],
  ])('%s: nobody, but %s', (scope, nearest) => {
    expect(match(scope)).toEqual({ agents: 0, nearest });
  });

  test('counts as known who only has operations', () => {
    const vouched = { orgId: 'initech', teamId: 't', agentId: 'a' };
    governor.apply({ ...checkOf(vouched, 't:a'), credential: undefined, principal: ADMIN }, 3);
    expect(match('org:initech')).toEqual({ agents: 0, nearest: undefined });
  });
});

describe('a star in the scope of a halt', () => {
  test('is an error, as a scope is a name', () => {
    for (const scope of ['org:*', 'team:acme/*', 'agent:acme/search/craw*', 'lineage:acme/*/crawler'])
      expect(create(scope)).toMatchObject({ fault: { kind: 'invalid_argument', field: 'scope' } });
  });

  test('is accepted if an agent has such a name', () => {
    const starred = { orgId: 'acme', teamId: 'search', agentId: 'star*' };
    governor.apply<'register-agent'>(
      { type: 'register-agent', principal: ADMIN, agent: starred, credential: digestOf(starred), parent: undefined },
      4,
    );
    expect(create('agent:acme/search/star*').ok).toBe(true);
  });
});
