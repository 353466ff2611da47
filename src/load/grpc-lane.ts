/** An HTTP/2 connection to the gRPC port: a call for each check, or a single stream of checks. */
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { CUT, reasonOf } from '../client/faults.ts';
import { binaryCodec } from '../doors/proto/binary.ts';
import type { CheckActionRequest, StreamCheckActionsResponse } from '../doors/proto/messages.ts';
import { type Answer, decided, failed, type Lane } from './lane.ts';

export type GrpcTarget = {
  /** `http://host:port`, or https. */
  readonly url: string;
  readonly checkOf: (nth: number) => CheckActionRequest;
};

const SERVICE = '/svc.governance.v1.PolicyService';
const CALLS_AT_ONCE = 100;
const CHECKS_AT_ONCE_ON_STREAM = 1_000;
const PREFIX_BYTES = 5;

type Settle = (answer: Answer) => void;
const requests = binaryCodec('CheckActionRequest');
const answers = binaryCodec('CheckActionResponse');
const streamed = binaryCodec('StreamCheckActionsResponse');

function framed(message: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  message.copy(frame, PREFIX_BYTES);
  return frame;
}

/** The whole messages in what has come so far, and the rest. */
function messagesIn(bytes: Buffer): { readonly messages: readonly Buffer[]; readonly rest: Buffer } {
  const messages: Buffer[] = [];
  let at = 0;
  while (bytes.length - at >= PREFIX_BYTES) {
    const end = at + PREFIX_BYTES + bytes.readUInt32BE(at + 1);
    if (end > bytes.length) break;
    messages.push(bytes.subarray(at + PREFIX_BYTES, end));
    at = end;
  }
  return { messages, rest: bytes.subarray(at) };
}

function answerIn(response: StreamCheckActionsResponse): Answer {
  if (response.error !== undefined) return failed(`${response.error.code} ${response.error.message}`);
  if (response.decision === 'unspecified') return failed('an answer without a decision');
  return decided(response.decision, response.reason, response.cause);
}

/** A connection that is opened when it is needed, and the last error on it. */
class Connection {
  readonly #url: string;
  #session: ClientHttp2Session | undefined;
  /** Why its calls are not answered, where they do not know themselves. */
  fault = CUT;

  constructor(url: string) {
    this.#url = url;
  }

  request(method: string): ClientHttp2Stream {
    if (this.#session === undefined || this.#session.closed || this.#session.destroyed) this.#session = this.#open();
    return this.#session.request({
      ':method': 'POST',
      ':path': `${SERVICE}/${method}`,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
  }

  close(): void {
    this.#session?.destroy();
  }

  #open(): ClientHttp2Session {
    this.fault = 'the server there does not speak gRPC';
    const session = connect(this.#url);
    session.on('remoteSettings', () => {
      this.fault = CUT;
    });
    session.on('error', () => undefined); // each of its streams is told
    return session;
  }
}

/** The reason why a call ended without an answer. */
class Ending {
  #fault: string | undefined;

  constructor(stream: ClientHttp2Stream) {
    stream.on('response', (headers) => this.#read(headers));
    stream.on('trailers', (headers) => this.#read(headers));
    stream.on('error', (error: Error) => {
      if (error.cause !== undefined) this.#fault = reasonOf(error);
    });
  }

  #read(headers: Readonly<Record<string, unknown>>): void {
    const status = headers['grpc-status'];
    if (status !== undefined && status !== '0')
      this.#fault = `gRPC status ${String(status)} ${decodeURIComponent(String(headers['grpc-message'] ?? ''))}`.trim();
    else if (headers[':status'] !== undefined && headers[':status'] !== 200)
      this.#fault = `HTTP status ${String(headers[':status'])} instead of gRPC`;
  }

  reason = (connection: Connection): string => this.#fault ?? connection.fault;
}

/** A call for each check. */
export class CallLane implements Lane {
  readonly capacity = CALLS_AT_ONCE;
  readonly #connection: Connection;
  readonly #checkOf: GrpcTarget['checkOf'];

  constructor({ url, checkOf }: GrpcTarget) {
    this.#connection = new Connection(url);
    this.#checkOf = checkOf;
  }

  send(nth: number, settle: Settle): void {
    const stream = this.#connection.request('CheckAction');
    const ending = new Ending(stream);
    let received: Buffer = Buffer.alloc(0);
    stream.on('data', (bytes: Buffer) => {
      received = received.length === 0 ? bytes : Buffer.concat([received, bytes]);
    });
    stream.once('close', () => {
      const [message] = messagesIn(received).messages;
      const answer = message === undefined ? undefined : answers.decode(message);
      settle(answer?.ok === true ? answerIn(answer.value) : failed(ending.reason(this.#connection)));
    });
    stream.end(framed(requests.encode(this.#checkOf(nth))));
  }

  close(): void {
    this.#connection.close();
  }
}

/** A single stream, on which checks are matched to their answers by number. */
export class StreamLane implements Lane {
  readonly capacity = CHECKS_AT_ONCE_ON_STREAM;
  readonly #connection: Connection;
  readonly #checkOf: GrpcTarget['checkOf'];
  #stream: ClientHttp2Stream | undefined;
  #waiting = new Map<string, Settle>();

  constructor({ url, checkOf }: GrpcTarget) {
    this.#connection = new Connection(url);
    this.#checkOf = checkOf;
  }

  send(nth: number, settle: Settle): void {
    const correlationId = String(nth);
    this.#stream ??= this.#open();
    this.#waiting.set(correlationId, settle);
    this.#stream.write(framed(requests.encode({ ...this.#checkOf(nth), correlationId })));
  }

  close(): void {
    this.#waiting.clear();
    this.#connection.close();
  }

  #open(): ClientHttp2Stream {
    const stream = this.#connection.request('StreamCheckActions');
    const ending = new Ending(stream);
    const waiting = new Map<string, Settle>();
    this.#waiting = waiting;
    let received: Buffer = Buffer.alloc(0);
    stream.on('data', (bytes: Buffer) => {
      const { messages, rest } = messagesIn(received.length === 0 ? bytes : Buffer.concat([received, bytes]));
      received = rest;
      for (const message of messages) {
        const answer = streamed.decode(message);
        const settle = answer.ok ? waiting.get(answer.value.correlationId) : undefined;
        if (!answer.ok || settle === undefined) continue;
        waiting.delete(answer.value.correlationId);
        settle(answerIn(answer.value));
      }
    });
    stream.once('close', () => {
      if (this.#stream === stream) this.#stream = undefined;
      const answer = failed(ending.reason(this.#connection));
      for (const settle of waiting.values()) settle(answer);
      waiting.clear();
    });
    return stream;
  }
}
