/** A fault as a gRPC status. */
import { Metadata, status } from '@grpc/grpc-js';
import { explain, type Fault } from '../../core/fault.ts';
import { retryAfterSecs } from '../retry.ts';
import { RPC_CODE, type RpcCode } from '../rpc-code.ts';

const STATUS = {
  invalid_argument: status.INVALID_ARGUMENT,
  failed_precondition: status.FAILED_PRECONDITION,
  unauthenticated: status.UNAUTHENTICATED,
  permission_denied: status.PERMISSION_DENIED,
  not_found: status.NOT_FOUND,
  already_exists: status.ALREADY_EXISTS,
  resource_exhausted: status.RESOURCE_EXHAUSTED,
  internal: status.INTERNAL,
  unimplemented: status.UNIMPLEMENTED,
  unavailable: status.UNAVAILABLE,
  deadline_exceeded: status.DEADLINE_EXCEEDED,
} as const satisfies Record<RpcCode, status>;

export type GrpcError = { readonly code: status; readonly details: string; readonly metadata: Metadata };

/**
 * In the trailing metadata: `svc-code`, the stable word for the fault, and `retry-after` in seconds where trying again makes
 * sense.
 */
export function grpcError(fault: Fault): GrpcError {
  const metadata = new Metadata();
  metadata.set('svc-code', fault.kind);
  const seconds = retryAfterSecs(fault);
  if (seconds > 0) metadata.set('retry-after', String(seconds));
  // Half a surrogate pair, quoted from a request, cannot be written as a status message.
  return { code: STATUS[RPC_CODE[fault.kind]], details: explain(fault).replace(/\p{Cs}/gu, '\ufffd'), metadata };
}
