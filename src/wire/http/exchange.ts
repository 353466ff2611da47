import type { HttpResponse as UwsResponse, us_socket_context_t } from 'uWebSockets.js';
import type { Fault } from '../../core/fault.ts';
import { problemOf } from './reply.ts';
import type { HttpResponse } from './route.ts';
import { STATUS_LINE } from './status-line.ts';

/** `timeoutMs`: how long a client may take over a body that did not come in one piece. */
export type BodyLimits = { readonly maxBytes: number; readonly timeoutMs: number };

/** Answers without a body have no length either: HTTP forbids it with 204, and with 304 it would speak of the file that the client has. */
const BODILESS: ReadonlySet<number> = new Set([204, 304]);

/** How many of the short answers are handed over with a look at whether the client reads: with every one it would be felt, and one that does not read asks often. */
const LOOKED_AT = 1 / 16;

/**
 * With so many answers without content, more or less, the connection ends. There is nothing to hold back of them as `#end` does, and
 * nothing says whether they are read: who asks for thousands and reads none would have them gathered. Not to be foreseen, or others would get it.
 */
const CONTENTLESS_AT_MOST = 1024;
const someContentless = (): number => Math.ceil(CONTENTLESS_AT_MOST * (1 + Math.random()) / 2);
/** A client that does not close the connection when it was told to is given so long to have read the answer. */
const LINGER_MS = 1000;

type Corkable = { cork(write: () => void): unknown };

/** What bodies that are not whole yet may take together, in one I/O thread. One that would take more is cut off. */
const MAX_GATHERED_BYTES = 128 * 1024 * 1024;
/** Room for a body that has not come in one piece; doubled when it is not enough. */
const FIRST_ROOM_BYTES = 16 * 1024;

export type BodyResult = { readonly kind: 'whole'; readonly bytes: Buffer } | { readonly kind: 'too-large' };

/**
 * One request and its answer on the socket: the only holder of uWebSockets' response, so that its rules are kept in one
 * place. Nothing is written after the client has gone, and every write is corked.
 */
export class Exchange {
  /** Of all exchanges of this thread. */
  static #gatheredBytes = 0;
  static #contentlessLeft = someContentless();

  readonly #res: UwsResponse;
  #isOver = false;
  #onGone: (() => void) | undefined;

  readonly #onDefect: (error: unknown) => void;

  /** `onDefect` learns of an exception while answering; the caller is told `internal`. */
  constructor(res: UwsResponse, onDefect: (error: unknown) => void) {
    this.#res = res;
    this.#onDefect = onDefect;
    res.onAborted(() => {
      this.#isOver = true;
      this.#onGone?.();
    });
  }

  /** The client has gone, or has its answer. */
  get isOver(): boolean { return this.#isOver; }

  remoteAddress(): string { return Buffer.from(this.#res.getRemoteAddressAsText()).toString(); }

  /** Hands over the body when it is whole. Its bytes are only valid until `use` returns. */
  readBody({ maxBytes, timeoutMs }: BodyLimits, use: (body: BodyResult) => void): void {
    let gathered: Buffer | undefined;
    let size = 0;
    let isDone = false;
    let timer: NodeJS.Timeout | undefined;
    let held = 0;
    const letGo = (): void => {
      clearTimeout(timer);
      Exchange.#gatheredBytes -= held;
      held = 0;
    };
    this.#onGone = letGo;
    const finish = (body: BodyResult): void => {
      isDone = true;
      letGo();
      this.guard(() => use(body));
    };
    this.#res.onData((chunk, isLast) => {
      if (isDone) return;
      size += chunk.byteLength;
      if (size > maxBytes) return finish({ kind: 'too-large' });
      if (isLast && gathered === undefined) return finish({ kind: 'whole', bytes: Buffer.from(chunk) });
      // The chunk's memory is taken back when this returns. Copied into one place: chunks of a byte each would take a hundredfold.
      if (gathered === undefined || size > gathered.length) {
        const room = Math.min(Math.max(2 * held, size, FIRST_ROOM_BYTES), maxBytes);
        Exchange.#gatheredBytes += room - held;
        held = room;
        if (Exchange.#gatheredBytes > MAX_GATHERED_BYTES) return this.close();
        const larger = Buffer.allocUnsafeSlow(room);
        gathered?.copy(larger);
        gathered = larger;
      }
      gathered.set(new Uint8Array(chunk), size - chunk.byteLength);
      if (isLast) return finish({ kind: 'whole', bytes: gathered.subarray(0, size) });
      timer ??= setTimeout(() => this.close(), timeoutMs);
    });
  }

  /** Runs a step of answering. What it throws must not reach the library, which would take the whole thread down with it. */
  guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#onDefect(error);
      this.send(problemOf({ kind: 'internal' }), [], false);
    }
  }

  /** Cuts the connection without an answer. */
  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#res.close();
  }

  /** The shortest way out, for a good answer that another thread gave, and so never in the turn in which it was asked: see `send`. */
  sendText(contentType: string, content: string | Uint8Array): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#res.cork(() => {
      this.#res.writeHeader('Content-Type', contentType);
      if (Math.random() < LOOKED_AT) this.#end(content);
      else this.#res.end(content);
    });
  }

  /**
   * Hands over no more of the content than the system takes. Until it has all, the request counts as unanswered, and the next
   * one closes the connection: for a client that asks on and does not read, the library would gather answers without a bound.
   */
  #end(content: string | Uint8Array): void {
    const bytes = Buffer.from(content);
    if (this.#res.tryEnd(bytes, bytes.length)[1]) return;
    this.#res.onWritable((offset) => this.#res.tryEnd(bytes.subarray(offset), bytes.length)[0]);
  }

  /**
   * Turns the connection into a WebSocket, for which `data` is kept. Given another socket, it is that one which is corked:
   * at the end of its own cork the library may take the new WebSocket for the HTTP response that it was, and about once in
   * a thousand times closes it (uWebSockets.js 20.30).
   */
  upgrade<Data>(data: Data, key: string, extensions: string, context: us_socket_context_t, other: Corkable | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const upgrade = (): unknown => this.#res.cork(() => { this.#res.upgrade(data, key, '', extensions, context); });
    if (other === undefined) upgrade();
    else other.cork(upgrade);
  }

  /**
   * Answers in the next turn of the event loop. Of thousands of requests that came in one piece, the library would have each
   * answered before anybody else gets a turn; with the first of them unanswered it takes the second for a reason to close the
   * connection. `onCut` learns why a body that is sent piece by piece ends before its end, unless the client has gone.
   */
  send(response: HttpResponse, extraHeaders: readonly (readonly [string, string])[], isHead: boolean, onCut?: (fault: Fault) => void): void {
    setImmediate(() => this.guard(() => this.#answer(response, extraHeaders, isHead, onCut)));
  }

  #answer(response: HttpResponse, extraHeaders: readonly (readonly [string, string])[], isHead: boolean, onCut?: (fault: Fault) => void): void {
    if (this.#isOver) return;
    if (response.stream !== undefined && !isHead) return void this.#stream(response, response.stream, extraHeaders, onCut);
    const content = response.text?.content ?? (response.body === undefined ? undefined : JSON.stringify(response.body));
    const type = response.text?.type ?? response.stream?.type ?? (response.body === undefined ? undefined : 'application/json');
    const isBodiless = isHead || BODILESS.has(response.status);
    const isLast = (isBodiless || !content) && !('readsOnlyWhenRead' in this.#res) && this.#isLastContentless();
    this.#isOver = !isLast;
    this.#res.cork(() => {
      this.#writeHead(response, type, extraHeaders);
      // The library would wait for a body of the length that it is told, and cut the connection at the next request.
      if (isHead ? content !== undefined : isLast && !isBodiless) this.#res.writeHeader('Content-Length', String(Buffer.byteLength(content ?? '')));
      // The empty line is the end of the answer. The library, which is not told, closes the connection when more is asked for.
      if (isLast) this.#res.writeHeader('Connection', 'close\r\n');
      else if (isBodiless) this.#res.endWithoutBody();
      else this.#end(content ?? '');
    });
    if (isLast) setTimeout(() => this.close(), LINGER_MS);
  }

  #isLastContentless(): boolean {
    Exchange.#contentlessLeft -= 1;
    if (Exchange.#contentlessLeft > 0) return false;
    Exchange.#contentlessLeft = someContentless();
    return true;
  }

  #writeHead(response: HttpResponse, type: string | undefined, extraHeaders: readonly (readonly [string, string])[]): void {
    this.#res.writeStatus(STATUS_LINE[response.status] ?? String(response.status));
    if (type !== undefined) this.#res.writeHeader('Content-Type', type);
    const own = response.headers ?? [];
    for (const [name, value] of own) this.#res.writeHeader(name, value);
    // What the answer says of itself goes before what is said of every answer.
    for (const [name, value] of extraHeaders) if (!own.some(([taken]) => taken === name)) this.#res.writeHeader(name, value);
  }

  /**
   * Asks for the next piece only when the last one has left, so that a slow reader costs no memory. Once the head is sent, the
   * one honest sign that the body is not whole is a cut connection.
   */
  async #stream(response: HttpResponse, { type, chunks }: NonNullable<HttpResponse['stream']>, extraHeaders: readonly (readonly [string, string])[], onCut?: (fault: Fault) => void): Promise<void> {
    this.#res.cork(() => this.#writeHead(response, type, extraHeaders));
    try {
      for await (const chunk of chunks) {
        if (this.#isOver) return;
        if (!chunk.ok) {
          onCut?.(chunk.fault);
          return this.close();
        }
        let isThrough = true;
        this.#res.cork(() => { isThrough = this.#res.write(chunk.value); });
        if (!isThrough) await this.#drained();
      }
    } catch (error) {
      this.#onDefect(error);
      return this.close();
    }
    if (this.#isOver) return;
    this.#isOver = true;
    this.#res.cork(() => this.#res.end());
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#onGone = resolve;
      this.#res.onWritable(() => {
        resolve();
        return true;
      });
    });
  }
}
