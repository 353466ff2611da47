/**
 * Corrects the headers of a call that Node.js or the gRPC library would misread or spend too much on, and those of the
 * library's answers. Bounds their size.
 */
import { constants, type Http2Server, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { logVerbosity, type Server, setLogVerbosity } from '@grpc/grpc-js';
import { assert } from '../../core/base/result.ts';
import { dropLongDeadline } from './deadline.ts';
import type { Serve } from './express.ts';

/**
 * As HTTP/2 counts them: names, values and 32 bytes for each field. The limit is low because a head is kept as long as
 * its call, and a stream may stay open and silent for as long as it likes. Clients are told the limit, so most of them
 * fail a larger call themselves; that of any other client is ended. The HTTP/2 library cannot read a single value over
 * 64 KiB: it ends the connection with all its calls.
 */
const MAX_HEAD_BYTES = 16 * 1024;
const FIELD_BYTES = 32;

/**
 * Call it once the server has its HTTP/2 servers, and before the first connection. `serveWith` wraps the library's
 * listener.
 */
export function correctHeads(server: Server, serveWith: (library: Serve) => Serve): void {
  // The library writes metadata that it cannot read to the standard error, and a mistyped credential is such metadata.
  setLogVerbosity(logVerbosity.NONE);
  const { http2Servers } = server as unknown as { readonly http2Servers: unknown };
  assert(http2Servers instanceof Map, 'this version of the library keeps its HTTP/2 servers in the map http2Servers');
  for (const http2 of (http2Servers as ReadonlyMap<Http2Server, unknown>).keys()) {
    http2.updateSettings({ maxHeaderListSize: MAX_HEAD_BYTES });
    const [library, ...others] = http2.listeners('stream') as Serve[];
    assert(library !== undefined && others.length === 0, 'this version of the library serves calls by one listener');
    const serve = serveWith((stream, headers, flags, fields) => {
      announceUncompressed(stream);
      library(stream, headers, flags, fields);
    });
    // It takes the place of the library's listener and calls it: of two listeners Node.js would copy the list at each
    // call.
    http2.removeAllListeners('stream').on('stream', ((stream, headers, flags, fields) => {
      if (isTooLarge(fields)) return endTooLarge(stream);
      if (headers.authorization !== undefined) joinAuthorizations(headers, fields);
      if (headers['grpc-encoding'] !== undefined) readUncompressed(headers);
      if (headers['grpc-timeout'] !== undefined) dropLongDeadline(headers, headers['grpc-timeout'] as string);
      serve(stream, headers, flags, fields);
    }) satisfies Serve);
  }
}

/**
 * Node.js enforces the limit only once the client has confirmed it. Until then, with HPACK, one byte may stand for an
 * earlier field of 4 KiB.
 */
function isTooLarge(fields: readonly string[]): boolean {
  let bytes = (fields.length / 2) * FIELD_BYTES;
  for (let at = 0; at < fields.length; at += 1) bytes += fields[at]!.length;
  return bytes > MAX_HEAD_BYTES;
}

function endTooLarge(stream: ServerHttp2Stream): void {
  stream.on('error', () => undefined); // its own error, for the code that it is closed with
  stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
}

/**
 * Of several authorization fields, Node.js silently keeps only the first. `authorizationOf` must see that there are
 * more.
 */
function joinAuthorizations(headers: IncomingHttpHeaders, fields: readonly string[]): void {
  let times = 0;
  for (let at = 0; at < fields.length; at += 2) if (fields[at] === 'authorization') times += 1;
  if (times > 1)
    headers.authorization = fields
      .filter((_value, at) => fields[at - 1] === 'authorization' && at % 2 === 1)
      .join(', ');
}

/**
 * The library would unpack 4 MiB out of as many kilobytes, for any caller and in all calls at once. So it is shown an
 * encoding that it does not know: it refuses messages that are compressed, quoting that name, and still reads those
 * that are not. HTTP takes no compressed bodies either.
 */
function readUncompressed(headers: IncomingHttpHeaders): void {
  if (headers['grpc-encoding'] !== 'identity') headers['grpc-encoding'] = 'any; send messages uncompressed';
}

/**
 * The library tells clients that it takes messages compressed, and when it refuses one, not what it takes. They may go
 * by either: what they hear decides how they send the next (gRPC, Compression).
 */
function announceUncompressed(stream: ServerHttp2Stream): void {
  const respond = stream.respond.bind(stream);
  stream.respond = (headers, options) => respond({ ...headers, 'grpc-accept-encoding': 'identity' }, options);
}
