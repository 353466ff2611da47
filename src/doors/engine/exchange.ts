import type { HttpRequest as UwsRequest, HttpResponse as UwsResponse, us_socket_context_t } from 'uWebSockets.js';
import type { Fault } from '../../core/fault.ts';
import { type Header, STATUS_LINE } from '../shared/http-answer.ts';
import type { DoorState } from './door-state.ts';
import { problemOf } from './reply.ts';
import type { BodyResult, HttpResponse } from './route.ts';

// A request must say without ambiguity where its body ends: a proxy that reads it differently could mix up its callers'
// requests.

/** The only transfer coding that is understood. The library treats any other as if there were no body. */
export const isChunked = (transferEncoding: string): boolean => /^chunked$/i.test(transferEncoding);

/** False for lengths that contradict each other, and for transfer codings that are not understood (RFC 9112, 6.3). */
export function isSoundlyFramed(req: Pick<UwsRequest, 'forEach'>): boolean {
  let length: string | undefined;
  let isSound = true;
  req.forEach((name, value) => {
    if (name === 'transfer-encoding') isSound &&= isChunked(value);
    if (name !== 'content-length') return;
    isSound &&= length === undefined || length === value;
    length = value;
  });
  return isSound;
}

/** `timeoutMs`: how long a client may take over a body that did not come in one piece. */
export type BodyLimits = { readonly maxBytes: number; readonly timeoutMs: number };

/** The first buffer of a body; doubled as needed. */
const FIRST_ROOM_BYTES = 16 * 1024;
const NO_ROOM = Buffer.alloc(0);

/**
 * A body that comes in pieces, copied into one buffer: kept as they are, pieces of a byte each would take a
 * hundredfold.
 */
export class GatheredBody {
  readonly #door: DoorState;
  readonly #maxBytes: number;
  readonly #timer: NodeJS.Timeout;
  #room = NO_ROOM;
  #size = 0;

  constructor(door: DoorState, { maxBytes, timeoutMs }: BodyLimits, onLate: () => void) {
    this.#door = door;
    this.#maxBytes = maxBytes;
    this.#timer = setTimeout(onLate, timeoutMs);
  }

  get size(): number {
    return this.#size;
  }
  get bytes(): Buffer {
    return this.#room.subarray(0, this.#size);
  }

  /** The piece must fit `maxBytes`. False where the bodies of all clients have no room left for it. */
  add(piece: ArrayBuffer): boolean {
    const size = this.#size + piece.byteLength;
    if (size > this.#room.length && !this.#grow(size)) return false;
    this.#door.lastPieceMs = performance.now();
    this.#room.set(new Uint8Array(piece), this.#size);
    this.#size = size;
    return true;
  }

  /** Call it when the body is whole, or its client has gone. */
  letGo(): void {
    clearTimeout(this.#timer);
    this.#door.giveBackBodyBytes(this.#room.length);
    this.#room = NO_ROOM;
  }

  #grow(size: number): boolean {
    const length = Math.min(Math.max(2 * this.#room.length, size, FIRST_ROOM_BYTES), this.#maxBytes);
    if (!this.#door.takeBodyBytes(length - this.#room.length)) return false;
    const larger = Buffer.allocUnsafeSlow(length);
    this.#room.copy(larger);
    this.#room = larger;
    return true;
  }
}

/**
 * No Content-Length on these: HTTP forbids it on a 204, and on a 304 it would describe the file that the client has.
 */
const BODILESS: ReadonlySet<number> = new Set([204, 304]);

/**
 * Share of the short answers that check whether the client reads. Checking each would cost throughput, and a client
 * that never reads is caught soon anyway.
 */
const LOOKED_AT = 1 / 16;

/** In characters or bytes. A longer answer may not find room in the system, so it is followed until it has left. */
const LONG_ANSWER = 16 * 1024;
/** How long a client that was asked to close the connection has to read the answer, before the gateway closes it. */
const LINGER_MS = 1000;

type Corkable = { cork(write: () => void): unknown };

/** How an answer is sent, besides what it says. */
export type Sending = {
  /** Sent too, each unless the answer has one of its name. */
  readonly headers?: readonly Header[];
  /** For a HEAD: the head of the answer, without its content. */
  readonly isHead?: boolean;
  /** Told why a streamed body ends early, unless its client has gone. */
  readonly onCut?: (fault: Fault) => void;
};

/** What the library needs to make a WebSocket of a connection, copied from the request that asks for it. */
export type Handshake = { readonly key: string; readonly extensions: string; readonly context: us_socket_context_t };

/**
 * One request and its answer on the socket: the only holder of uWebSockets' response, so that its rules are kept in one
 * place. Nothing is written after the client has gone, and every write is corked.
 */
export class Exchange {
  readonly #res: UwsResponse;
  readonly #door: DoorState;
  readonly #onDefect: (error: unknown) => void;
  #isOver = false;
  #hasContinued = false;
  #onClosed: (() => void) | undefined;

  /** `onDefect` learns of an exception while answering; the caller is told `internal`. */
  constructor(res: UwsResponse, door: DoorState, onDefect: (error: unknown) => void) {
    this.#res = res;
    this.#door = door;
    this.#onDefect = onDefect;
    res.onAborted(() => {
      this.#isOver = true;
      this.#onClosed?.();
    });
  }

  /** The client has gone, or has its answer. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** '' once it is over. */
  remoteAddress(): string {
    if (this.#isOver) return '';
    return Buffer.from(this.#res.getRemoteAddressAsText()).toString();
  }

  /**
   * Asks for the body of a client that sent `Expect: 100-continue`, whatever the answer will be: Java 17 waits for ever
   * when anything else comes first. The library does so itself only where the value is in lower case, which Java's
   * client does not write (RFC 9110, 10.1.1: its case has no meaning). The library writes one status line for each
   * request, and this is it: see `#beginHead`.
   */
  askForBody(expectation: string | undefined): void {
    if (
      expectation === undefined ||
      expectation === '100-continue' ||
      expectation.toLowerCase() !== '100-continue' ||
      'readsOnlyWhenRead' in this.#res
    )
      return;
    this.#hasContinued = true;
    this.#res.writeStatus('100 Continue\r\n');
  }

  /** Hands over the body when it is whole. Its bytes are only valid until `use` returns. */
  readBody(limits: BodyLimits, use: (body: BodyResult) => void): void {
    let gathered: GatheredBody | undefined; // most bodies come in one piece
    let isDone = false;
    const finish = (body: BodyResult): void => {
      isDone = true;
      gathered?.letGo();
      this.guard(() => use(body));
    };
    this.#res.onData((piece, isLast) => {
      if (isDone) return;
      if ((gathered?.size ?? 0) + piece.byteLength > limits.maxBytes) return finish({ kind: 'too-large' });
      if (isLast && gathered === undefined) return finish({ kind: 'whole', bytes: Buffer.from(piece) });
      gathered ??= this.#beginToGather(limits);
      if (!gathered.add(piece)) return this.close();
      if (isLast) finish({ kind: 'whole', bytes: gathered.bytes });
    });
  }

  #beginToGather(limits: BodyLimits): GatheredBody {
    const body = new GatheredBody(this.#door, limits, () => this.close());
    this.#onClosed = () => body.letGo();
    return body;
  }

  /**
   * Runs a step of answering. What it throws must not reach the library, which would take the whole thread down with
   * it.
   */
  guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#onDefect(error);
      this.send(problemOf({ kind: 'internal' }));
    }
  }

  /** Cuts the connection without an answer. */
  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#res.close();
  }

  /**
   * The fast path for a success that another thread produced. Such an answer never leaves in the turn of its request:
   * see `send`.
   */
  sendText(contentType: string, content: string | Uint8Array): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#res.cork(() => {
      if (this.#hasContinued) this.#beginHead('200 OK');
      this.#res.writeHeader('Content-Type', contentType);
      if (this.#door.isDraining) this.#res.writeHeader('Connection', 'close');
      if (content.length > LONG_ANSWER || Math.random() < LOOKED_AT) this.#end(content);
      else this.#res.end(content);
    });
  }

  /**
   * Writes no more of the content than the system accepts. Until all is written, the request counts as unanswered and a
   * further one closes the connection: otherwise the library would buffer without bound for a client that keeps asking
   * and does not read.
   */
  #end(content: string | Uint8Array): void {
    const bytes = Buffer.from(content);
    if (this.#res.tryEnd(bytes, bytes.length)[1]) return;
    const hasLeft = this.#beginToWrite();
    this.#res.onWritable((offset) => {
      const [isTaken, isWritten] = this.#res.tryEnd(bytes.subarray(offset), bytes.length);
      if (isWritten) hasLeft();
      return isTaken;
    });
  }

  /** Counts the answer as unwritten until the client has gone, or until the function is called that this returns. */
  #beginToWrite(): () => void {
    let isCounted = true;
    this.#door.unwritten += 1;
    const hasLeft = (): void => {
      if (isCounted) this.#door.unwritten -= 1;
      isCounted = false;
    };
    this.#onClosed = hasLeft;
    return hasLeft;
  }

  /**
   * Upgrades the connection to a WebSocket that carries `data`. If another socket is passed, that one is corked
   * instead: at the end of its own cork the library may take the new WebSocket for the HTTP response that it was and,
   * about once in a thousand times, close it (uWebSockets.js 20.30).
   */
  upgrade<Data>(data: Data, { key, extensions, context }: Handshake, other: Corkable | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const upgrade = (): unknown =>
      this.#res.cork(() => {
        this.#res.upgrade(data, key, '', extensions, context);
      });
    if (other === undefined) upgrade();
    else other.cork(upgrade);
  }

  /**
   * Answers in the next turn of the event loop. Otherwise thousands of pipelined requests would be answered before
   * anybody else gets a turn; while the first is unanswered, the library closes the connection at the second.
   */
  send(response: HttpResponse, sending: Sending = {}): void {
    setImmediate(() => this.guard(() => this.#answer(response, sending)));
  }

  #answer(response: HttpResponse, sending: Sending): void {
    if (this.#isOver) return;
    const { headers = [], isHead = false } = sending;
    if (response.stream !== undefined && !isHead) return void this.#stream(response, response.stream, sending);
    const { type, content } = contentOf(response);
    const isBodiless = isHead || BODILESS.has(response.status);
    const isLast =
      (isBodiless || !content) &&
      !this.#door.isDraining &&
      !('readsOnlyWhenRead' in this.#res) &&
      this.#door.endsAfterContentless();
    this.#isOver = !isLast; // `close` has still to close it
    this.#res.cork(() => {
      this.#writeHead(response, type, headers);
      // Given a length, the library would wait for that much body, and cut the connection at the next request.
      if (isHead ? content !== undefined : isLast && !isBodiless)
        this.#res.writeHeader('Content-Length', String(Buffer.byteLength(content ?? '')));
      // The empty line ends the answer. The library does not know, and closes the connection at the next request.
      if (isLast) this.#res.writeHeader('Connection', 'close\r\n');
      else if (isBodiless) this.#res.endWithoutBody();
      else this.#end(content ?? '');
    });
    if (isLast) setTimeout(() => this.close(), LINGER_MS);
  }

  /** If `askForBody` has used up the library's status line, the status is written in front of a meaningless header. */
  #beginHead(statusLine: string): void {
    if (this.#hasContinued) this.#res.writeHeader(`HTTP/1.1 ${statusLine}\r\nAccept-Ranges`, 'none');
    else this.#res.writeStatus(statusLine);
  }

  #writeHead(response: HttpResponse, type: string | undefined, shared: NonNullable<Sending['headers']>): void {
    this.#beginHead(STATUS_LINE[response.status]);
    if (type !== undefined) this.#res.writeHeader('Content-Type', type);
    const own = response.headers ?? [];
    for (const [name, value] of own) this.#res.writeHeader(name, value);
    for (const [name, value] of shared)
      if (!own.some(([ownName]) => ownName === name)) this.#res.writeHeader(name, value);
    if (this.#door.isDraining) this.#res.writeHeader('Connection', 'close');
  }

  /**
   * Asks for the next piece only when the last one has left, so that a slow reader costs no memory. Once the head is
   * sent, cutting the connection is the only way to show that the body is incomplete.
   */
  async #stream(
    response: HttpResponse,
    { type, chunks }: NonNullable<HttpResponse['stream']>,
    { headers = [], onCut }: Sending,
  ): Promise<void> {
    this.#door.unwritten += 1;
    this.#res.cork(() => this.#writeHead(response, type, headers));
    try {
      for await (const chunk of chunks) {
        if (this.#isOver) return;
        if (!chunk.ok) {
          onCut?.(chunk.fault);
          return this.close();
        }
        let isThrough = true;
        this.#res.cork(() => {
          isThrough = this.#res.write(chunk.value);
        });
        if (!isThrough) await this.#drained();
      }
      if (this.#isOver) return;
      this.#isOver = true;
      this.#res.cork(() => this.#res.end());
    } catch (error) {
      this.#onDefect(error);
      this.close();
    } finally {
      this.#door.unwritten -= 1;
    }
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#onClosed = resolve;
      this.#res.onWritable(() => {
        resolve();
        return true;
      });
    });
  }
}

/** The content of a response; of a streamed one, only its type, for a HEAD. */
function contentOf({ text, body, stream }: HttpResponse): {
  readonly type: string | undefined;
  readonly content: string | Uint8Array | undefined;
} {
  if (text !== undefined) return text;
  if (body !== undefined) return { type: 'application/json', content: JSON.stringify(body) };
  return { type: stream?.type, content: undefined };
}
