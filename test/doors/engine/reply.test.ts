import { describe, expect, test } from 'vitest';
import type { Fault } from '../../../src/core/fault.ts';
import { problemOf } from '../../../src/doors/engine/reply.ts';

describe('reply', () => {
  test.each([
    [{ kind: 'audit_unavailable' }, 503, 1],
    [{ kind: 'shutting_down', retryAfterSecs: 1 }, 503, 1],
    [{ kind: 'store_unreachable', retryAfterSecs: 2 }, 503, 2],
    [{ kind: 'unreachable_gateway', gateway: 'two', retryAfterSecs: 1 }, 503, 1],
    [{ kind: 'overloaded', what: 'the gateway', retryAfterSecs: 5 }, 503, 5],
    [{ kind: 'rate_limited', limit: 60, retryAfterSecs: 7 }, 429, 7],
    [{ kind: 'account_locked', retryAfterSecs: 900 }, 423, 900],
  ] as const satisfies readonly (readonly [Fault, number, number])[])(
    '%j gives the retry time in its header and in its body',
    (fault, status, seconds) => {
      const { text, headers = [], ...problem } = problemOf(fault);
      expect(problem.status).toBe(status);
      expect(headers.filter(([name]) => name === 'Retry-After')).toEqual([['Retry-After', String(seconds)]]);
      expect(JSON.parse(String(text?.content))).toMatchObject({ status, code: fault.kind, retry_after_secs: seconds });
    },
  );

  test('a problem that a retry does not solve gives no retry time', () => {
    const { text, headers } = problemOf({ kind: 'not_found', what: 'operation t:1' });
    expect(headers).toEqual([]);
    expect(JSON.parse(String(text?.content))).toEqual({
      type: 'urn:svc-gateway:problem:not_found',
      title: 'Not Found',
      status: 404,
      detail: 'operation t:1 not found',
      code: 'not_found',
    });
  });
});
