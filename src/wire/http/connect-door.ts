/** Hangs the Connect methods on the HTTP server. The hottest path there is: read what is needed, hand it over, write the answer. */
import type { HttpRequest as UwsRequest, TemplatedApp } from 'uWebSockets.js';
import { connectError, type ConnectMethod, type ConnectReply, type ConnectRequest } from '../connect.ts';
import { corsHeaders, preflightReply } from './cors.ts';
import { Exchange } from './exchange.ts';

export type ConnectDoorOptions = {
  readonly methods: ReadonlyMap<string, ConnectMethod>;
  readonly corsOrigins: readonly string[];
  /** How long a client may take to send a body. */
  readonly bodyTimeoutMs: number;
  readonly onRequest: () => void;
  readonly onDefect: (error: unknown) => void;
};

export function serveConnect(app: TemplatedApp, { methods, corsOrigins, bodyTimeoutMs, onRequest, onDefect }: ConnectDoorOptions): void {
  for (const [path, method] of methods) {
    app.any(path, (res, req) => {
      onRequest();
      const exchange = new Exchange(res, onDefect);
      const head = new RequestHead(req);
      if (head.method === 'OPTIONS') return exchange.send(PREFLIGHT, corsHeaders(corsOrigins, head.origin), false);
      exchange.readBody({ maxBytes: method.maxBytes, timeoutMs: bodyTimeoutMs }, (body) => {
        if (body.kind === 'too-large') return send(exchange, connectError({ kind: 'payload_too_large', limitBytes: method.maxBytes }), head, corsOrigins);
        void method.answer(head.withBody(body.bytes)).then((reply) => send(exchange, reply, head, corsOrigins));
      });
    });
  }
}

const PREFLIGHT = preflightReply({ kind: 'no-method', allowed: ['post'] });

function send(exchange: Exchange, { status, contentType, content, headers }: ConnectReply, { origin }: RequestHead, corsOrigins: readonly string[]): void {
  if (status === 200 && origin === undefined) return exchange.sendText(200, contentType, content);
  exchange.send({ status, text: { type: contentType, content }, headers }, corsHeaders(corsOrigins, origin), false);
}

/** The headers of the protocol, read while the library still has them. */
class RequestHead implements ConnectRequest {
  readonly method: string;
  readonly origin: string | undefined;
  body: Buffer = EMPTY;
  readonly header: (name: string) => string | undefined;

  constructor(req: UwsRequest) {
    this.method = req.getMethod().toUpperCase();
    const headers: Record<string, string> = {};
    for (const name of HEADERS) {
      const value = req.getHeader(name);
      if (value !== '') headers[name] = value;
    }
    this.header = (name) => headers[name];
    this.origin = headers.origin;
  }

  withBody(body: Buffer): this {
    this.body = body;
    return this;
  }
}

const EMPTY = Buffer.alloc(0);
const HEADERS = ['authorization', 'content-type', 'content-encoding', 'connect-protocol-version', 'connect-timeout-ms', 'origin'] as const;
