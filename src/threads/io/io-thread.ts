/** Everything that one I/O thread runs: the HTTP and gRPC listeners, and the link to the main thread behind them. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { MessagePort } from 'node:worker_threads';
import { assertNever, ok, type Result } from '../../core/base/result.ts';
import { messageOf, stackOf } from '../../core/base/text.ts';
import { explain, type Fault } from '../../core/fault.ts';
import type { Principal } from '../../core/identity/roles.ts';
import { CachedAuthenticator, VerifiedCache } from '../../credentials/verified-cache.ts';
import { routesOf } from '../../doors/api/routes.ts';
import { Holds } from '../../doors/coding-agents/holds.ts';
import type { Own } from '../../doors/engine/access.ts';
import type { EngineChoice } from '../../doors/engine/choose.ts';
import { addressBehind } from '../../doors/engine/client-address.ts';
import { staticRoutes } from '../../doors/engine/static.ts';
import { createGrpcDoor, type GrpcDoor } from '../../doors/grpc/door.ts';
import { HttpDoor } from '../../doors/http-door.ts';
import { ControlSwitch } from '../../doors/rpc/control-switch.ts';
import { credentialDigests } from '../../doors/rpc/credential-digests.ts';
import type { WirePorts } from '../../doors/rpc/ports.ts';
import { canSharePort, type GrpcListener, listenForGrpc } from '../../doors/shared/listener.ts';
import { LargeBatches } from '../../fairness/large-batches.ts';
import { throttle } from '../../fairness/rate-limit.ts';
import { createClock, type WallClock } from '../../system/clock.ts';
import type { IoNotice, IoStart, LocalStart } from '../protocol.ts';
import { Feed } from '../telemetry/feed.ts';
import { tracedLink } from '../telemetry/traced-link.ts';
import { channelOver, type IoChannel } from './io-channel.ts';
import { IoLink, type Notification } from './io-link.ts';

/** The part of the configuration that each I/O thread gets. */
export type IoData = {
  /** See `Link`. */
  readonly home: string | undefined;
  readonly httpHost: string;
  readonly httpEngine: EngineChoice;
  readonly grpcHost: string;
  readonly maxPending: number;
  /** Tokens of one network that do not hold, a minute; 0: no limit. */
  readonly failuresPerMinute: number;
  /** The folder of the dashboard's files. */
  readonly webFolder: string;
  readonly corsOrigins: readonly string[];
  readonly bodyTimeoutMs: number;
  readonly trustedProxies: readonly string[];
  /** Whether people have accounts here. */
  readonly hasAccountStore: boolean;
  readonly maxLogins: number;
  /** Whose pages may act with cookies, change something and open streams. */
  readonly own: Own;
  readonly publicUrl: string | undefined;
  readonly scheme: 'http' | 'https';
  readonly maxStreams: number;
  readonly opsTtlSecs: number;
  readonly maxGrpcConnections: number;
  readonly maxGrpcStreams: number;
  /** Bytes of all incomplete requests together, over HTTP and over gRPC each; and of unread answers over gRPC. */
  readonly maxHalfSentBytes: number;
  /** The channel on which checks leave a record for the telemetry; undefined: none. */
  readonly telemetryChannel: string | undefined;
};

const TICK_EVERY_MS = 1_000;
const DRAIN_POLL_MS = 10;
/** How long before the end of the grace period waiting requests are refused. */
const LAST_ANSWERS_MS = 5 * DRAIN_POLL_MS;

/** Resolves once both doors are open, or ends the thread with a notice that says why not. */
export async function runIoThread(main: MessagePort, start: IoStart): Promise<void> {
  const thread = new IoThread(channelOver(main, start.auditCounters), start);
  // After an exception that nobody caught the thread is not to be trusted. It ends, its callers see their connections
  // close, and another takes its place.
  process.on('uncaughtException', (error) =>
    thread.die({ type: 'error', doing: 'an event handler', message: stackOf(error) }),
  );
  try {
    await thread.listen();
  } catch (error) {
    thread.die({ type: 'cannot-listen', reason: messageOf(error) });
  }
}

/** Opens the doors in this thread, which has other work too. Returns how to close them, at once. */
export async function openDoorsHere(channel: IoChannel, start: LocalStart): Promise<() => void> {
  const thread = new IoThread(channel, start);
  try {
    await thread.listen();
  } catch (error) {
    thread.close();
    throw error;
  }
  return () => thread.close();
}

class IoThread {
  readonly #channel: IoChannel;
  readonly #ticking: NodeJS.Timeout;
  readonly #start: LocalStart;
  readonly #data: IoData;
  readonly #link: IoLink;
  readonly #checkRecords: Feed<'traces'> | undefined;
  /** Credentials end by this clock, as they do in the main thread: the wall clock may be set back. */
  readonly #clock: WallClock;
  /** The time that the main thread has shown last. */
  #shown: { readonly nowMs: number; readonly atMs: number };
  readonly #credentials: CachedAuthenticator;
  readonly #control: ControlSwitch;
  readonly #holds: Holds;
  readonly #largeBatches = new LargeBatches();
  readonly #http: HttpDoor;
  readonly #grpc: GrpcDoor | undefined;
  #grpcListener: GrpcListener | undefined;
  readonly #reportCrowd = throttle({ nowMs: () => performance.now() }, () => this.#notify({ type: 'crowded' }));

  constructor(channel: IoChannel, start: LocalStart) {
    this.#channel = channel;
    this.#start = start;
    this.#data = start.data as IoData;
    this.#shown = { nowMs: start.nowMs, atMs: performance.now() };
    // Gateways of a cluster go by one clock, which the main thread knows.
    const isInCluster = this.#data.home !== undefined;
    this.#clock = createClock(isInCluster ? () => this.#mainMs : undefined, undefined, start.nowMs);
    const { home, maxPending, bodyTimeoutMs, maxHalfSentBytes, maxGrpcStreams, trustedProxies } = this.#data;
    const { telemetryChannel } = this.#data;
    this.#checkRecords = telemetryChannel === undefined ? undefined : new Feed(telemetryChannel, 'traces');
    const link = new IoLink(channel, { home, maxPending, onMessage: (message) => this.#receive(message) });
    this.#link = link;
    this.#credentials = new CachedAuthenticator({
      cache: new VerifiedCache(),
      ask: (bearer) => link.call('authenticate', { bearer }),
      digestOf: (token) => credentialDigests.of(token),
      nowMs: this.#clock.nowMs,
      failuresPerMinute: this.#data.failuresPerMinute,
    });
    this.#control = new ControlSwitch((stream, agent) => link.notify({ type: 'control-closed', stream, agent }));
    this.#holds = new Holds(this.#control);
    const ports: WirePorts = {
      link: this.#checkRecords === undefined ? link : tracedLink(link, this.#checkRecords),
      authenticate: (bearer, address) => this.#principalOf(bearer, address),
      largeBatches: this.#largeBatches,
    };
    this.#http = this.#createHttpDoor(ports);
    // Node.js 20 cannot share a port between threads, so there the first thread serves gRPC alone.
    const servesGrpc = start.place === 0 || canSharePort();
    this.#grpc = servesGrpc
      ? createGrpcDoor({
          ports,
          control: this.#control,
          addressOf: addressBehind(trustedProxies),
          tls: start.tls,
          limits: { timeoutMs: bodyTimeoutMs, maxBytes: maxHalfSentBytes, maxStreams: maxGrpcStreams },
          onDefect: (error) => this.#onError(error, 'a gRPC call'),
        })
      : undefined;
    this.#ticking = setInterval(() => this.#tick(), TICK_EVERY_MS).unref();
  }

  get #mainMs(): number {
    return Math.floor(this.#shown.nowMs + performance.now() - this.#shown.atMs);
  }

  /** Opens the doors and reports their ports. Rejects where an address is taken. */
  async listen(): Promise<void> {
    const { ports, threads } = this.#start;
    const { httpHost, grpcHost, maxGrpcConnections } = this.#data;
    const httpPort = await this.#http.listen(httpHost, ports.httpPort, threads > 1);
    if (httpPort === undefined)
      throw new Error(
        `cannot listen on ${httpHost}:${ports.httpPort} for HTTP; if the port is in use, choose another SVC_HTTP_ADDR`,
      );
    this.#grpcListener =
      this.#grpc &&
      (await listenForGrpc({
        host: grpcHost,
        port: ports.grpcPort,
        isShared: threads > 1 && canSharePort(),
        maxConnections: maxGrpcConnections,
        makeRoom: this.#makeGrpcRoom,
        onConnection: this.#grpc.serve,
        onError: (error) => this.#onError(error, 'accepting a gRPC connection'),
      }));
    const grpcPort = this.#grpcListener?.port ?? ports.grpcPort;
    this.#notify({ type: 'listening', httpPort, grpcPort, httpEngine: this.#http.engine });
  }

  /** Ends the thread with its sockets closed: Node.js aborts the process when they are still open. */
  die(lastNotice: IoNotice): never {
    this.#notify(lastNotice);
    this.#http.close();
    process.exit(1);
  }

  readonly #makeGrpcRoom = (count: number): void => {
    if (this.#grpc !== undefined && this.#grpc.makeRoom(count) > 0) this.#reportCrowd();
  };

  /** Closes the doors with all their connections. */
  close(): void {
    clearInterval(this.#ticking);
    this.#checkRecords?.close();
    this.#http.close();
    this.#grpcListener?.cut();
  }

  #createHttpDoor(ports: WirePorts): HttpDoor {
    const data = this.#data;
    return new HttpDoor({
      ports,
      routes: [...routesOf({ ...data, holds: this.#holds }), ...staticRoutes(data.webFolder)],
      corsOrigins: data.corsOrigins,
      own: data.own,
      addressOf: addressBehind(data.trustedProxies),
      engine: data.httpEngine,
      tls: this.#start.tls,
      bodyTimeoutMs: data.bodyTimeoutMs,
      maxHalfSentBytes: data.maxHalfSentBytes,
      onError: (error, doing) => this.#onError(error, doing),
      onCut: (fault, doing) => this.#notify({ type: 'cut', doing, reason: explain(fault) }),
      stream: {
        sendInterest: (interest) => this.#link.notify({ type: 'interest', interest }),
        authenticate: (bearer, address) => this.#credentials.authenticate(bearer, address),
        maxStreams: data.maxStreams,
        nowMs: this.#clock.nowMs,
        name: `${Date.now().toString(36)}-${this.#start.place}`,
      },
    });
  }

  async #principalOf(bearer: string, address?: string): Promise<Result<Principal, Fault>> {
    const known = await this.#credentials.authenticate(bearer, address);
    return known.ok ? ok(known.value.principal) : known;
  }

  #receive(message: Notification): void {
    switch (message.type) {
      case 'events':
        return this.#http.stream.publish(message.events);
      case 'events-lost':
        return this.#http.stream.reportLost(message.count);
      case 'signal':
        return this.#control.deliver(message.stream, message.message);
      case 'revoked':
        this.#credentials.drop(message.subject);
        this.#grpc?.recheckBearers();
        this.#http.stream.revokeSubject(message.subject);
        return this.#control.revokeSubject(message.subject);
      case 'agent-revoked':
        return this.#control.revokeAgent(message.agent);
      case 'agent-count':
        return credentialDigests.makeRoomFor(message.count);
      case 'time':
        this.#shown = { nowMs: message.nowMs, atMs: performance.now() };
        return;
      case 'tls':
        this.#http.renewTls(message.identity);
        return this.#grpc?.renewTls(message.identity);
      case 'confirm':
        return this.#link.notify({ type: 'confirmed', number: message.number });
      case 'drain':
        return void this.#drain(message.graceMs);
      default:
        return assertNever(message);
    }
  }

  /**
   * Takes no new connections, answers what comes on open ones, and refuses what is left shortly before `graceMs` are
   * over.
   */
  async #drain(graceMs: number): Promise<void> {
    const untilMs = performance.now() + graceMs - LAST_ANSWERS_MS;
    this.#http.drain();
    this.#holds.drain();
    void this.#grpcListener?.close();
    this.#grpc?.drain(graceMs);
    this.#http.stream.close();
    if (!(await this.#isQuiet(untilMs))) {
      this.#link.refuseAll({ kind: 'shutting_down', retryAfterSecs: 1 });
      // Another turn lets the refusals be written before their connections are closed.
      await sleep(DRAIN_POLL_MS);
    }
    this.#http.close();
    this.#checkRecords?.close();
    this.#notify({ type: 'drained' });
  }

  /**
   * Resolves with true once two looks in a row find everything answered, and nothing was asked between them: by the
   * second, the last answers are written. Closing the connections in that same turn cuts off no request that was
   * accepted.
   */
  async #isQuiet(untilMs: number): Promise<boolean> {
    let requestsWhenIdle: number | undefined;
    for (; performance.now() < untilMs; await sleep(DRAIN_POLL_MS)) {
      const asked = this.#isAnswering() ? undefined : this.#asked;
      if (asked !== undefined && asked === requestsWhenIdle) return true;
      requestsWhenIdle = asked;
    }
    return !this.#isAnswering();
  }

  get #asked(): number {
    return this.#http.requests.http + this.#http.requests.connect + (this.#grpc?.calls() ?? 0);
  }

  #isAnswering(): boolean {
    return (
      this.#link.pending + this.#largeBatches.inUse + this.#holds.size > 0 ||
      this.#http.isBusy ||
      this.#grpc?.isBusy() === true
    );
  }

  #tick(): void {
    const { requests, stream } = this.#http;
    this.#clock.follow();
    this.#grpc?.recheckBearers();
    this.#link.notify({
      type: 'stats',
      stats: {
        pendingRequests: this.#link.pending,
        controlStreams: this.#control.size,
        webSockets: stream.size,
        droppedEvents: stream.dropped,
        refusedRequests: this.#link.refused,
        requests: { ...requests, grpc: this.#grpc?.calls() ?? 0 },
        checks: this.#link.checks.totals,
      },
    });
  }

  #notify(notice: IoNotice): void {
    this.#channel.notify(notice);
  }

  #onError(error: unknown, doing: string): void {
    this.#notify({ type: 'error', doing, message: stackOf(error) });
  }
}
