/** Everything that one I/O thread runs: the HTTP and gRPC doors, and the link to the main thread behind them. */
import type { MessagePort } from 'node:worker_threads';
import { messageOf, stackOf } from './core/error-text.ts';
import { explain, type Fault } from './core/fault.ts';
import { assertNever, ok, type Result } from './core/result.ts';
import type { Principal } from './core/scope.ts';
import { CachedAuthenticator } from './gateway/cached-authenticator.ts';
import type { Interest } from './gateway/events.ts';
import { VerifiedCache } from './gateway/verified-cache.ts';
import { IoLink } from './threads/io-link.ts';
import type { IoNotice, IoStart, MainToIo, Reply } from './threads/protocol.ts';
import { ControlSwitch } from './wire/control-switch.ts';
import { digestOfPresented } from './wire/credential-digests.ts';
import { canSharePort, listenForGrpc, type GrpcListener } from './wire/grpc/listener.ts';
import { createGrpcServer } from './wire/grpc/server.ts';
import { addressBehind } from './wire/http/client-address.ts';
import { HttpDoor } from './wire/http/door.ts';
import { routesOf } from './wire/http/routes.ts';
import { staticRoutes } from './wire/http/static.ts';

/** What the main thread gives each I/O thread of the configuration. */
export type IoData = {
  readonly httpHost: string;
  readonly grpcHost: string;
  readonly maxPending: number;
  /** Where the dashboard's files are. */
  readonly webFolder: string;
  readonly onAuditFailure: 'deny' | 'allow';
  readonly corsOrigins: readonly string[];
  readonly bodyTimeoutMs: number;
  readonly trustedProxies: readonly string[];
  /** Whether people have accounts here, and which pages may act with their cookies and open streams. */
  readonly hasAccountStore: boolean;
  readonly maxLogins: number;
  readonly ownOrigins: readonly string[];
  readonly maxStreams: number;
  readonly opsTtlSecs: number;
  readonly maxGrpcConnections: number;
};

const TICK_EVERY_MS = 1_000;
const DRAIN_POLL_MS = 10;
/** What is left of the grace when those that still wait are told so. */
const LAST_ANSWERS_MS = 5 * DRAIN_POLL_MS;

export async function runIoThread(main: MessagePort, start: IoStart): Promise<void> {
  const data = start.data as IoData;
  const notice = (message: IoNotice): void => main.postMessage(message);
  const onError = (error: unknown, doing: string): void => notice({ type: 'error', doing, message: stackOf(error) });
  const onCut = (fault: Fault, doing: string): void => notice({ type: 'cut', doing, reason: explain(fault) });
  const link = new IoLink(main, start.auditPort, { maxPending: data.maxPending, onAuditFailure: data.onAuditFailure, onMessage: receive });
  const credentials = new CachedAuthenticator({ cache: new VerifiedCache(), ask: (bearer) => link.call('authenticate', { bearer }), digestOf: digestOfPresented, nowMs: Date.now });
  const authenticate = async (bearer: string): Promise<Result<Principal, Fault>> => {
    const known = await credentials.authenticate(bearer);
    return known.ok ? ok(known.value.principal) : known;
  };
  const control = new ControlSwitch((stream, agent) => link.tell({ type: 'control-closed', stream, agent }));

  const ports = { link, authenticate };
  const stream = {
    tellInterest: (interest: Interest) => link.tell({ type: 'interest', interest }),
    authenticate: (bearer: string) => credentials.authenticate(bearer),
    origins: data.ownOrigins,
    maxStreams: data.maxStreams,
    name: `${Date.now().toString(36)}-${start.place}`,
  };
  const http = new HttpDoor({ link, routes: [...routesOf(data), ...staticRoutes(data.webFolder)], authenticate, ports, corsOrigins: data.corsOrigins, addressOf: addressBehind(data.trustedProxies), bodyTimeoutMs: data.bodyTimeoutMs, onError, onCut, stream });
  // After an exception that nobody caught the thread is not to be trusted. It ends, its callers see their connections
  // close, and another takes its place.
  process.on('uncaughtException', (error) => {
    onError(error, 'an event handler');
    http.close();
    process.exit(1);
  });
  // Node.js 20 cannot share a port between threads, so there the first thread serves gRPC alone.
  const servesGrpc = start.place === 0 || canSharePort();
  const grpc = servesGrpc ? createGrpcServer({ ports, control, messageTimeoutMs: data.bodyTimeoutMs, onDefect: (error) => onError(error, 'a gRPC call') }) : undefined;

  function receive(message: Exclude<MainToIo, Reply>): void {
    switch (message.type) {
      case 'events': return http.stream.publish(message.events);
      case 'signal': return control.deliver(message.stream, message.message);
      case 'revoked':
        credentials.drop(message.subject);
        grpc?.recheckBearers();
        http.stream.revokeSubject(message.subject);
        return control.revokeSubject(message.subject);
      case 'agent-revoked': return control.revokeAgent(message.agent);
      case 'drain': return void drain(message.graceMs);
      default: return assertNever(message);
    }
  }

  let grpcListener: GrpcListener | undefined;

  async function drain(graceMs: number): Promise<void> {
    const untilMs = performance.now() + graceMs - LAST_ANSWERS_MS;
    http.stopListening();
    void grpcListener?.close();
    grpc?.drain(graceMs);
    http.stream.close();
    while (link.pending > 0 && performance.now() < untilMs) await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
    link.refuseWaiting({ kind: 'shutting_down', retryAfterSecs: 1 });
    // One more turn, so that what was just answered is written before its connection is closed.
    await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
    http.close();
    notice({ type: 'drained' });
  }

  const ticks = setInterval(() => {
    grpc?.recheckBearers();
    link.tell({ type: 'stats', stats: { pendingRequests: link.pending, controlStreams: control.size, webSockets: http.stream.size, droppedEvents: http.stream.dropped, requests: { ...http.requests, grpc: grpc?.calls() ?? 0 } } });
  }, TICK_EVERY_MS);
  ticks.unref();

  try {
    const httpPort = await http.listen(data.httpHost, start.ports.httpPort, start.threads > 1);
    if (httpPort === undefined) throw new Error(`HTTP cannot listen on ${data.httpHost}:${start.ports.httpPort}; is it taken? Choose another SVC_HTTP_ADDR`);
    grpcListener = grpc === undefined ? undefined : await listenForGrpc({
      host: data.grpcHost,
      port: start.ports.grpcPort,
      isShared: start.threads > 1 && canSharePort(),
      maxConnections: data.maxGrpcConnections,
      onConnection: grpc.serve,
      onError: (error) => onError(error, 'accepting a gRPC connection'),
    });
    notice({ type: 'listening', httpPort, grpcPort: grpcListener?.port ?? start.ports.grpcPort, httpImplementation: http.implementation });
  } catch (error) {
    notice({ type: 'cannot-listen', reason: messageOf(error) });
    http.close();
    process.exit(1);
  }
}
