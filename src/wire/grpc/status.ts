/** How a fault is told over gRPC: the one table of status codes, twin of the HTTP one. */
import { Metadata, status } from '@grpc/grpc-js';
import { explain, type Fault, type FaultKind } from '../../core/fault.ts';

export const GRPC_STATUS = {
  invalid_argument: status.INVALID_ARGUMENT,
  unauthenticated: status.UNAUTHENTICATED,
  insufficient_scope: status.PERMISSION_DENIED,
  org_forbidden: status.PERMISSION_DENIED,
  role_forbidden: status.PERMISSION_DENIED,
  not_owner: status.PERMISSION_DENIED,
  registration_closed: status.PERMISSION_DENIED,
  foreign_origin: status.PERMISSION_DENIED,
  not_found: status.NOT_FOUND,
  method_not_allowed: status.UNIMPLEMENTED,
  unsupported_media_type: status.INVALID_ARGUMENT,
  invalid_transition: status.FAILED_PRECONDITION,
  email_taken: status.ALREADY_EXISTS,
  conflict: status.ALREADY_EXISTS,
  policy_invalid: status.FAILED_PRECONDITION,
  weak_password: status.INVALID_ARGUMENT,
  invalid_invite: status.INVALID_ARGUMENT,
  invalid_reset_token: status.INVALID_ARGUMENT,
  account_locked: status.PERMISSION_DENIED,
  rate_limited: status.RESOURCE_EXHAUSTED,
  account_store_unavailable: status.UNAVAILABLE,
  store_unreachable: status.UNAVAILABLE,
  audit_unavailable: status.UNAVAILABLE,
  overloaded: status.RESOURCE_EXHAUSTED,
  payload_too_large: status.RESOURCE_EXHAUSTED,
  internal: status.INTERNAL,
} as const satisfies Record<FaultKind, status>;

export type GrpcError = { readonly code: status; readonly details: string; readonly metadata: Metadata };

/**
 * The status of a fault. In the trailing metadata: `svc-code`, the stable word for it, and `retry-after` in seconds where trying
 * again makes sense.
 */
export function grpcError(fault: Fault): GrpcError {
  const metadata = new Metadata();
  metadata.set('svc-code', fault.kind);
  const seconds = retryAfterSecs(fault);
  if (seconds > 0) metadata.set('retry-after', String(seconds));
  // Half a surrogate pair, quoted from a request, cannot be written as a status message.
  return { code: GRPC_STATUS[fault.kind], details: explain(fault).replace(/\p{Cs}/gu, '\ufffd'), metadata };
}

/** 0 where trying again is of no use. */
export const retryAfterSecs = (fault: Fault): number => ('retryAfterSecs' in fault ? fault.retryAfterSecs : 0);
