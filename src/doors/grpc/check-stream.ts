/** StreamCheckActions: checks pipelined on one stream, and answered as their decisions come. */
import { Metadata, type ServerDuplexStream, status } from '@grpc/grpc-js';
import { assert, fail, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import { binaryCodec } from '../proto/binary.ts';
import { correlationIdOf } from '../proto/check-binary.ts';
import type { CheckActionRequest, CheckActionResponse, StreamCheckActionsResponse } from '../proto/messages.ts';
import { endOfBearer } from '../rpc/bearer.ts';
import type { WirePorts } from '../rpc/ports.ts';
import { undecided } from '../rpc/requests.ts';
import { MAX_MESSAGE_BYTES } from '../shared/limits.ts';
import { authorizationOf } from './authorization.ts';
import { type GrpcStatus, grpcError } from './status.ts';

/** What a stream of checks is answered on, and told how fast it may come. */
export type CheckWire = {
  /** The metadata of that name, as it came. */
  readonly authorization: string | undefined;
  readonly isPaused: boolean;
  /** Hands over no more messages, until `resume`. */
  pause(): void;
  resume(): void;
  write(answer: StreamCheckActionsResponse): void;
  /** Ends the stream behind the answers, well or with an error. */
  end(error?: GrpcStatus): void;
};

type Check = (
  request: CheckActionRequest,
  authorization: string | undefined,
) => Promise<Result<CheckActionResponse, Fault>>;

export type CheckStreamOptions = {
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

/** One stream. It is open, then half-closed by the client while answers are still due, then over. */
export class CheckStream {
  readonly #wire: CheckWire;
  readonly #options: CheckStreamOptions;
  /** A check of the stream came without its agent's credential. */
  #needsBearer = false;
  #unanswered = 0;
  #isHalfClosed = false;
  #isOver = false;
  /** The client does not read its answers: no further checks are decided until it does. */
  #isBlocked = false;
  #endsWith: GrpcStatus | undefined;

  constructor(wire: CheckWire, options: CheckStreamOptions) {
    this.#wire = wire;
    this.#options = options;
  }

  /** The client has sent its last check. */
  halfClose(): void {
    this.#isHalfClosed = true;
    this.#endIfDone();
  }

  /** Answers wait for the client to read, until `unblock`. */
  block(): void {
    this.#isBlocked = true;
    this.#wire.pause();
  }

  unblock(): void {
    this.#isBlocked = false;
    this.#resumeIfCalm();
  }

  /** The client has gone, or has been told that the stream is over. */
  leave(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.onOver();
  }

  /** Takes no further check, sends the answers that are due, then ends with the fault. */
  close(fault: Fault): void {
    this.closeWith(grpcError(fault));
  }

  /** The same, in words of gRPC alone. */
  closeWith(error: GrpcStatus): void {
    if (this.#isOver || this.#endsWith !== undefined) return;
    this.#endsWith = error;
    this.#wire.pause();
    this.#endIfDone();
  }

  /** Closes the stream when the bearer that vouches for its agents is no longer valid. */
  async recheckBearer(ports: WirePorts): Promise<void> {
    const { authorization } = this.#wire;
    if (!this.#needsBearer || authorization === undefined || this.#isOver) return;
    const ended = await endOfBearer(ports, authorization);
    if (ended !== undefined) this.close(ended);
  }

  /** Takes one message of the client. */
  receive(bytes: Buffer): void {
    if (this.#isOver || this.#endsWith !== undefined) return;
    this.#options.count();
    const request = bytes.length > MAX_MESSAGE_BYTES ? TOO_LARGE : decode(bytes);
    if (!request.ok) {
      const correlationId = correlationIdOf(bytes);
      if (correlationId === undefined) this.close(request.fault);
      else this.#wire.write(undecided(correlationId, request.fault));
      return;
    }
    this.#unanswered += 1;
    if (this.#unanswered >= MAX_UNANSWERED) this.#wire.pause();
    const { correlationId, credentialToken } = request.value;
    if (credentialToken === '') this.#needsBearer = true;
    const onError = (error: unknown): void => {
      this.#options.onDefect(error);
      this.#answer(correlationId, INTERNAL);
    };
    try {
      this.#options
        .check(request.value, this.#wire.authorization)
        .then((answer) => this.#answer(correlationId, answer), onError);
    } catch (error) {
      onError(error); // if rethrown, it would end the thread, and with it everybody else's calls
    }
  }

  #answer(correlationId: string, answer: Result<CheckActionResponse, Fault>): void {
    this.#unanswered -= 1;
    if (this.#isOver) return;
    this.#wire.write(answer.ok ? answer.value : undecided(correlationId, answer.fault));
    // Nothing more is decided for a bearer that is no longer valid.
    if (!answer.ok && answer.fault.kind === 'unauthenticated') this.close(answer.fault);
    this.#resumeIfCalm();
    this.#endIfDone();
  }

  #resumeIfCalm(): void {
    if (this.#isOver || this.#isBlocked || this.#endsWith !== undefined || this.#unanswered > MAX_UNANSWERED / 2)
      return;
    if (this.#wire.isPaused) this.#wire.resume();
  }

  #endIfDone(): void {
    if (this.#isOver || this.#unanswered > 0) return;
    if (this.#endsWith === undefined && !this.#isHalfClosed) return;
    this.#wire.end(this.#endsWith);
    this.leave();
  }
}

export type CheckCall = ServerDuplexStream<Buffer, StreamCheckActionsResponse>;

/** Opens a stream of checks that comes through the library. */
export function overLibrary(call: CheckCall, open: (wire: CheckWire) => CheckStream): void {
  let isEnding = false;
  const stream = open({
    authorization: authorizationOf(call.metadata),
    get isPaused() {
      return call.isPaused();
    },
    pause: () => call.pause(),
    resume: () => call.resume(),
    write: (answer) => {
      if (!call.write(answer)) stream.block();
    },
    end: (error) => {
      isEnding = true;
      if (error === undefined) call.end();
      else call.emit('error', error);
    },
  });
  call
    .on('data', (bytes) => stream.receive(bytes))
    .on('end', () => stream.halfClose())
    .on('drain', () => stream.unblock());
  call.on('cancelled', () => stream.leave());
  refuseMessages(call, (error) => {
    if (isEnding) return false;
    stream.closeWith(error);
    return true;
  });
}

/** What the library says against a message that it does not take: too large, or compressed. */
const REFUSALS: readonly status[] = [status.RESOURCE_EXHAUSTED, status.UNIMPLEMENTED];

/**
 * Has `take` say what the library would say against a message at once, and end the call with. The library says it where
 * that is false.
 */
function refuseMessages(call: CheckCall, take: (error: GrpcStatus) => boolean): void {
  const { call: below } = call as unknown as {
    readonly call: {
      sendStatus(error: Partial<GrpcStatus> & { readonly code: status; readonly details: string }): void;
    };
  };
  assert(
    typeof below?.sendStatus === 'function',
    'this version of the library keeps what a stream writes to in its field call',
  );
  const sendStatus = below.sendStatus.bind(below);
  below.sendStatus = (error) => {
    if (!REFUSALS.includes(error.code) || !take({ metadata: new Metadata(), ...error })) sendStatus(error);
  };
}

const INTERNAL = fail({ kind: 'internal' } as const);
const TOO_LARGE = fail({ kind: 'payload_too_large', limitBytes: MAX_MESSAGE_BYTES } as const);
