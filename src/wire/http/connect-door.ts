/** Hangs the Connect methods on the HTTP server. The hottest path there is: read what is needed, hand it over, write the answer. */
import type { HttpRequest as UwsRequest, TemplatedApp } from 'uWebSockets.js';
import { connectError, type ConnectMethod, type ConnectReply, type ConnectRequest } from '../connect.ts';
import { AUTHORIZED_TWICE } from './authorization.ts';
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
      const head = new RequestHead(req);
      if (!head.isSoundlyFramed) return exchange.close();
      if (head.method === 'OPTIONS') return exchange.send(PREFLIGHT, corsHeaders(corsOrigins, head.origin), false);
      if (head.isAuthorizedTwice) return send(exchange, connectError(AUTHORIZED_TWICE), head, corsOrigins);
      exchange.readBody({ maxBytes: method.maxBytes, timeoutMs: bodyTimeoutMs }, (body) => {
        if (body.kind === 'too-large') return send(exchange, connectError({ kind: 'payload_too_large', limitBytes: method.maxBytes }), head, corsOrigins);
        void method.answer(head.withBody(body.bytes)).then((reply) => send(exchange, reply, head, corsOrigins));
      });
    });
  }
}

const PREFLIGHT = preflightReply({ kind: 'no-method', allowed: ['post'] });

function send(exchange: Exchange, { status, contentType, content, headers }: ConnectReply, { method, origin }: RequestHead, corsOrigins: readonly string[]): void {
  if (status === 200 && origin === undefined) return exchange.sendText(contentType, content);
  exchange.send({ status, text: { type: contentType, content }, headers }, corsHeaders(corsOrigins, origin), method === 'HEAD');
}

/** What the protocol needs of a request's head, read in one go while the library still has it. */
class RequestHead implements ConnectRequest {
  readonly method: string;
  readonly header: (name: string) => string | undefined;
  body: Buffer = EMPTY;
  origin: string | undefined;
  isAuthorizedTwice = false;
  isSoundlyFramed = true;

  constructor(req: UwsRequest) {
    this.method = req.getMethod() === 'post' ? 'POST' : req.getMethod().toUpperCase();
    let authorization: string | undefined;
    let contentType: string | undefined;
    let contentEncoding: string | undefined;
    let version: string | undefined;
    let timeout: string | undefined;
    let length: string | undefined;
    req.forEach((name, value) => {
      switch (name) {
        case 'authorization':
          this.isAuthorizedTwice ||= authorization !== undefined;
          authorization = value;
          return;
        case 'content-type': contentType = value; return;
        case 'content-length':
          this.isSoundlyFramed &&= length === undefined || length === value;
          length = value;
          return;
        // A coding that the library does not know it takes for no body at all, and the body for the next request.
        case 'transfer-encoding': this.isSoundlyFramed &&= isChunked(value); return;
        case 'content-encoding': contentEncoding = value; return;
        case 'connect-protocol-version': version = value; return;
        case 'connect-timeout-ms': timeout = value; return;
        case 'origin': this.origin = value || undefined; return;
        default: return;
      }
    });
    this.header = (name) => {
      switch (name) {
        case 'authorization': return authorization || undefined;
        case 'content-type': return contentType || undefined;
        case 'content-encoding': return contentEncoding || undefined;
        case 'connect-protocol-version': return version || undefined;
        case 'connect-timeout-ms': return timeout || undefined;
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
