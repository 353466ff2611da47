/** One stream of checks: questions go out without waiting, answers are matched to them by their correlation id. */
import { GatewayError } from './errors.ts';
import { type CheckMessage, STREAM_CHECK_ACTIONS, type StreamCheckReply } from './schema.ts';
import { type CheckCall, gatewayErrorOf } from './transport.ts';

export type Answered =
  | { readonly kind: 'answered'; readonly reply: StreamCheckReply }
  | { readonly kind: 'broken'; readonly error: GatewayError };

/** Called once: with the answer, or when the stream breaks before it. */
type Settle = (answered: Answered) => void;

/** In bytes. The gateway accepts no larger message, and sending one would break the stream for all other checks. */
const MAX_MESSAGE_BYTES = 1024 * 1024;
const TOO_LARGE = new GatewayError('resource_exhausted', `the check is larger than ${MAX_MESSAGE_BYTES} bytes`, {
  fault: 'payload_too_large',
});

export class CheckStream {
  readonly #call: CheckCall;
  /** Of those that are not answered yet, by their correlation id. */
  readonly #questions = new Map<string, Settle>();
  #lastId = 0;
  #isOver = false;
  #hasAnswered = false;

  constructor(call: CheckCall, address: string, onOver: (error: GatewayError, hasAnswered: boolean) => void) {
    this.#call = call;
    const end = (error: GatewayError): void => {
      if (this.#isOver) return;
      this.#isOver = true;
      onOver(error, this.#hasAnswered);
      for (const settle of this.#questions.values()) settle({ kind: 'broken', error });
      this.#questions.clear();
    };
    call.on('data', (reply) => this.#receive(reply));
    call.on('error', (error) => end(gatewayErrorOf(error, address)));
    // After an error this comes too late to matter; without one the gateway has ended the stream.
    call.on('end', () => end(new GatewayError('unavailable', 'the gateway ended the stream')));
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Checks of the stream without an answer, including those whose caller has given up. */
  get unanswered(): number {
    return this.#questions.size;
  }

  /** The check goes under an id of this stream. */
  ask(message: CheckMessage, settle: Settle): void {
    this.#lastId += 1;
    const correlationId = this.#lastId.toString(36);
    const bytes = STREAM_CHECK_ACTIONS.encode({ correlationId, ...message });
    if (bytes.length > MAX_MESSAGE_BYTES) return settle({ kind: 'broken', error: TOO_LARGE });
    this.#questions.set(correlationId, settle);
    // What is written is bounded by the checks in flight, so there is no need to wait for the stream to drain.
    this.#call.write(bytes);
  }

  #receive(reply: StreamCheckReply): void {
    this.#hasAnswered = true;
    const settle = this.#questions.get(reply.correlationId);
    if (settle === undefined) return;
    this.#questions.delete(reply.correlationId);
    settle({ kind: 'answered', reply });
  }
}
