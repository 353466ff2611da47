/**
 * The table of methods of the door, and what a method of the two usual kinds needs to say: how its messages are decoded
 * and encoded, and what answers them. To add a service, put its methods into the table, by their paths:
 *
 *     ['/pkg.Service/Method', unary({ decode, encode, handle: async (request, call) => ok(response) })]
 */

import type { IncomingHttpHeaders } from 'node:http2';
import type { Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import { MAX_MESSAGE_BYTES } from '../shared/limits.ts';
import type { Call, Method, Receiver } from './call.ts';
import { type GrpcStatus, grpcError, OK } from './status.ts';

/** By their paths: `/package.Service/Method`. */
export type Methods = ReadonlyMap<string, Method>;

/** The options that a service of another protocol needs besides its ports. */
export type ForeignOptions = {
  /** Called for each message. */
  readonly count: () => void;
  /** Called with a defect that the service answers in its own words. */
  readonly onDefect: (error: unknown) => void;
};

/** Failures are faults of the gateway, or a status if a service has other words for them. */
export type Outcome<T> = Result<T, Fault | GrpcStatus>;

type Coded<Request, Response> = {
  readonly decode: (bytes: Buffer) => Outcome<Request>;
  readonly encode: (response: Response) => Buffer;
  readonly maxBytes?: number;
};

const statusOf = (fault: Fault | GrpcStatus): GrpcStatus => ('code' in fault ? fault : grpcError(fault));

/** Serves a unary method. */
export function unary<Request, Response>({
  decode,
  encode,
  maxBytes = MAX_MESSAGE_BYTES,
  keep,
  handle,
  statusOk = () => OK,
}: Coded<Request, Response> & {
  /** Picks the metadata to keep; the rest is dropped while the message is on its way. */
  readonly keep?: (metadata: IncomingHttpHeaders) => string | undefined;
  readonly handle: (request: Request, call: Call, kept: string | undefined) => Promise<Outcome<Response>>;
  /** With what metadata a success ends. */
  readonly statusOk?: (answered: Outcome<Response>) => GrpcStatus;
}): Method {
  const answer = (call: Call, bytes: Buffer, kept: string | undefined): void => {
    const request = decode(bytes);
    if (!request.ok) return call.end(statusOf(request.fault));
    handle(request.value, call, kept)
      .then((answered) => {
        if (call.cancelled) return;
        if (!answered.ok) return call.end(statusOf(answered.fault));
        call.end(statusOk(answered), encode(answered.value));
      })
      .catch((error: unknown) => call.fail(error));
  };
  return {
    request: 'one',
    response: 'one',
    maxBytes,
    open: (call, metadata) => {
      const kept = keep?.(metadata);
      return { receive: (bytes) => attempt(call, () => answer(call, bytes, kept)) };
    },
  };
}

/** Answers a request with a stream of messages. */
export type Sender<Response> = {
  readonly call: Call;
  /** False when the client has to read before more is written. */
  readonly write: (message: Response) => boolean;
};

/** Any number of messages for one message. The result of `handle` is told when the client reads, and of the end. */
export function serverStream<Request, Response>({
  decode,
  encode,
  maxBytes = MAX_MESSAGE_BYTES,
  isPublic = false,
  handle,
}: Coded<Request, Response> & {
  readonly isPublic?: boolean;
  readonly handle: (request: Request, to: Sender<Response>) => Pick<Receiver, 'drained' | 'over'>;
}): Method {
  const open = (call: Call): Receiver => {
    let handler: Pick<Receiver, 'drained' | 'over'> = {};
    const write = (message: Response): boolean => call.write(encode(message));
    return {
      receive: (bytes) =>
        attempt(call, () => {
          const request = decode(bytes);
          if (!request.ok) return call.end(statusOf(request.fault));
          handler = handle(request.value, { call, write });
        }),
      drained: () => handler.drained?.(),
      over: () => handler.over?.(),
    };
  };
  return { request: 'one', response: 'many', maxBytes, isPublic, open };
}

/** A defect that were thrown on would end the thread, and with it the calls of all others. */
function attempt(call: Call, act: () => void): void {
  try {
    act();
  } catch (error) {
    call.fail(error);
  }
}
