/** Calls a webhook, signed as Standard Webhooks wants it (docs/webhooks.md). */
import { createHmac } from 'node:crypto';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP } from 'node:net';
import { codeOf, messageOf } from '../core/base/text.ts';
import { hostOf, isPublicAddress } from './address.ts';
import type { Delivery, Failure } from './delivery.ts';
import type { Resolve } from './resolve.ts';

export type Call = {
  readonly url: string;
  readonly secret: string;
  /** The id of the message: the same for each attempt. */
  readonly id: string;
  readonly body: string;
};

export type SenderOptions = {
  readonly isPrivateAllowed: boolean;
  readonly version: string;
  readonly resolve: Resolve;
  readonly nowMs: () => number;
  /** For all of it: the name, the connection, the answer. */
  readonly timeoutMs?: number;
};

type Address = { readonly address: string; readonly family: number };

const TIMEOUT_MS = 10_000;
/** More of an answer is not read. What it says does not matter. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** Makes one attempt. Never rejects, and takes no longer than its time-out. */
export async function sendCall(call: Call, options: SenderOptions): Promise<Delivery> {
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  const signal = AbortSignal.timeout(timeoutMs);
  const timedOut = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error(`no answer within ${timeoutMs / 1000} seconds`)));
  });
  timedOut.catch(() => undefined); // it may come after the end
  try {
    const url = new URL(call.url);
    const addresses = await Promise.race([addressesOf(hostOf(url), options), timedOut]);
    const status = await Promise.race([post(url, call, addresses, signal, options), timedOut]);
    if (status >= 200 && status < 300) return { isDelivered: true };
    const isRedirect = status >= 300 && status < 400;
    return failed(isRedirect ? `answered ${status}; redirects are not followed` : `answered ${status}`);
  } catch (error) {
    if (error instanceof NoAddress) return { ...failed(error.message), shown: NOT_OF_THE_INTERNET };
    return failed(textOf(error));
  }
}

/** The same for a name that does not exist and for one that leads inside: whoever may ask learns no internal names. */
const NOT_OF_THE_INTERNET = 'its name leads to no address of the internet';
class NoAddress extends Error {}

function textOf(error: unknown): string {
  const code = codeOf(error);
  return typeof code === 'string' && !messageOf(error).includes(code)
    ? `${code}: ${messageOf(error)}`
    : messageOf(error);
}

const failed = (reason: string): Failure => ({ isDelivered: false, reason });

/**
 * The addresses to connect to, each of which has been checked. The connection goes to them, not to the name, which
 * could lead elsewhere the next time it is asked for.
 */
async function addressesOf(host: string, { resolve, isPrivateAllowed }: SenderOptions): Promise<readonly Address[]> {
  const found = isIP(host) === 0 ? await resolvedBy(resolve, host) : [host];
  if (found.length === 0) throw new NoAddress(`${host} has no address`);
  const inside = isPrivateAllowed ? undefined : found.find((address) => !isPublicAddress(address));
  if (inside !== undefined) throw new NoAddress(`${host} leads to ${inside}, which is not an address of the internet`);
  return found.map((address) => ({ address, family: isIP(address) }));
}

const resolvedBy = (resolve: Resolve, host: string): Promise<readonly string[]> =>
  resolve(host).catch((error: unknown) => {
    throw new NoAddress(textOf(error));
  });

/** Resolves with the status as soon as it is there. */
function post(
  url: URL,
  { secret, id, body }: Call,
  addresses: readonly Address[],
  signal: AbortSignal,
  { nowMs, version }: SenderOptions,
): Promise<number> {
  const timestamp = String(Math.floor(nowMs() / 1000));
  return new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? requestHttps : requestHttp;
    const request = send(url, {
      method: 'POST',
      agent: false,
      signal,
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': `svc-gateway/${version}`,
        'webhook-id': id,
        'webhook-timestamp': timestamp,
        'webhook-signature': signatureOf(secret, `${id}.${timestamp}.${body}`),
      },
      lookup: (_host, { all }, found) => {
        const [first] = addresses;
        if (all === true) found(null, [...addresses]);
        else found(null, first!.address, first!.family);
      },
    });
    request.once('response', (response) => {
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_ANSWER_BYTES) response.destroy();
      });
      response.on('error', () => response.destroy()); // its status has been read
      resolve(response.statusCode ?? 0);
    });
    request.on('error', reject);
    request.end(body);
  });
}

function signatureOf(secret: string, content: string): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  return `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
}
