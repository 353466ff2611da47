import { describe, expect, test } from 'vitest';
import { explain } from '../../src/core/fault.ts';

describe('fault', () => {
  test('names the out-of-reach org, or says that all orgs are concerned', () => {
    expect(explain({ kind: 'org_forbidden', orgId: 'globex' })).toBe('this credential has no access to org globex');
    expect(explain({ kind: 'org_forbidden', orgId: '' })).toBe(
      'this credential has no access to anything without an org',
    );
    expect(explain({ kind: 'org_forbidden', orgId: undefined })).toBe(
      'this affects every org, but the credential is bound to one',
    );
  });

  test('a wait of one second is one second', () => {
    expect(explain({ kind: 'rate_limited', retryAfterSecs: 1, limit: 60 })).toBe(
      'the rate limit of 60 requests per minute is exceeded; try again in 1 second',
    );
    expect(explain({ kind: 'overloaded', retryAfterSecs: 1, what: 'the gateway' })).toBe(
      'the gateway is at its limit; try again in 1 second',
    );
    expect(explain({ kind: 'account_locked', retryAfterSecs: 900 })).toBe(
      'too many failed attempts; try again in 900 seconds',
    );
  });
});
