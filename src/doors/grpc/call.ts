/** A gRPC call: a stream of HTTP/2 with messages on it, its deadline, its bounds and its end. */
import {
  constants,
  type Http2Session,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Bounded, Bounds } from './bounds.ts';
import type { Head } from './head.ts';
import { joinMessages, MessageReader, PREFIX_BYTES } from './messages.ts';
import {
  CODE,
  DEADLINE_EXCEEDED,
  type GrpcStatus,
  grpcError,
  INTERNAL,
  type Metadata,
  NO_MESSAGE,
  OK,
  SECOND_MESSAGE,
  trailersOf,
} from './status.ts';

/** Serves one call. The methods are called in this order. */
export type Receiver = {
  /** Receives a message of the client. A unary request has come whole, and the client has ended it. */
  readonly receive: (message: Buffer) => void;
  /** The client of a stream has sent its last message. */
  readonly halfClose?: () => void;
  /** The client of a stream has sent a message that is not taken. Without this, the call ends with the status. */
  readonly refuse?: (status: GrpcStatus) => void;
  /** The client has read all that was written, after `write` has answered false. */
  readonly drained?: () => void;
  /** The client has gone, or the call has its status. Called once. */
  readonly over?: () => void;
};

export type Method = {
  /** How many messages. */
  readonly request: 'one' | 'many';
  readonly response: 'one' | 'many';
  /** Limits a message of the client. */
  readonly maxBytes: number;
  /**
   * Whether a stream may stay open although its caller has shown no valid credential (see `Call.recognize`). Otherwise
   * it is ended when the time for one message is over.
   */
  readonly isPublic?: boolean;
  /** `metadata` is everything in the head. Kept fields stay in memory for as long as the call. */
  readonly open: (call: Call, metadata: IncomingHttpHeaders) => Receiver;
};

export type CallOptions = {
  readonly stream: ServerHttp2Stream;
  readonly head: Head;
  readonly method: Method;
  readonly bounds: Bounds;
  /** The client's address. */
  readonly address: string;
  /** Called with a defect that occurred while answering; the caller gets `internal`. */
  readonly onDefect: (error: unknown) => void;
};

/** In bytes. A client that reads no more than this within its time counts as stalled. */
const PIECE_BYTES = 16 * 1024;
/** Approximate memory of an unauthenticated or incomplete call, besides its bytes. */
const CALL_BYTES = 8 * 1024;

const HEAD = { ':status': 200, 'content-type': 'application/grpc+proto', 'grpc-accept-encoding': 'identity' } as const;

const NO_ROOM = grpcError({ kind: 'overloaded', retryAfterSecs: 1, what: 'the size of incomplete messages' });
const TOO_SLOW: GrpcStatus = {
  code: CODE.deadline_exceeded,
  details: 'the rest of the message did not arrive in time',
};
const INCOMPLETE: GrpcStatus = { code: CODE.internal, details: 'the stream was ended within a message' };
const STRANGER = grpcError({
  kind: 'unauthenticated',
  detail: 'no message with a valid credential has come in time; open a stream when there is something to send',
});

/** Serves a call until it is opened. */
const NOBODY: Receiver = { receive: () => undefined };

/** It is open until it has a status; then it is over, and what was written before leaves. */
export class Call implements Bounded {
  /** The metadata of that name, as it came. */
  readonly authorization: string | undefined;
  readonly traceparent: string | undefined;
  /** From the call on; Infinity: no deadline. */
  readonly timeoutMs: number;
  readonly address: string;
  readonly #stream: ServerHttp2Stream;
  readonly #method: Method;
  readonly #bounds: Bounds;
  readonly #onDefect: (error: unknown) => void;
  readonly #encoding: string | undefined;
  #receiver = NOBODY;
  readonly #openedMs = performance.now();
  #deadline: NodeJS.Timeout | undefined;

  readonly #reader = new MessageReader();
  /** The one message of a request, until the client ends it. */
  #message: Buffer | undefined;
  /** The client has sent all it has to send. */
  #isAll = false;
  /** That has been passed on, of a stream. */
  #isHalfClosed = false;
  #isPaused = false;
  /** Since when something has been awaited of the client; undefined between the messages of a stream. */
  #sinceMs: number | undefined;
  #pieceMs = this.#openedMs;
  /** Bytes of this call that count as half sent. */
  #heldBytes = 0;
  #isIncomplete = false;
  /** A stream whose caller has shown no valid credential. */
  #isStranger = false;
  #isAsking = false;
  #hasPlace = false;

  /** Not handed to the stream yet: messages, and before them the rest of one that leaves in pieces. */
  readonly #waiting: Buffer[] = [];
  #rest: Buffer | undefined;
  #waitingBytes = 0;
  #isWriting = false;
  #isScheduled = false;
  #isBlocked = false;
  #hasBegun = false;
  #isEnded = false;
  #status: GrpcStatus | undefined;
  #isOver = false;
  #unreadSinceMs: number | undefined;

  constructor({ stream, head, method, bounds, address, onDefect }: CallOptions, metadata: IncomingHttpHeaders) {
    this.#stream = stream;
    this.#method = method;
    this.#bounds = bounds;
    this.#onDefect = onDefect;
    this.#encoding = head.encoding;
    this.authorization = head.authorization;
    this.traceparent = head.traceparent;
    this.timeoutMs = head.timeoutMs;
    this.address = address;
    if (method.request === 'one') this.#sinceMs = this.#openedMs;
    bounds.add(this);
    stream.on('data', this.#take).on('end', this.#endRequest).on('close', this.#close);
    if (head.timeoutMs !== Infinity) this.#deadline = setTimeout(() => this.end(DEADLINE_EXCEEDED), head.timeoutMs);
    this.#open(metadata);
  }

  /** Nobody reads the answer any more. The event `close` of the stream may tell of it much later. */
  get cancelled(): boolean {
    return this.#isOver || this.#isGone;
  }

  get session(): Http2Session | undefined {
    return this.#stream.session;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Messages that the client has yet to read, without those that have left for it. */
  get waiting(): number {
    return this.#waiting.length;
  }

  get unreadBytes(): number {
    return this.#waitingBytes + this.#stream.writableLength;
  }

  get unreadSinceMs(): number {
    return this.#unreadSinceMs ?? Infinity;
  }

  /** Hands over no more messages, until `resume`. */
  pause(): void {
    this.#isPaused = true;
    this.#stream.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#read();
    if (!this.#isPaused) this.#stream.resume();
  }

  /**
   * Asks whether the caller of a stream has shown a valid credential; if so, the stream may stay, and be silent. Asks
   * nothing where that is known or being asked already.
   */
  recognize(ask: () => Promise<boolean>): void {
    if (!this.#isStranger || this.#isAsking) return;
    this.#isAsking = true;
    ask()
      .then((isKnown) => {
        if (!isKnown || !this.#isStranger) return;
        this.#isStranger = false;
        this.#bounds.recognize(this.address);
        this.#account();
      })
      .catch(this.#onDefect)
      .finally(() => {
        this.#isAsking = false;
      });
  }

  /** Sends the head of the answer, before there is a message. */
  begin(metadata: Metadata = {}): void {
    if (!this.cancelled && !this.#hasBegun)
      this.#begin({ ...(metadata as Record<string, string | string[]>), ...HEAD });
  }

  /** False when the client has to read before more is written. The messages of one turn leave together. */
  write(message: Buffer): boolean {
    if (this.cancelled) return true;
    this.#waiting.push(message);
    this.#waitingBytes += PREFIX_BYTES + message.length;
    if (!this.#isScheduled && !this.#isWriting) {
      this.#isScheduled = true;
      process.nextTick(() => this.#pump());
    }
    this.#isBlocked ||= this.unreadBytes >= PIECE_BYTES;
    return !this.#isBlocked;
  }

  /** Ends the call behind what was written, and a last message. */
  end(status: GrpcStatus = OK, last?: Buffer): void {
    if (this.#isOver) return;
    if (last !== undefined) {
      this.#waiting.push(last);
      this.#waitingBytes += PREFIX_BYTES + last.length;
    }
    this.#status = status;
    this.#finish();
    if (this.#isGone) return;
    if (this.#stream.readableEnded) return this.#pump();
    // A status alone is one frame; trailers behind messages may leave later than their stream says.
    const isStatusAlone = !this.#hasBegun && this.#waiting.length === 0;
    if (isStatusAlone || this.#method.request === 'one') this.#stream.once('finish', () => this.#endEarly());
    this.#pump();
    this.#stream.resume(); // what still comes is let through: nothing else on the connection has to wait for it
  }

  /** Reports a defect, and ends the call. */
  fail(error: unknown): void {
    this.#onDefect(error);
    this.end(INTERNAL);
  }

  isSending(sinceMs: number): boolean {
    return this.#method.request === 'one' && !this.#isAll && !this.cancelled && this.#pieceMs > sinceMs;
  }

  settle(): void {
    if (this.#isAll || this.cancelled || this.#method.request === 'many') return;
    this.#isIncomplete = true;
    this.#account();
  }

  check(nowMs: number, dueMs: number): void {
    if (this.#isGone) return;
    if (this.unreadBytes === 0) this.#unreadSinceMs = undefined;
    else if ((this.#unreadSinceMs ??= nowMs) < dueMs) return this.cut();
    if (this.#isOver) {
      if ((this.#sinceMs ??= nowMs) < dueMs && this.unreadBytes === 0) this.cut();
      return;
    }
    // While the gateway does not read on, the client is late with nothing but reading its answers.
    if (this.#isPaused && this.#sinceMs !== undefined) this.#sinceMs = nowMs;
    if (this.#sinceMs !== undefined && this.#sinceMs < dueMs) this.end(TOO_SLOW);
    else if (this.#isStranger && !this.#isAsking && !this.#method.isPublic && this.#openedMs < dueMs)
      this.end(STRANGER);
  }

  cut(): void {
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  get #isGone(): boolean {
    return this.#stream.destroyed || this.#stream.closed;
  }

  #open(metadata: IncomingHttpHeaders): void {
    if (this.#method.request === 'many' || this.#method.response === 'many') {
      const refused = this.#bounds.openStream(this.address);
      if (refused !== undefined) return this.end(refused);
      this.#hasPlace = true;
      this.#isStranger = true;
    }
    try {
      this.#receiver = this.#method.open(this, metadata);
      this.#account();
    } catch (error) {
      this.fail(error);
    }
  }

  /** An exception must not reach Node.js, or one call would end all. */
  readonly #take = (piece: Buffer): void => {
    try {
      this.#unreadSinceMs = undefined;
      if (this.#isOver) return;
      if (this.#isIncomplete) this.#pieceMs = performance.now();
      this.#reader.add(piece);
      this.#read();
    } catch (error) {
      this.fail(error);
    }
  };

  readonly #endRequest = (): void => {
    try {
      this.#takeEnd();
    } catch (error) {
      this.fail(error);
    }
  };

  #takeEnd(): void {
    this.#isAll = true;
    if (this.#method.request === 'many') return this.#read();
    this.#sinceMs = undefined;
    this.#isIncomplete = false;
    const message = this.#message;
    this.#message = undefined; // the call may last for as long as its client does not take the answer
    this.#reader.clear();
    this.#account();
    if (this.#isOver) return;
    if (message === undefined) this.end(NO_MESSAGE);
    else this.#receiver.receive(message);
  }

  #read(): void {
    while (!this.#isPaused && !this.#isOver) {
      const length = this.#reader.nextLength;
      if (length === undefined) break;
      const wrong = this.#wrongWith(length);
      if (wrong !== undefined) return this.#refuse(wrong);
      const message = this.#reader.next();
      if (message === undefined) break;
      if (this.#method.request === 'one') this.#message = message;
      else {
        this.#sinceMs = undefined;
        this.#receiver.receive(message);
      }
    }
    if (this.#isOver) return;
    if (this.#method.request === 'many' && !this.#reader.isEmpty) this.#sinceMs ??= performance.now();
    this.#account();
    if (this.#isAll && !this.#isPaused && !this.#isHalfClosed && this.#method.request === 'many') this.#halfClose();
  }

  /** Refuses the bytes that were sent, and all that follow. */
  #refuse(status: GrpcStatus): void {
    this.#reader.clear();
    this.#account();
    if (this.#receiver.refuse === undefined) this.end(status);
    else this.#receiver.refuse(status);
  }

  #halfClose(): void {
    this.#isHalfClosed = true;
    this.#sinceMs = undefined;
    if (this.#reader.isEmpty) return this.#receiver.halfClose?.();
    this.#refuse(INCOMPLETE);
  }

  /** With the message that is next, of which the prefix is there. */
  #wrongWith(length: number): GrpcStatus | undefined {
    const { maxBytes, request } = this.#method;
    if (length > maxBytes) return grpcError({ kind: 'payload_too_large', limitBytes: maxBytes });
    if (request === 'one' && this.#message !== undefined) return SECOND_MESSAGE;
    if (!this.#reader.isNextCompressed) return undefined;
    if (this.#encoding === undefined)
      return { code: CODE.internal, details: 'a message is marked as compressed, and the call names no grpc-encoding' };
    return {
      code: CODE.unimplemented,
      details: `messages compressed with "${this.#encoding}" are not supported; send messages uncompressed`,
    };
  }

  /** Counts what the call holds for its client, and refuses what is too much. */
  #account(): void {
    const isCounted = this.#isIncomplete || this.#isStranger || !this.#reader.isEmpty;
    const bytes =
      !isCounted || this.#isOver
        ? 0
        : (this.#reader.isEmpty ? 0 : this.#reader.heldBytes) +
          (this.#message?.length ?? 0) +
          (this.#isIncomplete || this.#isStranger ? CALL_BYTES + (this.authorization?.length ?? 0) : 0);
    if (bytes === this.#heldBytes) return;
    const more = bytes - this.#heldBytes;
    this.#heldBytes = bytes;
    if (!this.#bounds.hold(more)) this.end(NO_ROOM);
  }

  #begin(head: OutgoingHttpHeaders = HEAD): void {
    this.#hasBegun = true;
    this.#stream.respond(head, { waitForTrailers: true });
    this.#stream.once('wantTrailers', this.#sendTrailers);
  }

  readonly #sendTrailers = (): void => {
    if (!this.#isGone) this.#stream.sendTrailers(trailersOf(this.#status ?? INTERNAL));
  };

  /** Hands to the stream as much as it takes at a time. */
  #pump(): void {
    this.#isScheduled = false;
    if (this.#isWriting || this.#isEnded || this.#isGone) return;
    const piece = this.#nextPiece();
    const isLast = this.#status !== undefined && this.#rest === undefined && this.#waiting.length === 0;
    if (piece === undefined && isLast && !this.#hasBegun) {
      this.#isEnded = true;
      this.#stream.respond({ ...HEAD, ...trailersOf(this.#status!) }, { endStream: true });
      return;
    }
    if (piece !== undefined && !this.#hasBegun) this.#begin();
    if (isLast) {
      this.#isEnded = true;
      this.#stream.end(piece);
    } else if (piece !== undefined) {
      this.#isWriting = true;
      this.#stream.write(piece, () => this.#written());
    } else if (this.#isBlocked && !this.#isOver) {
      this.#isBlocked = false;
      this.#receiver.drained?.();
    }
  }

  /** Part of the answer has left: the link is slow, not silent. */
  #written(): void {
    this.#isWriting = false;
    this.#unreadSinceMs = undefined;
    this.#pump();
  }

  /** As many messages as go into one piece, or a part of a larger one. */
  #nextPiece(): Buffer | undefined {
    let piece = this.#rest;
    if (piece === undefined) {
      if (this.#waiting.length === 0) return undefined;
      let count = 0;
      for (let bytes = 0; count < this.#waiting.length; count += 1) {
        bytes += PREFIX_BYTES + this.#waiting[count]!.length;
        if (count > 0 && bytes > PIECE_BYTES) break;
      }
      piece = joinMessages(this.#waiting.splice(0, count));
    }
    this.#rest = piece.length > PIECE_BYTES ? piece.subarray(PIECE_BYTES) : undefined;
    const next = this.#rest === undefined ? piece : piece.subarray(0, PIECE_BYTES);
    this.#waitingBytes -= next.length;
    return next;
  }

  /**
   * After an answer that came before the end of its request. A client that no longer sends the rest may leave the
   * stream half open and open others in its place, and one more than a connection may have would end them all. The
   * answer gets a turn in which to leave: from Node.js 26 on, the end of a stream drops what has not left yet.
   */
  #endEarly(): void {
    setImmediate(() => {
      if (!this.#stream.readableEnded && !this.#stream.destroyed) this.#stream.close(constants.NGHTTP2_NO_ERROR);
    });
  }

  readonly #close = (): void => {
    this.#waiting.length = 0;
    this.#rest = undefined;
    this.#waitingBytes = 0;
    this.#finish();
    this.#bounds.remove(this);
  };

  /** Lets go of everything that was held for the client. */
  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#deadline);
    this.#sinceMs = undefined;
    this.#message = undefined;
    this.#reader.clear();
    this.#account();
    if (this.#hasPlace) this.#bounds.closeStream(this.address, this.#isStranger);
    this.#isStranger = false;
    this.#receiver.over?.();
  }
}
