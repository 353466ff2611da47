/** A gRPC server over fake ports for the tests of a file, and its clients. */
import { Client, type ClientDuplexStream, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { createGrpcDoor, type GrpcDoor } from '../../../src/doors/grpc/door.ts';
import { binaryCodec, emptyMessage } from '../../../src/doors/proto/binary.ts';
import type {
  CheckActionRequest,
  MessageName,
  Messages,
  StreamCheckActionsResponse,
} from '../../../src/doors/proto/messages.ts';
import { messageShape } from '../../../src/doors/proto/schema.ts';
import { ControlSwitch } from '../../../src/doors/rpc/control-switch.ts';
import type { WirePorts } from '../../../src/doors/rpc/ports.ts';
import { type GrpcListener, listenForGrpc } from '../../../src/doors/shared/listener.ts';
import { type FakeGateway, fakeGateway, TOKEN } from '../../support/fake-ports.ts';

export const POLICY = '/svc.governance.v1.PolicyService';
export const AGENT = '/svc.governance.v1.AgentService';
export const crawler = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };

export type Scene = {
  /** New for each test, as are the defects. */
  gateway: FakeGateway;
  defects: unknown[];
  control: ControlSwitch;
  readonly closedStreams: number[];
  server: GrpcDoor;
  client: Client;
  address: string;
};

/** Filled before the first test of a file that calls `withScene`. */
export const scene = { closedStreams: [] as number[] } as Scene;
let listener: GrpcListener;

/** For each file that uses the scene to call: a module that is loaded already registers nothing. */
export function withScene(): void {
  beforeAll(async () => {
    scene.control = new ControlSwitch((stream) => scene.closedStreams.push(stream));
    // A single server for all tests, with a gateway that each test gets anew.
    const ports: WirePorts = {
      link: {
        ask: ((command: never) => scene.gateway.link.ask(command)) as WirePorts['link']['ask'],
        call: ((name: never, input: never) => scene.gateway.link.call(name, input)) as WirePorts['link']['call'],
        get pending() {
          return scene.gateway.link.pending;
        },
      },
      authenticate: (bearer) => scene.gateway.authenticate(bearer),
      get largeBatches() {
        return scene.gateway.largeBatches;
      },
    };
    scene.server = createGrpcDoor({
      ports,
      control: scene.control,
      limits: { timeoutMs: 30_000, maxBytes: 128 * 1024 * 1024, maxStreams: 10_000 },
      onDefect: (error) => scene.defects.push(error),
    });
    listener = await listenForGrpc({
      host: '127.0.0.1',
      port: 0,
      isShared: false,
      maxConnections: 1_000,
      onConnection: scene.server.serve,
      onError: (error) => scene.defects.push(error),
    });
    scene.address = `127.0.0.1:${listener.port}`;
    scene.client = new Client(scene.address, credentials.createInsecure());
  });
  beforeEach(() => {
    scene.gateway = fakeGateway();
    scene.defects = [];
    scene.closedStreams.length = 0;
  });
  afterAll(async () => {
    scene.client.close();
    scene.server.drain(100);
    await listener.close();
  });
}

export const check = (fields: Partial<CheckActionRequest> = {}): CheckActionRequest => ({
  ...(emptyMessage(messageShape('CheckActionRequest')) as CheckActionRequest),
  agent: crawler,
  credentialToken: TOKEN,
  traceId: 'trace',
  spanId: 'span',
  action: 'tool.call',
  resource: 'web_search',
  ...fields,
});

export const bearer = (key: string): Metadata => {
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${key}`);
  return metadata;
};

export function unary<Q extends MessageName, R extends MessageName>(
  path: string,
  q: Q,
  r: R,
  request: Partial<Messages[Q]> | Buffer,
  metadata = new Metadata(),
  options = {},
): Promise<Messages[R]> {
  const { decode } = binaryCodec(r);
  return new Promise((resolve, reject) => {
    scene.client.makeUnaryRequest(
      path,
      (message: Partial<Messages[Q]> | Buffer) =>
        Buffer.isBuffer(message)
          ? message
          : binaryCodec(q).encode({ ...(emptyMessage(messageShape(q)) as Messages[Q]), ...message }),
      (bytes) => {
        const message = decode(bytes);
        if (!message.ok) throw new Error(JSON.stringify(message.fault));
        return message.value;
      },
      request,
      metadata,
      options,
      (error, value) => (error === null ? resolve(value as Messages[R]) : reject(error)),
    );
  });
}
export const checkAction = (request: CheckActionRequest | Buffer, metadata?: Metadata, options?: object) =>
  unary(`${POLICY}/CheckAction`, 'CheckActionRequest', 'CheckActionResponse', request, metadata, options);

export const refusal = async (call: Promise<unknown>) => {
  const error = await call.then(
    () => {
      throw new Error('it was not refused');
    },
    (reason: ServiceError) => reason,
  );
  return {
    code: status[error.code],
    details: error.details,
    word: error.metadata.get('svc-code')[0],
    retryAfter: error.metadata.get('retry-after')[0],
  };
};

export type CheckClient = ClientDuplexStream<CheckActionRequest | Buffer, StreamCheckActionsResponse>;
export function openChecks(metadata = new Metadata()): {
  call: CheckClient;
  answers: StreamCheckActionsResponse[];
  ended: Promise<{ code: string; details: string }>;
} {
  const { encode } = binaryCodec('StreamCheckActionsRequest');
  const { decode } = binaryCodec('StreamCheckActionsResponse');
  const call = scene.client.makeBidiStreamRequest(
    `${POLICY}/StreamCheckActions`,
    (message: CheckActionRequest | Buffer) => (Buffer.isBuffer(message) ? message : encode(message)),
    (bytes) => {
      const message = decode(bytes);
      return message.ok ? message.value : (undefined as never);
    },
    metadata,
  );
  const answers: StreamCheckActionsResponse[] = [];
  call.on('data', (answer: StreamCheckActionsResponse) => answers.push(answer));
  call.on('error', () => undefined); // the status says it too
  const ended = new Promise<{ code: string; details: string }>((resolve) => {
    call.on('status', ({ code, details }) => resolve({ code: status[code], details }));
  });
  return { call, answers, ended };
}

export function openControl(request: Partial<Messages['OpControlStreamRequest']> = {}, metadata = new Metadata()) {
  const { encode } = binaryCodec('OpControlStreamRequest');
  const { decode } = binaryCodec('OpControlStreamResponse');
  const call = scene.client.makeServerStreamRequest(
    `${AGENT}/OpControlStream`,
    encode,
    (bytes) => {
      const message = decode(bytes);
      return message.ok ? message.value : (undefined as never);
    },
    { agent: crawler, credentialToken: TOKEN, resumeAfter: undefined, ...request },
    metadata,
  );
  const signals: unknown[] = [];
  call.on('data', (signal) => signals.push(signal));
  call.on('error', () => undefined);
  const ended = new Promise<{ code: string; details: string }>((resolve) => {
    call.on('status', ({ code, details }) => resolve({ code: status[code], details }));
  });
  return { call, signals, ended };
}
