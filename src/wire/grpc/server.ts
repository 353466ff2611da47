/** The gRPC door of one I/O thread. Only this folder names the gRPC library. */
import type { Socket } from 'node:net';
import { Server, ServerCredentials, type MethodDefinition, type sendUnaryData, type ServerUnaryCall, type UntypedHandleCall } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';
import type { Fault } from '../../core/fault.ts';
import { assert } from '../../core/result.ts';
import type { ControlSwitch } from '../control-switch.ts';
import { checkHandler, MAX_BATCH_BYTES, unaryMethods, type UnaryMethod } from '../methods.ts';
import type { WirePorts } from '../ports.ts';
import { binaryCodec } from '../proto/binary.ts';
import type { Messages } from '../proto/messages.ts';
import { AGENT_SERVICE, methodShapes, POLICY_SERVICE, type MethodShape } from '../proto/schema.ts';
import { bearerOf } from './bearer.ts';
import { CheckStream, type CheckCall } from './check-stream.ts';
import { ControlStream, type ControlCall } from './control-stream.ts';
import { addReflection } from './reflection.ts';
import { grpcError } from './status.ts';

export type GrpcServer = {
  /** Serves a connection that was accepted elsewhere. */
  readonly serve: (socket: Socket) => void;
  /**
   * Answers what is in flight and ends the streams, telling clients to go elsewhere; what is left after `graceMs` is cut.
   * Connections are closed by then, not necessarily gone.
   */
  readonly drain: (graceMs: number) => void;
};

export type GrpcServerOptions = {
  readonly ports: WirePorts;
  readonly control: ControlSwitch;
  /** A defect met while answering; the caller is told `internal`. */
  readonly onDefect: (error: unknown) => void;
};

const SERVER_OPTIONS = {
  'grpc.max_receive_message_length': MAX_BATCH_BYTES,
  'grpc.max_concurrent_streams': 1000,
  // A connection whose other end has vanished is noticed after these two.
  'grpc.keepalive_time_ms': 60_000,
  'grpc.keepalive_timeout_ms': 20_000,
  'grpc-node.max_session_memory': 64, // megabytes
  'grpc.enable_channelz': 0,
} as const;

const SHUTTING_DOWN: Fault = { kind: 'overloaded', retryAfterSecs: 1, what: 'the gateway' };

export function createGrpcServer({ ports, control, onDefect }: GrpcServerOptions): GrpcServer {
  const server = new Server(SERVER_OPTIONS);
  const streams = new Set<{ close(fault: Fault): void }>();
  const handlers = new Map<string, UntypedHandleCall>();
  for (const method of unaryMethods(ports)) handlers.set(method.name, unaryHandler(method, onDefect));
  const check = checkHandler(ports);
  handlers.set('StreamCheckActions', (call: CheckCall) => {
    const stream = new CheckStream(call, check, onDefect);
    streams.add(stream);
    call.on('close', () => streams.delete(stream));
  });
  handlers.set('OpControlStream', (call: ControlCall) => {
    const stream = new ControlStream(call, { ports, control, onDefect, onOver: () => streams.delete(stream) });
    streams.add(stream);
  });
  addServices(server, handlers);
  addReflection(server);
  const health = new HealthImplementation({ '': 'SERVING', [POLICY_SERVICE]: 'SERVING', [AGENT_SERVICE]: 'SERVING' });
  health.addToServer(server);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  return {
    serve: (socket) => injector.injectConnection(socket),
    drain: (graceMs) => {
      for (const service of ['', POLICY_SERVICE, AGENT_SERVICE]) health.setStatus(service, 'NOT_SERVING');
      for (const stream of streams) stream.close(SHUTTING_DOWN);
      injector.drain(graceMs);
    },
  };
}

function addServices(server: Server, handlers: ReadonlyMap<string, UntypedHandleCall>): void {
  for (const service of [POLICY_SERVICE, AGENT_SERVICE]) {
    const methods = methodShapes.filter((shape) => shape.service === service);
    server.addService(
      Object.fromEntries(methods.map((shape) => [shape.name, definitionOf(shape)])),
      Object.fromEntries(methods.map(({ name }) => {
        const handler = handlers.get(name);
        assert(handler !== undefined, `the method ${name} has a handler`);
        return [name, handler];
      })),
    );
  }
}

/**
 * Requests reach the handlers as bytes: what is malformed is the caller's fault, and what the library's own decoding step throws
 * would be told as the server's.
 */
function definitionOf({ path, requestStream, responseStream, response }: MethodShape): MethodDefinition<Buffer, unknown> {
  const { encode } = binaryCodec(response.name as keyof Messages);
  const same = (bytes: Buffer): Buffer => bytes;
  return { path, requestStream, responseStream, requestSerialize: same, requestDeserialize: same, responseSerialize: encode as (value: unknown) => Buffer, responseDeserialize: same };
}

function unaryHandler({ request, maxBytes, handle }: UnaryMethod, onDefect: (error: unknown) => void): UntypedHandleCall {
  const { decode } = binaryCodec(request);
  return (call: ServerUnaryCall<Buffer, unknown>, respond: sendUnaryData<unknown>) => {
    const bytes = call.request;
    if (bytes.length > maxBytes) return respond(grpcError({ kind: 'payload_too_large', limitBytes: maxBytes }));
    const message = decode(bytes);
    if (!message.ok) return respond(grpcError(message.fault));
    handle(message.value as never, bearerOf(call.metadata)).then(
      (answer) => (answer.ok ? respond(null, answer.value) : respond(grpcError(answer.fault))),
      (error: unknown) => {
        onDefect(error);
        respond(grpcError({ kind: 'internal' }));
      },
    );
  };
}
