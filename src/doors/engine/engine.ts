/** The HTTP server as the doors see it. There are two: uWebSockets.js (`native.ts`) and node:http (`node.ts`). */
import type { TlsIdentity } from '../../ports/tls.ts';
import type { Header, HttpStatus } from '../shared/http-answer.ts';

export type EngineName = 'native' | 'node';

export type Engine = {
  readonly name: EngineName;
  /** Requests for this path; `/*`: for every path without a handler of its own. */
  serve(path: string, handle: (answer: Answer, request: RequestHead) => void): void;
  /** WebSocket handshakes for this path. Requests for it that are none go to the handler of `/*`. */
  serveStreams<Data>(path: string, streams: Streams<Data>): void;
  /**
   * Resolves with the port, or undefined when it is not available. `isShared`: other threads listen on the same port.
   */
  listen(host: string, port: number, isShared: boolean): Promise<number | undefined>;
  stopListening(): void;
  /** New connections get this one. Only for an engine that was made with TLS. */
  renewTls?(identity: TlsIdentity): void;
  /** Closes every socket. */
  close(): void;
};

/** Only valid until the handler of the request returns. */
export type RequestHead = {
  /** In lower case. */
  readonly method: string;
  readonly path: string;
  /** The part after the question mark. */
  readonly query: string;
  /** By its name in lower case; empty where there is none. */
  header(name: string): string;
  /** Each header as it came, also those of the same name; names in lower case. */
  forEach(take: (name: string, value: string) => void): void;
};

/** Hears how an answer ended. */
export type AnswerListener = {
  /** The client has gone, before all of the answer had left. */
  gone(): void;
  /** All of an answer has left that `send` could not hand to the system at once. */
  left(): void;
  /** After `write` has returned false: there is room for the next piece. */
  writable(): void;
};

/**
 * The answer to one request: sent whole by `send`, as a head alone by `sendHead`, or piece by piece by `begin`, `write`
 * and `finish`. Nothing may be called after that, or once the client has gone.
 */
export type Answer = {
  /** To be set before the handler of the request returns. */
  listener: AnswerListener;
  /** The other end of the connection. */
  remoteAddress(): string;
  /** The body comes in chunks, which the engine may read otherwise than a proxy before it has. */
  noteChunks(): void;
  /** Pieces are only valid until `take` returns. A body that comes in one piece is known to be complete with it. */
  readBody(take: (piece: Uint8Array, isLast: boolean) => void): void;
  /**
   * Whether a client that sent an `Expect` header of this value is asked for its body, if it waits for that. It was
   * asked before the request came here.
   */
  asksForBody(expectation: string | undefined): boolean;
  /** False where it has not left yet: `left` or `gone` is called later. */
  send(status: HttpStatus, type: string | undefined, headers: readonly Header[], content: string | Uint8Array): boolean;
  /** `length`: of the content that a GET would have got; undefined where HTTP forbids to give it. */
  sendHead(status: HttpStatus, type: string | undefined, headers: readonly Header[], length: number | undefined): void;
  begin(status: HttpStatus, type: string, headers: readonly Header[]): void;
  /** False where the client does not read as fast: `writable` or `gone` is called later. */
  write(piece: Uint8Array): boolean;
  finish(): void;
  /** Cuts the connection. */
  close(): void;
};

export type HandshakeAnswer<Data> = Answer & {
  /** Instead of an answer: the connection becomes a WebSocket that carries `data`. */
  upgrade(data: Data): void;
};

/** `closed` is called for each `upgrade`, also where the client has gone before the stream is open. */
export type Streams<Data> = {
  /** A client that sends a larger message is cut off. */
  readonly maxMessageBytes: number;
  /** A frame is not taken while more than this waits to be sent. */
  readonly maxUnsentBytes: number;
  ask(answer: HandshakeAnswer<Data>, request: RequestHead): void;
  opened(socket: StreamSocket, data: Data): void;
  heard(data: Data, bytes: number): void;
  /** Some of what was unsent has left. */
  drained(data: Data): void;
  closed(data: Data): void;
};

export type StreamSocket = {
  /** False when the frame was not taken. */
  send(frame: Uint8Array): boolean;
  /** Runs `write`, and sends what it wrote in as few packets as possible. */
  together(write: () => void): void;
  /** Bytes that were sent and that the system has not taken yet. */
  unsentBytes(): number;
  end(code: number, reason: string): void;
};

/** A client of a stream that sends nothing, not even an answer to a ping, for this long has gone. */
export const STREAM_IDLE_SECS = 60;

/**
 * Whether a request is a WebSocket handshake (RFC 6455, 4.2.1). Without the offer to upgrade, as where a proxy has
 * taken it out, the connection would be a stream to the gateway alone, and the proxy would send it the next request,
 * maybe of another client. Drafts before the standard had other versions.
 */
export function isHandshake(request: Pick<RequestHead, 'method' | 'header' | 'forEach'>): boolean {
  let isForThisConnection = false;
  request.forEach((name, value) => {
    if (name === 'connection') isForThisConnection ||= /(?:^|,)[ \t]*upgrade[ \t]*(?:,|$)/i.test(value);
  });
  return (
    isForThisConnection &&
    request.method === 'get' &&
    request.header('upgrade').toLowerCase() === 'websocket' &&
    /^[+/0-9A-Za-z]{22}==$/.test(request.header('sec-websocket-key')) &&
    request.header('sec-websocket-version') === '13'
  );
}
