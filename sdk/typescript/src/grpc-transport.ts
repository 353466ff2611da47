/** The connection to the gateway over gRPC. Only this file names the gRPC library. */
import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientUnaryCall,
  connectivityState,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { METHODS, OP_CONTROL_STREAM, STREAM_CHECK_ACTIONS } from './binary.ts';
import { GatewayError, type GatewayErrorCode } from './errors.ts';
import type { TlsOptions } from './options.ts';
import type { MethodName, Methods } from './schema.ts';
import { type CheckCall, type ControlCall, retryAfterMsIn, type Transport } from './transport.ts';
import type { AgentId } from './types.ts';
import { WrongPort } from './wrong-port.ts';

const CHANNEL_OPTIONS = {
  // A gateway that has vanished without closing the connection is noticed after the sum of these two.
  'grpc.keepalive_time_ms': 20_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 2_000,
  // Otherwise connections are shared between clients, and closing one client would not end its own.
  'grpc.use_local_subchannel_pool': 1,
  'grpc.enable_channelz': 0,
} as const;

/** In bytes. The gateway accepts no larger message, and sending one would break the stream for all other checks. */
const MAX_MESSAGE_BYTES = 1024 * 1024;

/** To a proxy, these are itself: one that the environment names for other machines is not asked for this one. */
const OWN_MACHINE = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\]):/i;

/** As the gRPC library looks for one. */
const hasProxy = ({ grpc_proxy, https_proxy, http_proxy }: NodeJS.ProcessEnv): boolean =>
  Boolean(grpc_proxy || https_proxy || http_proxy);

export class GrpcTransport implements Transport {
  readonly #address: string;
  readonly #client: Client;
  readonly #calls = new Set<{ cancel(): void }>();
  readonly #onUnconfirmed: (gateways: readonly string[]) => void;
  readonly #wrongPort: WrongPort;
  #isClosed = false;

  /** `onUnconfirmed` is called with the gateways of a cluster that do not act by an answer yet. */
  constructor(
    address: string,
    tls: TlsOptions | undefined,
    onUnconfirmed: (gateways: readonly string[]) => void = () => undefined,
  ) {
    this.#address = address;
    this.#onUnconfirmed = onUnconfirmed;
    const serverName = tls?.serverName;
    this.#client = new Client(address, credentialsOf(tls), {
      ...CHANNEL_OPTIONS,
      ...(OWN_MACHINE.test(address) ? { 'grpc.enable_http_proxy': 0 } : {}),
      ...(serverName === undefined
        ? {}
        : { 'grpc.ssl_target_name_override': serverName, 'grpc.default_authority': serverName }),
    });
    this.#wrongPort = new WrongPort({
      address,
      tls,
      isConnected: () => this.#client.getChannel().getConnectivityState(true) === connectivityState.READY,
      onFound: () => this.#cancelCalls(),
    });
    // Only the proxy may reach another machine then.
    if (!OWN_MACHINE.test(address) && hasProxy(process.env)) this.#wrongPort.close();
  }

  /** Rejects with a GatewayError. `timeoutMs` is the longest it takes. */
  call<N extends MethodName>(
    name: N,
    request: Methods[N]['request'],
    timeoutMs: number,
    bearer?: string,
  ): Promise<Methods[N]['response']> {
    // As what is in flight at `close`. The channel would throw an error of its own.
    if (this.#isClosed) return Promise.reject(new GatewayError('cancelled', 'the agent client is closed'));
    const { error: wrong } = this.#wrongPort;
    if (wrong !== undefined) return Promise.reject(wrong);
    this.#wrongPort.watch();
    const { path, encode, decode } = METHODS[name];
    const metadata = new Metadata();
    if (bearer !== undefined) metadata.set('authorization', `Bearer ${bearer}`);
    return new Promise((resolve, reject) => {
      const call: ClientUnaryCall = this.#client.makeUnaryRequest(
        path,
        encode,
        decode,
        request,
        metadata,
        { deadline: Date.now() + timeoutMs },
        (error, response) => {
          this.#calls.delete(call);
          if (error === null) resolve(response as Methods[N]['response']);
          else reject(this.#errorOf(error));
        },
      );
      this.#calls.add(call);
      call.on('status', ({ metadata: trailers }) => {
        const gateways = trailers.get('svc-unconfirmed').flatMap((names) => String(names).split(/, */));
        if (gateways.length > 0) this.#onUnconfirmed(gateways);
      });
    });
  }

  /**
   * Connects where there is no connection; resolves when there is one, or else after the time, or at `close`. How soon
   * the gateway is tried again is up to the channel, which spreads its attempts.
   */
  whenConnected(timeoutMs: number): Promise<void> {
    const channel = this.#client.getChannel();
    const deadlineMs = Date.now() + timeoutMs;
    this.#wrongPort.watch();
    return new Promise<void>((resolve) => {
      const wait = {
        cancel: (): void => {
          this.#calls.delete(wait);
          resolve();
        },
      };
      this.#calls.add(wait);
      const look = (late?: Error): void => {
        // Asked for its state, a channel that is closed would begin to connect again.
        if (late !== undefined || this.#isClosed || this.#wrongPort.error !== undefined) return wait.cancel();
        const state = channel.getConnectivityState(true);
        if (state === connectivityState.READY) return wait.cancel();
        channel.watchConnectivityState(state, deadlineMs, look);
      };
      look();
    });
  }

  openChecks(): CheckCall {
    const { path, encode, decode } = STREAM_CHECK_ACTIONS;
    const call = this.#client.makeBidiStreamRequest(path, (bytes: Buffer) => bytes, decode);
    return {
      ...this.#events(call),
      ask: (message) => {
        const bytes = encode(message);
        if (bytes.length > MAX_MESSAGE_BYTES) return false;
        // Writes are bounded by the checks in flight, so there is no need to wait for the stream to drain.
        call.write(bytes);
        return true;
      },
    };
  }

  openControl(request: { readonly agent: AgentId; readonly credentialToken: string }): ControlCall {
    const { path, encode, decode } = OP_CONTROL_STREAM;
    return this.#events(this.#client.makeServerStreamRequest(path, encode, decode, request, new Metadata()));
  }

  /** Cuts what is still in flight. */
  close(): void {
    this.#isClosed = true;
    this.#wrongPort.close();
    this.#cancelCalls();
    this.#client.close();
  }

  #cancelCalls(): void {
    for (const call of [...this.#calls]) call.cancel();
  }

  #errorOf(error: ServiceError | Error): GatewayError {
    return (this.#isClosed ? undefined : this.#wrongPort.error) ?? gatewayErrorOf(error, this.#address);
  }

  /** The events of a stream, with errors in the SDK's own words. */
  #events<Reply>(call: Readable<Reply>) {
    this.#calls.add(call);
    call.on('status', () => this.#calls.delete(call));
    if (this.#wrongPort.error === undefined) this.#wrongPort.watch();
    else call.cancel();
    return {
      on: (event: 'data' | 'error' | 'metadata' | 'end', listener: (argument: never) => void): void => {
        if (event === 'error') call.on(event, (error) => listener(this.#errorOf(error) as never));
        else call.on(event, listener as () => void);
      },
    };
  }
}

type Readable<Reply> = ClientDuplexStream<Buffer, Reply> | ClientReadableStream<Reply>;

function credentialsOf(tls: TlsOptions | undefined): ChannelCredentials {
  if (tls === undefined) return credentials.createInsecure();
  const bytes = (pem: string | Uint8Array | undefined): Buffer | null => (pem === undefined ? null : Buffer.from(pem));
  return credentials.createSsl(bytes(tls.ca), bytes(tls.key), bytes(tls.cert));
}

/** An error of a call, or of a stream, to this address, in the SDK's own words. */
function gatewayErrorOf(error: ServiceError | Error, address: string): GatewayError {
  if (!('code' in error)) return new GatewayError('internal', error.message, {}, { cause: error });
  const { code, details, metadata } = error;
  const fault = metadata?.get('svc-code')[0];
  const isUnanswered = fault === undefined && (code === status.UNAVAILABLE || code === status.DEADLINE_EXCEEDED);
  return new GatewayError(
    (status[code] ?? 'UNKNOWN').toLowerCase() as GatewayErrorCode,
    isUnanswered ? whyUnreachable(address, details) : details,
    {
      fault: fault === undefined ? undefined : String(fault),
      retryAfterMs: retryAfterMsIn(String(metadata?.get('retry-after')[0] ?? '')),
      isUnsent: isUnsent(details),
    },
    { cause: error },
  );
}

// Why the gateway was not reached, in words for the reader of a log: the gRPC library's own are for its developers.

const LAST_ERROR = /^No connection established\. Last error: ([^]*?)\.? Resolution note:/;

/** Errors of the system, TLS and HTTP/2 as the library passes them on, the most telling first. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/ECONNREFUSED/, 'the connection was refused'],
  [/EHOSTUNREACH|ENETUNREACH/, 'no route to the host'],
  [/ETIMEDOUT/, 'no answer'],
  [/ECONNRESET|EPIPE/, 'the connection was closed'],
  // The gateway's native HTTP library does this after a while: it takes the HTTP/2 preface for the beginning of a
  // request.
  [
    /^Failed to connect/,
    'the connection was closed before gRPC began; check that the address is that of gRPC, not of HTTP',
  ],
  [/before secure TLS connection/, 'the connection was closed during the TLS handshake'],
  [/wrong version number|packet length too long/, 'the server there does not speak TLS'],
  [/^Protocol error/, 'the server there does not speak gRPC, or only with TLS'],
];

/** Whether a call ended, with these details, because there was no connection to send it on. */
const isUnsent = (details: string): boolean => LAST_ERROR.test(details) || details.startsWith('Name resolution failed');

/** The details of a call that ended without an answer of the gateway. */
function whyUnreachable(address: string, details: string): string {
  const timeout = /^Deadline exceeded after ([\d.]+)s/.exec(details)?.[1];
  if (timeout !== undefined) return `no answer from ${address} within ${timeout} s`;
  if (details === 'Connection dropped') return `the connection to ${address} was lost`;
  return `no connection to ${address}: ${reasonIn(details)}`;
}

function reasonIn(details: string): string {
  if (details.startsWith('Name resolution failed')) return 'the host name cannot be resolved';
  const last = LAST_ERROR.exec(details)?.[1] ?? details;
  const known = REASONS.find(([pattern]) => pattern.test(last));
  // Other messages, such as for a rejected certificate, are clear as they are, apart from the time, which the log has
  // already.
  return (
    known?.[1] ??
    last
      .replace(/^Error: /, '')
      .replace(/ \(\d{4}-\d\d-\d\dT[\d:.]+Z\)$/, '')
      .replace(/\s+/g, ' ')
      .trim()
  );
}
