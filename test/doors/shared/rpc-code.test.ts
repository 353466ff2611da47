import { describe, expect, test } from 'vitest';
import type { OpId } from '../../../src/core/base/ids.ts';
import { explain, type Fault } from '../../../src/core/fault.ts';
import { connectError } from '../../../src/doors/connect/connect.ts';
import { grpcError } from '../../../src/doors/grpc/status.ts';

const opId = 't:s' as OpId;

describe('rpc code', () => {
  test.each<[Fault, number, string, number]>([
    [{ kind: 'invalid_argument', field: 'trace_id', problem: 'is wrong' }, 3, 'invalid_argument', 400],
    [{ kind: 'unauthenticated', detail: 'no' }, 16, 'unauthenticated', 401],
    [{ kind: 'insufficient_scope', needed: 'write', held: [] }, 7, 'permission_denied', 403],
    [{ kind: 'org_forbidden', orgId: 'acme' }, 7, 'permission_denied', 403],
    [{ kind: 'not_owner', opId }, 7, 'permission_denied', 403],
    [{ kind: 'impersonation' }, 7, 'permission_denied', 403],
    [{ kind: 'not_found', what: 'operation t:s' }, 5, 'not_found', 404],
    [{ kind: 'invalid_transition', opId, from: 'paused', trigger: 'complete' }, 9, 'failed_precondition', 400],
    [{ kind: 'conflict', detail: 'taken' }, 6, 'already_exists', 409],
    [{ kind: 'overloaded', retryAfterSecs: 1, what: 'the gateway' }, 8, 'resource_exhausted', 429],
    [{ kind: 'rate_limited', retryAfterSecs: 1, limit: 10 }, 8, 'resource_exhausted', 429],
    [{ kind: 'payload_too_large', limitBytes: 1 }, 8, 'resource_exhausted', 413],
    [{ kind: 'store_unreachable', retryAfterSecs: 1 }, 14, 'unavailable', 503],
    [{ kind: 'unreachable_gateway', gateway: 'two', retryAfterSecs: 1 }, 14, 'unavailable', 503],
    [{ kind: 'audit_unavailable' }, 14, 'unavailable', 503],
    [{ kind: 'shutting_down', retryAfterSecs: 1 }, 14, 'unavailable', 503],
    [{ kind: 'internal' }, 13, 'internal', 500],
  ])('%o is gRPC status %i, Connect code %s and HTTP status %i', (fault, status, code, httpStatus) => {
    expect(grpcError(fault)).toMatchObject({ code: status, details: explain(fault) });
    const reply = connectError(fault);
    expect({ status: reply.status, content: JSON.parse(reply.text.content.toString()) }).toEqual({
      status: httpStatus,
      content: { code, message: explain(fault) },
    });
  });

  test('a fault that quotes half a surrogate pair can still be sent', () => {
    expect(grpcError({ kind: 'invalid_argument', field: 'a\ud800', problem: 'is wrong' }).details).toBe(
      'a\ufffd: is wrong',
    );
  });
});
