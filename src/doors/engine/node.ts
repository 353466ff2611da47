/** The engine over node:http and ws. */
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https';
import { createRequire } from 'node:module';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { WebSocket, WebSocketServer } from 'ws';
import type { TlsIdentity } from '../../ports/tls.ts';
import { type Header, type HttpStatus, STATUS_TEXT } from '../shared/http-answer.ts';
import { BACKLOG, canSharePort } from '../shared/listener.ts';
import { renewedOptions, secureOptions } from '../shared/tls.ts';
import {
  type Answer,
  type AnswerListener,
  type Engine,
  type HandshakeAnswer,
  isHandshake,
  type RequestHead,
  STREAM_IDLE_SECS,
  type Streams,
} from './engine.ts';

type Handler = (answer: Answer, request: RequestHead) => void;
/** The streams of one path, whatever they carry. */
type StreamDoor = {
  readonly path: string;
  readonly ask: (request: IncomingMessage, head: RequestHead, socket: Socket, rest: Buffer) => void;
  readonly server: WebSocketServer;
};

const PING_EVERY_MS = (STREAM_IDLE_SECS * 1_000) / 2;
const KEEP_ALIVE_MS = 60_000;
/** For a request head, and for a client that is expected to send or read and does neither; as in the native engine. */
const IDLE_MS = 10_000;
const MAX_HEADERS = 100;
/** How often connections are looked at that may be idle, and heads that may take too long. */
const LOOK_EVERY_MS = 1_000;

/**
 * `onError` is called for a connection that could not be accepted, for instance because the process is out of
 * descriptors. With `tls` it serves nothing else.
 */
export function createNodeEngine(onError: (error: unknown) => void, tls?: TlsIdentity): Engine {
  const handlers = new Map<string, Handler>();
  let streams: StreamDoor | undefined;
  // `shouldUpgradeCallback` exists from Node.js 22.21 and 24.9 on. From 26 on it is needed: there the body of a request
  // that offers an upgrade does not come with the connection. An offer without a body is taken: what is pipelined
  // behind a declined one is lost.
  const options = {
    headersTimeout: IDLE_MS,
    keepAliveTimeout: 0, // see `Connections`
    connectionsCheckingInterval: LOOK_EVERY_MS,
    shouldUpgradeCallback: hasNoBody,
  };
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    if (request.socket.destroyed) return; // it arrived in one packet with a request that ended the connection
    if (request.rawHeaders.length > 2 * MAX_HEADERS) return void response.writeHead(431, { connection: 'close' }).end();
    const head = new NodeRequest(request);
    const handle = handlers.get(head.path) ?? handlers.get('/*');
    const answer = new NodeAnswer(request, response);
    handle?.(answer, head);
    if (!answer.isBodyRead) request.resume(); // an unread body must not hold up the next request
  };
  const secure = tls && createSecureServer({ ...options, ...secureOptions(tls) }, serve);
  const server = secure ?? createServer(options, serve);
  const cutHandshakes = secure === undefined ? () => undefined : handshakesOf(secure);
  const connections = new Connections(server);
  server.on('upgrade', (request: IncomingMessage, socket: Socket, rest: Buffer) => {
    const head = new NodeRequest(request);
    if (head.path === streams?.path && isHandshake(head)) streams.ask(request, head, socket, rest);
    else serveWithoutUpgrade(server, request, socket, rest);
  });
  const pings = setInterval(() => {
    for (const ws of streams?.server.clients ?? []) pingOrGiveUp(ws);
  }, PING_EVERY_MS);
  pings.unref();

  return {
    name: 'node',
    serve: (path, handle) => void handlers.set(path, handle),
    serveStreams: (path, behavior) => {
      streams = streamDoor(path, behavior);
    },
    listen: async (host, port, isShared) => {
      const bound = await listen(server, host, port, isShared);
      server.on('error', onError);
      return bound;
    },
    // Not the server's own `close`, which closes idle connections too: they must still be told that the gateway is
    // going away.
    stopListening: () => void NetServer.prototype.close.call(server),
    ...(secure && { renewTls: (identity: TlsIdentity) => secure.setSecureContext(renewedOptions(identity)) }),
    close: () => {
      clearInterval(pings);
      connections.stopLooking();
      for (const ws of streams?.server.clients ?? []) ws.terminate();
      server.close();
      server.closeAllConnections();
      cutHandshakes();
    },
  };
}

/** Cuts all connections, also those before the end of their handshake, which the server does not count as HTTP. */
function handshakesOf(server: SecureServer): () => void {
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  return () => {
    for (const socket of open) socket.destroy();
  };
}

/** The event that starts an HTTP connection: with TLS, it follows the handshake. */
const beginsWith = (server: Server | SecureServer): 'connection' | 'secureConnection' =>
  'setSecureContext' in server ? 'secureConnection' : 'connection';

/** Some clients send a Content-Length of 0 when there is no body. */
const hasNoBody = ({ headers }: IncomingMessage): boolean =>
  Number(headers['content-length'] ?? 0) === 0 && headers['transfer-encoding'] === undefined;

/**
 * A request that offers to upgrade to another protocol, as Java's client offers HTTP/2 each time, is answered in
 * HTTP/1.1. node:http has detached the connection by then, so it is handed back, with the same request minus the offer.
 */
function serveWithoutUpgrade(
  server: Server | SecureServer,
  { method, url, httpVersion, rawHeaders }: IncomingMessage,
  socket: Socket,
  rest: Buffer,
): void {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]!.toLowerCase() !== 'upgrade') lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), rest]));
  server.emit(beginsWith(server), socket);
}

/** If threads cannot share a port, only the first one serves HTTP. */
function listen(
  server: Server | SecureServer,
  host: string,
  port: number,
  isShared: boolean,
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException): void => {
      if (error.code !== 'EADDRINUSE') reject(error);
      else resolve(isShared && !canSharePort() ? port : undefined);
    };
    server.once('error', onError);
    const options: object = { host, port, reusePort: isShared && canSharePort(), backlog: BACKLOG };
    server.listen(options, () => {
      server.off('error', onError);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** Names of headers as clients write them, and in lower case. As many as a few clients use; others are not kept. */
const lowerCaseNames = new Map<string, string>();
const MAX_NAMES = 256;

function inLowerCase(name: string): string {
  const known = lowerCaseNames.get(name);
  if (known !== undefined) return known;
  const lower = name.toLowerCase();
  if (lowerCaseNames.size < MAX_NAMES) lowerCaseNames.set(name, lower);
  return lower;
}

class NodeRequest implements RequestHead {
  readonly #request: IncomingMessage;
  readonly path: string;
  readonly query: string;

  constructor(request: IncomingMessage) {
    this.#request = request;
    const { url = '/' } = request;
    const at = url.indexOf('?');
    this.path = at === -1 ? url : url.slice(0, at);
    this.query = at === -1 ? '' : url.slice(at + 1);
  }

  get method(): string {
    return inLowerCase(this.#request.method ?? 'GET');
  }
  header(name: string): string {
    return String(this.#request.headers[name] ?? '');
  }
  forEach(take: (name: string, value: string) => void): void {
    const { rawHeaders } = this.#request;
    for (let at = 0; at < rawHeaders.length; at += 2) take(inLowerCase(rawHeaders[at]!), rawHeaders[at + 1]!);
  }
}

/**
 * The answers of each connection that are not at their end. node:http tells only the first of them that the connection
 * is closed, and none of those that were pipelined behind it.
 */
const unanswered = new WeakMap<Socket, Set<NodeAnswer>>();

function unansweredOn(socket: Socket): Set<NodeAnswer> {
  const known = unanswered.get(socket);
  if (known !== undefined) return known;
  const answers = new Set<NodeAnswer>();
  unanswered.set(socket, answers);
  socket.once('close', () => {
    for (const answer of answers) answer.listener.gone();
  });
  return answers;
}

/** How long nothing may move on a connection. */
function patienceMs(socket: Socket): number {
  const [first] = unanswered.get(socket) ?? [];
  if (first === undefined) return KEEP_ALIVE_MS;
  // Silence is the client's fault, unless the client is waiting for the gateway.
  return first.isRequestComplete && socket.writableLength === 0 ? Infinity : IDLE_MS;
}

/**
 * Cuts connections on which nothing moves, found by a look at all of them once a second. The time-outs of node:http
 * would set a timer twice for each request.
 */
class Connections {
  readonly #open = new Map<Socket, { moved: number; sinceMs: number }>();
  readonly #looking: NodeJS.Timeout;

  constructor(server: Server | SecureServer) {
    server.on(beginsWith(server), (socket: Socket) => {
      this.#open.set(socket, { moved: 0, sinceMs: performance.now() });
      socket.once('close', () => this.#open.delete(socket));
    });
    // A WebSocket has its own time-out. An offer that is declined comes back as a new connection.
    server.on('upgrade', (_request, socket) => this.#open.delete(socket as Socket));
    this.#looking = setInterval(() => this.#look(performance.now()), LOOK_EVERY_MS).unref();
  }

  stopLooking(): void {
    clearInterval(this.#looking);
  }

  #look(nowMs: number): void {
    for (const [socket, seen] of this.#open) {
      const moved = socket.bytesRead + socket.bytesWritten - socket.writableLength;
      if (moved !== seen.moved) {
        seen.moved = moved;
        seen.sinceMs = nowMs;
      } else if (nowMs - seen.sinceMs >= patienceMs(socket)) socket.destroy();
    }
  }
}

const NOBODY: AnswerListener = { gone: () => undefined, left: () => undefined, writable: () => undefined };

class NodeAnswer implements Answer {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #unanswered: Set<NodeAnswer>;
  listener = NOBODY;
  isBodyRead = false;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request;
    this.#response = response;
    this.#unanswered = unansweredOn(request.socket).add(this);
  }

  get isRequestComplete(): boolean {
    return this.#request.complete;
  }

  remoteAddress(): string {
    return this.#request.socket.remoteAddress ?? '';
  }

  /** It refuses what is no chunk. */
  noteChunks(): void {}

  readBody(take: (piece: Uint8Array, isLast: boolean) => void): void {
    this.isBodyRead = true;
    const length = lengthOf(this.#request);
    let received = 0;
    this.#request.on('data', (piece: Buffer) => {
      received += piece.length;
      take(piece, received === length);
    });
    if (length === undefined || length === 0) this.#request.once('end', () => take(NO_PIECE, true));
  }

  asksForBody(): boolean {
    return true;
  }

  send(status: HttpStatus, type: string | undefined, headers: readonly Header[], content: string | Uint8Array) {
    const length = typeof content === 'string' ? Buffer.byteLength(content) : content.length;
    this.writeHead(status, type, headers, length);
    // If each character is one byte, latin1 writes the whole answer without looking for longer ones.
    return this.#end(content, length === content.length ? 'latin1' : 'utf8');
  }

  sendHead(status: HttpStatus, type: string | undefined, headers: readonly Header[], length: number | undefined): void {
    this.writeHead(status, type, headers, length);
    this.#end();
  }

  begin(status: HttpStatus, type: string, headers: readonly Header[]): void {
    this.writeHead(status, type, headers, undefined);
  }

  write(piece: Uint8Array): boolean {
    const isThrough = this.#response.write(piece);
    if (!isThrough) this.#response.once('drain', () => this.listener.writable());
    return isThrough;
  }

  finish(): void {
    this.#end();
  }

  close(): void {
    this.#request.socket.destroy();
  }

  protected writeHead(
    status: HttpStatus,
    type: string | undefined,
    headers: readonly Header[],
    length: number | undefined,
  ): void {
    const fields: string[] = [];
    if (type !== undefined) fields.push('Content-Type', type);
    if (length !== undefined) fields.push('Content-Length', String(length));
    for (const [name, value] of headers) fields.push(name, value);
    this.#response.writeHead(status, STATUS_TEXT[status], fields);
  }

  /** The connection is no longer one of HTTP. */
  protected forget(): void {
    this.#unanswered.delete(this);
  }

  #end(content?: string | Uint8Array, encoding: BufferEncoding = 'utf8'): boolean {
    const response = this.#response;
    response.end(content, encoding);
    if (response.writableFinished) {
      this.#unanswered.delete(this);
      return true;
    }
    // At its end, not in the callback of `end`: Node.js 26 calls that also for an answer whose client has gone before.
    response.once('finish', () => {
      this.#unanswered.delete(this);
      this.listener.left();
    });
    return false;
  }
}

const NO_PIECE = new Uint8Array(0);

/** Undefined for a chunked body. Not from `headers`, which would be made for it alone. */
function lengthOf({ rawHeaders }: IncomingMessage): number | undefined {
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (inLowerCase(rawHeaders[at]!) === 'content-length') return Number(rawHeaders[at + 1]);
  return undefined;
}

function streamDoor<Data>(path: string, streams: Streams<Data>): StreamDoor {
  // Loaded only here: where the native engine serves, nobody needs it.
  const { WebSocketServer } = createRequire(import.meta.url)('ws') as typeof import('ws');
  // No subprotocol is selected: the gateway has none, and some clients put a credential there.
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: streams.maxMessageBytes,
    handleProtocols: () => false,
  });
  const ask: StreamDoor['ask'] = (request, head, socket, rest) => {
    socket.on('error', () => socket.destroy());
    const upgrade = (data: Data): void => {
      let isAdopted = false;
      server.handleUpgrade(request, socket, rest, (ws) => {
        isAdopted = true;
        adopt(ws, socket, data, streams);
      });
      if (!isAdopted) streams.closed(data); // the client has gone, or ws refused it
    };
    streams.ask(new NodeHandshake(request, socket, upgrade), head);
  };
  return { path, ask, server };
}

class NodeHandshake<Data> extends NodeAnswer implements HandshakeAnswer<Data> {
  readonly #response: ServerResponse;
  readonly #socket: Socket;
  readonly #upgrade: (data: Data) => void;

  constructor(request: IncomingMessage, socket: Socket, upgrade: (data: Data) => void) {
    const response = new ServerResponse(request);
    super(request, response);
    this.#response = response;
    this.#socket = socket;
    this.#upgrade = upgrade;
  }

  upgrade(data: Data): void {
    this.forget();
    this.#upgrade(data);
  }

  protected override writeHead(...head: Parameters<NodeAnswer['writeHead']>): void {
    this.#response.shouldKeepAlive = false;
    this.#response.assignSocket(this.#socket);
    // as node:http would, which no longer handles this connection; the client may never close it
    this.#response.once('finish', () => this.#socket.destroySoon());
    super.writeHead(...head);
  }
}

/** Sockets that were pinged and have not answered since. */
const silent = new WeakSet<WebSocket>();

function pingOrGiveUp(ws: WebSocket): void {
  if (silent.has(ws)) return ws.terminate();
  silent.add(ws);
  ws.ping();
}

function adopt<Data>(ws: WebSocket, connection: Socket, data: Data, streams: Streams<Data>): void {
  ws.on('error', () => ws.terminate());
  ws.on('pong', () => silent.delete(ws));
  ws.on('message', (message: Buffer) => {
    silent.delete(ws);
    streams.heard(data, message.length);
  });
  ws.once('close', () => streams.closed(data));
  const onSent = (): void => {
    if (ws.bufferedAmount === 0) streams.drained(data);
  };
  streams.opened(
    {
      send: (frame) => {
        if (ws.bufferedAmount > streams.maxUnsentBytes) return false;
        ws.send(frame, { binary: false }, onSent);
        return true;
      },
      together: (write) => {
        connection.cork();
        write();
        connection.uncork();
      },
      unsentBytes: () => ws.bufferedAmount,
      end: (code, reason) => ws.close(code, reason),
    },
    data,
  );
}
