/** How a unary call is answered, whichever way its one message has come: through the gRPC library or past it. */

import { binaryCodec } from '../proto/binary.ts';
import type { Caller } from '../rpc/handle.ts';
import type { UnaryMethod } from '../rpc/methods.ts';
import { type GrpcStatus, grpcError } from './status.ts';

/** Called once, with an error or with the bytes of the answer. */
export type Respond = (error: GrpcStatus | null, answer?: Buffer) => void;

/** `authorization` is the metadata of that name, as it came. */
export type AnswerUnary = (
  message: Buffer,
  authorization: string | undefined,
  caller: Caller,
  respond: Respond,
) => void;

export type UnaryWatch = {
  /** Called once for each call. */
  readonly count: () => void;
  /** Called with a defect that occurred while answering; the caller is told `internal`. */
  readonly onDefect: (error: unknown) => void;
};

export function unaryAnswer(
  { decode, response, maxBytes, handle }: UnaryMethod,
  { count, onDefect }: UnaryWatch,
): AnswerUnary {
  const encode = binaryCodec(response).encode;
  return (bytes, authorization, caller, respond) => {
    const onError = (error: unknown): void => {
      onDefect(error);
      respond(grpcError({ kind: 'internal' }));
    };
    count();
    if (bytes.length > maxBytes) return respond(grpcError({ kind: 'payload_too_large', limitBytes: maxBytes }));
    try {
      const message = decode.binary(bytes);
      if (!message.ok) return respond(grpcError(message.fault));
      handle(message.value as never, authorization, caller)
        .then((answer) => (answer.ok ? respond(null, encode(answer.value)) : respond(grpcError(answer.fault))))
        .catch(onError);
    } catch (error) {
      onError(error); // thrown on, it would end the thread, and with it the calls of all others
    }
  };
}
