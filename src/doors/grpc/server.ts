/** The gRPC door of one I/O thread. Only this folder names the gRPC library. */
import type { Socket } from 'node:net';
import {
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  type UntypedHandleCall,
} from '@grpc/grpc-js';
import { assert } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import { binaryCodec } from '../proto/binary.ts';
import type { Messages } from '../proto/messages.ts';
import { type MethodShape, methodShapes, SERVICES } from '../proto/schema.ts';
import type { ControlSwitch } from '../rpc/control-switch.ts';
import { checkHandler, unaryMethods } from '../rpc/methods.ts';
import type { WirePorts } from '../rpc/ports.ts';
import { MAX_BATCH_BYTES } from '../shared/limits.ts';
import { Arrivals } from './arrivals.ts';
import { authorizationOf } from './authorization.ts';
import { type CheckCall, CheckStream, type CheckWire, overLibrary } from './check-stream.ts';
import { type ControlCall, ControlStream } from './control-stream.ts';
import { type ExpressCall, expressLane } from './express.ts';
import { ExpressChecks } from './express-checks.ts';
import { correctHeads } from './heads.ts';
import { unaryAnswer } from './library-unary.ts';
import { addReflection } from './reflection.ts';
import { addHealth } from './services.ts';
import { expressUnary } from './unary.ts';

export type GrpcServer = {
  /** Serves a connection that was accepted elsewhere. */
  readonly serve: (socket: Socket) => void;
  /**
   * Answers what is in flight and ends the streams, telling clients to go elsewhere; what is left after `graceMs` is
   * cut. Connections are closed by then, not necessarily gone.
   */
  readonly drain: (graceMs: number) => void;
  /** Whether a unary request is still being received, or a large answer still being read. */
  readonly isBusy: () => boolean;
  /** Ends the streams whose bearer is not valid any longer. Call it after a revocation, and periodically for expiry. */
  readonly recheckBearers: () => void;
  /** Calls since the start. Each message of a stream of checks counts as one. */
  readonly calls: () => number;
};

export type GrpcServerOptions = {
  readonly ports: WirePorts;
  readonly control: ControlSwitch;
  /** How long a client may take to send a message that it has begun, and to take an answer. */
  readonly messageTimeoutMs: number;
  /** Memory limit for half-sent messages in total, and likewise for unread answers. */
  readonly maxHalfSentBytes: number;
  /** Called with a defect that occurred while answering; the caller is told `internal`. */
  readonly onDefect: (error: unknown) => void;
};

const SERVER_OPTIONS = {
  'grpc.max_receive_message_length': MAX_BATCH_BYTES,
  // Each may hold a message that is still on its way, so they bound what one connection can make the gateway keep.
  'grpc.max_concurrent_streams': 256,
  // A connection whose other end has vanished is noticed after the sum of these two.
  'grpc.keepalive_time_ms': 60_000,
  'grpc.keepalive_timeout_ms': 20_000,
  'grpc-node.max_session_memory': 64, // megabytes
  'grpc.enable_channelz': 0,
} as const;

const LARGE_ANSWERS = [shapeOf('BatchCheckActions').path];

/** The services whose health is reported; the empty name stands for all. */
const HEALTH_NAMES = ['', ...SERVICES];

const SHUTTING_DOWN: Fault = { kind: 'shutting_down', retryAfterSecs: 1 };

export function createGrpcServer({
  ports,
  control,
  messageTimeoutMs,
  maxHalfSentBytes,
  onDefect,
}: GrpcServerOptions): GrpcServer {
  const arrivals = new Arrivals({
    timeoutMs: messageTimeoutMs,
    maxBytes: maxHalfSentBytes,
    largeAnswers: LARGE_ANSWERS,
  });
  const server = new Server({ ...SERVER_OPTIONS, interceptors: [arrivals.interceptor] });
  const checkStreams = new Set<CheckStream>();
  const controlStreams = new Set<ControlStream>();
  let calls = 0;
  const count = (): void => {
    calls += 1;
  };
  const handlers = new Map<string, UntypedHandleCall>();
  const express = new Map<string, (call: ExpressCall) => void>();
  const takeUnary = expressUnary();
  for (const method of unaryMethods(ports)) {
    const answer = unaryAnswer(method, { count, onDefect });
    handlers.set(method.name, (call: ServerUnaryCall<Buffer, Buffer>, respond: sendUnaryData<Buffer>) =>
      answer(call.request, authorizationOf(call.metadata), call, respond),
    );
    const { path } = shapeOf(method.name);
    if (!LARGE_ANSWERS.includes(path)) express.set(path, (call) => takeUnary(call, answer));
  }
  const check = checkHandler(ports);
  const openChecks = (wire: CheckWire): CheckStream => {
    const stream = new CheckStream(wire, { check, count, onDefect, onOver: () => checkStreams.delete(stream) });
    checkStreams.add(stream);
    return stream;
  };
  handlers.set('StreamCheckActions', (call: CheckCall) => overLibrary(call, openChecks));
  express.set(
    shapeOf('StreamCheckActions').path,
    (call) => new ExpressChecks(call, { open: openChecks, arrivals, onDefect }),
  );
  handlers.set('OpControlStream', (call: ControlCall) => {
    count();
    const stream = new ControlStream(call, { ports, control, onDefect, onOver: () => controlStreams.delete(stream) });
    controlStreams.add(stream);
  });
  addServices(server, handlers);
  addReflection(server);
  const health = addHealth(server, HEALTH_NAMES);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  correctHeads(server, (library) => expressLane(express, library));
  return {
    serve: (socket) => injector.injectConnection(socket),
    drain: (graceMs) => {
      for (const service of HEALTH_NAMES) health.setStatus(service, 'NOT_SERVING');
      for (const stream of [...checkStreams, ...controlStreams]) stream.close(SHUTTING_DOWN);
      injector.drain(graceMs);
    },
    isBusy: () => arrivals.isBusy,
    recheckBearers: () => {
      for (const stream of [...checkStreams, ...controlStreams]) stream.recheckBearer(ports).catch(onDefect);
    },
    calls: () => calls,
  };
}

function addServices(server: Server, handlers: ReadonlyMap<string, UntypedHandleCall>): void {
  for (const service of SERVICES) {
    const methods = methodShapes.filter((shape) => shape.service === service);
    server.addService(
      Object.fromEntries(methods.map((shape) => [shape.name, definitionOf(shape)])),
      Object.fromEntries(
        // The library answers UNIMPLEMENTED for a method without a handler.
        methods.flatMap(({ name }) => {
          const handler = handlers.get(name);
          return handler === undefined ? [] : [[name, handler]];
        }),
      ),
    );
  }
}

/**
 * Requests reach the handlers as bytes. A malformed one is the caller's fault, but an exception in the library's own
 * decoding step would be reported as a fault of the server.
 */
function definitionOf({
  path,
  requestStream,
  responseStream,
  response,
}: MethodShape): MethodDefinition<Buffer, unknown> {
  const same = (bytes: Buffer): Buffer => bytes;
  // What answers a unary call hands over bytes; a stream, its messages.
  const encode = responseStream ? binaryCodec(response.name as keyof Messages).encode : same;
  return {
    path,
    requestStream,
    responseStream,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: encode as (value: unknown) => Buffer,
    responseDeserialize: same,
  };
}

function shapeOf(name: string): MethodShape {
  const shape = methodShapes.find((candidate) => candidate.name === name);
  assert(shape !== undefined, `the schema has the method ${name}`);
  return shape;
}
