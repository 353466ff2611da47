/**
 * Limits on requests that are not complete yet, and on large answers that are not read yet. A client that has begun a
 * request must send the rest of it in time, and must read its answer in time. The bytes of all clients together are
 * limited too. The library has no such limits: it collects up to 4 MiB for each of the 256 streams of a connection, and
 * keeps an answer as long as the connection lives.
 *
 * Between the messages of a stream its client may be silent for as long as it likes.
 */
import { constants, type ServerHttp2Stream } from 'node:http2';
import { type ServerInterceptingCall, type ServerInterceptor, status } from '@grpc/grpc-js';
import { assert } from '../../core/base/result.ts';
import { STALLED_MS } from '../shared/limits.ts';
import { dropLateWrites } from './late-writes.ts';
import { writeInPieces } from './pieces.ts';
import { type GrpcStatus, grpcError, plainStatus } from './status.ts';

export type ArrivalLimits = {
  /**
   * From the first byte to the last of a unary request or a stream's message; and how long an answer may stay unread.
   */
  readonly timeoutMs: number;
  /**
   * Bytes of all incomplete messages together; one that would exceed it is refused. Unread answers have the same limit;
   * the oldest is cut.
   */
  readonly maxBytes: number;
  /** Paths of unary methods with large answers. */
  readonly largeAnswers: readonly string[];
};

const HEAD_BYTES = 5; // of a message: a flag, and the length of the rest
/**
 * Overhead of one piece of a message, in bytes: a client may send its bytes one by one, and each is an object of its
 * own.
 */
const PIECE_BYTES = 256;
/**
 * What a stream may have received before it is watched: its flow-control window, which reopens only as data is read.
 */
const UNSEEN_BYTES = 65_535;
const MAX_SWEEP_MS = 1_000;

export class Arrivals {
  readonly #limits: ArrivalLimits;
  readonly #open = new Set<Arrival>();
  /** Unary calls of this turn, and those of them whose answer may be large. */
  #fresh: WatchedCall[] = [];
  readonly #freshLarge = new Set<WatchedCall>();
  #heldBytes = 0;

  constructor(limits: ArrivalLimits) {
    this.#limits = limits;
    setInterval(() => this.#sweep(), Math.min(MAX_SWEEP_MS, limits.timeoutMs / 4)).unref();
  }

  /** Whether some client is still sending the one message of its call, or has yet to read what is written to it. */
  get isBusy(): boolean {
    const sinceMs = performance.now() - STALLED_MS;
    return [...this.#open].some((arrival) => arrival.unreadBytes > 0 || arrival.isSending(sinceMs));
  }

  /** Only observes the call: an interceptor that wraps it would cost every message a few steps more. */
  readonly interceptor: ServerInterceptor = ({ path, requestStream, responseStream }, call) => {
    assert('stream' in call, 'this version of the library keeps the HTTP/2 stream of a call in its field stream');
    if (requestStream || responseStream) dropLateWrites(call.stream as ServerHttp2Stream);
    // Bound, because a stream of checks puts answers in front of what the library says: here there is no time for them.
    if (requestStream)
      this.watchStream({ stream: call.stream as ServerHttp2Stream, sendStatus: call.sendStatus.bind(call) });
    else {
      if (responseStream || this.#limits.largeAnswers.includes(path)) this.#freshLarge.add(call as WatchedCall);
      if (this.#fresh.push(call as WatchedCall) === 1) setImmediate(this.#look);
    }
    return call as unknown as ServerInterceptingCall;
  };

  /** Watches a call whose client sends any number of messages, from before the first of them. */
  watchStream(call: WatchedCall): void {
    this.#watch(call, 'stream');
  }

  /**
   * Nearly every unary request arrives whole and is complete by the end of its turn. Watching those too would cost a
   * fifth of the throughput.
   */
  readonly #look = (): void => {
    const fresh = this.#fresh;
    this.#fresh = [];
    for (const call of fresh) {
      if (call.stream.destroyed) continue;
      if (!call.stream.readableEnded) this.#watch(call, 'unary').account(UNSEEN_BYTES);
      else if (this.#freshLarge.has(call)) this.#watch(call, 'unary');
    }
    this.#freshLarge.clear();
  };

  #watch(call: WatchedCall, kind: RequestKind): Arrival {
    const arrival = new Arrival(call, kind, (bytes) => this.#hold(bytes));
    this.#open.add(arrival);
    call.stream.on('data', (piece: Buffer) => arrival.take(piece));
    writeInPieces(call.stream, () => arrival.finishAnswer());
    if (kind === 'unary') {
      if (call.stream.writableFinished) arrival.endEarly();
      else call.stream.once('finish', arrival.endEarly);
    }
    call.stream.once('close', () => {
      arrival.letGo();
      this.#open.delete(arrival);
    });
    return arrival;
  }

  /** False when that would exceed the limit. */
  #hold(bytes: number): boolean {
    this.#heldBytes += bytes;
    return this.#heldBytes <= this.#limits.maxBytes;
  }

  #sweep(): void {
    const dueMs = performance.now() - this.#limits.timeoutMs;
    for (const arrival of this.#open) arrival.check(dueMs);
    this.#cutUnread();
  }

  #cutUnread(): void {
    const unread = [...this.#open]
      .filter(({ unreadBytes }) => unreadBytes > 0)
      .sort((a, b) => a.unreadSinceMs - b.unreadSinceMs);
    let bytes = unread.reduce((sum, { unreadBytes }) => sum + unreadBytes, 0);
    for (const arrival of unread) {
      if (bytes <= this.#limits.maxBytes) return;
      bytes -= arrival.unreadBytes;
      arrival.cut();
    }
  }
}

export type WatchedCall = { readonly stream: ServerHttp2Stream; sendStatus(status: GrpcStatus): void };
/** One message, or any number of them. */
type RequestKind = 'unary' | 'stream';

class Arrival {
  readonly #call: WatchedCall;
  readonly #stream: ServerHttp2Stream;
  readonly #hold: (bytes: number) => boolean;
  readonly #isStream: boolean;
  /** Since when there has been something to wait for; undefined between the messages of a stream. */
  #sinceMs: number | undefined;
  /** Since when the client has had something to read without reading any of it or sending anything. */
  #unreadSinceMs: number | undefined;
  #isRefused = false;
  #heldBytes = 0;
  /** When a piece came last; of a stream, when it began. */
  #pieceMs = performance.now();
  /** Where in a message the last piece ended: this far into its head, or this far before its end. */
  #headBytes = 0;
  #length = 0;
  #missingBytes = 0;

  constructor(call: WatchedCall, kind: RequestKind, hold: (bytes: number) => boolean) {
    this.#call = call;
    this.#stream = call.stream;
    this.#isStream = kind === 'stream';
    this.#hold = hold;
    this.#sinceMs = kind === 'stream' ? undefined : performance.now();
  }

  get unreadBytes(): number {
    return this.#stream.writableLength;
  }
  get unreadSinceMs(): number {
    return this.#unreadSinceMs ?? Infinity;
  }

  /** Whether more of a single-message request has arrived since, but not yet all of it. */
  isSending(sinceMs: number): boolean {
    return !this.#isStream && !this.#isRefused && !this.#stream.readableEnded && this.#pieceMs > sinceMs;
  }

  take(piece: Buffer): void {
    this.#unreadSinceMs = undefined;
    if (this.#isRefused) return;
    if (!this.#isStream) this.#pieceMs = performance.now();
    else if (!this.#isWithinMessage(piece)) return;
    this.account(piece.length + PIECE_BYTES);
  }

  /**
   * Part of the answer has left: the link is slow, not silent. Nor is the client late with what the gateway does not
   * read meanwhile.
   */
  finishAnswer(): void {
    this.#unreadSinceMs = undefined;
    if (this.#sinceMs !== undefined && this.#isStream && this.#stream.isPaused()) this.#sinceMs = performance.now();
  }

  /** Counts more bytes as held. */
  account(bytes: number): void {
    this.#heldBytes += bytes;
    if (!this.#hold(bytes)) this.#refuse(NO_ROOM);
  }

  /** Whether a message of the stream has begun and not ended with this piece. */
  #isWithinMessage(piece: Buffer): boolean {
    if (this.#read(piece)) {
      this.letGo();
      this.#sinceMs = undefined;
    }
    if (this.#missingBytes === 0 && this.#headBytes === 0) return false;
    this.#sinceMs ??= performance.now();
    return true;
  }

  letGo(): void {
    if (this.#heldBytes > 0) this.#hold(-this.#heldBytes);
    this.#heldBytes = 0;
  }

  /** Refuses messages begun before `dueMs`, and ends streams whose client neither reads its answer nor closes. */
  check(dueMs: number): void {
    if (this.#isRefused) return this.cut();
    if (this.unreadBytes === 0) this.#unreadSinceMs = undefined;
    else if ((this.#unreadSinceMs ??= performance.now()) < dueMs) return this.cut();
    if (this.#stream.readableEnded) return this.#stream.writableEnded ? this.letGo() : undefined;
    if (this.#stream.writableEnded) this.#sinceMs ??= performance.now();
    // The gateway does not read on, because it still answers earlier messages. Meanwhile the client is late only with
    // reading answers.
    else if (
      this.#isStream &&
      this.#stream.isPaused() &&
      this.#stream.writableLength === 0 &&
      this.#sinceMs !== undefined
    )
      this.#sinceMs = performance.now();
    if (this.#sinceMs !== undefined && this.#sinceMs < dueMs) this.#refuse(TOO_SLOW);
  }

  /**
   * After an answer that came before the end of its request. A client that no longer sends the rest may leave the
   * stream half open and open others in its place, and one more than a connection may have would end them all. The
   * answer gets a turn in which to leave: from Node.js 26 on, the end of a stream drops what has not left yet.
   */
  readonly endEarly = (): void => {
    setImmediate(() => {
      if (!this.#stream.readableEnded && !this.#stream.destroyed) this.#stream.close(constants.NGHTTP2_NO_ERROR);
    });
  };

  cut(): void {
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  /**
   * Its memory is released when the stream closes: with the answer where the request is one message (see `endEarly`),
   * else by the client, once it has its answer, or by the next sweep.
   */
  #refuse(error: GrpcStatus): void {
    this.#isRefused = true;
    this.#call.sendStatus(error);
  }

  /** Follows the lengths of the messages; true when one has ended in this piece. */
  #read(piece: Buffer): boolean {
    let hasEndedOne = false;
    let at = 0;
    while (at < piece.length) {
      if (this.#missingBytes > 0) {
        const count = Math.min(this.#missingBytes, piece.length - at);
        this.#missingBytes -= count;
        at += count;
      } else {
        this.#headBytes += 1;
        this.#length = this.#headBytes === 1 ? 0 : this.#length * 256 + piece[at]!;
        at += 1;
        if (this.#headBytes < HEAD_BYTES) continue;
        this.#headBytes = 0;
        this.#missingBytes = this.#length;
      }
      hasEndedOne ||= this.#missingBytes === 0;
    }
    return hasEndedOne;
  }
}

const NO_ROOM = grpcError({ kind: 'overloaded', retryAfterSecs: 1, what: 'the size of incomplete messages' });
const TOO_SLOW = plainStatus(status.DEADLINE_EXCEEDED, 'the rest of the message did not arrive in time');
