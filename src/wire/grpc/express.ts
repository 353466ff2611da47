/**
 * Answers ordinary unary calls past the gRPC library, which takes some 10 µs for each on top of what HTTP/2 itself takes. Ordinary
 * is a call whose one message comes uncompressed, in one piece and in the turn of its head, as nearly every check does. Any other
 * is handed to the library with what has come of it so far, as if it had just begun.
 */
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { Metadata, status } from '@grpc/grpc-js';
import type { Caller } from '../handle.ts';
import type { GrpcError } from './status.ts';
import type { AnswerUnary } from './unary.ts';

/** Serves a call from its head on: what the library listens with for new streams. `fields` has names and values in turns. */
export type Serve = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, fields: readonly string[]) => void;

/** Before a message: whether it is compressed, and its length. */
const PREFIX_BYTES = 5;

/** Serves the calls it can, by the answers of their paths, and hands the others to the library. */
export function expressLane(answers: ReadonlyMap<string, AnswerUnary>, library: Serve): Serve {
  let fresh: ExpressCall[] = [];
  const handOnTheIncomplete = (): void => {
    const looked = fresh;
    fresh = [];
    for (const call of looked) call.handOnIfIncomplete();
  };
  return (stream, headers, flags, fields) => {
    const answer = answers.get(headers[':path'] ?? '');
    const timeoutMs = timeoutOf(headers['grpc-timeout'] as string | undefined);
    if (answer === undefined || timeoutMs === undefined || !isOrdinary(headers, flags)) return library(stream, headers, flags, fields);
    const call = new ExpressCall(stream, { answer, authorization: headers.authorization, timeoutMs, handOn: () => library(stream, headers, flags, fields) });
    if (fresh.push(call) === 1) setImmediate(handOnTheIncomplete);
  };
}

/** By its head. The library leaves out metadata that is not printable ASCII, and answers what is wrong with other heads. */
function isOrdinary(headers: IncomingHttpHeaders, flags: number): boolean {
  const type = headers['content-type'];
  const encoding = headers['grpc-encoding'];
  return (type === 'application/grpc' || type === 'application/grpc+proto')
    && (encoding === undefined || encoding === 'identity')
    && (headers.authorization === undefined || /^[ -~]*$/.test(headers.authorization))
    && (flags & constants.NGHTTP2_FLAG_END_STREAM) === 0;
}

const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/** Infinity where there is no deadline; undefined where the library has to say what is wrong with it. */
function timeoutOf(header: string | undefined): number | undefined {
  if (header === undefined) return Infinity;
  const [, amount, unit] = /^(\d{1,8})([HMSmun])$/.exec(header) ?? [];
  return amount === undefined ? undefined : Math.trunc(Number(amount) * UNIT_MS[unit!]!);
}

type ExpressOptions = {
  readonly answer: AnswerUnary;
  readonly authorization: string | undefined;
  /** How long the client waits for the answer; Infinity: as long as it takes. */
  readonly timeoutMs: number;
  /** Hands the call to the library. */
  readonly handOn: () => void;
};

/** One call: it takes its message, then it has been handed on or is being answered, then it is over. */
class ExpressCall implements Caller {
  readonly #stream: ServerHttp2Stream;
  readonly #options: ExpressOptions;
  /** Its message with the prefix. */
  #message: Buffer | undefined;
  #isTaking = true;
  #isOver = false;
  #deadline: NodeJS.Timeout | undefined;

  constructor(stream: ServerHttp2Stream, options: ExpressOptions) {
    this.#stream = stream;
    this.#options = options;
    // Whatever it is, the stream is closed then, and nothing can be said over it any more.
    stream.on('error', () => undefined);
    stream.on('data', this.#take);
    stream.on('end', this.#answer);
    if (options.timeoutMs !== Infinity) this.#setDeadline(options.timeoutMs);
  }

  /** The client has its answer, or has gone. */
  get cancelled(): boolean { return this.#isOver || this.#stream.destroyed || this.#stream.closed; }

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
    clearTimeout(this.#deadline);
    this.#stream.off('data', this.#take).off('end', this.#answer).pause();
    if (received !== undefined) this.#stream.unshift(received);
    this.#options.handOn();
  }

  readonly #answer = (): void => {
    this.#isTaking = false;
    if (this.#message === undefined) return this.#refuse(NO_MESSAGE);
    const { answer, authorization } = this.#options;
    answer(this.#message.subarray(PREFIX_BYTES), authorization, this, (error, bytes) => {
      if (error === null) this.#send(bytes!);
      else this.#refuse(error);
    });
  };

  #send(answer: Buffer): void {
    if (this.#end()) return;
    const frame = Buffer.allocUnsafe(PREFIX_BYTES + answer.length);
    frame[0] = 0; // not compressed
    frame.writeUInt32BE(answer.length, 1);
    answer.copy(frame, PREFIX_BYTES);
    this.#stream.respond(HEAD, BEFORE_TRAILERS);
    this.#stream.once('wantTrailers', sendOk);
    this.#stream.end(frame);
  }

  #refuse({ code, details, metadata }: GrpcError): void {
    if (this.#end()) return;
    this.#stream.respond({ ...HEAD, 'grpc-status': code, 'grpc-message': encodeURI(details), ...metadata.toHttp2Headers() }, { endStream: true });
  }

  /** Whether the call is over already, as it is from now on. */
  #end(): boolean {
    const { cancelled } = this;
    this.#isOver = true;
    clearTimeout(this.#deadline);
    return cancelled;
  }

  #setDeadline(timeoutMs: number): void {
    this.#deadline = setTimeout(() => this.#refuse(DEADLINE_EXCEEDED), timeoutMs);
    this.#stream.once('close', () => clearTimeout(this.#deadline));
  }
}

/** Whether the piece is a whole message that is not compressed, and nothing else. */
const isOneMessage = (piece: Buffer): boolean => piece.length >= PREFIX_BYTES && piece[0] === 0 && piece.readUInt32BE(1) === piece.length - PREFIX_BYTES;

const HEAD = { ':status': 200, 'content-type': 'application/grpc+proto', 'grpc-accept-encoding': 'identity' } as const;
const BEFORE_TRAILERS = { waitForTrailers: true, sendDate: false }; // which gRPC has no use for

function sendOk(this: ServerHttp2Stream): void { this.sendTrailers({ 'grpc-status': status.OK, 'grpc-message': 'OK' }); }

// In the words of the library, which answers the same calls where they are not ordinary.
const DEADLINE_EXCEEDED = { code: status.DEADLINE_EXCEEDED, details: 'Deadline exceeded', metadata: new Metadata() };
const NO_MESSAGE = { code: status.UNIMPLEMENTED, details: 'Received no request message', metadata: new Metadata() };
