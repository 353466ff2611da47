/** Cross-origin reads, for the origins that are named and no other (contract: HTTP shapes). */
import type { Header } from '../http-answer.ts';
import type { HttpResponse } from './route.ts';

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
