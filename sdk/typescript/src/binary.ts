/** The messages as bytes, for gRPC. Only this file names the protobuf library. */
import protobuf from 'protobufjs/light.js';
import { PROTOCOL } from './protocol.ts';
import {
  type CheckMessage,
  type MethodName,
  type Methods,
  type OfAgent,
  pathOf,
  type SignalReply,
  type StreamCheckReply,
  serviceOf,
} from './schema.ts';

type Codec<Request, Response> = {
  readonly path: string;
  readonly encode: (request: Request) => Buffer;
  readonly decode: (bytes: Buffer) => Response;
};

const root = protobuf.Root.fromJSON(PROTOCOL);
root.resolveAll();

function codecOf<Request, Response>(name: Parameters<typeof pathOf>[0]): Codec<Request, Response> {
  const method = root.lookupService(serviceOf(name)).methods[name];
  const requestType = method?.resolvedRequestType;
  const responseType = method?.resolvedResponseType;
  if (requestType == null || responseType == null) throw new Error(`broken invariant: the protocol has ${name}`);
  return {
    path: pathOf(name),
    encode: (request) => requestType.encode(request as Record<string, unknown>).finish() as Buffer,
    decode: (bytes) => responseType.decode(bytes) as unknown as Response,
  };
}

export const METHODS: { readonly [N in MethodName]: Codec<Methods[N]['request'], Methods[N]['response']> } = {
  CheckAction: codecOf('CheckAction'),
  RegisterAgent: codecOf('RegisterAgent'),
  CompleteOp: codecOf('CompleteOp'),
  RecordUsage: codecOf('RecordUsage'),
  AckOpControl: codecOf('AckOpControl'),
  WaitApproval: codecOf('WaitApproval'),
  CancelApproval: codecOf('CancelApproval'),
};
export const STREAM_CHECK_ACTIONS: Codec<CheckMessage, StreamCheckReply> = codecOf('StreamCheckActions');
export const OP_CONTROL_STREAM: Codec<OfAgent, SignalReply> = codecOf('OpControlStream');
