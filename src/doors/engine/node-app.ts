import type { HttpApp } from './engine.ts';
/**
 * The part of uWebSockets.js that the gateway uses, over node:http and ws, for where the native library does not load.
 * The package's own stand-in lacks most of it. Slower, and otherwise the same.
 */

import type {
  HttpRequest,
  HttpResponse,
  TemplatedApp,
  WebSocket as UwsWebSocket,
  us_socket_context_t,
  WebSocketBehavior,
} from 'uWebSockets.js';
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { canSharePort } from '../shared/listener.ts';

type Handler = (res: HttpResponse, req: HttpRequest) => void;
type Streams = {
  readonly path: string;
  readonly behavior: WebSocketBehavior<unknown>;
  readonly server: WebSocketServer;
};

const PING_EVERY_MS = 30_000;
const KEEP_ALIVE_MS = 60_000;
/**
 * The native library's time-outs: for a request head, and for a client that is expected to send or read and does
 * neither.
 */
const IDLE_MS = 10_000;
const MAX_HEADERS = 100;
/** How often node:http looks for heads that take too long. */
const LOOK_EVERY_MS = 1_000;
/** What uWebSockets.js answers to a send. */
const SENT = 1;
const DROPPED = 2;
const NO_CONTEXT = {} as us_socket_context_t;
/** RFC 6455, 7.1.5: the connection ended without a close frame. */
const ABNORMAL = 1006;

/**
 * `onError` is called for a connection that could not be accepted, for instance because the process is out of
 * descriptors.
 */
export function createNodeApp(onError: (error: unknown) => void): HttpApp {
  const handlers = new Map<string, Handler>();
  let streams: Streams | undefined;
  // `shouldUpgradeCallback` exists from Node.js 22.21 and 24.9 on. From 26 on it is needed: there the body of a request
  // that offers an upgrade does not come with the connection. An offer without a body is taken: what is pipelined
  // behind a declined one is lost.
  const options = {
    headersTimeout: IDLE_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: LOOK_EVERY_MS,
    shouldUpgradeCallback: hasNoBody,
  };
  const server = createServer(options, (request, response) => {
    if (request.socket.destroyed) return; // it arrived in one packet with a request that ended the connection
    if (request.rawHeaders.length > 2 * MAX_HEADERS) return void response.writeHead(431, { connection: 'close' }).end();
    const handler = handlers.get(pathOf(request)) ?? handlers.get('/*');
    request.resume(); // an unread body must not hold up the next request
    // Silence is the client's fault, unless the client is waiting for the gateway.
    response.on('timeout', ({ writableLength }: Socket) => {
      if (!request.complete || writableLength > 0) request.socket.destroy();
    });
    handler?.(new NodeResponse(request, request.socket, () => response) as never, requestOf(request));
  });
  server.timeout = IDLE_MS;
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    if (streams === undefined || !isHandshake(request, streams.path))
      serveWithoutUpgrade(server, request, socket, head);
    else serveHandshake(streams, request, socket, head);
  });
  const pings = setInterval(() => {
    for (const ws of streams?.server.clients ?? []) pingOrGiveUp(ws);
  }, PING_EVERY_MS);
  pings.unref();

  const app = {
    any: (pattern: string, handler: Handler) => handlers.set(pattern, handler),
    ws: (path: string, behavior: WebSocketBehavior<unknown>) => {
      // No subprotocol is selected: the gateway has none, and some clients put a credential there.
      const server = new WebSocketServer({
        noServer: true,
        maxPayload: behavior.maxPayloadLength ?? 0,
        handleProtocols: () => false,
      });
      streams = { path, behavior, server };
    },
  };
  return {
    implementation: 'javascript',
    app: app as unknown as TemplatedApp,
    listen: async (host, port, isShared) => {
      const bound = await listen(server, host, port, isShared);
      server.on('error', onError);
      return bound;
    },
    // Not the server's own `close`, which closes idle connections too: they must still be told that the gateway is
    // going away.
    stopListening: () => void NetServer.prototype.close.call(server),
    close: () => {
      clearInterval(pings);
      for (const ws of streams?.server.clients ?? []) ws.terminate();
      server.close();
      server.closeAllConnections();
    },
  };
}

/** The behaviour's `upgrade` decides: it may turn the connection into a WebSocket, or answer as over HTTP. */
function serveHandshake({ behavior, server }: Streams, request: IncomingMessage, socket: Socket, head: Buffer): void {
  socket.on('error', () => socket.destroy());
  const respond = (): ServerResponse => {
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    // as node:http would, which no longer handles this connection; the client may never close it
    response.once('finish', () => socket.destroySoon());
    return response;
  };
  const upgrade = (data: unknown): void => {
    let isAdopted = false;
    server.handleUpgrade(request, socket, head, (ws) => {
      isAdopted = true;
      adopt(ws, socket, data, behavior);
    });
    // The client has gone, or ws refused it: its reserved place must be freed.
    if (!isAdopted)
      behavior.close?.({ getUserData: () => data } as UwsWebSocket<unknown>, ABNORMAL, new ArrayBuffer(0));
  };
  behavior.upgrade?.(new NodeResponse(request, socket, respond, upgrade) as never, requestOf(request), NO_CONTEXT);
}

/** A handshake as RFC 6455 wants it, for the path that has streams. */
function isHandshake(request: IncomingMessage, path: string): boolean {
  const { method, headers } = request;
  return (
    method === 'GET' &&
    pathOf(request) === path &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    /^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '') &&
    headers['sec-websocket-version'] === '13'
  );
}

/** Some clients send a Content-Length of 0 when there is no body. */
const hasNoBody = ({ headers }: IncomingMessage): boolean =>
  Number(headers['content-length'] ?? 0) === 0 && headers['transfer-encoding'] === undefined;

/**
 * A request that offers to upgrade to another protocol, as Java's client offers HTTP/2 each time, is answered in
 * HTTP/1.1. node:http has detached the connection by then, so it is handed back, with the same request minus the offer.
 */
function serveWithoutUpgrade(
  server: Server,
  { method, url, httpVersion, rawHeaders }: IncomingMessage,
  socket: Socket,
  head: Buffer,
): void {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]!.toLowerCase() !== 'upgrade') lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit('connection', socket);
}

/** Where threads cannot share a port, only the first one serves HTTP. */
function listen(server: Server, host: string, port: number, isShared: boolean): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException): void => {
      if (error.code !== 'EADDRINUSE') reject(error);
      else resolve(isShared && !canSharePort() ? port : undefined);
    };
    server.once('error', onError);
    const options: object = { host, port, reusePort: isShared && canSharePort() };
    server.listen(options, () => {
      server.off('error', onError);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

const pathOf = ({ url = '/' }: IncomingMessage): string => url.split('?', 1)[0]!;

function requestOf(request: IncomingMessage): HttpRequest {
  const { url = '/', method = 'GET', headers, rawHeaders } = request;
  return {
    getMethod: () => method.toLowerCase(),
    getUrl: () => pathOf(request),
    getQuery: () => url.slice(pathOf(request).length + 1),
    getHeader: (name: string) => String(headers[name] ?? ''),
    forEach: (each: (name: string, value: string) => void) => {
      for (let at = 0; at < rawHeaders.length; at += 2) each(rawHeaders[at]!.toLowerCase(), rawHeaders[at + 1]!);
    },
  } as HttpRequest;
}

/**
 * The responses of each connection that are not at their end. node:http tells only the first of them that the
 * connection is closed, and none of those that were pipelined behind it.
 */
const openOn = new WeakMap<Socket, Set<NodeResponse>>();

function openResponsesOf(socket: Socket): Set<NodeResponse> {
  const known = openOn.get(socket);
  if (known !== undefined) return known;
  const open = new Set<NodeResponse>();
  openOn.set(socket, open);
  socket.once('close', () => {
    for (const response of open) response.abort();
  });
  return open;
}

/**
 * A response with the interface of the library. The node:http response is made on the first write: an upgrade needs
 * none.
 */
class NodeResponse {
  readonly #request: IncomingMessage;
  readonly #open: Set<NodeResponse>;
  readonly #make: () => ServerResponse;
  readonly #upgrade: ((data: unknown) => void) | undefined;
  #response: ServerResponse | undefined;

  constructor(request: IncomingMessage, socket: Socket, make: () => ServerResponse, upgrade?: (data: unknown) => void) {
    this.#request = request;
    this.#open = openResponsesOf(socket).add(this);
    this.#make = make;
    this.#upgrade = upgrade;
  }

  /** The connection is closed. */
  abort(): void {
    this.#onAborted?.();
  }

  #onAborted: (() => void) | undefined;
  onAborted(handler: () => void): void {
    this.#onAborted = handler;
  }

  /**
   * Marks the last piece of a body of known length as the last, so that a body in one piece is known to be complete.
   */
  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): void {
    const length = Number(this.#request.headers['content-length'] ?? NaN);
    let received = 0;
    this.#request.on('data', ({ buffer, byteOffset, byteLength }: Buffer) => {
      received += byteLength;
      handler(buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer, received === length);
    });
    this.#request.once('end', () => {
      if (received === 0 || received !== length) handler(new ArrayBuffer(0), true);
    });
  }

  cork(write: () => void): void {
    write();
  }

  writeStatus(line: string): void {
    const response = this.#written();
    response.statusCode = Number.parseInt(line, 10);
    response.statusMessage = line.slice(4);
  }

  writeHeader(name: string, value: string): void {
    this.#written().appendHeader(name, value);
  }
  write(chunk: string | Uint8Array): boolean {
    return this.#written().write(chunk);
  }

  onWritable(handler: () => boolean): void {
    const response = this.#written();
    response.once(response.writableEnded ? 'finish' : 'drain', handler);
  }

  end(content?: string | Uint8Array): void {
    this.#open.delete(this);
    this.#written().end(content);
  }

  /** node:http reads no further requests while answers wait to be read. */
  readonly readsOnlyWhenRead = true;

  /**
   * Always accepts the whole of it at once. Whether it has left is known later: asked again then, it takes nothing
   * more.
   */
  tryEnd(content: string | Uint8Array): [boolean, boolean] {
    const response = this.#written();
    // At its end, not in the callback of `end`: Node.js 26 calls that also for an answer whose client has gone before.
    if (!response.writableEnded) response.once('finish', () => this.#open.delete(this)).end(content);
    return [true, response.writableFinished];
  }

  endWithoutBody(): void {
    this.end();
  }

  /** `onAborted` is called, as in the library. */
  close(): void {
    this.#request.socket.destroy();
  }

  getRemoteAddressAsText(): ArrayBuffer {
    return new TextEncoder().encode(this.#request.socket.remoteAddress ?? '').buffer;
  }

  upgrade(data: unknown): void {
    this.#open.delete(this);
    this.#upgrade?.(data);
  }

  #written(): ServerResponse {
    this.#response ??= this.#make();
    return this.#response;
  }
}

/** Sockets that were pinged and have not answered since. */
const silent = new WeakSet<WebSocket>();

function pingOrGiveUp(ws: WebSocket): void {
  if (silent.has(ws)) return ws.terminate();
  silent.add(ws);
  ws.ping();
}

function adopt(ws: WebSocket, connection: Socket, data: unknown, behavior: WebSocketBehavior<unknown>): void {
  const { maxBackpressure = Infinity } = behavior;
  const socket = {
    getUserData: () => data,
    getBufferedAmount: () => ws.bufferedAmount,
    cork: (write: () => void) => {
      connection.cork();
      write();
      connection.uncork();
    },
    send: (frame: string | Uint8Array, isBinary: boolean) => {
      if (ws.bufferedAmount > maxBackpressure) return DROPPED;
      ws.send(frame, { binary: isBinary }, () => {
        if (ws.bufferedAmount === 0) behavior.drain?.(socket);
      });
      return SENT;
    },
    end: (code: number, reason: string) => ws.close(code, reason),
    close: () => ws.terminate(),
  } as UwsWebSocket<unknown>;
  ws.on('error', () => ws.terminate());
  ws.on('pong', () => silent.delete(ws));
  ws.on('message', (message: Buffer, isBinary) => {
    silent.delete(ws);
    void behavior.message?.(socket, new Uint8Array(message).buffer, isBinary);
  });
  ws.once('close', (code, reason) => behavior.close?.(socket, code, new Uint8Array(reason).buffer));
  void behavior.open?.(socket);
}
