/** Sends an HTTP request to a gateway, and explains its refusals in plain sentences. */
import type { Agent, IncomingMessage } from 'node:http';
import { codeOf } from '../../core/base/text.ts';
import { CliError, UnreachableError } from '../errors.ts';
import { printable } from '../terminal/printable.ts';
import { counted } from '../terminal/words.ts';
import { type Answer, messageTo, statusOf, unreadAnswer, wholeAnswer } from './answer.ts';
import { CUT, causeOf, certificateAdvice, isNotHttp, isNotTls, REASONS, reasonOf } from './faults.ts';
import type { Gateway } from './target.ts';

const ANSWER_TIMEOUT_MS = 20_000;

export type Query = Readonly<Record<string, string | number | undefined>>;

export type HttpCall = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly query?: Query;
  readonly body?: unknown;
  /** The caller reads the body of a success piece by piece, so that only the wait for its head is limited. */
  readonly isStream?: boolean;
};

/** Resolves with whatever the gateway answers; rejects only when it cannot be reached, or takes too long. */
export async function send(gateway: Gateway, call: HttpCall, bearer: string | undefined): Promise<Answer> {
  const { apiUrl } = gateway;
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(new DOMException('no answer', 'TimeoutError')), ANSWER_TIMEOUT_MS);
  try {
    const message = await messageFrom(gateway, call, bearer, limit.signal);
    const status = statusOf(message);
    if (status >= 300 && status < 400) {
      message.destroy();
      throw redirected(apiUrl, message.headers.location); // not followed: a bearer must not go to another place
    }
    return call.isStream === true && status === 200 ? unreadAnswer(message) : await wholeAnswer(message);
  } catch (error) {
    throw unreachable(apiUrl, limit.signal.aborted ? limit.signal.reason : error);
  } finally {
    clearTimeout(timer);
  }
}

/** When the signal is aborted, neither the head comes nor what is missing of the body. */
async function messageFrom(
  { apiUrl, proxy }: Gateway,
  { method, path, query = {}, body }: HttpCall,
  bearer: string | undefined,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const parameters = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as [string, string]],
    ),
  );
  const url = new URL(`${apiUrl}${path}${parameters.size === 0 ? '' : `?${parameters}`}`);
  const content = body === undefined ? undefined : JSON.stringify(body);
  const headers = {
    accept: 'application/json',
    ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
    ...(content === undefined ? {} : { 'content-type': 'application/json' }),
    ...(method === 'POST' ? { 'content-length': String(Buffer.byteLength(content ?? '')) } : {}),
  };
  if (proxy !== undefined)
    return (await import('./through-proxy.ts')).messageThrough(proxy, url, { method, headers, content, signal });
  const http = await protocolOf(url);
  return messageTo(http.request(url, { method, headers, signal, agent: agentOf(http) }), content);
}

type Protocol = Pick<typeof import('node:http'), 'request' | 'Agent'>;

/** TLS is loaded only where it is needed. */
const protocolOf = (url: URL): Promise<Protocol> =>
  url.protocol === 'https:' ? import('node:https') : import('node:http');

const agents = new Map<Protocol, Agent>();

/**
 * Returns the agent that all requests of a command share, so that they share their connections. The environment may
 * send those of the default one through a proxy.
 */
function agentOf(http: Protocol): Agent {
  const agent = agents.get(http) ?? new http.Agent({ keepAlive: true });
  agents.set(http, agent);
  return agent;
}

function redirected(apiUrl: string, location = ''): CliError {
  const origin = URL.canParse(location, apiUrl) ? new URL(location, apiUrl).origin : 'elsewhere';
  return new CliError(
    `${apiUrl} redirects to ${printable(origin)}`,
    'Give the final URL of the gateway, with --api-url or `svc context add`.',
  );
}

/** Errors already explained, such as those of a proxy, stay unchanged. */
export function unreachable(apiUrl: string, error: unknown): CliError {
  if (error instanceof CliError) return error;
  return new UnreachableError(`cannot reach the gateway at ${apiUrl}: ${reasonOf(error)}`, adviceOn(causeOf(error)), {
    cause: error,
  });
}

function adviceOn(cause: unknown): string {
  if (isNotHttp(cause)) return 'Check the URL: it must be the HTTP address of svc-gateway, not that of gRPC.';
  if (isNotTls(cause)) return 'Check the URL; it may have to be http instead of https.';
  if (REASONS[codeOf(cause) ?? ''] === CUT)
    return 'Try again. If that does not help, check the URL, including http or https.';
  return certificateAdvice(cause) ?? 'Start it with `svc serve`, or choose another with --context or --api-url.';
}

/** The body as JSON. */
export function jsonOf(apiUrl: string, { text }: Answer): unknown {
  if (text === '') return {};
  try {
    return JSON.parse(text);
  } catch (error) {
    throw misspoken(apiUrl, error);
  }
}

/** It answers, but not as a gateway does. */
export const misspoken = (apiUrl: string, cause?: unknown): CliError =>
  new CliError(
    `the server at ${apiUrl} does not answer like a gateway`,
    'Check the URL: it must be the HTTP address of svc-gateway.',
    { cause },
  );

/** Undefined where the answer names no time. */
export function retryAfterSecsOf({ headers }: Answer): number | undefined {
  const retryAfter = headers['retry-after'] ?? '';
  return /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) : undefined;
}

export function waitAdvice(answer: Answer): string | undefined {
  const secs = retryAfterSecsOf(answer);
  return secs === undefined ? undefined : `Wait ${counted(secs, 'second')} and try again.`;
}

export type Problem = { readonly status: number; readonly code: string | undefined; readonly detail: string };

export const NO_GATEWAY_ADVICE =
  'Check the URL, which must be the HTTP address of svc-gateway, and any proxy in front of it.';

/** The gateway's account of a refusal. An answer with neither code nor detail comes from a proxy or another server. */
export function problemIn({ status, text }: Answer): Problem {
  const raw = asObject(parsed(text));
  // Connect answers with `message`, everything else with `detail`.
  const detail = [raw.detail, raw.message, raw.title].find((words) => typeof words === 'string' && words !== '');
  const code = typeof raw.code === 'string' ? raw.code : undefined;
  return {
    status,
    code,
    detail:
      typeof detail === 'string'
        ? printable(detail)
        : `the server that answered, with status ${status}, is not a gateway`,
  };
}

/** A page for people: the gateway answers no call with one, and a proxy that lets nobody through does. */
export const isPage = ({ headers }: Answer): boolean => headers['content-type']?.startsWith('text/html') === true;

const asObject = (raw: unknown): Readonly<Record<string, unknown>> =>
  typeof raw === 'object' && raw !== null ? (raw as Readonly<Record<string, unknown>>) : {};

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // A proxy's page: the status is all there is to tell.
  }
}
