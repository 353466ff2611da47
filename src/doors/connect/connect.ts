/**
 * The Connect protocol, unary, on the HTTP port: the same methods as over gRPC, with nothing but a POST of JSON or
 * protobuf (docs/spec.md, gRPC).
 */

import { ok, type Result } from '../../core/base/result.ts';
import { quote } from '../../core/base/text.ts';
import { explain, type Fault, invalid } from '../../core/fault.ts';
import { GuardedHead } from '../engine/guarded-head.ts';
import type { HttpResponse } from '../engine/route.ts';
import { binaryCodec } from '../proto/binary.ts';
import { jsonCodec } from '../proto/json.ts';
import type { MessageName, Messages } from '../proto/messages.ts';
import { methodShapes } from '../proto/schema.ts';
import type { Caller } from '../rpc/handle.ts';
import { type UnaryMethod, unaryMethods } from '../rpc/methods.ts';
import type { WirePorts } from '../rpc/ports.ts';
import type { Header, HttpStatus } from '../shared/http-answer.ts';
import { refuseUnknown } from '../shared/input.ts';
import { LONGEST_TIMER_MS, MAX_MESSAGE_BYTES } from '../shared/limits.ts';
import { RPC_CODE, RPC_HTTP_STATUS, type RpcCode, rateLimitHeaders, retryAfterSecs } from '../shared/rpc-code.ts';
import { unconfirmedHeaders } from '../shared/unconfirmed.ts';

/** The headers that the protocol has of its own. Undefined when not sent, or empty. */
export class ConnectHead extends GuardedHead {
  version: string | undefined = undefined;
  timeout: string | undefined = undefined;
  traceparent: string | undefined = undefined;

  protected override takeOther(name: string, value: string): void {
    if (name === 'connect-protocol-version') this.version = value || undefined;
    else if (name === 'connect-timeout-ms') this.timeout = value || undefined;
    else if (name === 'traceparent') this.traceparent = value;
  }
}

/** An answer of the protocol. Without headers, a success is sent the fastest way. */
export type ConnectReply = HttpResponse & Required<Pick<HttpResponse, 'text'>>;

/** Media types of enveloped bodies, as clients of streams send and read them. */
const STREAM_TYPES = ['application/connect+json', 'application/connect+proto'] as const;
type StreamType = (typeof STREAM_TYPES)[number];

type Respond = (reply: ConnectReply) => void;

export type ConnectMethod = {
  /** Larger bodies need not be read to their end: `connectError` with `payload_too_large` answers them. */
  readonly maxBytes: number;
  /**
   * Calls `reply` once, in this turn or a later one, and does not throw. Without a promise: a check would pay for it.
   * The body need not stay valid after it has returned.
   */
  readonly answer: (head: ConnectHead, body: Buffer, reply: Respond) => void;
};

/**
 * The methods by their path, `/svc.governance.v1.PolicyService/CheckAction`. `onDefect` gets the error behind every
 * `internal`.
 */
export function connectMethods(
  ports: WirePorts,
  onDefect: (error: unknown) => void,
): ReadonlyMap<string, ConnectMethod> {
  const unary = new Map(unaryMethods(ports).map((method) => [method.name, method]));
  return new Map(
    methodShapes.map(({ path, name, requestStream, responseStream }) => {
      const method = unary.get(name);
      if (method !== undefined) return [path, connectMethod(method, onDefect)];
      return [path, requestStream || responseStream ? STREAM_METHOD : NOT_IMPLEMENTED];
    }),
  );
}

function connectMethod(method: UnaryMethod, onDefect: (error: unknown) => void): ConnectMethod {
  const { decode, response } = method;
  const json: Format = { contentType: 'application/json', decode: decode.json, encode: jsonCodec(response).encode };
  const proto: Format = {
    contentType: 'application/proto',
    decode: decode.binary,
    encode: binaryCodec(response).encode,
  };
  const answerIn = (format: Format, head: ConnectHead, body: Buffer, caller: Caller, reply: Respond): void => {
    const message = format.decode(body);
    if (!message.ok) return reply(connectError(message.fault));
    method.handle(message.value as never, head.authorization, caller).then(
      (answer) => {
        if (!answer.ok) return reply(connectError(answer.fault));
        const text = { type: format.contentType, content: format.encode(answer.value) };
        reply(
          answer.unconfirmed === undefined
            ? { status: 200, text }
            : { status: 200, text, headers: unconfirmedHeaders(answer) },
        );
      },
      (error: unknown) => {
        onDefect(error);
        reply(connectError({ kind: 'internal' }));
      },
    );
  };
  return {
    maxBytes: method.maxBytes,
    answer: (head, body, reply) => {
      const problem = problemOfHead(head);
      if (problem !== undefined) return reply(problem);
      const format = formatNamed(head.contentType, json, proto);
      if (format === undefined) return reply(UNSUPPORTED_MEDIA_TYPE);
      const timeoutMs = readTimeoutMs(head.timeout);
      if (!timeoutMs.ok) return reply(connectError(timeoutMs.fault));
      if (timeoutMs.value === undefined) return answerIn(format, head, body, head, reply);
      answerIn(format, head, body, timed(head, timeoutMs.value), withDeadline(reply, timeoutMs.value));
    },
  };
}

type Format = {
  readonly contentType: 'application/json' | 'application/proto';
  readonly decode: (body: Buffer) => Result<unknown, Fault>;
  readonly encode: (message: Messages[MessageName]) => string | Buffer;
};

function formatNamed(contentType: string | undefined, json: Format, proto: Format): Format | undefined {
  if (contentType === 'application/json') return json;
  if (contentType === 'application/proto') return proto;
  // A charset is allowed as long as it is the only one that JSON has.
  return contentType !== undefined && /^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i.test(contentType)
    ? json
    : undefined;
}

function problemOfHead({ method, query, version, contentEncoding }: ConnectHead): ConnectReply | undefined {
  if (method !== 'post') return METHOD_NOT_ALLOWED;
  const unknown = query === '' ? undefined : refuseUnknown(new URLSearchParams(query));
  if (unknown?.ok === false) return connectError(unknown.fault);
  if (version !== undefined && version !== '1')
    return connectError({ kind: 'invalid_argument', field: 'connect-protocol-version', problem: 'must be 1' });
  return contentEncoding === undefined || contentEncoding === 'identity' ? undefined : COMPRESSED;
}

function readTimeoutMs(text: string | undefined): Result<number | undefined, Fault> {
  if (text === undefined) return ok(undefined);
  if (/^\d{1,10}$/.test(text)) return ok(Number(text));
  return invalid('connect-timeout-ms', 'must be a whole number of at most 10 digits');
}

const timed = (head: ConnectHead, timeoutMs: number): Caller => ({
  get cancelled() {
    return head.cancelled;
  },
  get address() {
    return head.address;
  },
  timeoutMs,
});

/** Sends whichever comes first: the reply, or the end of its deadline. */
function withDeadline(reply: Respond, timeoutMs: number): Respond {
  let isLate = false;
  const timer = setTimeout(
    () => {
      isLate = true;
      reply(DEADLINE_EXCEEDED);
    },
    Math.min(timeoutMs, LONGEST_TIMER_MS),
  );
  return (answer) => {
    clearTimeout(timer);
    if (!isLate) reply(answer);
  };
}

/**
 * A fault in the words of Connect: `{"code":"invalid_argument","message":…}`, and the stable word for it in `svc-code`.
 */
export function connectError(fault: Fault): ConnectReply {
  const code = RPC_CODE[fault.kind];
  const headers: Header[] = [['svc-code', fault.kind]];
  const seconds = retryAfterSecs(fault);
  if (seconds > 0) headers.push(['retry-after', String(seconds)]);
  if (fault.kind === 'rate_limited') headers.push(...rateLimitHeaders(fault));
  if (code === 'unauthenticated') headers.push(['www-authenticate', 'Bearer']);
  // Connect has no code of its own for these two, HTTP has.
  const status =
    fault.kind === 'payload_too_large' ? 413 : fault.kind === 'unsupported_media_type' ? 415 : RPC_HTTP_STATUS[code];
  return errorReply(code, status, explain(fault), headers);
}

const errorReply = (code: RpcCode, status: HttpStatus, message: string, headers: readonly Header[]): ConnectReply => ({
  status,
  text: { type: 'application/json', content: `{"code":"${code}","message":${quote(message)}}` },
  headers,
});

const DEADLINE_EXCEEDED = errorReply('deadline_exceeded', 504, 'the timeout set by connect-timeout-ms has expired', [
  ['svc-code', 'deadline_exceeded'],
]);
const METHOD_NOT_ALLOWED = errorReply('unimplemented', 405, 'call this method with POST', [
  ['svc-code', 'method_not_allowed'],
  ['allow', 'POST'],
]);
const COMPRESSED = errorReply('unimplemented', 501, 'compressed bodies are not supported; send the body uncompressed', [
  ['svc-code', 'unsupported_media_type'],
]);
const CALL_OVER_GRPC = 'this is a streaming method; call it over gRPC';
const STREAM = errorReply('unimplemented', 501, CALL_OVER_GRPC, [['svc-code', 'unimplemented']]);
const UNIMPLEMENTED = errorReply('unimplemented', 501, 'this gateway does not implement the method', [
  ['svc-code', 'unimplemented'],
]);
const UNSUPPORTED_MEDIA_TYPE = errorReply(
  'invalid_argument',
  415,
  'the content type must be application/json or application/proto',
  [
    ['svc-code', 'unsupported_media_type'],
    ['accept-post', 'application/json, application/proto'],
  ],
);

/**
 * A stream that ends with an error before its first message: a client that asks for a stream reads no error in any
 * other answer.
 */
function endOfStream(contentType: StreamType): ConnectReply {
  const end = Buffer.from(`{"error":{"code":"unimplemented","message":${quote(CALL_OVER_GRPC)}}}`);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(IS_LAST_ENVELOPE);
  prefix.writeUInt32BE(end.length, 1);
  return { status: 200, text: { type: contentType, content: Buffer.concat([prefix, end]) } };
}

/** The bit in the first byte of an envelope: it ends the stream. */
const IS_LAST_ENVELOPE = 2;

/** In the schema, but not in this gateway. */
const NOT_IMPLEMENTED: ConnectMethod = {
  maxBytes: MAX_MESSAGE_BYTES,
  answer: ({ method }, _body, reply) => reply(method === 'post' ? UNIMPLEMENTED : METHOD_NOT_ALLOWED),
};

/** Streams need HTTP/2, so they are answered at the gRPC address only. */
const STREAM_METHOD: ConnectMethod = {
  maxBytes: MAX_MESSAGE_BYTES,
  answer: ({ method, contentType }, _body, reply) => {
    if (method !== 'post') return reply(METHOD_NOT_ALLOWED);
    const type = STREAM_TYPES.find((known) => known === contentType);
    reply(type === undefined ? STREAM : endOfStream(type));
  },
};
