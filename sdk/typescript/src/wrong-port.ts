/** Finds out whether an address where gRPC does not connect is the gateway's HTTP port, to say so in the error. */
import { GatewayError } from './errors.ts';
import type { TlsOptions } from './options.ts';
import { soon } from './waiters.ts';

type Watched = {
  readonly address: string;
  readonly tls: TlsOptions | undefined;
  readonly isConnected: () => boolean;
  /** Called when it is the HTTP port: what waits for the connection waits in vain. */
  readonly onFound: () => void;
};

/** gRPC connects sooner, where there is a gateway. */
const DOUBT_AFTER_MS = 300;
/** The gateway may start later than its agents. */
const AGAIN_AFTER_MS = 5_000;
const PROBE_MS = 2_000;

/** The gateway's answer to `GET /healthz`. The headers tell it from other servers that say the same. */
const HEALTHY = '{"status":"ok"}';
const HEADERS = {
  'content-type': 'application/json',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

/** A proxy names itself by these. Behind it, one port may serve both gRPC and HTTP. */
const OF_PROXIES = ['server', 'via'];

export class WrongPort {
  readonly #watched: Watched;
  #waitMs = DOUBT_AFTER_MS;
  /** Set from the beginning of the wait to the end of the probe, so that there is one at a time. */
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #end = new AbortController();
  #found: GatewayError | undefined;

  constructor(watched: Watched) {
    this.#watched = watched;
  }

  /** Undefined unless the address is known to be the HTTP port, and still has no gRPC. */
  get error(): GatewayError | undefined {
    if (this.#found !== undefined && this.#watched.isConnected()) this.#found = undefined;
    return this.#found;
  }

  /** To be called when the connection is needed. Once it was there, this does nothing. */
  watch(): void {
    if (this.#timer !== undefined || this.#end.signal.aborted) return;
    // After a long computation, the agent first reads what arrived meanwhile.
    this.#timer = setTimeout(() => soon(() => void this.#look()), this.#waitMs);
    // Elsewhere than in Node.js a timer is a number, and holds nothing.
    (this.#timer as { unref?(): void }).unref?.();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#end.abort();
  }

  async #look(): Promise<void> {
    const { address, tls, isConnected, onFound } = this.#watched;
    if (this.#end.signal.aborted) return;
    if (isConnected()) return this.close();
    const signal = AbortSignal.any([this.#end.signal, AbortSignal.timeout(PROBE_MS)]);
    const answer = await answerOf(address, tls, signal).catch(() => 'none' as const);
    if (this.#end.signal.aborted) return;
    this.#timer = undefined;
    this.#waitMs = AGAIN_AFTER_MS;
    if (answer === 'none') return;
    this.close();
    if (answer === 'other' || isConnected()) return;
    this.#found = new GatewayError(
      'unimplemented',
      `${address} is the gateway's HTTP port; gRPC is on port 50051 (SVC_GRPC_ADDR), or use svc-gateway-sdk/fetch with the HTTP address`,
      { isUnsent: true },
    );
    onFound();
  }
}

/** Who answers there to HTTP. Sends no credential, not even the certificate of the client. */
async function answerOf(
  address: string,
  tls: TlsOptions | undefined,
  signal: AbortSignal,
): Promise<'gateway' | 'other'> {
  const { request } = await (tls === undefined ? import('node:http') : import('node:https'));
  const trust = {
    ...(tls?.ca !== undefined && { ca: Buffer.from(tls.ca) }),
    ...(tls?.serverName !== undefined && { servername: tls.serverName }),
  };
  const url = new URL(`${tls === undefined ? 'http' : 'https'}://${address}/healthz`);
  return new Promise((resolve, reject) => {
    const asked = request(url, { agent: false, signal, ...trust }, (response) => {
      let text = '';
      const isOther =
        response.statusCode !== 200 ||
        OF_PROXIES.some((name) => name in response.headers) ||
        Object.entries(HEADERS).some(([name, value]) => response.headers[name] !== value);
      response.setEncoding('utf8');
      response.on('error', reject);
      response.on('data', (chunk: string) => {
        text += chunk;
        if (!isOther && text.length <= HEALTHY.length) return;
        resolve('other');
        asked.destroy();
      });
      response.on('close', () => resolve(!isOther && text === HEALTHY ? 'gateway' : 'other'));
    });
    asked.on('error', reject);
    asked.end();
  });
}
