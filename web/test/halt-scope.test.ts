import { describe, expect, test } from 'vitest';
import { type HaltKind, hitBy, kindsFor, scopeOf } from '../src/control/halt-scope.ts';
import { modelOf, opFrame } from './frames.ts';

const CRAWLER = { org_id: 'acme', team_id: 'search', agent_id: 'crawler' };
const ops = modelOf(
  opFrame({ id: 'own:s' }),
  opFrame({ id: 'done:s', state: 'completing' }),
  opFrame({ id: 'child:s', team: 'billing', agent: 'child' }),
  opFrame({ id: 'mate:s', agent: 'mate', state: 'pending' }),
  opFrame({ id: 'other:s', org: 'globex' }),
).list({});
const hit = (kind: HaltKind): readonly string[] =>
  hitBy(ops, kind, CRAWLER, new Set(['billing/child']))
    .map(({ opId }) => opId)
    .sort();

describe('the scope of a halt', () => {
  test('is chosen among the possible meanings of known names', () => {
    expect(kindsFor(CRAWLER)).toEqual(['agent', 'lineage', 'team', 'org']);
    expect(kindsFor({ org_id: 'acme', team_id: 'search' })).toEqual(['team', 'org']);
    expect(kindsFor({ org_id: 'acme' })).toEqual(['org']);
    expect(kindsFor({})).toEqual([]);
    expect(kindsFor({ ...CRAWLER, org_id: '' })).toEqual(['agent', 'lineage', 'team']);
  });

  test('is written as the API takes it', () => {
    expect(scopeOf('agent', CRAWLER)).toBe('agent:acme/search/crawler');
    expect(scopeOf('lineage', CRAWLER)).toBe('lineage:acme/search/crawler');
    expect(scopeOf('team', CRAWLER)).toBe('team:acme/search');
    expect(scopeOf('org', CRAWLER)).toBe('org:acme');
    expect(scopeOf('global', {})).toBe('global');
  });

  test('says which operations it will stop, and none that have finished', () => {
    expect(hit('agent')).toEqual(['own:s']);
    expect(hit('lineage')).toEqual(['child:s', 'own:s']);
    expect(hit('team')).toEqual(['mate:s', 'own:s']);
    expect(hit('org')).toEqual(['child:s', 'mate:s', 'own:s']);
    expect(hit('global')).toEqual(['child:s', 'mate:s', 'other:s', 'own:s']);
  });
});
