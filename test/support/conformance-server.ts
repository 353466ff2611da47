/**
 * The service of the public conformance suite (connectrpc.com/conformance) on the gateway's own gRPC server. The suite
 * starts `conformance/relay.mjs`, which asks here for a server of the kind that it needs.
 */
import type { IncomingHttpHeaders } from 'node:http2';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import protobuf from 'protobufjs';
import type { Call, Method, Receiver } from '../../src/doors/grpc/call.ts';
import { GrpcServer } from '../../src/doors/grpc/server.ts';
import { CODE, type GrpcStatus, type Metadata, OK } from '../../src/doors/grpc/status.ts';
import { listenForGrpc } from '../../src/doors/shared/listener.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';

const PACKAGE = 'connectrpc.conformance.v1';
const PROTO = join(PACKAGE_ROOT, 'test/support/conformance');

const root = new protobuf.Root();
// Google's own files come with the library.
root.resolvePath = (_from, file) => (file.startsWith('google/') ? null : join(PROTO, file));
root.loadSync(['connectrpc/conformance/v1/service.proto', 'connectrpc/conformance/v1/server_compat.proto']);
root.resolveAll();

const typeOf = (name: string): protobuf.Type => root.lookupType(`${PACKAGE}.${name}`);
const encode = (name: string, message: object): Buffer =>
  Buffer.from(typeOf(name).encode(typeOf(name).fromObject(message)).finish());

type Header = { readonly name: string; readonly value: readonly string[] };
type WireError = { readonly code: number; readonly message?: string; readonly details: readonly object[] };
/** The answer, or the stream of answers, that the client asks for. */
type Definition = {
  readonly responseHeaders: readonly Header[];
  readonly responseTrailers: readonly Header[];
  readonly responseDelayMs: number;
  readonly responseData?: Uint8Array | readonly Uint8Array[];
  readonly error?: WireError;
};
type Request = { readonly responseDefinition?: Definition; readonly fullDuplex?: boolean };
type RequestInfo = {
  readonly requestHeaders: readonly Header[];
  readonly timeoutMs?: number;
  readonly requests: readonly object[];
};

const NOTHING: Definition = { responseHeaders: [], responseTrailers: [], responseDelayMs: 0 };

const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/** A call, from the first message on. */
class Exchange implements Receiver {
  readonly #call: Call;
  readonly #name: string;
  readonly #headers: IncomingHttpHeaders;
  readonly #isUnary: boolean;
  /** The messages that no answer has echoed yet. */
  #requests: Buffer[] = [];
  #definition = NOTHING;
  #isFullDuplex = false;
  #hasBegun = false;
  #isFirst = true;
  #answered = 0;
  /** Work under way, one thing after the other. */
  #work = Promise.resolve();

  constructor(call: Call, name: string, headers: IncomingHttpHeaders, isUnary: boolean) {
    this.#call = call;
    this.#name = name;
    this.#headers = headers;
    this.#isUnary = isUnary;
  }

  receive(bytes: Buffer): void {
    this.#then(async () => {
      if (this.#isFirst) {
        const request = requestOf(this.#name, bytes);
        if (request === undefined) return this.#call.end(MALFORMED);
        this.#definition = { ...NOTHING, ...request.responseDefinition };
        this.#isFullDuplex = request.fullDuplex === true;
        if (!this.#isUnary) this.#begin();
      }
      this.#isFirst = false;
      this.#requests.push(bytes);
      if (this.#isFullDuplex && this.#answered < this.#data.length) await this.#answerNext();
      else if (this.#isFullDuplex) this.#end();
    });
    if (this.#name === 'Unary' || this.#name === 'IdempotentUnary' || this.#name === 'ServerStream') this.halfClose();
  }

  halfClose(): void {
    this.#then(async () => {
      if (this.#isUnary) return this.#answerOnce();
      while (this.#answered < this.#data.length) await this.#answerNext();
      this.#end();
    });
  }

  get #data(): readonly Uint8Array[] {
    return (this.#definition.responseData ?? []) as readonly Uint8Array[];
  }

  #then(work: () => Promise<void>): void {
    this.#work = this.#work
      .then(() => (this.#call.cancelled ? undefined : work()))
      .catch((error) => this.#call.fail(error));
  }

  async #answerOnce(): Promise<void> {
    const { responseDelayMs, responseData, error } = this.#definition;
    await sleep(responseDelayMs);
    this.#begin();
    if (error === undefined) this.#write({ data: responseData, requestInfo: this.#info() });
    this.#end();
  }

  async #answerNext(): Promise<void> {
    await sleep(this.#definition.responseDelayMs);
    const data = this.#data[this.#answered];
    const isFirst = this.#answered === 0;
    this.#answered += 1;
    if (isFirst) this.#write({ data, requestInfo: this.#info() });
    else this.#write({ data, ...(this.#isFullDuplex ? { requestInfo: { requests: this.#echo() } } : {}) });
  }

  #begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.#call.begin(metadataOf(this.#definition.responseHeaders));
  }

  #write(payload: object): void {
    this.#call.write(encode(`${this.#name}Response`, { payload }));
  }

  #end(): void {
    this.#begin();
    const { error, responseTrailers } = this.#definition;
    const trailers = metadataOf(responseTrailers);
    this.#call.end(
      error === undefined
        ? { ...OK, metadata: trailers }
        : statusOf(error, trailers, this.#answered === 0 ? [this.#infoAsDetail()] : []),
    );
  }

  #echo(): object[] {
    const requests = this.#requests.map((value) => ({
      type_url: `type.googleapis.com/${PACKAGE}.${this.#name}Request`,
      value,
    }));
    this.#requests = [];
    return requests;
  }

  #info(): RequestInfo {
    const [, amount, unit] = /^(\d+)(\w)$/.exec(String(this.#headers['grpc-timeout'])) ?? [];
    return {
      requestHeaders: Object.entries(this.#headers)
        .filter(([name]) => !name.startsWith(':'))
        .map(([name, value]) => ({ name, value: String(value).split(', ') })),
      ...(amount === undefined ? {} : { timeoutMs: Math.trunc(Number(amount) * UNIT_MS[unit!]!) }),
      requests: this.#echo(),
    };
  }

  #infoAsDetail(): object {
    const name = 'ConformancePayload.RequestInfo';
    return { type_url: `type.googleapis.com/${PACKAGE}.${name}`, value: encode(name, this.#info()) };
  }
}

const MALFORMED: GrpcStatus = { code: CODE.invalid_argument, details: 'the message is malformed' };

function requestOf(name: string, bytes: Buffer): Request | undefined {
  const type = typeOf(`${name}Request`);
  try {
    return type.toObject(type.decode(bytes), { arrays: true }) as Request;
  } catch {
    return undefined; // what the client sent is no such message, as some cases want it
  }
}

const metadataOf = (headers: readonly Header[]): Metadata =>
  Object.fromEntries(headers.map(({ name, value }) => [name.toLowerCase(), [...value]]));

/** google.rpc.Status, of which protobufjs has no file. */
const Status = protobuf
  .parse(
    `syntax = "proto3"; package google.rpc;
   message Any { string type_url = 1; bytes value = 2; }
   message Status { int32 code = 1; string message = 2; repeated Any details = 3; }`,
    { keepCase: true },
  )
  .root.lookupType('google.rpc.Status');

function statusOf({ code, message = '', details }: WireError, metadata: Metadata, more: readonly object[]): GrpcStatus {
  const status = Status.encode(Status.fromObject({ code, message, details: [...(details ?? []), ...more] })).finish();
  return {
    code,
    details: message,
    metadata: { ...metadata, 'grpc-status-details-bin': Buffer.from(status).toString('base64').replace(/=+$/, '') },
  };
}

const method = (
  name: string,
  request: Method['request'],
  response: Method['response'],
  maxBytes: number,
): readonly [string, Method] => [
  `/${PACKAGE}.ConformanceService/${name}`,
  {
    request,
    response,
    maxBytes,
    isPublic: true,
    open: (call, headers) => new Exchange(call, name, headers, response === 'one'),
  },
];

/** Starts one for as long as the connection lasts. Resolves with its port. */
async function startFor(relay: Socket, messageReceiveLimit: number): Promise<number> {
  const maxBytes = messageReceiveLimit === 0 ? 4 * 1024 * 1024 : messageReceiveLimit;
  const onDefect = (error: unknown): void => void relay.destroy(error as Error);
  const server = new GrpcServer({
    methods: new Map([
      method('Unary', 'one', 'one', maxBytes),
      method('IdempotentUnary', 'one', 'one', maxBytes),
      method('ServerStream', 'one', 'many', maxBytes),
      method('ClientStream', 'many', 'one', maxBytes),
      method('BidiStream', 'many', 'many', maxBytes),
    ]),
    limits: { timeoutMs: 30_000, maxBytes: 128 * 1024 * 1024, maxStreams: 10_000 },
    onDefect,
  });
  const listener = await listenForGrpc({
    host: '127.0.0.1',
    port: 0,
    isShared: false,
    maxConnections: 10_000,
    onConnection: server.serve,
    onError: onDefect,
  });
  relay.on('close', () => {
    server.drain(0);
    void listener.close();
  });
  return listener.port;
}

/** Listens for relays. Resolves with the port for them. */
export async function serveConformance(
  onError: (error: unknown) => void,
): Promise<{ readonly port: number; readonly close: () => void }> {
  const relays = createServer((relay) => {
    relay.on('error', onError);
    relay.once('data', (bytes: Buffer) => {
      const asked = typeOf('ServerCompatRequest').decode(bytes.subarray(4)) as unknown as ServerCompatRequest;
      startFor(relay, asked.messageReceiveLimit).then((port) => {
        const answer = encode('ServerCompatResponse', { host: '127.0.0.1', port });
        const length = Buffer.alloc(4);
        length.writeUInt32BE(answer.length);
        relay.write(Buffer.concat([length, answer]));
      }, onError);
    });
  });
  await new Promise<void>((resolve) => {
    relays.listen(0, '127.0.0.1', resolve);
  });
  return { port: (relays.address() as AddressInfo).port, close: () => relays.close() };
}

type ServerCompatRequest = { readonly messageReceiveLimit: number };
