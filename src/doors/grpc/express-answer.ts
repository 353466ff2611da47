/**
 * How a call is answered on its stream of HTTP/2, where it did not go through the library: a head, messages, and a
 * status.
 */
import type { OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { status } from '@grpc/grpc-js';
import { type GrpcStatus, plainStatus } from './status.ts';

const HEAD = { ':status': 200, 'content-type': 'application/grpc+proto', 'grpc-accept-encoding': 'identity' } as const;

/**
 * Nobody reads an answer any more: the call was cancelled, or its connection ended. The event `close` may tell of it
 * much later.
 */
export const isGone = (stream: ServerHttp2Stream): boolean => stream.destroyed || stream.closed;

/** Begins an answer. Its messages follow, then `endAnswer`. */
export function beginAnswer(stream: ServerHttp2Stream): void {
  stream.respond(HEAD, { waitForTrailers: true });
}

/** Ends an answer that was begun, with what is left of its messages. */
export function endAnswer(stream: ServerHttp2Stream, outcome: GrpcStatus, messages?: Buffer): void {
  stream.once('wantTrailers', outcome === OK ? sendOk : () => stream.sendTrailers(trailersOf(outcome)));
  stream.end(messages);
}

/** Answers without a message. */
export function sendStatus(stream: ServerHttp2Stream, outcome: GrpcStatus): void {
  stream.respond({ ...trailersOf(outcome), ...HEAD }, { endStream: true });
}

const trailersOf = ({ code, details, metadata }: GrpcStatus): OutgoingHttpHeaders => ({
  'grpc-status': code,
  'grpc-message': encodeURI(details),
  ...metadata.toHttp2Headers(),
});

function sendOk(this: ServerHttp2Stream): void {
  this.sendTrailers({ 'grpc-status': status.OK, 'grpc-message': 'OK' });
}

export const OK = plainStatus(status.OK, 'OK');

// In the words of the library, which answers the same calls where they are not ordinary.
export const DEADLINE_EXCEEDED = plainStatus(status.DEADLINE_EXCEEDED, 'Deadline exceeded');
export const NO_MESSAGE = plainStatus(status.UNIMPLEMENTED, 'Received no request message');

/** `length` is of the message that was announced, in bytes. */
export const tooLarge = (length: number, most: number): GrpcStatus =>
  plainStatus(status.RESOURCE_EXHAUSTED, `Received message larger than max (${length} vs ${most})`);
