/** Sends an HTTP request to a gateway, and explains its refusals in plain sentences. */

import { type Answer, statusOf, unreadAnswer, wholeAnswer } from '../../client/answer.ts';
import { Connection, type Gateway, type HttpCall, noAnswer } from '../../client/connection.ts';
import {
  CUT,
  causeOf,
  certificateAdvice,
  isNotHttp,
  isNotTls,
  REASONS,
  reasonOf,
  WayError,
} from '../../client/faults.ts';
import { mappingIn } from '../../core/base/mapping.ts';
import { codeOf } from '../../core/base/text.ts';
import { CliError, UnreachableError, usageError } from '../errors.ts';
import { printable } from '../terminal/printable.ts';
import { counted } from '../terminal/words.ts';

const ANSWER_TIMEOUT_MS = 20_000;

export type Query = Readonly<Record<string, string | number | undefined>>;

export type ApiCall = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly query?: Query;
  readonly body?: unknown;
  /** The caller reads the body of a success piece by piece, so that only the wait for its head is limited. */
  readonly isStream?: boolean;
};

/** Resolves with whatever the gateway answers; rejects only when it cannot be reached, or takes too long. */
export async function send(gateway: Gateway, call: ApiCall, bearer: string | undefined): Promise<Answer> {
  const { apiUrl } = gateway;
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(noAnswer()), ANSWER_TIMEOUT_MS);
  try {
    const message = await connectionTo(gateway).open(httpCallOf(call, bearer), limit.signal);
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

const connections = new WeakMap<Gateway, Connection>();

/** Returns the connection that all requests of a command share, so that they open nothing twice. */
function connectionTo(gateway: Gateway): Connection {
  const connection = connections.get(gateway) ?? new Connection(gateway);
  connections.set(gateway, connection);
  return connection;
}

function httpCallOf({ method, path, query = {}, body }: ApiCall, bearer: string | undefined): HttpCall {
  const parameters = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as [string, string]],
    ),
  );
  return {
    method,
    path: `${path}${parameters.size === 0 ? '' : `?${parameters}`}`,
    content: body === undefined ? undefined : JSON.stringify(body),
    headers: {
      accept: 'application/json',
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
  };
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
  if (error instanceof WayError) return explained(error);
  const message = `cannot reach the gateway at ${apiUrl}: ${printable(reasonOf(error))}`;
  return new UnreachableError(message, adviceOn(causeOf(error)), { cause: error });
}

function explained(error: WayError): CliError {
  const [message, advice] = [printable(error.message), printable(error.advice)];
  if (error.kind === 'setting') return usageError(message, advice);
  return error.kind === 'passing'
    ? new UnreachableError(message, advice, { cause: error })
    : new CliError(message, advice, { cause: error });
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
  const raw = mappingIn(text) ?? {}; // a proxy's page: the status is all there is to tell
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
