/**
 * A gRPC server on HTTP/2, with TLS or without: it serves the methods of a table, on connections that are accepted
 * elsewhere. Knows no service.
 */
import {
  constants,
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { plainAddress } from '../../core/base/client-address.ts';
import { assert } from '../../core/base/result.ts';
import type { TlsIdentity } from '../../ports/tls.ts';
import type { AddressOf } from '../engine/client-address.ts';
import { renewedOptions, secureOptions } from '../shared/tls.ts';
import { Bounds, type Limits } from './bounds.ts';
import { Call } from './call.ts';
import { HOSTILE_HEAD_BYTES, headBytesOf, isGrpc, MAX_HEAD_BYTES, quoted, readHead } from './head.ts';
import type { Methods } from './method.ts';
import { CODE, type GrpcStatus, trailersOf } from './status.ts';

export type ServerOptions = {
  readonly methods: Methods;
  readonly limits: Limits;
  /** The address of a client behind a proxy; undefined: that of the connection. */
  readonly addressOf?: AddressOf | undefined;
  /** With it, the server takes nothing but TLS. */
  readonly tls?: TlsIdentity | undefined;
  /** Called with a defect that occurred while answering; the caller gets `internal`. */
  readonly onDefect: (error: unknown) => void;
};

const HTTP2 = {
  maxSessionMemory: 64, // megabytes
  settings: {
    // Each may hold a message that is still on its way, so they bound what one connection can make the gateway keep.
    maxConcurrentStreams: 256,
    maxHeaderListSize: MAX_HEAD_BYTES,
  },
} as const;

const MAX_SWEEP_MS = 1_000;
/** A connection whose other end has vanished is noticed after the sum of these two. */
const PING_EVERY_MS = 60_000;
const PING_TIMEOUT_MS = 20_000;

/** How long a client may take to close a connection that it was asked to leave. */
const LEAVING_MS = 1_000;

type Session = {
  readonly address: string;
  readonly socket: Socket;
  /** The number of its last call among all; 0: none yet. */
  lastCall: number;
  /** When the other end was heard last, as far as pings tell. */
  heardMs: number;
  /** When a ping was sent that has no answer yet. */
  pingedMs: number | undefined;
};

/** Listens for streams. `fields` alternates the names and values of the head. */
type OnStream = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  flags: number,
  fields: readonly string[],
) => void;

export class GrpcServer {
  readonly #methods: Methods;
  readonly #addressOf: AddressOf | undefined;
  readonly #onDefect: (error: unknown) => void;
  readonly #bounds: Bounds;
  readonly #http2: Http2Server | Http2SecureServer;
  readonly #sessions = new Map<ServerHttp2Session, Session>();
  /** Connections whose TLS handshake is not done, the oldest first. */
  readonly #greeting = new Set<Socket>();
  readonly #sweeping: NodeJS.Timeout;
  #calls = 0;
  /** The connection whose session begins. */
  #accepted: Socket | undefined;
  /** When the last connections are cut, after `drain`. */
  #drainedByMs: number | undefined;

  constructor({ methods, limits, addressOf, tls, onDefect }: ServerOptions) {
    this.#methods = methods;
    this.#addressOf = addressOf;
    this.#onDefect = onDefect;
    this.#bounds = new Bounds(limits);
    this.#http2 = tls === undefined ? createServer(HTTP2) : this.#createSecure(tls);
    this.#http2.on('session', (session: ServerHttp2Session) => this.#greet(session));
    this.#http2.on('stream', this.#serve as never);
    this.#sweeping = setInterval(() => this.#sweep(), Math.min(MAX_SWEEP_MS, limits.timeoutMs / 4)).unref();
  }

  /** Serves a connection. */
  readonly serve = (socket: Socket): void => {
    this.#accepted = socket;
    if ('setSecureContext' in this.#http2) {
      this.#greeting.add(socket);
      socket.once('close', () => this.#greeting.delete(socket));
    }
    this.#http2.emit('connection', socket);
  };

  /** New connections get this one. */
  renewTls(identity: TlsIdentity): void {
    if ('setSecureContext' in this.#http2) this.#http2.setSecureContext(renewedOptions(identity));
  }

  /**
   * Closes up to so many connections on which no call is open, so that those who come next find a place: first those
   * that never had a call, then those whose last call is longest ago. Their clients open another when they need one,
   * while a client that only holds connections could keep everybody else out. Connections without a handshake go before
   * all others. Returns how many it has closed.
   */
  makeRoom(count: number): number {
    const busy = this.#bounds.busySessions();
    const idle = [...this.#sessions].filter(([session]) => !session.closed && !busy.has(session));
    const strangers = [...this.#greeting].slice(0, count);
    for (const socket of strangers) socket.destroy();
    const leaving = idle.sort(([, a], [, b]) => a.lastCall - b.lastCall).slice(0, count - strangers.length);
    for (const [session, { lastCall }] of leaving) {
      if (lastCall === 0) session.destroy();
      else session.close(); // A call may be on its way: its client is told that it has to go elsewhere.
    }
    setTimeout(() => {
      for (const [, { socket }] of leaving) socket.destroy();
    }, LEAVING_MS).unref();
    return leaving.length + strangers.length;
  }

  get isBusy(): boolean {
    return this.#bounds.isBusy;
  }

  /**
   * Answers what is in flight, and asks clients to go elsewhere; what is left after `graceMs` is cut. Connections are
   * closed by then, not necessarily gone.
   */
  drain(graceMs: number): void {
    this.#drainedByMs = performance.now() + graceMs;
    for (const session of this.#sessions.keys()) this.#close(session, graceMs);
    if (this.#sessions.size === 0) clearInterval(this.#sweeping);
  }

  #createSecure(tls: TlsIdentity): Http2SecureServer {
    const server = createSecureServer({ ...HTTP2, ...secureOptions(tls) });
    // Before the listener of the server itself, which begins the session.
    server.prependListener('secureConnection', (socket: TLSSocket) => {
      this.#accepted = socket;
      const { remoteAddress, remotePort } = socket;
      for (const each of this.#greeting)
        if (each.remotePort === remotePort && each.remoteAddress === remoteAddress) this.#greeting.delete(each);
    });
    return server;
  }

  #greet(session: ServerHttp2Session): void {
    const address = plainAddress(session.socket.remoteAddress ?? '');
    const socket = this.#accepted;
    assert(socket !== undefined, 'a session begins with its connection');
    this.#sessions.set(session, { address, socket, lastCall: 0, heardMs: performance.now(), pingedMs: undefined });
    session.on('error', ignore);
    session.once('close', () => {
      this.#sessions.delete(session);
      if (this.#drainedByMs !== undefined && this.#sessions.size === 0) clearInterval(this.#sweeping);
    });
    if (this.#drainedByMs !== undefined) this.#close(session, this.#drainedByMs - performance.now());
  }

  #close(session: ServerHttp2Session, graceMs: number): void {
    session.close();
    setTimeout(() => session.destroy(), Math.max(0, graceMs)).unref();
  }

  readonly #serve: OnStream = (stream, headers, _flags, fields) => {
    try {
      this.#begin(stream, headers, fields);
    } catch (error) {
      this.#onDefect(error);
      stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    }
  };

  #begin(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, fields: readonly string[]): void {
    stream.on('error', ignore);
    if (stream.destroyed || stream.session === undefined) return;
    const headBytes = headBytesOf(fields);
    if (headBytes > HOSTILE_HEAD_BYTES) return stream.session.destroy();
    if (headBytes > MAX_HEAD_BYTES) return stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    if (headers[':method'] !== 'POST') return refuseHttp(stream, { ':status': 405, allow: 'POST' });
    if (!isGrpc(headers['content-type'])) return refuseHttp(stream, { ':status': 415 });
    const path = headers[':path'] ?? '';
    const method = this.#methods.get(path);
    if (method === undefined)
      return refuse(stream, { code: CODE.unimplemented, details: `there is no method ${quoted(path)}` });
    const head = readHead(headers, fields);
    if ('code' in head) return refuse(stream, head);
    const session = this.#sessions.get(stream.session as ServerHttp2Session);
    if (session !== undefined) session.lastCall = this.#calls += 1;
    const peer = session?.address ?? '';
    const forwarded = headers['x-forwarded-for'] as string | undefined;
    const address =
      forwarded === undefined || this.#addressOf === undefined ? peer : this.#addressOf(peer, [forwarded]);
    new Call({ stream, head, method, bounds: this.#bounds, address, onDefect: this.#onDefect }, headers);
  }

  #sweep(): void {
    this.#bounds.sweep();
    const nowMs = performance.now();
    for (const [session, state] of this.#sessions) {
      if (state.pingedMs === undefined) {
        if (nowMs - state.heardMs >= PING_EVERY_MS) ping(session, state, nowMs);
      } else if (nowMs - state.pingedMs >= PING_TIMEOUT_MS) session.destroy();
    }
  }
}

function ping(session: ServerHttp2Session, state: Session, nowMs: number): void {
  if (session.destroyed) return;
  state.pingedMs = nowMs;
  session.ping((error) => {
    if (error !== null) return; // it was not sent, or the session has ended
    state.pingedMs = undefined;
    state.heardMs = performance.now();
  });
}

/** Answers before anything is read of the call. */
function refuse(stream: ServerHttp2Stream, status: GrpcStatus): void {
  refuseHttp(stream, { ':status': 200, 'content-type': 'application/grpc+proto', ...trailersOf(status) });
}

/** The rest of the request is not waited for (see `Call`, which does the same). */
function refuseHttp(stream: ServerHttp2Stream, headers: Record<string, string | number | string[]>): void {
  stream.once('finish', () =>
    setImmediate(() => {
      if (!stream.destroyed) stream.close(constants.NGHTTP2_NO_ERROR);
    }),
  );
  stream.respond(headers, { endStream: true });
  stream.resume();
}

/** Whatever it is, the stream or the connection is closed by then, and nothing can be said over it any more. */
const ignore = (): void => undefined;
