import { describe, expect, test } from 'vitest';
import type { OpFilter } from '../src/live/op-filter.ts';
import { modelOf, opFrame } from './frames.ts';

const model = modelOf(
  opFrame({
    id: 'a:s',
    agent: 'a1',
    payload: { action: 'tool.call', resource: 'web_search', policy: 'p', rule_id: 'r' },
  }),
  opFrame({ id: 'b:s', agent: 'a10', state: 'terminated', payload: { action: 'file.read', ended: 'denied' } }),
  opFrame({ id: 'c:s', org: 'globex', team: 'billing', agent: 'bot', state: 'paused' }),
  opFrame({ id: 'd:s', org: null, team: 'search', agent: 'lone', state: 'completing' }),
);
const found = (filter: OpFilter): readonly string[] =>
  model
    .list(filter)
    .map(({ opId }) => opId)
    .sort();

describe('the filter of operations', () => {
  test('takes the names and words of the API', () => {
    expect(found({ org_id: 'globex' })).toEqual(['c:s']);
    expect(found({ team_id: 'search' })).toEqual(['a:s', 'b:s', 'd:s']);
    expect(found({ agent_id: 'a1' })).toEqual(['a:s']);
    expect(found({ state: 'paused' })).toEqual(['c:s']);
    expect(found({ state: 'active' })).toEqual(['a:s', 'c:s']);
    expect(found({ state: 'terminated' })).toEqual(['b:s']);
    expect(found({ ended: 'denied' })).toEqual(['b:s']);
    expect(found({ ended: 'completed' })).toEqual(['d:s']);
    expect(found({ policy: 'p', rule_id: 'r' })).toEqual(['a:s']);
    expect(found({ policy: 'p', rule_id: 'other' })).toEqual([]);
  });

  test('takes patterns for actions and resources, as rules do', () => {
    expect(found({ action: 'tool.*' })).toEqual(['a:s']);
    expect(found({ action: 'tool' })).toEqual([]);
    expect(found({ resource: 'web_searc?' })).toEqual(['a:s']);
  });

  test('finds words in actions, resources, ids and names', () => {
    expect(found({ q: 'WEB_search' })).toEqual(['a:s']);
    expect(found({ q: 'globex bot' })).toEqual(['c:s']);
    expect(found({ q: 'b:s' })).toEqual(['b:s']);
    expect(found({ q: 'nothing' })).toEqual([]);
  });

  test('takes a name with slashes as a whole, also as it is shown', () => {
    expect(found({ q: 'acme/search/a1' })).toEqual(['a:s']);
    expect(found({ q: 'acme / search / a1' })).toEqual(['a:s']);
    expect(found({ q: 'acme/search' })).toEqual(['a:s', 'b:s']);
    expect(found({ q: '– / search / lone' })).toEqual(['d:s']);
  });
});
