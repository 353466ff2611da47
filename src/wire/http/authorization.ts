/** The Authorization header. It must say without ambiguity who asks: of two, a proxy may have checked the other one. */
import type { HttpRequest as UwsRequest } from 'uWebSockets.js';
import type { Fault } from '../../core/fault.ts';

/** Whether the header is there more than once, even if one is empty or both are equal. */
export function isAuthorizedTwice(req: Pick<UwsRequest, 'forEach'>): boolean {
  let times = 0;
  req.forEach((name) => {
    if (name === 'authorization') times += 1;
  });
  return times > 1;
}

export const AUTHORIZED_TWICE: Fault = {
  kind: 'invalid_argument',
  field: 'Authorization',
  problem: 'must not be sent more than once',
};
