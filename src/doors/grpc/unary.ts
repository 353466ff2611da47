/**
 * A unary call past the gRPC library, as long as its one message comes uncompressed, in one piece and in the turn of
 * its head. Nearly every one does. Any other call is handed to the library with what has come of it, as if it had just
 * begun.
 */
import type { ServerHttp2Stream } from 'node:http2';
import type { Caller } from '../rpc/handle.ts';
import { cutAtDeadline } from './deadline.ts';
import type { ExpressCall } from './express.ts';
import { beginAnswer, endAnswer, isGone, NO_MESSAGE, OK, sendStatus } from './express-answer.ts';
import type { AnswerUnary } from './library-unary.ts';
import { joinMessages, PREFIX_BYTES } from './messages.ts';
import type { GrpcStatus } from './status.ts';

/** What takes the unary calls of a door, by what answers them. */
export function expressUnary(): (call: ExpressCall, answer: AnswerUnary) => void {
  let fresh: UnaryCall[] = [];
  const handOnIncomplete = (): void => {
    const calls = fresh;
    fresh = [];
    for (const call of calls) call.handOnIfIncomplete();
  };
  return (call, answer) => {
    if (fresh.push(new UnaryCall(call, answer)) === 1) setImmediate(handOnIncomplete);
  };
}

/** It takes its message, then it is handed on or answered, then it is over. */
class UnaryCall implements Caller {
  readonly #stream: ServerHttp2Stream;
  readonly #call: ExpressCall;
  readonly #answerTo: AnswerUnary;
  /** With its prefix. */
  #message: Buffer | undefined;
  #isTaking = true;
  #isOver = false;

  constructor(call: ExpressCall, answer: AnswerUnary) {
    this.#stream = call.stream;
    this.#call = call;
    this.#answerTo = answer;
    this.#stream.on('data', this.#take).on('end', this.#answer);
  }

  /** The client has its answer, or has gone. */
  get cancelled(): boolean {
    return this.#isOver || isGone(this.#stream);
  }

  /** At the end of the turn in which the call began. */
  handOnIfIncomplete(): void {
    if (this.#isTaking && !this.#stream.destroyed) this.#handOn(this.#message);
  }

  readonly #take = (piece: Buffer): void => {
    if (this.#message !== undefined) this.#handOn(Buffer.concat([this.#message, piece]));
    else if (isOneMessage(piece)) this.#message = piece;
    else this.#handOn(piece);
  };

  #handOn(received: Buffer | undefined): void {
    this.#isTaking = false;
    this.#stream.off('data', this.#take).off('end', this.#answer).pause();
    if (received !== undefined) this.#stream.unshift(received);
    this.#call.handOn();
  }

  readonly #answer = (): void => {
    this.#isTaking = false;
    const message = this.#message;
    if (message === undefined) return this.#refuse(NO_MESSAGE);
    this.#message = undefined; // the call may last for as long as its client does not take the answer
    cutAtDeadline(this.#call, (error) => this.#refuse(error));
    this.#answerTo(message.subarray(PREFIX_BYTES), this.#call.authorization, this, (error, answer) => {
      if (error !== null) return this.#refuse(error);
      if (this.#end()) return;
      beginAnswer(this.#stream);
      endAnswer(this.#stream, OK, joinMessages([answer!]));
    });
  };

  #refuse(error: GrpcStatus): void {
    if (!this.#end()) sendStatus(this.#stream, error);
  }

  /** Whether the call was over already. */
  #end(): boolean {
    const { cancelled } = this;
    this.#isOver = true;
    return cancelled;
  }
}

/** Whether the piece is a whole message that is not compressed, and nothing else. */
const isOneMessage = (piece: Buffer): boolean =>
  piece.length >= PREFIX_BYTES && piece[0] === 0 && piece.readUInt32BE(1) === piece.length - PREFIX_BYTES;
