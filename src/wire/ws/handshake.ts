/** What makes a request a WebSocket handshake (RFC 6455, 4.2.1). The library looks at its key alone. */
import type { HttpRequest as UwsRequest } from 'uWebSockets.js';

/**
 * Without the offer to upgrade, as where a proxy has taken it out, the connection would be a stream to the gateway
 * alone, and the proxy would send it the next request, maybe of another client. Drafts before the standard had other
 * versions.
 */
export function isHandshake(req: Pick<UwsRequest, 'getHeader' | 'forEach'>): boolean {
  let isForThisConnection = false;
  req.forEach((name, value) => {
    if (name === 'connection') isForThisConnection ||= /(?:^|,)[ \t]*upgrade[ \t]*(?:,|$)/i.test(value);
  });
  return (
    isForThisConnection &&
    req.getHeader('upgrade').toLowerCase() === 'websocket' &&
    req.getHeader('sec-websocket-version') === '13'
  );
}
