/** StreamCheckActions: checks pipelined on one stream, and answered as their decisions come. */
import type { ServerDuplexStream } from '@grpc/grpc-js';
import type { Fault } from '../../core/fault.ts';
import { fail, type Result } from '../../core/result.ts';
import { endOfBearer } from '../bearer.ts';
import { MAX_MESSAGE_BYTES } from '../limits.ts';
import type { WirePorts } from '../ports.ts';
import { binaryCodec } from '../proto/binary.ts';
import { correlationIdOf } from '../proto/check-binary.ts';
import type { CheckActionRequest, CheckActionResponse, StreamCheckActionsResponse } from '../proto/messages.ts';
import { undecided } from '../requests.ts';
import { authorizationOf } from './authorization.ts';
import { grpcError } from './status.ts';

export type CheckCall = ServerDuplexStream<Buffer, StreamCheckActionsResponse>;
type Check = (request: CheckActionRequest, authorization: string | undefined) => Promise<Result<CheckActionResponse, Fault>>;

export type CheckStreamOptions = {
  readonly check: Check;
  /** Called once for each check. */
  readonly count: () => void;
  readonly onDefect: (error: unknown) => void;
};

/** A stream is not read any further while this many of its checks wait for an answer, and is again at half of it. */
const MAX_UNANSWERED = 1024;

const { decode } = binaryCodec('StreamCheckActionsRequest');

/** One stream. It is open, then half-closed by the client while answers are still due, then over. */
export class CheckStream {
  readonly #call: CheckCall;
  readonly #options: CheckStreamOptions;
  readonly #authorization: string | undefined;
  /** A check of the stream has come without a credential of its agent. */
  #needsBearer = false;
  #unanswered = 0;
  #isHalfClosed = false;
  #isOver = false;
  /** The client does not read its answers: no further checks are decided until it does. */
  #isBlocked = false;
  #endsWith: Fault | undefined;

  constructor(call: CheckCall, options: CheckStreamOptions) {
    this.#call = call;
    this.#options = options;
    this.#authorization = authorizationOf(call.metadata);
    call.on('data', (bytes) => this.#receive(bytes));
    call.on('end', () => {
      this.#isHalfClosed = true;
      this.#endIfDone();
    });
    call.on('drain', () => {
      this.#isBlocked = false;
      this.#resumeIfCalm();
    });
    call.on('cancelled', () => { this.#isOver = true; });
  }

  /** Takes no further check, sends the answers that are due, then ends with the fault. */
  close(fault: Fault): void {
    if (this.#isOver || this.#endsWith !== undefined) return;
    this.#endsWith = fault;
    this.#call.pause();
    this.#endIfDone();
  }

  /** Closes the stream when the bearer that vouches for its agents is no longer valid. */
  async recheckBearer(ports: WirePorts): Promise<void> {
    if (!this.#needsBearer || this.#authorization === undefined || this.#isOver) return;
    const ended = await endOfBearer(ports, this.#authorization);
    if (ended !== undefined) this.close(ended);
  }

  #receive(bytes: Buffer): void {
    if (this.#isOver || this.#endsWith !== undefined) return;
    this.#options.count();
    const request = bytes.length > MAX_MESSAGE_BYTES ? TOO_LARGE : decode(bytes);
    if (!request.ok) {
      const correlationId = correlationIdOf(bytes);
      if (correlationId === undefined) this.close(request.fault);
      else this.#write(undecided(correlationId, request.fault));
      return;
    }
    this.#unanswered += 1;
    if (this.#unanswered >= MAX_UNANSWERED) this.#call.pause();
    const { correlationId, credentialToken } = request.value;
    if (credentialToken === '') this.#needsBearer = true;
    const onError = (error: unknown): void => {
      this.#options.onDefect(error);
      this.#answer(correlationId, INTERNAL);
    };
    try {
      this.#options.check(request.value, this.#authorization).then((answer) => this.#answer(correlationId, answer), onError);
    } catch (error) {
      onError(error); // thrown on, it would end the thread, and with it the calls of all others
    }
  }

  #answer(correlationId: string, answer: Result<CheckActionResponse, Fault>): void {
    this.#unanswered -= 1;
    if (this.#isOver) return;
    this.#write(answer.ok ? answer.value : undecided(correlationId, answer.fault));
    // Nothing more is decided for a bearer that is no longer valid.
    if (!answer.ok && answer.fault.kind === 'unauthenticated') this.close(answer.fault);
    this.#resumeIfCalm();
    this.#endIfDone();
  }

  #write(response: StreamCheckActionsResponse): void {
    if (this.#call.write(response)) return;
    this.#isBlocked = true;
    this.#call.pause();
  }

  #resumeIfCalm(): void {
    if (this.#isOver || this.#isBlocked || this.#endsWith !== undefined || this.#unanswered > MAX_UNANSWERED / 2) return;
    if (this.#call.isPaused()) this.#call.resume();
  }

  #endIfDone(): void {
    if (this.#isOver || this.#unanswered > 0) return;
    if (this.#endsWith !== undefined) this.#call.emit('error', grpcError(this.#endsWith));
    else if (this.#isHalfClosed) this.#call.end();
    else return;
    this.#isOver = true;
  }
}

const INTERNAL = fail({ kind: 'internal' } as const);
const TOO_LARGE = fail({ kind: 'payload_too_large', limitBytes: MAX_MESSAGE_BYTES } as const);
