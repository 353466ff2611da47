/** A stream of checks: questions go out without waiting, answers are matched to them by their correlation id. */
import { GatewayError } from './errors.ts';
import type { CheckMessage, StreamCheckReply } from './schema.ts';
import type { CheckCall } from './transport.ts';

export type Answered =
  | { readonly kind: 'answered'; readonly reply: StreamCheckReply }
  | { readonly kind: 'broken'; readonly error: GatewayError };

/** Called once: with the answer, or when the stream breaks before it. */
type Settle = (answered: Answered) => void;

const TOO_LARGE = new GatewayError('resource_exhausted', 'the check is larger than 1048576 bytes', {
  fault: 'payload_too_large',
});

export class CheckStream {
  readonly #call: CheckCall;
  /** Unanswered questions, by their correlation id. */
  readonly #questions = new Map<string, Settle>();
  #lastId = 0;
  #isOver = false;
  #hasAnswered = false;

  constructor(call: CheckCall, onOver: (hasAnswered: boolean) => void) {
    this.#call = call;
    const end = (error: GatewayError): void => {
      if (this.#isOver) return;
      this.#isOver = true;
      onOver(this.#hasAnswered);
      for (const settle of this.#questions.values()) settle({ kind: 'broken', error });
      this.#questions.clear();
    };
    call.on('data', (reply) => this.#receive(reply));
    call.on('error', end);
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
    this.#questions.set(correlationId, settle);
    if (this.#call.ask({ correlationId, ...message })) return;
    this.#questions.delete(correlationId);
    settle({ kind: 'broken', error: TOO_LARGE });
  }

  #receive(reply: StreamCheckReply): void {
    this.#hasAnswered = true;
    const settle = this.#questions.get(reply.correlationId);
    if (settle === undefined) return;
    this.#questions.delete(reply.correlationId);
    settle({ kind: 'answered', reply });
  }
}
