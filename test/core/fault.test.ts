import { describe, expect, test } from 'vitest';
import type { OpId } from '../../src/core/base/ids.ts';
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

  test('says of an operation that reported its end that it has completed', () => {
    const late = { kind: 'invalid_transition', opId: 'o:1' as OpId, trigger: 'pause' } as const;
    expect(explain({ ...late, from: 'completing' })).toBe('cannot pause operation o:1: it has completed');
    expect(explain({ ...late, from: 'terminated' })).toBe('cannot pause operation o:1: it is terminated');
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
