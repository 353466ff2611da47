import { describe, expect, test } from 'vitest';
import { changedKeys } from '../src/pages/policies/changed-keys.ts';

describe('the keys of a changed rule', () => {
  test('are those that differ, as they were and as they are', () => {
    const before = { id: 'r', effect: 'deny', actions: ['a'], reason: 'no' };
    const after = { id: 'r', effect: 'deny', actions: ['a', 'b'], when: 'true' };
    expect(changedKeys({ before, after })).toEqual([
      { key: 'actions', before: '["a"]', after: '["a","b"]' },
      { key: 'reason', before: 'no', after: undefined },
      { key: 'when', before: undefined, after: 'true' },
    ]);
  });

  test('are all of a rule that was added or removed', () => {
    const rule = { id: 'r', effect: 'allow' };
    expect(changedKeys({ before: null, after: rule })).toEqual([{ key: 'effect', before: undefined, after: 'allow' }]);
    expect(changedKeys({ before: rule, after: null })).toEqual([{ key: 'effect', before: 'allow', after: undefined }]);
  });
});
