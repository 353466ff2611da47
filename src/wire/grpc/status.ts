/** A fault as a gRPC status. */
import { Metadata, status } from '@grpc/grpc-js';
import { explain, type Fault } from '../../core/fault.ts';
import { retryAfterSecs } from '../retry.ts';
import { RPC_CODE, type RpcCode } from '../rpc-code.ts';

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
  // The library's names are those of Connect in capitals.
  const name = RPC_CODE[fault.kind].toUpperCase() as Uppercase<RpcCode>;
  // Half a surrogate pair, quoted from a request, cannot be written as a status message.
  return { code: status[name], details: explain(fault).replace(/\p{Cs}/gu, '\ufffd'), metadata };
}
