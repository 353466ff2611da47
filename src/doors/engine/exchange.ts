import type { Fault } from '../../core/fault.ts';
import type { Header } from '../shared/http-answer.ts';
import type { DoorState } from './door-state.ts';
import type { Answer, AnswerListener } from './engine.ts';
import { problemOf } from './reply.ts';
import type { BodyResult, HttpResponse } from './route.ts';

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
  add(piece: Uint8Array): boolean {
    const size = this.#size + piece.length;
    if (size > this.#room.length && !this.#grow(size)) return false;
    this.#door.lastPieceMs = performance.now();
    this.#room.set(piece, this.#size);
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

const NO_HEADERS: readonly Header[] = [];
const CLOSING: readonly Header[] = [['Connection', 'close']];

/** How an answer is sent, besides what it says. */
export type Sending = {
  /** Sent too, each unless the answer has one of its name. */
  readonly headers?: readonly Header[];
  /** For a HEAD: the head of the answer, without its content. */
  readonly isHead?: boolean;
  /** Told why a streamed body ends early, unless its client has gone. */
  readonly onCut?: (fault: Fault) => void;
};

/**
 * A request and its answer: the only holder of the engine's `Answer`, so that nothing is written after the client has
 * gone or has its answer.
 */
export class Exchange implements AnswerListener {
  readonly #answer: Answer;
  readonly #door: DoorState;
  readonly #onDefect: (error: unknown) => void;
  #isOver = false;
  #hasFailed = false;
  /** Counted in the door. */
  #isUnwritten = false;
  #body: GatheredBody | undefined;
  #onWritable: (() => void) | undefined;

  /** `onDefect` learns of an exception while answering; the caller gets `internal`. */
  constructor(answer: Answer, door: DoorState, onDefect: (error: unknown) => void) {
    this.#answer = answer;
    this.#door = door;
    this.#onDefect = onDefect;
    answer.listener = this;
  }

  gone(): void {
    this.#isOver = true;
    this.#body?.letGo();
    this.left();
    this.#onWritable?.();
  }

  left(): void {
    if (this.#isUnwritten) this.#door.unwritten -= 1;
    this.#isUnwritten = false;
  }

  writable(): void {
    this.#onWritable?.();
  }

  /** The client has gone, or has its answer. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** '' once it is over. */
  remoteAddress(): string {
    return this.#isOver ? '' : this.#answer.remoteAddress();
  }

  /**
   * A client that waits in vain for `100 Continue` must be disconnected: Java's waits forever, past its own time-out,
   * if anything else comes first, even 417.
   */
  asksForBody(expectation: string | undefined): boolean {
    return this.#answer.asksForBody(expectation);
  }

  /** Notes that the request's body comes in chunks. */
  noteChunks(): void {
    this.#answer.noteChunks();
  }

  /** Hands over the body when it is whole. Its bytes are only valid until `use` returns. */
  readBody(limits: BodyLimits, use: (body: BodyResult) => void): void {
    let isDone = false;
    const finish = (body: BodyResult): void => {
      isDone = true;
      this.#body?.letGo();
      use(body);
    };
    const take = (piece: Uint8Array, isLast: boolean): void => {
      if ((this.#body?.size ?? 0) + piece.length > limits.maxBytes) return finish({ kind: 'too-large' });
      // most bodies come in one piece
      if (isLast && this.#body === undefined) return finish({ kind: 'whole', bytes: bufferOf(piece) });
      this.#body ??= new GatheredBody(this.#door, limits, () => this.close());
      if (!this.#body.add(piece)) return this.close();
      if (isLast) finish({ kind: 'whole', bytes: this.#body.bytes });
    };
    this.#answer.readBody((piece, isLast) => {
      if (isDone) return;
      try {
        take(piece, isLast);
      } catch (error) {
        this.fail(error);
      }
    });
  }

  /**
   * Runs a step of answering. An exception must not reach the engine, which would take the whole thread, and with it
   * maybe the whole process, down with it.
   */
  guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.fail(error);
    }
  }

  /** Reports a defect. The caller gets `internal`, or cut off where that fails too. */
  fail(error: unknown): void {
    this.#onDefect(error);
    if (!this.#hasFailed && !this.#isOver) {
      this.#hasFailed = true;
      return this.send(problemOf({ kind: 'internal' }));
    }
    this.#isOver = true;
    try {
      this.#answer.close();
    } catch {
      // it has gone already, or has its answer
    }
  }

  /** Cuts the connection without an answer. */
  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#answer.close();
  }

  /**
   * The connection becomes something else than one of HTTP: nothing is answered. False where the client has gone, or
   * has its answer.
   */
  release(): boolean {
    const isOpen = !this.#isOver;
    this.#isOver = true;
    return isOpen;
  }

  /**
   * The fast path for a success that another thread produced. Such an answer never leaves in the turn of its request:
   * see `send`.
   */
  sendText(contentType: string, content: string | Uint8Array): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (!this.#answer.send(200, contentType, this.#door.isDraining ? CLOSING : NO_HEADERS, content))
      this.#countUnwritten();
  }

  /**
   * Answers in the next turn of the event loop. Otherwise thousands of pipelined requests would be answered before
   * anybody else gets a turn; while the first is unanswered, the native engine closes the connection at the second.
   */
  send(response: HttpResponse, sending: Sending = {}): void {
    setImmediate(() => this.guard(() => this.#answerWith(response, sending)));
  }

  #answerWith(response: HttpResponse, sending: Sending): void {
    if (this.#isOver) return;
    const { status, stream } = response;
    const { isHead = false } = sending;
    const headers = this.#headersOf(response, sending);
    if (stream !== undefined && !isHead) return void this.#stream(status, stream, headers, sending.onCut);
    this.#isOver = true;
    const { type, content } = contentOf(response);
    if (isHead)
      this.#answer.sendHead(status, type, headers, content === undefined ? undefined : Buffer.byteLength(content));
    else if (BODILESS.has(status)) this.#answer.sendHead(status, type, headers, undefined);
    else if (!this.#answer.send(status, type, headers, content ?? '')) this.#countUnwritten();
  }

  #headersOf({ headers: own = NO_HEADERS }: HttpResponse, { headers: shared = NO_HEADERS }: Sending): Header[] {
    const headers = [...own];
    for (const header of shared) if (!own.some(([name]) => name === header[0])) headers.push(header);
    if (this.#door.isDraining) headers.push(...CLOSING);
    return headers;
  }

  /** Counts the answer as unwritten until it has left, or the client has gone. */
  #countUnwritten(): void {
    this.#isUnwritten = true;
    this.#door.unwritten += 1;
  }

  /**
   * Asks for the next piece only when the last one has left, so that a slow reader costs no memory. Once the head is
   * sent, cutting the connection is the only way to show that the body is incomplete.
   */
  async #stream(
    status: HttpResponse['status'],
    { type, chunks }: NonNullable<HttpResponse['stream']>,
    headers: readonly Header[],
    onCut: Sending['onCut'],
  ): Promise<void> {
    this.#countUnwritten();
    this.#answer.begin(status, type, headers);
    try {
      for await (const chunk of chunks) {
        if (this.#isOver) return;
        if (!chunk.ok) {
          onCut?.(chunk.fault);
          return this.close();
        }
        if (!this.#answer.write(chunk.value)) await this.#drained();
      }
      if (this.#isOver) return;
      this.#isOver = true;
      this.#answer.finish();
    } catch (error) {
      this.#onDefect(error);
      this.close();
    } finally {
      this.left();
    }
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#onWritable = resolve;
    });
  }
}

const bufferOf = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);

/** The content of a response; of a streamed one, only its type, for a HEAD. */
function contentOf({ text, body, stream }: HttpResponse): {
  readonly type: string | undefined;
  readonly content: string | Uint8Array | undefined;
} {
  if (text !== undefined) return text;
  if (body !== undefined) return { type: 'application/json', content: JSON.stringify(body) };
  return { type: stream?.type, content: undefined };
}
