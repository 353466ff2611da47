/** How a unary method is answered, over whichever protocol it was asked. */

import type { Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import type { Unconfirmed } from '../../ports/cluster.ts';
import type { Origin } from '../../use-cases/use-cases.ts';

export type Answer<T> = Promise<Result<T, Fault> & Unconfirmed>;
/**
 * `cancelled`, as grpc-js calls it: nobody reads the answer any more. The connection is gone, or the time for the
 * answer is over. `timeoutMs`: how long the caller waits for the answer, from the call on; undefined or Infinity: it
 * does not say.
 */
export type Caller = Origin & { readonly cancelled: boolean; readonly timeoutMs?: number | undefined };
/** `authorization` is the header or metadata of that name, as it came. */
export type Handle<Request, Response> = (
  request: Request,
  authorization: string | undefined,
  caller: Caller,
) => Answer<Response>;
