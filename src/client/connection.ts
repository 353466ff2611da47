/** HTTP to one gateway: over kept connections, or through the proxy that the environment names for it. */
import type { IncomingMessage, RequestOptions } from 'node:http';
import { isIP } from 'node:net';
import { urlToHttpOptions } from 'node:url';
import { type Answer, messageTo, wholeAnswer } from './answer.ts';
import type { ProxySetting } from './proxy-choice.ts';

export type HttpCall = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** The part after the URL of the gateway: a path, and a query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly content?: string | Buffer | undefined;
};

/** The gateway's HTTP API, and the proxy on the way to it, if there is one. */
export type Gateway = { readonly apiUrl: string; readonly proxy: ProxySetting | undefined };

type Protocol = Pick<typeof import('node:http'), 'request' | 'Agent'>;

const MAX_CONNECTIONS = 64;

/** A caller that wants no more waits for as long as it says: an answer that never ends must not keep it. */
export const noAnswer = (): DOMException => new DOMException('no answer', 'TimeoutError');

export class Connection {
  readonly #gateway: Gateway;
  readonly #base: URL;
  #direct: Promise<{ readonly request: Protocol['request']; readonly to: RequestOptions }> | undefined;
  #close: () => void = () => {};

  constructor(gateway: Gateway) {
    this.#gateway = gateway;
    this.#base = new URL(gateway.apiUrl);
  }

  /**
   * Resolves with the head of the answer. If the connection breaks later, the body fails. When the signal is aborted,
   * neither the head comes nor what is missing of the body.
   */
  async open({ method, path, headers, content }: HttpCall, signal: AbortSignal): Promise<IncomingMessage> {
    const { apiUrl, proxy } = this.#gateway;
    const length = content === undefined ? 0 : Buffer.byteLength(content);
    const framed = method === 'GET' || method === 'DELETE' ? headers : { ...headers, 'content-length': String(length) };
    if (proxy !== undefined) {
      const { messageThrough } = await import('./through-proxy.ts');
      return messageThrough(proxy, new URL(`${apiUrl}${path}`), { method, headers: framed, content, signal });
    }
    const { request, to } = await (this.#direct ??= this.#open());
    return messageTo(request({ ...to, method, path: `${to.path}${path}`, headers: framed, signal }), content);
  }

  /** The whole answer, within its time and its size. */
  async ask(call: HttpCall, { withinMs, maxBytes }: { withinMs: number; maxBytes: number }): Promise<Answer> {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(noAnswer()), Math.max(1, withinMs));
    try {
      const answer = await wholeAnswer(await this.open(call, limit.signal), maxBytes);
      if (answer.isCut) throw new Error('the answer is too large');
      return answer;
    } catch (error) {
      throw limit.signal.aborted ? limit.signal.reason : error;
    } finally {
      clearTimeout(timer);
    }
  }

  close(): void {
    this.#close();
  }

  /**
   * TLS is loaded only where it is needed. The connections have an agent of their own: the environment may send those
   * of the default one through a proxy.
   */
  async #open() {
    const isTls = this.#base.protocol === 'https:';
    const { request, Agent }: Protocol = await (isTls ? import('node:https') : import('node:http'));
    const agent = new Agent({ keepAlive: true, maxSockets: MAX_CONNECTIONS, scheduling: 'lifo' });
    this.#close = () => agent.destroy();
    // Taken from the URL once: for each call, that would be a fifth of its time.
    const { hostname, ...to } = urlToHttpOptions(this.#base);
    const host = typeof hostname === 'string' ? hostname : '';
    // The host's name for TLS: node:http would work it out for each call, even without TLS.
    const servername = isTls && isIP(host) === 0 ? host : '';
    const path = this.#base.pathname.replace(/\/$/, '');
    return { request, to: { ...to, hostname: host, servername, path, agent } };
  }
}
