/**
 * As much of uWebSockets.js as the doors use, over node:http and ws: for where the native library does not load. The
 * package's own stand-in lacks most of it. Slower, and otherwise the same.
 */
import { createServer, ServerResponse, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { HttpRequest, HttpResponse, TemplatedApp, us_socket_context_t, WebSocket as UwsWebSocket, WebSocketBehavior } from 'uWebSockets.js';
import { WebSocketServer, type WebSocket } from 'ws';
import { canSharePort } from '../grpc/listener.ts';
import type { HttpApp } from './http-app.ts';

type Handler = (res: HttpResponse, req: HttpRequest) => void;
type Streams = { readonly path: string; readonly behavior: WebSocketBehavior<unknown>; readonly server: WebSocketServer };

const PING_EVERY_MS = 30_000;
const KEEP_ALIVE_MS = 60_000;
/** What uWebSockets.js answers to a send. */
const SENT = 1;
const NO_CONTEXT = {} as us_socket_context_t;

export function createNodeApp(): HttpApp {
  const handlers = new Map<string, Handler>();
  let streams: Streams | undefined;
  const server = createServer((request, response) => {
    const handler = handlers.get(pathOf(request)) ?? handlers.get('/*');
    request.resume(); // a body that nobody asks for must not hold up the next request
    handler?.(new NodeResponse(request, () => response) as never, requestOf(request));
  });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    const respond = (): ServerResponse => {
      const response = new ServerResponse(request);
      response.shouldKeepAlive = false;
      response.assignSocket(socket as never);
      response.once('finish', () => socket.end());
      return response;
    };
    if (streams === undefined || pathOf(request) !== streams.path) return void respond().writeHead(404).end();
    const { behavior, server: sockets } = streams;
    const upgrade = (data: unknown): void => sockets.handleUpgrade(request, socket, head, (ws) => adopt(ws, data, behavior));
    behavior.upgrade?.(new NodeResponse(request, respond, socket, upgrade) as never, requestOf(request), NO_CONTEXT);
  });
  const pings = setInterval(() => {
    for (const ws of streams?.server.clients ?? []) ws.ping();
  }, PING_EVERY_MS);
  pings.unref();

  const app = {
    any: (pattern: string, handler: Handler) => handlers.set(pattern, handler),
    ws: (path: string, behavior: WebSocketBehavior<unknown>) => {
      streams = { path, behavior, server: new WebSocketServer({ noServer: true, maxPayload: behavior.maxPayloadLength ?? 0 }) };
    },
  };
  return {
    implementation: 'javascript',
    app: app as unknown as TemplatedApp,
    listen: (host, port, isShared) => listen(server, host, port, isShared),
    stopListening: () => void server.close(),
    close: () => {
      clearInterval(pings);
      for (const ws of streams?.server.clients ?? []) ws.terminate();
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Where threads cannot share a port, the first one has it, and the others only answer for gRPC, if that. */
function listen(server: Server, host: string, port: number, isShared: boolean): Promise<number | undefined> {
  return new Promise((resolve) => {
    const onError = (error: NodeJS.ErrnoException): void => resolve(isShared && !canSharePort() && error.code === 'EADDRINUSE' ? port : undefined);
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
  } as unknown as HttpRequest;
}

/** The response as the library has it. It is made only when the first word of it is written: an upgrade needs none. */
class NodeResponse {
  readonly #request: IncomingMessage;
  readonly #make: () => ServerResponse;
  readonly #upgrade: ((data: unknown) => void) | undefined;
  #response: ServerResponse | undefined;
  #isOver = false;

  constructor(request: IncomingMessage, make: () => ServerResponse, socket?: Duplex, upgrade?: (data: unknown) => void) {
    this.#request = request;
    this.#make = make;
    this.#upgrade = upgrade;
    (socket ?? this.#written()).once('close', () => {
      if (!this.#isOver) this.#onAborted?.();
    });
  }

  #onAborted: (() => void) | undefined;
  onAborted(handler: () => void): void { this.#onAborted = handler; }

  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): void {
    this.#request.on('data', ({ buffer, byteOffset, byteLength }: Buffer) => handler(buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer, false));
    this.#request.once('end', () => handler(new ArrayBuffer(0), true));
  }

  cork(write: () => void): void { write(); }
  writeStatus(line: string): void { this.#written().statusCode = Number.parseInt(line, 10); }
  writeHeader(name: string, value: string): void { this.#written().appendHeader(name, value); }
  write(chunk: string | Uint8Array): boolean { return this.#written().write(chunk); }

  onWritable(handler: () => boolean): void { this.#written().once('drain', handler); }

  end(content?: string | Uint8Array): void {
    this.#isOver = true;
    this.#written().end(content);
  }

  endWithoutBody(): void { this.end(); }

  close(): void {
    this.#isOver = true;
    this.#request.socket.destroy();
  }

  getRemoteAddressAsText(): ArrayBuffer { return new TextEncoder().encode(this.#request.socket.remoteAddress ?? '').buffer as ArrayBuffer; }

  upgrade(data: unknown): void {
    this.#isOver = true;
    this.#upgrade?.(data);
  }

  #written(): ServerResponse {
    this.#response ??= this.#make();
    return this.#response;
  }
}

function adopt(ws: WebSocket, data: unknown, behavior: WebSocketBehavior<unknown>): void {
  const socket = {
    getUserData: () => data,
    getBufferedAmount: () => ws.bufferedAmount,
    cork: (write: () => void) => write(),
    send: (frame: string) => {
      ws.send(frame, () => { if (ws.bufferedAmount === 0) behavior.drain?.(socket); });
      return SENT;
    },
    end: (code: number, reason: string) => ws.close(code, reason),
    close: () => ws.terminate(),
  } as unknown as UwsWebSocket<unknown>;
  ws.on('error', () => ws.terminate());
  ws.on('message', (message: Buffer, isBinary) => void behavior.message?.(socket, new Uint8Array(message).buffer, isBinary));
  ws.once('close', (code, reason) => behavior.close?.(socket, code, new Uint8Array(reason).buffer));
  void behavior.open?.(socket);
}
