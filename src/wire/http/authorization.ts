/** Who asks must not be a matter of opinion: of two Authorization headers, a proxy may have looked at the other one. */
import type { HttpRequest as UwsRequest } from 'uWebSockets.js';
import type { Fault } from '../../core/fault.ts';

/** Whether the header is there more than once, be it empty or a repetition. */
export function isAuthorizedTwice(req: Pick<UwsRequest, 'forEach'>): boolean {
  let times = 0;
  req.forEach((name) => { if (name === 'authorization') times += 1; });
  return times > 1;
}

export const AUTHORIZED_TWICE: Fault = { kind: 'invalid_argument', field: 'Authorization', problem: 'must not be sent more than once' };
