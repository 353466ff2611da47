/** Cross-origin reads, for the origins that are named and no other (docs/spec.md, HTTP). */

import { isIP } from 'node:net';
import { fail, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import type { Header } from '../shared/http-answer.ts';
import type { HttpResponse } from './route.ts';

// Which pages may make a browser act for its user, with its cookie or by opening a stream.

/**
 * A fault when the request comes from a page of another site. A request without an `Origin` comes from no page, or from
 * a browser that vouches for its own by SameSite. Own pages are those of the requested host, which a
 * proxy passes on, of SVC_PUBLIC_URL, and of SVC_CORS_ORIGINS.
 */
export function refuseForeignOrigin(
  origin: string | undefined,
  askedHost: string | undefined,
  ownOrigins: readonly string[],
): Result<never, Fault> | undefined {
  if (origin === undefined || ownOrigins.includes(origin)) return undefined;
  const { host, protocol } = URL.canParse(origin) ? new URL(origin) : NO_PAGE;
  // An origin leaves out the default port of its scheme, a proxy may name it.
  const asked = askedHost?.toLowerCase().replace(protocol === 'https:' ? /:443$/ : /:80$/, '');
  return host !== '' && host === asked ? undefined : fail({ kind: 'foreign_origin', origin: origin.slice(0, 256) });
}

/**
 * Which names a gateway is called by. On loopback these are known, and any other is that of a page which has had its
 * own name resolved to this machine: to the browser, the gateway is then of the same origin. Undefined: any name, since
 * a gateway that others can reach does not know them all.
 */
export type OwnHosts = readonly string[] | undefined;

/** A fault when the request asks for a host that is not this gateway. Addresses cannot be rebound. */
export function refuseForeignHost(asked: string | undefined, own: OwnHosts): Result<never, Fault> | undefined {
  if (own === undefined || asked === undefined) return undefined;
  const name = (/^\[([^\]]*)\]/.exec(asked)?.[1] ?? asked.replace(/:\d*$/, '')).toLowerCase().replace(/\.$/, '');
  const isOwn = isIP(name) !== 0 || /^(.+\.)?localhost$/.test(name) || own.includes(name);
  return isOwn ? undefined : fail({ kind: 'foreign_host', host: asked.slice(0, 256) });
}

/** Whose pages may act here: of which origins, and under which names of this gateway. */
export type Own = { readonly origins: readonly string[]; readonly hosts: OwnHosts };

const NO_PAGE = { host: '', protocol: '' };

const NO_HEADERS: readonly Header[] = [];

/** The headers that let a page of `origin` read the answer; none where that is not one of the `allowed` origins. */
export function corsHeaders(allowed: readonly string[], origin: string | undefined): readonly Header[] {
  if (origin === undefined || !allowed.includes(origin)) return NO_HEADERS;
  return [
    ['Access-Control-Allow-Origin', origin],
    ['Access-Control-Allow-Credentials', 'true'],
    ['Access-Control-Expose-Headers', 'Retry-After, RateLimit, RateLimit-Policy, WWW-Authenticate, svc-code'],
    ['Vary', 'Origin'],
  ];
}

export const isPreflight = (method: string, headers: ReadonlyMap<string, string>): boolean =>
  method === 'options' && headers.has('origin') && headers.has('access-control-request-method');

/**
 * `methods`: those that the path takes. Every origin gets the same answer; only an allowed one gets the headers that
 * permit the request.
 */
export const preflightReply = (methods: readonly string[]): HttpResponse => ({
  status: 204,
  headers: [
    ['Access-Control-Allow-Methods', methods.map((method) => method.toUpperCase()).join(', ')],
    ['Access-Control-Allow-Headers', 'Authorization, Content-Type, Connect-Protocol-Version, Connect-Timeout-Ms'],
    ['Access-Control-Max-Age', '600'],
  ],
});
