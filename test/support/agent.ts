/** An agent for a test: speaks gRPC to a real gateway, by the repository's own codecs. */
import { Client, type ClientReadableStream, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { binaryCodec, emptyMessage } from '../../src/doors/proto/binary.ts';
import type { MessageName, Messages, OpControlStreamResponse } from '../../src/doors/proto/messages.ts';
import { messageShape } from '../../src/doors/proto/schema.ts';
import { eventually } from './eventually.ts';

const AGENT_SERVICE = '/svc.governance.v1.AgentService';
const POLICY_SERVICE = '/svc.governance.v1.PolicyService';

export type ControlFeed = {
  readonly signals: OpControlStreamResponse[];
  /** Settles when the stream is over: the name of its status. */
  readonly ended: Promise<string>;
  /** Waits until this many signals have come. */
  received(count: number): Promise<readonly OpControlStreamResponse[]>;
  cancel(): void;
};

export type TestAgent = ReturnType<typeof connectAgent>;
type Identity = { readonly orgId: string; readonly teamId: string; readonly agentId: string };

export function connectAgent(address: string, agent: Identity, credentialToken: string, bearer?: string) {
  const client = new Client(address, credentials.createInsecure());
  const metadata = new Metadata();
  if (bearer !== undefined) metadata.set('authorization', `Bearer ${bearer}`);

  function unary<Q extends MessageName, R extends MessageName>(
    path: string,
    q: Q,
    r: R,
    fields: Partial<Messages[Q]>,
  ): Promise<Messages[R]> {
    const request = { ...emptyMessage(messageShape(q)), agent, credentialToken, ...fields } as Messages[Q];
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(path, binaryCodec(q).encode, decoderOf(r), request, metadata, (error, value) =>
        error === null ? resolve(value as Messages[R]) : reject(error),
      );
    });
  }

  return {
    check: (traceId: string) =>
      unary(`${POLICY_SERVICE}/CheckAction`, 'CheckActionRequest', 'CheckActionResponse', {
        traceId,
        spanId: 's',
        action: 'tool.call',
        resource: 'web_search',
      }),
    acknowledge: (opId: string, sequence: number) =>
      unary(`${AGENT_SERVICE}/AckOpControl`, 'AckOpControlRequest', 'AckOpControlResponse', { opId, sequence }),
    /** Resolves once the gateway listens for this agent, or the stream is over. */
    control: async (resumeAfter?: number): Promise<ControlFeed> => {
      const request = { agent, credentialToken, resumeAfter } as Messages['OpControlStreamRequest'];
      const call: ClientReadableStream<OpControlStreamResponse> = client.makeServerStreamRequest(
        `${AGENT_SERVICE}/OpControlStream`,
        binaryCodec('OpControlStreamRequest').encode,
        decoderOf('OpControlStreamResponse'),
        request,
        metadata,
      );
      const signals: OpControlStreamResponse[] = [];
      call.on('data', (signal: OpControlStreamResponse) => signals.push(signal));
      const ended = new Promise<string>((resolve) => {
        call.on('error', (error: ServiceError) => resolve(status[error.code]!));
        call.on('end', () => resolve('OK'));
      });
      await Promise.race([ended, new Promise((resolve) => call.once('metadata', resolve))]);
      return {
        signals,
        ended,
        received: (count) =>
          eventually(() => {
            if (signals.length < count)
              throw new Error(`${signals.length} of ${count} signals: ${JSON.stringify(signals)}`);
            return signals;
          }),
        cancel: () => call.cancel(),
      };
    },
    close: () => client.close(),
  };
}

function decoderOf<R extends MessageName>(name: R): (bytes: Buffer) => Messages[R] {
  const { decode } = binaryCodec(name);
  return (bytes) => {
    const message = decode(bytes);
    if (!message.ok) throw new Error(JSON.stringify(message.fault));
    return message.value as Messages[R];
  };
}
