/**
 * The engine over uWebSockets.js. Its rules are kept here: a response or request is not touched after its time, every
 * write is corked, and what the library lacks is made good. docs/native-library.md lists each such workaround, with the
 * release that makes it needless.
 */
import type {
  TemplatedApp,
  HttpRequest as UwsRequest,
  HttpResponse as UwsResponse,
  us_listen_socket,
  us_socket_context_t,
  WebSocket,
} from 'uWebSockets.js';
import { type Header, type HttpStatus, STATUS_LINE } from '../shared/http-answer.ts';
import {
  type Answer,
  type AnswerListener,
  type Engine,
  type HandshakeAnswer,
  isHandshake,
  type RequestHead,
  STREAM_IDLE_SECS,
  type StreamSocket,
  type Streams,
} from './engine.ts';
import type { Uws } from './native-builds.ts';

/**
 * Share of the short answers that check whether the client reads. Checking each would cost throughput, and a client
 * that never reads is caught soon anyway.
 */
const LOOKED_AT = 1 / 16;
/** In characters or bytes. A longer answer may not find room in the system, so it is followed until it has left. */
const LONG_ANSWER = 16 * 1024;
/**
 * Ends the connection of one in at most this many answers without content. They cannot be held back, and nothing tells
 * whether they are read, so unread ones would pile up. The choice is random: otherwise a client could arrange for
 * others to be hit. The library gives each of them a length, where HTTP wants none for a 204 too.
 */
const BODYLESS_AT_MOST = 1024;
const someBodyless = (): number => Math.ceil((BODYLESS_AT_MOST * (1 + Math.random())) / 2);
/** Closes all its sockets. The types of older releases lack it. */
type ClosableApp = TemplatedApp & { close(): void };
/** The library's answer when a frame would exceed `maxBackpressure`. */
const DROPPED = 2;

export function createNativeEngine(uws: Uws): Engine {
  const app = uws.App() as ClosableApp;
  const bodyless = new BodylessResponses();
  let socket: us_listen_socket | undefined;

  const listenOn = (host: string, port: number): number | undefined => {
    let bound: number | undefined;
    app.listen(host, port, (listening) => {
      if (listening === false) return;
      socket = listening;
      bound = uws.us_socket_local_port(listening);
    });
    return bound;
  };
  const stopListening = (): void => {
    if (socket !== undefined) uws.us_listen_socket_close(socket);
    socket = undefined;
  };
  let handleOther: (answer: Answer, request: RequestHead) => void = (answer) => answer.close();

  return {
    name: 'native',
    serve: (path, handle) => {
      if (path === '/*') handleOther = handle;
      app.any(path, (res, req) => handle(new NativeAnswer(res, bodyless), new NativeRequest(req)));
    },
    serveStreams: (path, streams) =>
      serveStreams(app, path, streams, bodyless, (answer, request) => handleOther(answer, request)),
    /**
     * Several threads listen on the same port; `probeAddresses` has checked that no other program does. The library's
     * exclusive mode would refuse the port after a crash for as long as old connections linger.
     */
    listen: async (host, port) => {
      const bound = listenOn(host, port);
      if (port !== 0 || bound === undefined) return bound;
      // The library opens a port chosen by the system exclusively. Reopened by its number, it can be shared.
      stopListening();
      return listenOn(host, bound);
    },
    stopListening,
    // A thread must not end before: the library leaves its sockets in the thread's event loop, and Node.js aborts the
    // whole process for it.
    close: () => {
      socket = undefined;
      app.close();
    },
  };
}

function serveStreams<Data>(
  app: TemplatedApp,
  path: string,
  streams: Streams<Data>,
  bodyless: BodylessResponses,
  handleOther: (answer: Answer, request: RequestHead) => void,
): void {
  const open = new Map<WebSocket<Data>, StreamSocket>();
  app.ws<Data>(path, {
    maxPayloadLength: streams.maxMessageBytes,
    maxBackpressure: streams.maxUnsentBytes,
    idleTimeout: STREAM_IDLE_SECS,
    sendPingsAutomatically: true,
    upgrade: (res, req, context) => {
      const request = new NativeRequest(req);
      if (!isHandshake(request)) return handleOther(new NativeAnswer(res, bodyless), request);
      streams.ask(new NativeHandshake<Data>(res, bodyless, request, context, open), request);
    },
    open: (ws) => {
      const socket: StreamSocket = {
        send: (frame) => ws.send(frame, false) !== DROPPED,
        together: (write) => void ws.cork(write),
        unsentBytes: () => ws.getBufferedAmount(),
        end: (code, reason) => ws.end(code, reason),
      };
      open.set(ws, socket);
      streams.opened(socket, ws.getUserData());
    },
    drain: (ws) => streams.drained(ws.getUserData()),
    message: (ws, message) => streams.heard(ws.getUserData(), message.byteLength),
    close: (ws) => {
      open.delete(ws);
      streams.closed(ws.getUserData());
    },
  });
}

class NativeRequest implements RequestHead {
  readonly #req: UwsRequest;

  constructor(req: UwsRequest) {
    this.#req = req;
  }

  get method(): string {
    return this.#req.getMethod();
  }
  get path(): string {
    return this.#req.getUrl();
  }
  get query(): string {
    return this.#req.getQuery() ?? '';
  }
  header(name: string): string {
    return this.#req.getHeader(name);
  }
  forEach(take: (name: string, value: string) => void): void {
    this.#req.forEach(take);
  }
}

/** Counts answers without content. */
class BodylessResponses {
  #left = someBodyless();

  /** True where the connection is to end with this one. */
  endsConnection(): boolean {
    this.#left -= 1;
    if (this.#left > 0) return false;
    this.#left = someBodyless();
    return true;
  }
}

const ASKED_FOR = '100-continue';
const NOBODY: AnswerListener = { gone: () => undefined, left: () => undefined, writable: () => undefined };

class NativeAnswer implements Answer {
  readonly #res: UwsResponse;
  readonly #bodyless: BodylessResponses;
  #endsConnection = false;
  listener = NOBODY;

  constructor(res: UwsResponse, bodyless: BodylessResponses) {
    this.#res = res;
    this.#bodyless = bodyless;
    res.onAborted(() => this.listener.gone());
  }

  remoteAddress(): string {
    return Buffer.from(this.#res.getRemoteAddressAsText()).toString();
  }

  /**
   * The library takes a chunk of a size that begins with white space for the last one. Its content would be answered as
   * the next request.
   */
  noteChunks(): void {
    this.#endsConnection = true;
  }

  readBody(take: (piece: Uint8Array, isLast: boolean) => void): void {
    this.#res.onData((piece, isLast) => take(Buffer.from(piece), isLast));
  }

  /**
   * The library asks by itself where the value is in lower case, and has no call to do so for others, although its case
   * has no meaning (RFC 9110, 10.1.1).
   */
  asksForBody(expectation: string | undefined): boolean {
    return expectation === undefined || expectation === ASKED_FOR || expectation.toLowerCase() !== ASKED_FOR;
  }

  send(status: HttpStatus, type: string | undefined, headers: readonly Header[], content: string | Uint8Array) {
    let hasLeft = true;
    this.#res.cork(() => {
      this.#writeHead(status, type, headers);
      if (this.#endsConnection) this.#res.end(content, true);
      else if (content.length > LONG_ANSWER || Math.random() < LOOKED_AT) hasLeft = this.#sendFollowed(content);
      else if (content.length > 0) this.#res.end(content);
      else this.#res.end('', this.#bodyless.endsConnection());
    });
    return hasLeft;
  }

  sendHead(status: HttpStatus, type: string | undefined, headers: readonly Header[], length: number | undefined): void {
    this.#res.cork(() => {
      this.#writeHead(status, type, headers);
      if (this.#endsConnection || this.#bodyless.endsConnection())
        return void this.#res.endWithoutBody(length ?? 0, true);
      // Given the length itself, the library would wait for that much content, and cut the connection at the next
      // request.
      if (length !== undefined) this.#res.writeHeader('Content-Length', String(length));
      this.#res.endWithoutBody();
    });
  }

  begin(status: HttpStatus, type: string, headers: readonly Header[]): void {
    this.#res.cork(() => this.#writeHead(status, type, headers));
  }

  write(piece: Uint8Array): boolean {
    let isThrough = true;
    this.#res.cork(() => {
      isThrough = this.#res.write(piece);
    });
    if (!isThrough)
      this.#res.onWritable(() => {
        this.listener.writable();
        return true;
      });
    return isThrough;
  }

  finish(): void {
    this.#res.cork(() => this.#res.end(undefined, this.#endsConnection));
  }

  close(): void {
    this.#res.close();
  }

  protected upgradeTo<Data>(data: Data, key: string, extensions: string, context: us_socket_context_t): void {
    this.#res.cork(() => this.#res.upgrade(data, key, '', extensions, context));
  }

  /**
   * Writes no more of the content than the system accepts. Until all is written, a further request closes the
   * connection: otherwise the library would buffer without bound for a client that keeps asking and does not read.
   */
  #sendFollowed(content: string | Uint8Array): boolean {
    const bytes = Buffer.from(content);
    if (this.#res.tryEnd(bytes, bytes.length)[1]) return true;
    this.#res.onWritable((offset) => {
      const [isTaken, isWritten] = this.#res.tryEnd(bytes.subarray(offset), bytes.length);
      if (isWritten) this.listener.left();
      return isTaken;
    });
    return false;
  }

  #writeHead(status: HttpStatus, type: string | undefined, headers: readonly Header[]): void {
    if (status !== 200) this.#res.writeStatus(STATUS_LINE[status]);
    if (type !== undefined) this.#res.writeHeader('Content-Type', type);
    for (const [name, value] of headers) this.#res.writeHeader(name, value);
  }
}

class NativeHandshake<Data> extends NativeAnswer implements HandshakeAnswer<Data> {
  // Copied: the request is gone when it is decided.
  readonly #key: string;
  readonly #extensions: string;
  readonly #context: us_socket_context_t;
  readonly #open: ReadonlyMap<WebSocket<Data>, StreamSocket>;

  constructor(
    res: UwsResponse,
    bodyless: BodylessResponses,
    request: RequestHead,
    context: us_socket_context_t,
    open: ReadonlyMap<WebSocket<Data>, StreamSocket>,
  ) {
    super(res, bodyless);
    this.#key = request.header('sec-websocket-key');
    this.#extensions = request.header('sec-websocket-extensions');
    this.#context = context;
    this.#open = open;
  }

  /**
   * Corks another stream too, if there is one: at the end of the cork of its own, the library may take the new
   * WebSocket for the HTTP response that it was and, about once in a thousand times, close it.
   */
  upgrade(data: Data): void {
    const upgrade = (): void => this.upgradeTo(data, this.#key, this.#extensions, this.#context);
    const other = this.#open.values().next().value;
    if (other === undefined) upgrade();
    else other.together(upgrade);
  }
}
