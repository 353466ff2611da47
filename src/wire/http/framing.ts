/**
 * A request must say without ambiguity where its body ends: a proxy that reads it differently could mix up its callers'
 * requests.
 */
import type { HttpRequest as UwsRequest } from 'uWebSockets.js';

/** The only transfer coding that is understood. The library treats any other as if there were no body. */
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
