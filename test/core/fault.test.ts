import { expect, test } from 'vitest';
import { explain } from '../../src/core/fault.ts';

test('who is bound to one org is told which org is out of reach, or that all of them are concerned', () => {
  expect(explain({ kind: 'org_forbidden', orgId: 'globex' })).toBe('this credential does not reach org globex');
  expect(explain({ kind: 'org_forbidden', orgId: '' })).toBe('this credential does not reach what has no org');
  expect(explain({ kind: 'org_forbidden', orgId: undefined })).toBe('this concerns every org, and the credential is bound to one');
});
