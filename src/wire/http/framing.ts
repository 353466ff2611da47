/** Where a body ends must not be a matter of opinion: a proxy with another one could be made to mix up its callers' requests. */
import type { HttpRequest as UwsRequest } from 'uWebSockets.js';

/** The one transfer coding there is here. The library takes any other for the absence of a body. */
export const isChunked = (transferEncoding: string): boolean => /^chunked$/i.test(transferEncoding);

/** False for lengths that contradict each other, and for transfer codings that are not understood (RFC 9112, 6.3). */
export function isSoundlyFramed(req: Pick<UwsRequest, 'forEach'>): boolean {
  let length: string | undefined;
  let isSound = true;
  req.forEach((name, value) => {
    if (name === 'transfer-encoding') isSound &&= isChunked(value);
    if (name !== 'content-length') return;
    isSound &&= length === undefined || length === value;
    length = value;
  });
  return isSound;
}
