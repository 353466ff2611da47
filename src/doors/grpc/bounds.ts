/**
 * The bounds on the calls of one door. A client that has begun a request must send the rest of it in time, and must
 * read its answer in time. Half-sent requests of all clients have a limit together, and so have unread answers. The
 * HTTP/2 library has no such limits: each of the streams of a connection may stay as it is forever.
 *
 * A stream may be silent between its messages for as long as it likes, once its caller has shown a valid credential.
 * Until then its caller counts as unauthenticated: the streams of unauthenticated callers are limited, in all and for
 * each network address.
 */
import type { Http2Session } from 'node:http2';
import { STALLED_MS } from '../shared/limits.ts';
import { type GrpcStatus, grpcError } from './status.ts';

export type Limits = {
  /**
   * From the first byte to the last of a request, or of a message of a stream; how long an answer may stay unread; and
   * how long a stream may stay without a valid credential.
   */
  readonly timeoutMs: number;
  /**
   * Bytes of all incomplete messages together; one that would exceed it is refused. Unread answers have the same limit;
   * the oldest is cut.
   */
  readonly maxBytes: number;
  readonly maxStreams: number;
};

/** A call as the bounds see it. */
export type Bounded = {
  /** Its connection, unless that has ended. */
  readonly session: Http2Session | undefined;
  readonly unreadBytes: number;
  /** Since when the client has had something to read without reading any of it; Infinity if there is nothing. */
  readonly unreadSinceMs: number;
  /** Whether more of a single-message request has arrived since, but not yet all of it. */
  readonly isSending: (sinceMs: number) => boolean;
  /** At the end of the turn in which the call began. */
  readonly settle: () => void;
  /** Ends what has waited since before `dueMs`. */
  readonly check: (nowMs: number, dueMs: number) => void;
  readonly cut: () => void;
};

/** The share of all streams that unauthenticated callers may have. */
const STRANGERS_PART = 1 / 8;
/** Four connections full of them. Agents behind one address show their credential with the first message. */
const MAX_STRANGERS_OF_ADDRESS = 1_024;

const TOO_MANY = grpcError({ kind: 'overloaded', retryAfterSecs: 1, what: 'the number of streams' });
const TOO_MANY_STRANGERS = grpcError({
  kind: 'overloaded',
  retryAfterSecs: 1,
  what: 'the number of streams without a valid credential',
});

export class Bounds {
  readonly #limits: Limits;
  readonly #calls = new Set<Bounded>();
  /** Calls that came in this turn of the event loop. */
  #fresh: Bounded[] = [];
  #heldBytes = 0;
  #streams = 0;
  #strangers = 0;
  readonly #strangersOf = new Map<string, number>();

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** Whether some client is still sending the one message of its call, or has yet to read what is written to it. */
  get isBusy(): boolean {
    const sinceMs = performance.now() - STALLED_MS;
    for (const call of this.#calls) if (call.unreadBytes > 0 || call.isSending(sinceMs)) return true;
    return false;
  }

  /** The connections that have calls. */
  busySessions(): ReadonlySet<Http2Session | undefined> {
    return new Set([...this.#calls].map(({ session }) => session));
  }

  /**
   * Nearly every unary request arrives whole and is complete by the end of its turn. Only what is not is looked at any
   * closer.
   */
  add(call: Bounded): void {
    this.#calls.add(call);
    if (this.#fresh.push(call) === 1) setImmediate(this.#settle);
  }

  remove(call: Bounded): void {
    this.#calls.delete(call);
  }

  /** Counts more bytes, or fewer, as half sent. False when that exceeds the limit. */
  hold(bytes: number): boolean {
    this.#heldBytes += bytes;
    return bytes <= 0 || this.#heldBytes <= this.#limits.maxBytes;
  }

  /** Takes a place for the stream of an unauthenticated caller, or returns the reason why there is none. */
  openStream(address: string): GrpcStatus | undefined {
    const { maxStreams } = this.#limits;
    const ofAddress = this.#strangersOf.get(address) ?? 0;
    if (this.#streams >= maxStreams) return TOO_MANY;
    if (ofAddress >= MAX_STRANGERS_OF_ADDRESS || this.#strangers >= Math.max(1, maxStreams * STRANGERS_PART))
      return TOO_MANY_STRANGERS;
    this.#streams += 1;
    this.#strangers += 1;
    this.#strangersOf.set(address, ofAddress + 1);
    return undefined;
  }

  /** The caller of a stream is authenticated now. */
  recognize(address: string): void {
    this.#strangers -= 1;
    const ofAddress = this.#strangersOf.get(address)! - 1;
    if (ofAddress > 0) this.#strangersOf.set(address, ofAddress);
    else this.#strangersOf.delete(address);
  }

  closeStream(address: string, isStranger: boolean): void {
    this.#streams -= 1;
    if (isStranger) this.recognize(address);
  }

  /** Ends what is over its time. Call it every second or more often. */
  sweep(): void {
    const nowMs = performance.now();
    const unread: Bounded[] = [];
    let bytes = 0;
    for (const call of this.#calls) {
      call.check(nowMs, nowMs - this.#limits.timeoutMs);
      if (call.unreadBytes === 0) continue;
      unread.push(call);
      bytes += call.unreadBytes;
    }
    if (bytes <= this.#limits.maxBytes) return;
    for (const call of unread.sort((a, b) => a.unreadSinceMs - b.unreadSinceMs)) {
      if (bytes <= this.#limits.maxBytes) return;
      bytes -= call.unreadBytes;
      call.cut();
    }
  }

  readonly #settle = (): void => {
    const fresh = this.#fresh;
    this.#fresh = [];
    for (const call of fresh) call.settle();
  };
}
