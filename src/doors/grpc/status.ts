/** How a call of gRPC ends: the codes, and a fault of the gateway as such an end. */
import { cutText } from '../../core/base/text.ts';
import { explain, type Fault } from '../../core/fault.ts';
import { RPC_CODE, retryAfterSecs } from '../shared/rpc-code.ts';

/** The codes of gRPC (statuscodes.md), by the names that Connect gives them. */
export const CODE = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalid_argument: 3,
  deadline_exceeded: 4,
  not_found: 5,
  already_exists: 6,
  permission_denied: 7,
  resource_exhausted: 8,
  failed_precondition: 9,
  aborted: 10,
  out_of_range: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  data_loss: 15,
  unauthenticated: 16,
} as const;

/** Names in lower case. The value of a name that ends in `-bin` is base64. */
export type Metadata = Readonly<Record<string, string | readonly string[]>>;

export type GrpcStatus = { readonly code: number; readonly details: string; readonly metadata?: Metadata };

export const OK: GrpcStatus = { code: CODE.ok, details: '' };

/**
 * In characters. The HTTP/2 library cannot write trailers over 64 KiB: it answers no call of the connection any more.
 */
const MAX_DETAILS = 1000;

/**
 * In the trailing metadata: `svc-code`, the stable word for the fault, and `retry-after` in seconds where trying again
 * makes sense.
 */
export function grpcError(fault: Fault): GrpcStatus {
  const seconds = retryAfterSecs(fault);
  return {
    code: CODE[RPC_CODE[fault.kind]],
    // Half a surrogate pair, quoted from a request, cannot be written as a status message.
    details: cutText(explain(fault), MAX_DETAILS).replace(/\p{Cs}/gu, '\ufffd'),
    metadata: { 'svc-code': fault.kind, ...(seconds > 0 ? { 'retry-after': String(seconds) } : {}) },
  };
}

/** The trailers of a call. */
export const trailersOf = ({ code, details, metadata }: GrpcStatus): Record<string, string | string[]> => ({
  ...(metadata as Record<string, string | string[]> | undefined),
  'grpc-status': String(code),
  ...(details === '' ? {} : { 'grpc-message': encodeURI(details) }),
});

export const DEADLINE_EXCEEDED: GrpcStatus = { code: CODE.deadline_exceeded, details: 'Deadline exceeded' };
export const NO_MESSAGE: GrpcStatus = { code: CODE.unimplemented, details: 'Received no request message' };
export const SECOND_MESSAGE: GrpcStatus = { code: CODE.unimplemented, details: 'Received a second request message' };
export const INTERNAL = grpcError({ kind: 'internal' });
