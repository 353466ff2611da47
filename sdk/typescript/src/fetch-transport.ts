/** Calls over HTTP by the Connect protocol, with nothing but `fetch`: for Node.js, Deno, Bun, edge and serverless. */
import { jsonOfRequest, replyIn } from './connect-codec.ts';
import { GatewayError, type GatewayErrorCode } from './errors.ts';
import { type MethodName, type Methods, pathOf } from './schema.ts';
import { retryAfterMsIn, type Transport } from './transport.ts';
import { soon } from './waiters.ts';

/** As the global one. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** In bytes. The gateway refuses a larger message, and reading it would take its time. */
const MAX_MESSAGE_BYTES = 1024 * 1024;

const CODES: ReadonlySet<string> = new Set<GatewayErrorCode>([
  'cancelled',
  'unknown',
  'invalid_argument',
  'deadline_exceeded',
  'not_found',
  'already_exists',
  'permission_denied',
  'resource_exhausted',
  'failed_precondition',
  'aborted',
  'out_of_range',
  'unimplemented',
  'internal',
  'unavailable',
  'data_loss',
  'unauthenticated',
]);

/** Error codes that the protocol assigns to an answer that is not the gateway's own. */
const CODE_OF_STATUS: Readonly<Record<number, GatewayErrorCode>> = {
  400: 'internal',
  401: 'unauthenticated',
  403: 'permission_denied',
  404: 'unimplemented',
  429: 'unavailable',
  502: 'unavailable',
  503: 'unavailable',
  504: 'unavailable',
};

/** System error codes, if the runtime tells them. Nothing was sent then. */
const UNSENT: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ENOTFOUND: 'the host name cannot be resolved',
  EAI_AGAIN: 'the host name cannot be resolved',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the host',
  UND_ERR_CONNECT_TIMEOUT: 'no answer',
};

export class FetchTransport implements Transport {
  readonly #url: string;
  readonly #fetch: Fetch;
  readonly #onUnconfirmed: (gateways: readonly string[]) => void;
  readonly #calls = new Set<AbortController>();
  #isClosed = false;

  constructor(url: string, fetch: Fetch, onUnconfirmed: (gateways: readonly string[]) => void) {
    this.#url = url;
    this.#fetch = fetch;
    this.#onUnconfirmed = onUnconfirmed;
  }

  async call<N extends MethodName>(
    name: N,
    request: Methods[N]['request'],
    timeoutMs: number,
    bearer?: string,
  ): Promise<Methods[N]['response']> {
    if (this.#isClosed) throw CLOSED;
    const body = new TextEncoder().encode(jsonOfRequest(request));
    if (body.length > MAX_MESSAGE_BYTES)
      throw new GatewayError('resource_exhausted', `the message is larger than ${MAX_MESSAGE_BYTES} bytes`, {
        fault: 'payload_too_large',
      });
    const abort = new AbortController();
    this.#calls.add(abort);
    let isLate = false;
    // After a long computation, the agent first reads what arrived meanwhile.
    const giveUp = (): void => {
      isLate = true;
      abort.abort();
    };
    const timer = setTimeout(() => soon(giveUp), timeoutMs);
    try {
      return await this.#answered(name, body, abort.signal, timeoutMs, bearer);
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      if (this.#isClosed) throw CLOSED;
      if (isLate) throw lateOf(this.#url, timeoutMs);
      throw lostOf(this.#url, error);
    } finally {
      clearTimeout(timer);
      this.#calls.delete(abort);
    }
  }

  /** Each call finds its own connection. */
  async whenConnected(): Promise<void> {}

  openChecks(): undefined {}

  close(): void {
    this.#isClosed = true;
    for (const abort of this.#calls) abort.abort();
  }

  async #answered<N extends MethodName>(
    name: N,
    body: Uint8Array<ArrayBuffer>,
    signal: AbortSignal,
    timeoutMs: number,
    bearer: string | undefined,
  ): Promise<Methods[N]['response']> {
    const response = await this.#fetch(this.#url + pathOf(name), {
      method: 'POST',
      // A credential is not sent on to where somebody else points.
      redirect: 'manual',
      headers: {
        'content-type': 'application/json',
        'connect-protocol-version': '1',
        'connect-timeout-ms': String(Math.ceil(timeoutMs)),
        ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      },
      body,
      signal,
    });
    const text = await response.text();
    if (response.status !== 200) throw refusalIn(this.#url, response, text);
    const unconfirmed = response.headers.get('svc-unconfirmed');
    if (unconfirmed !== null && unconfirmed !== '') this.#onUnconfirmed(unconfirmed.split(/, */));
    try {
      return replyIn(name, text);
    } catch (cause) {
      throw new GatewayError('unknown', `${this.#url} is not a gateway: its answer cannot be read`, {}, { cause });
    }
  }
}

const CLOSED = new GatewayError('cancelled', 'the agent client is closed');

const lateOf = (url: string, timeoutMs: number): GatewayError =>
  new GatewayError('deadline_exceeded', `no answer from ${url} within ${Math.round(timeoutMs) / 1000} s`);

/** A proxy answers with a page. */
function saidIn(text: string): { readonly code?: unknown; readonly message?: unknown } {
  try {
    return Object(JSON.parse(text)) as object;
  } catch {
    return {};
  }
}

function refusalIn(url: string, { status, headers }: Response, text: string): GatewayError {
  const said = saidIn(text);
  const code = typeof said.code === 'string' && CODES.has(said.code) ? (said.code as GatewayErrorCode) : undefined;
  const message = typeof said.message === 'string' ? said.message : `${url} has answered with the status ${status}`;
  return new GatewayError(code ?? CODE_OF_STATUS[status] ?? 'unknown', message, {
    fault: headers.get('svc-code') ?? undefined,
    retryAfterMs: retryAfterMsIn(headers.get('retry-after') ?? ''),
  });
}

function lostOf(url: string, error: unknown): GatewayError {
  const { cause = error } = error instanceof Error ? error : {};
  const { code = '', message = String(cause) } = cause as { readonly code?: string; readonly message?: string };
  const reason = UNSENT[code];
  return new GatewayError(
    'unavailable',
    `no connection to ${url}: ${reason ?? message}`,
    { isUnsent: reason !== undefined },
    { cause: error },
  );
}
