/** Hangs the Connect methods on the HTTP server. The hottest path there is: read what is needed, hand it over, write the answer. */
import type { HttpRequest as UwsRequest, TemplatedApp } from 'uWebSockets.js';
import { connectError, type ConnectMethod, type ConnectReply, type ConnectRequest } from '../connect.ts';
import { corsHeaders, preflightReply } from './cors.ts';
import { Exchange } from './exchange.ts';
import { isChunked } from './framing.ts';

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
      // A coding that the library does not know it takes for no body at all, and the body for the next request.
      const coding = req.getHeader('transfer-encoding');
      if (coding !== '' && !isChunked(coding)) return exchange.close();
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

/** What the protocol needs of a request's head, read while the library still has it. */
class RequestHead implements ConnectRequest {
  readonly method: string;
  readonly origin: string | undefined;
  readonly header: (name: string) => string | undefined;
  body: Buffer = EMPTY;

  constructor(req: UwsRequest) {
    this.method = req.getMethod() === 'post' ? 'POST' : req.getMethod().toUpperCase();
    const authorization = headerOf(req, 'authorization');
    const contentType = headerOf(req, 'content-type');
    const contentEncoding = headerOf(req, 'content-encoding');
    const version = headerOf(req, 'connect-protocol-version');
    const timeout = headerOf(req, 'connect-timeout-ms');
    this.origin = headerOf(req, 'origin');
    this.header = (name) => {
      switch (name) {
        case 'authorization': return authorization;
        case 'content-type': return contentType;
        case 'content-encoding': return contentEncoding;
        case 'connect-protocol-version': return version;
        case 'connect-timeout-ms': return timeout;
        default: return undefined;
      }
    };
  }

  withBody(body: Buffer): this {
    this.body = body;
    return this;
  }
}

const EMPTY = Buffer.alloc(0);

function headerOf(req: UwsRequest, name: string): string | undefined {
  const value = req.getHeader(name);
  return value === '' ? undefined : value;
}
