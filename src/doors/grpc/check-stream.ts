/** StreamCheckActions: checks pipelined on one stream, and answered as their decisions come. */

import { fail, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import type { Origin } from '../../use-cases/use-cases.ts';
import { binaryCodec } from '../proto/binary.ts';
import { correlationIdOf } from '../proto/check-binary.ts';
import type { CheckActionRequest, CheckActionResponse, StreamCheckActionsResponse } from '../proto/messages.ts';
import { orgBehind } from '../rpc/batch-checks.ts';
import { endOfBearer } from '../rpc/bearer.ts';
import type { WirePorts } from '../rpc/ports.ts';
import { undecided } from '../rpc/requests.ts';
import { MAX_MESSAGE_BYTES } from '../shared/limits.ts';
import type { Call, Receiver } from './call.ts';
import { type GrpcStatus, grpcError } from './status.ts';

type Check = (
  request: CheckActionRequest,
  authorization: string | undefined,
  origin: Origin,
) => Promise<Result<CheckActionResponse, Fault>>;

export type CheckStreamOptions = {
  readonly ports: WirePorts;
  readonly check: Check;
  /** Called once for each check. */
  readonly count: () => void;
  readonly onDefect: (error: unknown) => void;
  /** Called once. */
  readonly onOver: () => void;
};

/** A stream is not read while this many of its checks await an answer; reading resumes at half of that. */
const MAX_UNANSWERED = 1024;

const { decode } = binaryCodec('StreamCheckActionsRequest');
const { encode } = binaryCodec('StreamCheckActionsResponse');

/** Serves one stream. It is open, then half-closed by the client while answers are still due, then over. */
export class CheckStream implements Receiver {
  readonly #call: Call;
  readonly #options: CheckStreamOptions;
  /** A check of the stream came without its agent's credential. */
  #needsBearer = false;
  #unanswered = 0;
  #isHalfClosed = false;
  #isOver = false;
  /** The client does not read its answers: no further checks are decided until it does. */
  #isBlocked = false;
  #endsWith: GrpcStatus | undefined;

  constructor(call: Call, options: CheckStreamOptions) {
    this.#call = call;
    this.#options = options;
  }

  /** Takes one message of the client. */
  receive(bytes: Buffer): void {
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
      this.#options
        .check(request.value, this.#call.authorization, this.#call)
        .then((answer) => this.#answer(correlationId, answer), onError);
    } catch (error) {
      onError(error); // if rethrown, it would end the thread, and with it everybody else's calls
    }
    const { ports } = this.#options;
    this.#call.recognize(() =>
      orgBehind(ports, request.value, this.#call.authorization, this.#call).then(
        (org) => org.ok && org.value !== undefined,
      ),
    );
  }

  /** The client has sent its last check. */
  halfClose(): void {
    this.#isHalfClosed = true;
    this.#endIfDone();
  }

  /** Takes no further check, sends the answers that are due, then ends with the status. */
  refuse(status: GrpcStatus): void {
    if (this.#isOver || this.#endsWith !== undefined) return;
    this.#endsWith = status;
    this.#call.pause();
    this.#endIfDone();
  }

  drained(): void {
    this.#isBlocked = false;
    this.#resumeIfCalm();
  }

  over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.onOver();
  }

  /** As `refuse`. */
  close(fault: Fault): void {
    this.refuse(grpcError(fault));
  }

  /** Closes the stream when the bearer that authorizes its agents is no longer valid. */
  async recheckBearer(ports: WirePorts): Promise<void> {
    const { authorization } = this.#call;
    if (!this.#needsBearer || authorization === undefined || this.#isOver) return;
    const ended = await endOfBearer(ports, authorization);
    if (ended !== undefined) this.close(ended);
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

  #write(answer: StreamCheckActionsResponse): void {
    try {
      if (this.#call.write(encode(answer))) return;
      this.#isBlocked = true;
      this.#call.pause();
    } catch (error) {
      this.#call.fail(error); // if rethrown, it would end the thread, and with it everybody else's calls
    }
  }

  #resumeIfCalm(): void {
    if (this.#isOver || this.#isBlocked || this.#endsWith !== undefined || this.#unanswered > MAX_UNANSWERED / 2)
      return;
    if (this.#call.isPaused) this.#call.resume();
  }

  #endIfDone(): void {
    if (this.#isOver || this.#unanswered > 0) return;
    if (this.#endsWith !== undefined || this.#isHalfClosed) this.#call.end(this.#endsWith);
  }
}

const INTERNAL = fail({ kind: 'internal' } as const);
const TOO_LARGE = fail({ kind: 'payload_too_large', limitBytes: MAX_MESSAGE_BYTES } as const);
