/**
 * Envoy's external authorization over gRPC, envoy.service.auth.v3 (docs/envoy.md). Whatever comes, the answer is a
 * CheckResponse: an error of gRPC would let the request pass where Envoy is set to `failure_mode_allow`.
 */
import { assert, ok, type Result } from '../../core/base/result.ts';
import { isWellEscaped } from '../../core/base/text.ts';
import { explain, type Fault, invalid } from '../../core/fault.ts';
import type { Origin } from '../../use-cases/use-cases.ts';
import { type ForeignOptions, type Methods, unary } from '../grpc/method.ts';
import { CODE } from '../grpc/status.ts';
import {
  type BytesFields,
  field,
  fieldsOf,
  limitSize,
  messageIn,
  numberField,
  pairsIn,
  textOf,
} from '../proto/fields.ts';
import { attempt } from '../proto/schema.ts';
import { judgePassage, refuseOnRecord, type Verdict } from '../rpc/judge.ts';
import type { WirePorts } from '../rpc/ports.ts';
import { AGENT_HEADER, knownBearer } from '../rpc/speaker.ts';
import { MAX_BATCH_BYTES } from '../shared/limits.ts';

export const ENVOY_SERVICE = 'envoy.service.auth.v3.Authorization';

/** The numbers of fields. */
const REQUEST = { attributes: 1 } as const;
const ATTRIBUTES = { request: 4 } as const;
const INNER_REQUEST = { http: 2 } as const;
const HTTP = { method: 2, headers: 3, path: 4, host: 5, scheme: 6, headerMap: 13 } as const;
const HEADER_MAP = { headers: 1 } as const;
const HEADER = { key: 1, value: 2, rawValue: 3 } as const;
const RESPONSE = { status: 1, denied: 2, ok: 3 } as const;
const STATUS = { code: 1, message: 2 } as const;
const DENIED = { status: 1, headers: 2, body: 3 } as const;
const HTTP_STATUS = { code: 1 } as const;
const OK_RESPONSE = { headersToRemove: 5 } as const;

/**
 * Headers that say nothing about the caller's identity. All others, cookies and tokens among them, are dropped unread.
 */
const HARMLESS = ['accept', 'content-length', 'content-type', 'user-agent'];

/** Limits the head of a request, in bytes: Envoy takes 60 KiB unless it is configured otherwise. */
const MAX_HEAD_BYTES = 128 * 1024;

/** Names in lower case. A repeated name is there twice. */
type Headers = readonly (readonly [name: string, value: string])[];

type HttpRequest = {
  readonly method: string;
  readonly path: string;
  readonly host: string;
  readonly scheme: string;
  readonly headers: Headers;
};

export function envoyService(ports: WirePorts, { count, onDefect }: ForeignOptions): Methods {
  const method = unary({
    decode: (bytes: Buffer) => {
      count();
      return ok(bytes);
    },
    encode: (response: Buffer) => response,
    maxBytes: MAX_BATCH_BYTES, // Envoy may be told to send bodies along; they are skipped
    handle: async (bytes, { address }) => {
      const http = attempt(() => httpIn(bytes));
      if (!http.ok) return ok(faulty(http.fault));
      try {
        return ok(await answer(ports, http.value, { address }));
      } catch (error) {
        onDefect(error);
        return ok(faulty({ kind: 'internal' }));
      }
    },
  });
  return new Map([[`/${ENVOY_SERVICE}/Check`, method]]);
}

/** Locates the parts of the request's head; its body is skipped. Throws `Malformed`. */
function httpIn(bytes: Buffer): { readonly fields: BytesFields; readonly headers: Headers } {
  const attributes = messageIn(fieldsOf(bytes, REQUEST.attributes), REQUEST.attributes, ATTRIBUTES.request);
  const request = messageIn(attributes, ATTRIBUTES.request, INNER_REQUEST.http);
  const fields = messageIn(request, INNER_REQUEST.http, ...Object.values(HTTP));
  limitSize(fields, MAX_HEAD_BYTES);
  const listed = [...pairsIn(fields, HTTP.headers), ...listedHeaders(fields)];
  return { fields, headers: listed.map(([name, value]) => [name.toLowerCase(), value] as const) };
}

/** As Envoy sends them with `encode_raw_headers`. */
const listedHeaders = (http: BytesFields): Headers =>
  (messageIn(http, HTTP.headerMap, HEADER_MAP.headers).get(HEADER_MAP.headers) ?? []).map((bytes) => {
    const header = fieldsOf(bytes, ...Object.values(HEADER));
    return [textOf(header, HEADER.key), textOf(header, HEADER.value) || textOf(header, HEADER.rawValue)];
  });

/**
 * Nothing but the headers is read before the caller is known. `origin`: of Envoy, or of whom it forwards as a trusted
 * proxy. Anybody could forge the message's own account of it.
 */
async function answer(
  ports: WirePorts,
  { fields, headers }: ReturnType<typeof httpIn>,
  origin: Origin,
): Promise<Buffer> {
  const bearer = await knownBearer(ports, only({ headers }, 'authorization'), origin);
  if (!bearer.ok) return faulty(bearer.fault);
  const request: HttpRequest = {
    method: textOf(fields, HTTP.method),
    path: textOf(fields, HTTP.path),
    host: textOf(fields, HTTP.host),
    scheme: textOf(fields, HTTP.scheme),
    headers,
  };
  const claimed = only(request, AGENT_HEADER);
  const resource = resourceOf(request);
  if (!resource.ok) {
    const refused = { action: 'net.connect', resource: plainUrl(request) };
    return faulty((await refuseOnRecord(ports, { bearer: bearer.value, claimed }, refused, resource.fault)).fault);
  }
  const traceparent = only(request, 'traceparent');
  const question = {
    action: 'net.connect',
    resource: resource.value,
    attributes: { method: request.method, headers: harmless(request) },
    supportedObligations: [],
    traceId: traceIn(traceparent),
  };
  const verdict = await judgePassage(ports, bearer.value, claimed, question, traceparent);
  if (!verdict.ok) return faulty(verdict.fault);
  return verdict.value.decision === 'allow' ? permit(request) : deny(verdict.value);
}

/** Undefined where it is absent, empty, or there with two values: then it is unclear which of them counts. */
function only({ headers }: Pick<HttpRequest, 'headers'>, wanted: string): string | undefined {
  let found: string | undefined;
  for (const [name, value] of headers) {
    if (name !== wanted) continue;
    if (found !== undefined && found !== value) return undefined;
    found = value;
  }
  return found || undefined;
}

const harmless = (request: HttpRequest): Readonly<Record<string, string>> =>
  Object.fromEntries(
    HARMLESS.flatMap((name) => {
      const value = only(request, name);
      return value === undefined ? [] : [[name, value]];
    }),
  );

/** Without the query, which may hold tokens; a letter that is written as %61 is a letter (RFC 3986, 6.2.2.2). */
const pathOf = (path: string): string =>
  path.replace(/[?#][^]*$/, '').replaceAll(/%[2-7][\da-f]/gi, (escape) => {
    const character = String.fromCharCode(Number.parseInt(escape.slice(1), 16));
    return /[\w.~-]/.test(character) ? character : escape;
  }) || '/';

const schemeOf = ({ scheme }: HttpRequest): string => scheme.toLowerCase() || 'http';

const DEFAULT_PORT: ReadonlyMap<string, string> = new Map([
  ['http', '80'],
  ['https', '443'],
]);

/** As `new URL` writes it: without the dot at its end, and without the port that its scheme has anyway. */
function hostOf(request: HttpRequest): string {
  const [, name = '', port] = /^(.*?)\.?(?::(\d+))?$/.exec(request.host.toLowerCase()) ?? [];
  return port === undefined || port === DEFAULT_PORT.get(schemeOf(request)) ? name : `${name}:${port}`;
}

const plainUrl = (request: HttpRequest): string => `${schemeOf(request)}://${hostOf(request)}${pathOf(request.path)}`;

/** An empty step, one in place or one up: the server behind Envoy may make of it a path that no rule has seen. */
const HAS_STEPS = /(?:[/\\]|%2f|%5c)(?:\.{1,2}(?:$|[/\\;]|%2f|%5c)|[/\\]|%2f|%5c)/i;

/**
 * Servers differ in what they make of these: one takes %2f for a separator, another ends the path at ";" or at a NUL,
 * another decodes %25 and what follows it a second time.
 */
const IS_AMBIGUOUS = /[\\;#]|%(?:2f|5c|3b|23|25|[01][\da-f]|7f)/i;

function resourceOf(request: HttpRequest): Result<string, Fault> {
  const { host, path } = request;
  if (!DEFAULT_PORT.has(schemeOf(request))) return invalid('scheme', 'must be http or https');
  if (!/^[^\s/?#@\\]+$/.test(host) || hostOf(request) === '') return invalid('host', 'is missing or malformed');
  if (path !== '' && !path.startsWith('/')) return invalid('path', 'must begin with /');
  if (HAS_STEPS.test(pathOf(path)))
    return invalid('path', 'has empty, "." or ".." steps; let Envoy resolve them: normalize_path, merge_slashes');
  const [step = ''] = path.split('?', 1);
  if (IS_AMBIGUOUS.test(step))
    return invalid('path', 'has "\\", ";", "#" or an escape of these, of "/", "%" or a control character');
  if (!isWellEscaped(step)) return invalid('path', 'has an escape that is no UTF-8');
  return ok(plainUrl(request));
}

const traceIn = (traceparent: string | undefined): string | undefined =>
  /^[\da-f]{2}-([\da-f]{32})-[\da-f]{16}-/.exec(traceparent ?? '')?.[1];

/** The request passes without the credential, which is the gateway's and not for the server behind. */
function permit({ headers }: HttpRequest): Buffer {
  const own = headers.flatMap(([name]) => (name.startsWith('x-svc-') ? [name] : []));
  return own.length === 0 ? PERMIT : permitWithout(own);
}

function permitWithout(own: readonly string[]): Buffer {
  const removed = new Set(['authorization', AGENT_HEADER, ...own]);
  const headersToRemove = [...removed].map((name) => field(OK_RESPONSE.headersToRemove, name));
  return Buffer.concat([field(RESPONSE.status, ''), field(RESPONSE.ok, Buffer.concat(headersToRemove))]);
}

const PERMIT = permitWithout([]);

const deny = ({ reason, cause, auditId, approvalId, remedy }: Verdict): Buffer =>
  refusal(CODE.permission_denied, 403, {
    reason,
    cause: cause ?? null,
    audit_id: auditId ?? null,
    ...(approvalId !== undefined && { approval_id: approvalId }),
    ...(remedy !== undefined && { remedy }),
  });

/** Without a credential 16 with 401, for want of capacity 14 with 503, and 7 with 403 for anything else. */
function faulty(fault: Fault): Buffer {
  const body = { reason: explain(fault), code: fault.kind };
  if (fault.kind === 'unauthenticated') return refusal(CODE.unauthenticated, 401, body);
  if (fault.kind === 'rate_limited') return refusal(CODE.resource_exhausted, 429, body);
  const isOutage = OUTAGES.includes(fault.kind);
  return isOutage ? refusal(CODE.unavailable, 503, body) : refusal(CODE.permission_denied, 403, body);
}

const OUTAGES: readonly Fault['kind'][] = [
  'overloaded',
  'audit_unavailable',
  'store_unreachable',
  'unreachable_gateway',
  'shutting_down',
  'internal',
];

function refusal(code: number, httpStatus: number, body: Readonly<Record<string, unknown>>): Buffer {
  assert(code !== 0, 'a refusal is no success');
  const headers: (readonly [string, string])[] = [['content-type', 'application/json']];
  if (httpStatus === 401) headers.push(['www-authenticate', 'Bearer']);
  const denied = Buffer.concat([
    field(DENIED.status, numberField(HTTP_STATUS.code, httpStatus)),
    ...headers.map(([name, value]) =>
      field(DENIED.headers, field(1, Buffer.concat([field(1, name), field(2, value)]))),
    ),
    field(DENIED.body, JSON.stringify(body)),
  ]);
  const status = Buffer.concat([numberField(STATUS.code, code), field(STATUS.message, String(body['reason']))]);
  return Buffer.concat([field(RESPONSE.status, status), field(RESPONSE.denied, denied)]);
}
