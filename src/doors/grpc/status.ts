/** A fault as a gRPC status. */
import { Metadata, status } from '@grpc/grpc-js';
import { cutText } from '../../core/base/text.ts';
import { explain, type Fault } from '../../core/fault.ts';
import { RPC_CODE, type RpcCode, retryAfterSecs } from '../shared/rpc-code.ts';

export type GrpcStatus = { readonly code: status; readonly details: string; readonly metadata: Metadata };

export const plainStatus = (code: status, details: string): GrpcStatus => ({ code, details, metadata: new Metadata() });

/**
 * In characters. The HTTP/2 library cannot write trailers over 64 KiB: it answers no call of the connection any more.
 */
const MAX_DETAILS = 1000;

/**
 * In the trailing metadata: `svc-code`, the stable word for the fault, and `retry-after` in seconds where trying again
 * makes sense.
 */
export function grpcError(fault: Fault): GrpcStatus {
  const metadata = new Metadata();
  metadata.set('svc-code', fault.kind);
  const seconds = retryAfterSecs(fault);
  if (seconds > 0) metadata.set('retry-after', String(seconds));
  // The library's names are those of Connect in capitals.
  const name = RPC_CODE[fault.kind].toUpperCase() as Uppercase<RpcCode>;
  // Half a surrogate pair, quoted from a request, cannot be written as a status message.
  return { code: status[name], details: cutText(explain(fault), MAX_DETAILS).replace(/\p{Cs}/gu, '\ufffd'), metadata };
}
