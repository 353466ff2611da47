/** WebSocket `GET /api/v1/stream`: lets readers in, and ties their sockets to the fan-out (contract: WebSocket). */
import type { TemplatedApp, HttpRequest as UwsRequest, us_socket_context_t, WebSocket } from 'uWebSockets.js';
import type { Fault } from '../../core/fault.ts';
import { fail, ok, type Result } from '../../core/result.ts';
import type { GatewayEvent, Interest } from '../../gateway/events.ts';
import type { Link } from '../../gateway/link.ts';
import type { Authenticated } from '../../gateway/use-cases.ts';
import { bearerOf } from '../bearer.ts';
import { AUTHORIZED_TWICE, isAuthorizedTwice } from '../http/authorization.ts';
import { type AddressOf, remoteAddressOf } from '../http/client-address.ts';
import { corsHeaders } from '../http/cors.ts';
import type { DoorState } from '../http/door-state.ts';
import { Exchange, type Handshake } from '../http/exchange.ts';
import { refuseForeignOrigin } from '../http/origin.ts';
import { problemOf } from '../http/reply.ts';
import { overLimitOfStranger } from '../http/server.ts';
import { interestOf, readStreamQuery, type StreamQuery } from './admission.ts';
import { FanOut } from './fan-out.ts';
import { isHandshake } from './handshake.ts';
import { CLOSE, type Reader, type Sink } from './reader.ts';

const STREAM_PATH = '/api/v1/stream';

export type StreamOptions = {
  readonly door: DoorState;
  readonly link: Link;
  /** Tells the main thread whose events this thread has readers for. It must arrive before any later request. */
  readonly tellInterest: (interest: Interest) => void;
  readonly authenticate: (bearer: string) => Promise<Result<Authenticated, Fault>>;
  /** Origins whose pages may open streams, beside the gateway's own. */
  readonly origins: readonly string[];
  readonly maxStreams: number;
  /** The time by which credentials end. */
  readonly nowMs: () => number;
  readonly addressOf?: AddressOf | undefined;
  /** Unlike that of any other I/O thread and any other run. */
  readonly name: string;
  readonly onError: (error: unknown, doing: string) => void;
};

type Data = { readonly reader: Reader };

/** A client that sends more in one message is disconnected: it has nothing to say, but some say "ping". */
const MAX_HEARD_BYTES = 1024;
const IDLE_SECS = 60;
/** Never reached by the fan-out, which looks before it sends. */
const MAX_BACKPRESSURE_BYTES = 1024 * 1024;
/** How long a revocation is remembered, for readers whose credential was being checked when it arrived. */
const REVOCATION_KEPT_MS = 60_000;

/** Copied from a request, which is only valid within its handler. */
type Head = {
  readonly query: URLSearchParams;
  readonly bearer: string | undefined;
  readonly origin: string | undefined;
  readonly host: string | undefined;
  readonly remoteAddress: string;
};

export class Stream {
  readonly #options: StreamOptions;
  readonly #fanOut: FanOut;
  readonly #sockets = new Set<WebSocket<Data>>();
  readonly #revokedAtMs = new Map<string, number>();
  #isClosed = false;

  constructor(app: TemplatedApp, options: StreamOptions) {
    this.#options = options;
    this.#fanOut = new FanOut({
      maxReaders: options.maxStreams,
      onInterest: options.tellInterest,
      listOps: async (request) => (await options.link.ask({ type: 'list-ops', ...request })).reply,
      onError: (error) => options.onError(error, 'reading a snapshot'),
      nowMs: options.nowMs,
      name: options.name,
    });
    const onDefect = (error: unknown): void => options.onError(error, 'opening a stream');
    app.ws<Data>(STREAM_PATH, {
      maxPayloadLength: 16 * MAX_HEARD_BYTES,
      maxBackpressure: MAX_BACKPRESSURE_BYTES,
      idleTimeout: IDLE_SECS,
      sendPingsAutomatically: true,
      upgrade: (res, req, context) => {
        const exchange = new Exchange(res, options.door, onDefect);
        exchange.guard(() => this.#begin(exchange, req, context));
      },
      open: (ws) => {
        this.#sockets.add(ws);
        this.#fanOut.open(ws.getUserData().reader, sinkOf(ws));
      },
      drain: (ws) => this.#fanOut.drained(ws.getUserData().reader),
      message: (ws, message) => {
        const { reader } = ws.getUserData();
        if (message.byteLength > MAX_HEARD_BYTES) reader.close(CLOSE.tooLong);
        else this.#fanOut.heard(reader);
      },
      close: (ws) => {
        this.#sockets.delete(ws);
        this.#fanOut.leave(ws.getUserData().reader);
      },
    });
  }

  get size(): number {
    return this.#fanOut.size;
  }
  get dropped(): number {
    return this.#fanOut.dropped;
  }

  publish(events: readonly GatewayEvent[]): void {
    this.#fanOut.publish(events);
  }

  /** An API key or an account was revoked: its streams are closed, also those that are being opened. */
  revokeSubject(subject: string): void {
    const nowMs = performance.now();
    for (const [known, atMs] of this.#revokedAtMs) {
      if (nowMs - atMs < REVOCATION_KEPT_MS) break;
      this.#revokedAtMs.delete(known);
    }
    this.#revokedAtMs.delete(subject);
    this.#revokedAtMs.set(subject, nowMs);
    this.#fanOut.closeSubject(subject);
  }

  /** Closes every reader with a close code, and admits no more. */
  close(): void {
    this.#isClosed = true;
    this.#fanOut.closeAll(CLOSE.goingAway);
  }

  #begin(exchange: Exchange, req: UwsRequest, context: us_socket_context_t): void {
    const head = readHead(req, exchange, this.#options.addressOf);
    const handshake: Handshake = {
      key: req.getHeader('sec-websocket-key'),
      extensions: req.getHeader('sec-websocket-extensions'),
      context,
    };
    const refuse = (fault: Fault): void =>
      exchange.send(problemOf(fault), {
        headers: [['Cache-Control', 'no-store'], ...corsHeaders(this.#options.origins, head.origin)],
      });
    if (isAuthorizedTwice(req)) return refuse(AUTHORIZED_TWICE);
    if (!isHandshake(req)) return refuse({ kind: 'upgrade_required' });
    this.#admit(head)
      .then((reader) => {
        if (!reader.ok) return refuse(reader.fault);
        if (exchange.isOver) return this.#fanOut.leave(reader.value);
        // Meanwhile the credential may have ended, or the shutdown begun.
        if (reader.value.isOver || this.#isClosed) {
          this.#fanOut.leave(reader.value);
          return refuse(this.#isClosed ? SHUTTING_DOWN : REVOKED);
        }
        exchange.guard(() =>
          exchange.upgrade<Data>({ reader: reader.value }, handshake, this.#sockets.values().next().value),
        );
      })
      .catch((error: unknown) => {
        this.#options.onError(error, 'opening a stream');
        refuse({ kind: 'internal' });
      });
  }

  async #admit(head: Head): Promise<Result<Reader, Fault>> {
    const foreign = refuseForeignOrigin(head.origin, head.host, this.#options.origins);
    if (foreign !== undefined) return foreign;
    const query = readStreamQuery(head.query);
    if (!query.ok) return query;
    const sinceMs = performance.now();
    const known = await this.#identify(head);
    if (!known.ok) return (await overLimitOfStranger(this.#options.link, head.remoteAddress)) ?? known;
    const { subject } = known.value.principal;
    if ((this.#revokedAtMs.get(subject) ?? -1) >= sinceMs) return fail(REVOKED);
    return this.#seat(known.value, query.value);
  }

  async #identify({ query, bearer }: Head): Promise<Result<Authenticated, Fault>> {
    const ticket = query.get('ticket');
    if (ticket !== null) return this.#options.link.call('redeemTicket', { ticket });
    return bearer === undefined ? NO_CREDENTIAL : this.#options.authenticate(bearer);
  }

  async #seat({ principal, expiresAtMs }: Authenticated, query: StreamQuery): Promise<Result<Reader, Fault>> {
    const interest = interestOf(principal, query);
    if (!interest.ok) return interest;
    const reader = this.#fanOut.reserve({
      principal,
      expiresAtMs,
      interest: interest.value,
      wantsSnapshot: query.snapshot,
    });
    if (!reader.ok) return reader;
    // Its answer also confirms that the main thread knows of the interest: later events will be delivered.
    const permit = await this.#options.link.call('takePermit', { limit: 'credential', key: principal.subject });
    if (permit.ok) return ok(reader.value);
    this.#fanOut.leave(reader.value);
    return permit;
  }
}

function readHead(req: UwsRequest, exchange: Exchange, addressOf: AddressOf | undefined): Head {
  return {
    query: new URLSearchParams(req.getQuery()),
    bearer: bearerOf(req.getHeader('authorization')),
    origin: req.getHeader('origin') || undefined,
    host: req.getHeader('host') || undefined,
    remoteAddress: remoteAddressOf(req, exchange, addressOf),
  };
}

const sinkOf = (ws: WebSocket<Data>): Sink => ({
  send: (frame) => ws.send(frame, false) !== DROPPED,
  together: (write) => void ws.cork(write),
  unsentBytes: () => ws.getBufferedAmount(),
  end: (code, reason) => ws.end(code, reason),
});

/** What the library answers when a message would exceed `maxBackpressure`. */
const DROPPED = 2;

const REVOKED: Fault = { kind: 'unauthenticated', detail: 'the credential was revoked' };
const SHUTTING_DOWN: Fault = { kind: 'shutting_down', retryAfterSecs: 1 };
const NO_CREDENTIAL = fail({
  kind: 'unauthenticated',
  detail: 'no credential presented; send Authorization: Bearer …, or ?ticket= from POST /api/v1/auth/ws-ticket',
} as const);
