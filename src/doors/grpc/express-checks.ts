/**
 * StreamCheckActions past the gRPC library: the answers of one turn leave in one piece, and no message waits in a queue
 * of its own.
 */
import type { ServerHttp2Stream } from 'node:http2';
import { binaryCodec } from '../proto/binary.ts';
import type { StreamCheckActionsResponse } from '../proto/messages.ts';
import { MAX_BATCH_BYTES } from '../shared/limits.ts';
import type { Arrivals } from './arrivals.ts';
import type { CheckStream, CheckWire } from './check-stream.ts';
import { cutAtDeadline } from './deadline.ts';
import type { ExpressCall } from './express.ts';
import { beginAnswer, endAnswer, isGone, OK, sendStatus, tooLarge } from './express-answer.ts';
import { joinMessages, MessageReader } from './messages.ts';
import { type GrpcStatus, grpcError } from './status.ts';

const { encode } = binaryCodec('StreamCheckActionsResponse');

export type ExpressChecksOptions = {
  readonly open: (wire: CheckWire) => CheckStream;
  readonly arrivals: Arrivals;
  /** Called with a defect that occurred while answering; the caller is told `internal`. */
  readonly onDefect: (error: unknown) => void;
};

export class ExpressChecks implements CheckWire {
  readonly authorization: string | undefined;
  readonly #stream: ServerHttp2Stream;
  readonly #onDefect: (error: unknown) => void;
  readonly #checks: CheckStream;
  readonly #messages = new MessageReader();
  /** Of this turn. */
  #answers: StreamCheckActionsResponse[] = [];
  #hasStarted = false;
  #isPaused = false;
  /** The client has sent all it has to send. */
  #isAll = false;
  #isOver = false;

  constructor(call: ExpressCall, { open, arrivals, onDefect }: ExpressChecksOptions) {
    const { stream, authorization } = call;
    this.authorization = authorization;
    this.#stream = stream;
    this.#onDefect = onDefect;
    this.#checks = open(this);
    stream.on('data', (piece: Buffer) => {
      if (this.#isOver) return;
      this.#messages.add(piece);
      this.#read();
    });
    stream.on('end', () => {
      this.#isAll = true;
      this.#read();
    });
    stream.on('drain', () => this.#checks.unblock());
    stream.once('close', () => {
      this.#isOver = true;
      this.#checks.leave();
    });
    cutAtDeadline(call, (error) => this.#cut(error));
    arrivals.watchStream({ stream, sendStatus: (error) => this.#cut(error) });
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  pause(): void {
    this.#isPaused = true;
    this.#stream.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#read();
    if (!this.#isPaused) this.#stream.resume();
  }

  write(answer: StreamCheckActionsResponse): void {
    if (this.#answers.push(answer) === 1) process.nextTick(() => this.#flush());
  }

  end(outcome: GrpcStatus = OK): void {
    this.#flush();
    if (this.#cannotWrite) return;
    this.#isOver = true;
    if (this.#hasStarted) endAnswer(this.#stream, outcome);
    else sendStatus(this.#stream, outcome);
    this.#stream.resume(); // what still comes is let through: nothing else on the connection has to wait for it
  }

  #read(): void {
    while (!this.#isPaused && !this.#isOver) {
      const { nextLength } = this.#messages;
      if (nextLength !== undefined && nextLength > MAX_BATCH_BYTES)
        return this.#checks.closeWith(tooLarge(nextLength, MAX_BATCH_BYTES));
      const message = this.#messages.next();
      if (message === undefined) break;
      this.#checks.receive(message);
    }
    if (this.#isAll && !this.#isPaused && !this.#isOver) this.#checks.halfClose();
  }

  get #cannotWrite(): boolean {
    return this.#isOver || isGone(this.#stream);
  }

  #flush(): void {
    const answers = this.#answers;
    this.#answers = [];
    if (this.#cannotWrite || answers.length === 0) return;
    try {
      const messages = joinMessages(answers.map(encode));
      if (!this.#hasStarted) beginAnswer(this.#stream);
      this.#hasStarted = true;
      if (!this.#stream.write(messages)) this.#checks.block();
    } catch (error) {
      this.#onDefect(error); // thrown on, it would end the thread, and with it the calls of all others
      this.#cut(INTERNAL);
    }
  }

  /** Ends the stream, whatever is due on it. */
  #cut(error: GrpcStatus): void {
    this.end(error);
    this.#checks.leave();
  }
}

const INTERNAL = grpcError({ kind: 'internal' });
