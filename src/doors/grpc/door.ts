/** The gRPC door of one I/O thread: the services of the gateway, with health and reflection, on one server. */

import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { assert } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import type { TlsIdentity } from '../../ports/tls.ts';
import { EXT_MCP_SERVICE, extMcpService } from '../agentgateway/ext-mcp.ts';
import type { AddressOf } from '../engine/client-address.ts';
import { ENVOY_SERVICE, envoyService } from '../envoy/ext-authz.ts';
import { binaryCodec } from '../proto/binary.ts';
import type { OpControlStreamRequest } from '../proto/messages.ts';
import { methodShapes, protoFolder, SERVICES } from '../proto/schema.ts';
import type { ControlSwitch } from '../rpc/control-switch.ts';
import { checkHandler, type UnaryMethod, unaryMethods } from '../rpc/methods.ts';
import type { WirePorts } from '../rpc/ports.ts';
import { MAX_BATCH_BYTES } from '../shared/limits.ts';
import { unconfirmedHeaders } from '../shared/unconfirmed.ts';
import type { Limits } from './bounds.ts';
import type { Method } from './call.ts';
import { CheckStream } from './check-stream.ts';
import { ControlStream } from './control-stream.ts';
import { Descriptors } from './descriptors.ts';
import { HEALTH_SERVICE, healthService } from './health.ts';
import { serverStream, unary } from './method.ts';
import { reflectionService } from './reflection.ts';
import { GrpcServer } from './server.ts';
import { OK } from './status.ts';

export type GrpcDoor = {
  /** Serves a connection that was accepted elsewhere. */
  readonly serve: (socket: Socket) => void;
  readonly renewTls: (identity: TlsIdentity) => void;
  /** Closes up to so many connections without calls, those first that had none. Returns how many it has closed. */
  readonly makeRoom: (count: number) => number;
  /**
   * Answers what is in flight and ends the streams, telling clients to go elsewhere; what is left after `graceMs` is
   * cut. Connections are closed by then, not necessarily gone.
   */
  readonly drain: (graceMs: number) => void;
  /** Whether a unary request is still being received, or an answer still being read. */
  readonly isBusy: () => boolean;
  /** Ends the streams whose bearer is not valid any longer. Call it after a revocation, and periodically for expiry. */
  readonly recheckBearers: () => void;
  /** Calls since the start. Each message of a stream of checks counts as one. */
  readonly calls: () => number;
};

export type GrpcDoorOptions = {
  readonly ports: WirePorts;
  readonly control: ControlSwitch;
  readonly limits: Limits;
  /** Whom a call comes from, where its connection comes from a proxy. */
  readonly addressOf?: AddressOf | undefined;
  readonly tls?: TlsIdentity | undefined;
  /** Called with a defect that occurred while answering; the caller gets `internal`. */
  readonly onDefect: (error: unknown) => void;
};

const SHUTTING_DOWN: Fault = { kind: 'shutting_down', retryAfterSecs: 1 };

export function createGrpcDoor({ ports, control, limits, addressOf, tls, onDefect }: GrpcDoorOptions): GrpcDoor {
  const streams = new Set<CheckStream | ControlStream>();
  let calls = 0;
  const count = (): void => {
    calls += 1;
  };
  const check = checkHandler(ports);
  const checks: Method = {
    request: 'many',
    response: 'many',
    maxBytes: MAX_BATCH_BYTES, // a check over its own limit is still answered with its correlation id
    open: (call) => {
      const stream = new CheckStream(call, { ports, check, count, onDefect, onOver: () => streams.delete(stream) });
      streams.add(stream);
      return stream;
    },
  };
  const signals = serverStream({
    ...binaryCodec('OpControlStreamResponse'),
    decode: binaryCodec('OpControlStreamRequest').decode,
    handle: (request: OpControlStreamRequest, to) => {
      count();
      const stream = new ControlStream(request, to, { ports, control, onDefect, onOver: () => streams.delete(stream) });
      streams.add(stream);
      return stream;
    },
  });
  const foreign = [...envoyService(ports, { count, onDefect }), ...extMcpService(ports, { count, onDefect })];
  const health = healthService(['', ...SERVICES, ENVOY_SERVICE, EXT_MCP_SERVICE]);
  const descriptors = new Descriptors(readFileSync(join(protoFolder(), 'descriptors.binpb')));
  const server = new GrpcServer({
    methods: new Map<string, Method>([
      ...unaryMethods(ports).map((method) => [pathOf(method.name), unaryOf(method, count)] as const),
      [pathOf('StreamCheckActions'), checks],
      [pathOf('OpControlStream'), signals],
      ...foreign,
      ...health.methods,
      ...reflectionService([...SERVICES, HEALTH_SERVICE], descriptors),
    ]),
    limits,
    addressOf,
    tls,
    onDefect,
  });
  return {
    serve: server.serve,
    renewTls: (identity) => server.renewTls(identity),
    makeRoom: (count) => server.makeRoom(count),
    drain: (graceMs) => {
      health.drain();
      for (const stream of [...streams]) stream.close(SHUTTING_DOWN);
      server.drain(graceMs);
    },
    isBusy: () => server.isBusy,
    recheckBearers: () => {
      for (const stream of [...streams]) stream.recheckBearer(ports).catch(onDefect);
    },
    calls: () => calls,
  };
}

/** A unary method of the services, which gRPC and Connect have in common. */
function unaryOf({ decode, response, maxBytes, handle }: UnaryMethod, count: () => void): Method {
  return unary({
    decode: (bytes) => {
      count();
      return decode.binary(bytes);
    },
    encode: binaryCodec(response).encode,
    maxBytes,
    handle: (request, call) => handle(request as never, call.authorization, call),
    statusOk: (answer) =>
      'unconfirmed' in answer ? { ...OK, metadata: Object.fromEntries(unconfirmedHeaders(answer)) } : OK,
  });
}

function pathOf(name: string): string {
  const shape = methodShapes.find((candidate) => candidate.name === name);
  assert(shape !== undefined, `the schema has the method ${name}`);
  return shape.path;
}
