/**
 * The baseline of the gRPC figures: a bare grpc-js server that reads the same messages with the codecs protobufjs
 * generates and answers at once. A program of its own, so that it never shares a thread with what it is compared to.
 * Prints its port.
 */
import {
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type sendUnaryData,
} from '@grpc/grpc-js';
import { protoRoot } from '../../src/doors/proto/schema.ts';

type Request = { readonly traceId: string; readonly spanId: string; readonly correlationId: string };

const Check = protoRoot.lookupType('svc.governance.v1.CheckActionRequest');
const Answer = protoRoot.lookupType('svc.governance.v1.CheckActionResponse');

const definition = (name: string, isStream: boolean): MethodDefinition<Request, object> => ({
  path: `/svc.governance.v1.PolicyService/${name}`,
  requestStream: isStream,
  responseStream: isStream,
  requestSerialize: (request) => Buffer.from(Check.encode(request).finish()),
  requestDeserialize: (bytes) => Check.decode(bytes) as unknown as Request,
  responseSerialize: (answer) => Buffer.from(Answer.encode(answer).finish()),
  responseDeserialize: (bytes) => Answer.decode(bytes),
});

const answerTo = ({ traceId, spanId, correlationId }: Request): object =>
  Answer.create({
    decision: 1,
    reason: 'web tools only',
    policy: 'search-team',
    ruleId: 'web-only',
    opId: `${traceId}:${spanId}`,
    opState: 2,
    auditId: 123_456,
    correlationId,
  });

const server = new Server();
server.addService(
  { CheckAction: definition('CheckAction', false), StreamCheckActions: definition('StreamCheckActions', true) },
  {
    CheckAction: (call: ServerUnaryCall<Request, object>, respond: sendUnaryData<object>) =>
      respond(null, answerTo(call.request)),
    StreamCheckActions: (call: ServerDuplexStream<Request, object>) => {
      call.on('data', (request: Request) => call.write(answerTo(request)));
      call.on('end', () => call.end());
    },
  },
);
server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error;
  console.log(`port ${port} of grpc-js`);
});
