/**
 * Serves the Connect methods on the HTTP port. The hottest path there is: read what is needed, hand it over, write the
 * answer.
 */
import { AUTHORIZED_TWICE, corsHeaders, type Own, preflightReply, refuseForeign } from '../engine/access.ts';
import type { AddressOf } from '../engine/client-address.ts';
import type { DoorState } from '../engine/door-state.ts';
import type { Engine, RequestHead } from '../engine/engine.ts';
import { Exchange, isChunked } from '../engine/exchange.ts';
import {
  type ConnectHeader,
  type ConnectMethod,
  type ConnectReply,
  type ConnectRequest,
  connectError,
} from './connect.ts';

export type ConnectDoorOptions = {
  readonly door: DoorState;
  readonly methods: ReadonlyMap<string, ConnectMethod>;
  readonly corsOrigins: readonly string[];
  /** Whose pages may call. */
  readonly own: Own;
  /** How long a client may take to send a body. */
  readonly bodyTimeoutMs: number;
  readonly addressOf?: AddressOf | undefined;
  readonly onRequest: () => void;
  readonly onDefect: (error: unknown) => void;
};

export function serveConnect(
  engine: Engine,
  { door, methods, corsOrigins, own, bodyTimeoutMs, addressOf, onRequest, onDefect }: ConnectDoorOptions,
): void {
  const begin = (exchange: Exchange, request: RequestHead, method: ConnectMethod): void => {
    const head = new ConnectHead(request, exchange, addressOf);
    if (!head.isSoundlyFramed || !exchange.asksForBody(head.expectation)) return exchange.close();
    if (head.isChunked) exchange.noteChunks();
    if (head.method === 'OPTIONS') return exchange.send(PREFLIGHT, { headers: corsHeaders(corsOrigins, head.origin) });
    if (head.isAuthorizedTwice) return send(exchange, connectError(AUTHORIZED_TWICE), head, corsOrigins);
    // Only browsers send an origin, and they always do.
    const foreign = head.origin === undefined ? undefined : refuseForeign(head.origin, head.host, own);
    if (foreign?.ok === false) return send(exchange, connectError(foreign.fault), head, corsOrigins);
    exchange.readBody({ maxBytes: method.maxBytes, timeoutMs: bodyTimeoutMs }, (body) => {
      if (body.kind === 'too-large')
        return send(
          exchange,
          connectError({ kind: 'payload_too_large', limitBytes: method.maxBytes }),
          head,
          corsOrigins,
        );
      method.answer(head.withBody(body.bytes), (reply) => send(exchange, reply, head, corsOrigins));
    });
  };
  for (const [path, method] of methods) {
    engine.serve(path, (answer, request) => {
      onRequest();
      const exchange = new Exchange(answer, door, onDefect);
      try {
        begin(exchange, request, method);
      } catch (error) {
        exchange.fail(error);
      }
    });
  }
}

const PREFLIGHT = preflightReply(['post']);

function send(
  exchange: Exchange,
  { status, contentType, content, headers }: ConnectReply,
  { method, origin }: ConnectHead,
  corsOrigins: readonly string[],
): void {
  if (status === 200 && origin === undefined) return exchange.sendText(contentType, content);
  exchange.send(
    { status, text: { type: contentType, content }, headers },
    { headers: corsHeaders(corsOrigins, origin), isHead: method === 'HEAD' },
  );
}

/** What the protocol needs of a request's head, copied while the request is valid. */
class ConnectHead implements ConnectRequest {
  readonly method: string;
  readonly query: string;
  body: Buffer = EMPTY;
  origin: string | undefined = undefined;
  host: string | undefined = undefined;
  expectation: string | undefined = undefined;
  isAuthorizedTwice = false;
  isSoundlyFramed = true;
  isChunked = false;
  #authorization: string | undefined = undefined;
  #contentType: string | undefined = undefined;
  #contentEncoding: string | undefined = undefined;
  #version: string | undefined = undefined;
  #timeout: string | undefined = undefined;
  #length: string | undefined = undefined;

  /** Undefined where no proxy has added one. */
  #forwarded: string[] | undefined = undefined;
  readonly #exchange: Exchange;
  readonly #addressOf: AddressOf | undefined;

  constructor(request: RequestHead, exchange: Exchange, addressOf: AddressOf | undefined) {
    this.#exchange = exchange;
    this.#addressOf = addressOf;
    const { method, query } = request;
    this.query = query;
    this.method = method === 'post' ? 'POST' : method.toUpperCase();
    request.forEach((name, value) => this.#take(name, value));
  }

  get cancelled(): boolean {
    return this.#exchange.isOver;
  }

  /** Only needed of a caller that is not known, so it is looked up only then. */
  get address(): string {
    const peer = this.#exchange.remoteAddress();
    if (this.#addressOf === undefined || peer === '') return peer;
    return this.#addressOf(peer, {
      forEach: (take) => {
        for (const value of this.#forwarded ?? []) take('x-forwarded-for', value);
      },
    });
  }

  header(name: ConnectHeader): string | undefined {
    switch (name) {
      case 'authorization':
        return this.#authorization || undefined;
      case 'content-type':
        return this.#contentType;
      case 'content-encoding':
        return this.#contentEncoding;
      case 'connect-protocol-version':
        return this.#version;
      case 'connect-timeout-ms':
        return this.#timeout;
    }
  }

  withBody(body: Buffer): this {
    this.body = body;
    return this;
  }

  #take(name: string, value: string): void {
    switch (name) {
      case 'authorization':
        this.isAuthorizedTwice ||= this.#authorization !== undefined;
        this.#authorization = value;
        return;
      case 'content-type':
        this.#contentType = value || undefined;
        return;
      case 'content-length':
        this.isSoundlyFramed &&= this.#length === undefined || this.#length === value;
        this.#length = value;
        return;
      // If the native engine does not know the transfer coding, it assumes that there is no body, and takes the body
      // for the next request.
      case 'transfer-encoding':
        this.isSoundlyFramed &&= isChunked(value);
        this.isChunked = true;
        return;
      case 'content-encoding':
        this.#contentEncoding = value || undefined;
        return;
      case 'connect-protocol-version':
        this.#version = value || undefined;
        return;
      case 'connect-timeout-ms':
        this.#timeout = value || undefined;
        return;
      case 'origin':
        this.origin = value || undefined;
        return;
      case 'host':
        this.host = value;
        return;
      case 'expect':
        this.expectation = value;
        return;
      case 'x-forwarded-for':
        (this.#forwarded ??= []).push(value);
        return;
      default:
        return;
    }
  }
}

const EMPTY = Buffer.alloc(0);
