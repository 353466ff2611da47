import { expect, test } from 'vitest';
import { explain } from '../../src/core/fault.ts';

test('who is bound to one org is told which org is out of reach, or that all of them are concerned', () => {
  expect(explain({ kind: 'org_forbidden', orgId: 'globex' })).toBe('this credential does not reach org globex');
  expect(explain({ kind: 'org_forbidden', orgId: '' })).toBe('this credential does not reach what has no org');
  expect(explain({ kind: 'org_forbidden', orgId: undefined })).toBe('this concerns every org, and the credential is bound to one');
});

test('a wait of one second is one second', () => {
  expect(explain({ kind: 'rate_limited', retryAfterSecs: 1, limit: 60 })).toBe('more than 60 requests a minute; try again in 1 second');
  expect(explain({ kind: 'overloaded', retryAfterSecs: 1, what: 'the gateway' })).toBe('the gateway is at its limit; try again in 1 second');
  expect(explain({ kind: 'account_locked', retryAfterSecs: 900 })).toBe('too many failed attempts; try again in 900 seconds');
});
