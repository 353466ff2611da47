/**
 * Serves ordinary calls past the gRPC library, which takes more time for each message than everything else that a check
 * needs: some 10 µs on top of what HTTP/2 itself takes. Whatever is out of the ordinary is left to the library, which
 * knows what to do with it.
 */
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { timeoutOf } from './deadline.ts';

/**
 * Serves a call from its head on: what the library listens with for new streams. `fields` has names and values in
 * turns.
 */
export type Serve = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  flags: number,
  fields: readonly string[],
) => void;

/** An ordinary call, of which the head is read and nothing else. */
export type ExpressCall = {
  readonly stream: ServerHttp2Stream;
  /** The metadata of that name, as it came. */
  readonly authorization: string | undefined;
  /** How long the client waits for the end of the call; Infinity: as long as it takes. */
  readonly timeoutMs: number;
  /** Hands the call to the library. What has been read of it has to be put back before. */
  readonly handOn: () => void;
};

/** Takes the calls of the paths in the table, by what stands there, and leaves all others to the library. */
export function expressLane(table: ReadonlyMap<string, (call: ExpressCall) => void>, library: Serve): Serve {
  return (stream, headers, flags, fields) => {
    const take = table.get(headers[':path'] ?? '');
    const timeoutMs = timeoutOf(headers['grpc-timeout'] as string | undefined);
    const handOn = (): void => library(stream, headers, flags, fields);
    if (take === undefined || timeoutMs === undefined || !isOrdinary(headers, flags)) return handOn();
    stream.on('error', ignore);
    take({ stream, authorization: headers.authorization, timeoutMs, handOn });
  };
}

/**
 * By its head. The library leaves out metadata that is not printable ASCII, and answers what is wrong with other heads.
 */
function isOrdinary(headers: IncomingHttpHeaders, flags: number): boolean {
  const type = headers['content-type'];
  const encoding = headers['grpc-encoding'];
  return (
    headers[':method'] === 'POST' &&
    (type === 'application/grpc' || type === 'application/grpc+proto') &&
    (encoding === undefined || encoding === 'identity') &&
    (headers.authorization === undefined || /^[ -~]*$/.test(headers.authorization)) &&
    (flags & constants.NGHTTP2_FLAG_END_STREAM) === 0
  );
}

/** Any error here means the stream is already closed. */
const ignore = (): void => undefined;
