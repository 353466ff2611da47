/** Sends a POST to an address that has been checked, within its time (docs/webhooks.md). */
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP } from 'node:net';
import { codeOf, messageOf } from '../core/base/text.ts';
import { hostOf, isPublicAddress } from './address.ts';
import type { Resolve } from './resolve.ts';

export type Post = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** For HTTPS: as Node.js takes it. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string; readonly servername?: string };
  /** Waits for the text of the answer, up to `MAX_ANSWER_BYTES` of it. */
  readonly wantsText?: boolean;
};

export type PostAnswer = {
  readonly status: number;
  /** As the receiver asks for it, if it does in seconds. */
  readonly retryAfterSecs: number | undefined;
  /** '' where nobody wanted it. */
  readonly text: string;
};

export type PostOptions = {
  readonly isPrivateAllowed: boolean;
  readonly version: string;
  readonly resolve: Resolve;
  /** For all of it: the name, the connection, the answer. */
  readonly timeoutMs?: number;
};

type Address = { readonly address: string; readonly family: number };

const TIMEOUT_MS = 10_000;
/** More of an answer is not read. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** Takes no longer than its time-out. Rejects where there was no answer. */
export async function post(request: Post, options: PostOptions): Promise<PostAnswer> {
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  const signal = AbortSignal.timeout(timeoutMs);
  const timedOut = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error(`no answer within ${timeoutMs / 1000} seconds`)));
  });
  timedOut.catch(() => undefined); // it may come after the end
  const url = new URL(request.url);
  const addresses = await Promise.race([addressesOf(hostOf(url), options), timedOut]);
  return Promise.race([answerTo(url, request, addresses, signal, options), timedOut]);
}

/** The name has no address, or one that calls may not go to. */
export class NoAddress extends Error {}

export function textOf(error: unknown): string {
  const code = codeOf(error);
  return typeof code === 'string' && !messageOf(error).includes(code)
    ? `${code}: ${messageOf(error)}`
    : messageOf(error);
}

/**
 * The addresses to connect to, each of which has been checked. The connection goes to them, not to the name, which
 * could lead elsewhere the next time it is asked for.
 */
async function addressesOf(host: string, { resolve, isPrivateAllowed }: PostOptions): Promise<readonly Address[]> {
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

/** Resolves with the status as soon as it is there, unless the text is wanted. */
function answerTo(
  url: URL,
  { headers, body, tls, wantsText = false }: Post,
  addresses: readonly Address[],
  signal: AbortSignal,
  { version }: PostOptions,
): Promise<PostAnswer> {
  return new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? requestHttps : requestHttp;
    const request = send(url, {
      ...tls,
      method: 'POST',
      agent: false,
      signal,
      headers: { ...headers, 'content-length': Buffer.byteLength(body), 'user-agent': `svc-gateway/${version}` },
      lookup: (_host, { all }, found) => {
        const [first] = addresses;
        if (all === true) found(null, [...addresses]);
        else found(null, first!.address, first!.family);
      },
    });
    request.once('response', (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      const answer = (): void => {
        const retryAfter = response.headers['retry-after'] ?? '';
        resolve({
          status: response.statusCode ?? 0,
          retryAfterSecs: /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) : undefined,
          text: Buffer.concat(chunks).toString(),
        });
      };
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_ANSWER_BYTES) response.destroy();
        else if (wantsText) chunks.push(chunk);
      });
      response.on('error', () => response.destroy()); // its status has been read
      if (wantsText) response.once('close', answer);
      else answer();
    });
    request.on('error', reject);
    request.end(body);
  });
}
