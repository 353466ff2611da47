/** A script in place of a gateway, as an agent sees it: the test sends the signals and says how calls are answered. */
import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { onTestFinished } from 'vitest';
import { METHODS, OP_CONTROL_STREAM } from '../../sdk/typescript/src/binary.ts';
import { type AgentClient, type AgentClientOptions, createAgentClient } from '../../sdk/typescript/src/index.ts';
import type { MethodName } from '../../sdk/typescript/src/schema.ts';
import { binaryCodec, emptyMessage } from '../../src/doors/proto/binary.ts';
import type { MessageName, Messages } from '../../src/doors/proto/messages.ts';
import { messageShape } from '../../src/doors/proto/schema.ts';

type Scripted = Exclude<MethodName, 'CancelApproval'>;
export type ScriptedCall = {
  readonly method: Scripted | 'OpControlStream';
  readonly opId: string;
  readonly sequence: number;
  readonly token: string;
  /** Which gateway of a cluster it names as that of the operation. */
  readonly home?: string | undefined;
};
/**
 * A status that a call fails with, the gateway's own word for it where it has one, and when to come again; or parts of
 * its answer, and the gateways of a cluster that have not confirmed it.
 */
export type Answer =
  | { readonly fails: keyof typeof status; readonly fault?: string | undefined; readonly retryAfterSecs?: number }
  | ({ readonly fails?: undefined; readonly unconfirmed?: string } & Record<string, unknown>);

export type ScriptedGateway = {
  readonly address: string;
  /** The control streams, in the order in which agents have opened them. */
  readonly opened: ServerWritableStream<unknown, unknown>[];
  /** Every unary call so far. */
  readonly calls: ScriptedCall[];
};

const USUAL: { readonly [M in Scripted]: Record<string, unknown> } = {
  CheckAction: { decision: 'allow', opState: 'running' },
  CompleteOp: {},
  RecordUsage: { status: 'ok' },
  AckOpControl: {},
  RegisterAgent: { credentialToken: 'token-1' },
  WaitApproval: { state: 'approved' },
};

/**
 * Until the test is over. `answer` is asked about every call; undefined is the usual success, and a control stream
 * opens when it has answered.
 */
export async function scriptedGateway(
  answer: (call: ScriptedCall) => Answer | undefined | Promise<Answer | undefined> = () => undefined,
): Promise<ScriptedGateway> {
  const opened: ServerWritableStream<unknown, unknown>[] = [];
  const calls: ScriptedCall[] = [];
  const bytesOf = (message: unknown, name: MessageName): Buffer =>
    Buffer.isBuffer(message)
      ? message
      : Buffer.from(binaryCodec(name).encode(message as Messages[MessageName] as never));
  const method = (path: string, response: MessageName, responseStream: boolean) => ({
    path,
    requestStream: false,
    responseStream,
    requestSerialize: (bytes: Buffer) => bytes,
    requestDeserialize: (bytes: Buffer) => bytes,
    responseSerialize: (message: unknown) => bytesOf(message, response),
    responseDeserialize: (bytes: Buffer) => bytes,
  });
  const handle =
    (name: Scripted) =>
    async ({ request }: { readonly request: Buffer }, respond: sendUnaryData<unknown>): Promise<void> => {
      const decoded = binaryCodec(`${name}Request`).decode(request);
      if (!decoded.ok) return respond({ code: status.INVALID_ARGUMENT });
      const {
        traceId = '',
        spanId = '',
        opId = traceId === '' ? '' : `${traceId}:${spanId}`,
        sequence = 0,
        credentialToken: token = '',
        opHome = '',
      } = decoded.value as Partial<Record<'traceId' | 'spanId' | 'opId' | 'credentialToken' | 'opHome', string>> & {
        readonly sequence?: number;
      };
      const call = { method: name, opId, sequence, token, home: opHome === '' ? undefined : opHome };
      calls.push(call);
      const answered = await answer(call);
      if (answered?.fails !== undefined) {
        const metadata = new Metadata();
        if (typeof answered.fault === 'string') metadata.set('svc-code', answered.fault);
        if (typeof answered.retryAfterSecs === 'number') metadata.set('retry-after', String(answered.retryAfterSecs));
        respond({ code: status[answered.fails], details: answered.fails, metadata });
      } else {
        const { unconfirmed, ...parts } = answered ?? {};
        const trailers = new Metadata();
        if (typeof unconfirmed === 'string') trailers.set('svc-unconfirmed', unconfirmed);
        respond(null, { ...emptyMessage(messageShape(`${name}Response`)), ...USUAL[name], ...parts }, trailers);
      }
    };
  const server = new Server();
  onTestFinished(() => server.forceShutdown());
  const unary = (name: Scripted) => ({ [name]: method(METHODS[name].path, `${name}Response`, false) });
  server.addService(
    {
      ...unary('CheckAction'),
      ...unary('CompleteOp'),
      ...unary('RecordUsage'),
      ...unary('AckOpControl'),
      ...unary('RegisterAgent'),
      ...unary('WaitApproval'),
      OpControlStream: method(OP_CONTROL_STREAM.path, 'OpControlStreamResponse', true),
    },
    {
      CheckAction: handle('CheckAction'),
      CompleteOp: handle('CompleteOp'),
      RecordUsage: handle('RecordUsage'),
      AckOpControl: handle('AckOpControl'),
      RegisterAgent: handle('RegisterAgent'),
      WaitApproval: handle('WaitApproval'),
      OpControlStream: async (stream: ServerWritableStream<unknown, unknown>) => {
        await answer({ method: 'OpControlStream', opId: '', sequence: 0, token: '' });
        stream.sendMetadata(new Metadata());
        opened.push(stream);
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  return { address: `127.0.0.1:${port}`, opened, calls };
}

/** The client of an agent, until the test is over: with any token unless it is given an API key, and quick to close. */
export function scriptedAgent(
  { address }: Pick<ScriptedGateway, 'address'>,
  { deadlines, ...options }: Partial<AgentClientOptions> = {},
): AgentClient {
  const credential = options.apiKey === undefined ? { credentialToken: 'any-token' } : {};
  const client = createAgentClient({
    address,
    agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
    onWarning: () => {},
    ...credential,
    ...options,
    deadlines: { closeMs: 50, ...deadlines },
  } as AgentClientOptions);
  onTestFinished(() => client.close());
  return client;
}
