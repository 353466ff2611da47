/** When a refused caller may try again. */
import type { Fault } from '../core/fault.ts';
import type { Header } from './http-answer.ts';

/** After how many seconds it makes sense to try again; 0 when it never does. */
export const retryAfterSecs = (fault: Fault): number =>
  'retryAfterSecs' in fault ? fault.retryAfterSecs : fault.kind === 'audit_unavailable' ? 1 : 0;

/**
 * The headers of a refused request: the limit in requests per minute, and that none is left (contract: Rate limits).
 */
export const rateLimitHeaders = ({
  limit,
  retryAfterSecs,
}: Extract<Fault, { kind: 'rate_limited' }>): readonly Header[] => [
  ['RateLimit-Policy', `"default";q=${limit};w=60`],
  ['RateLimit', `"default";r=0;t=${retryAfterSecs}`],
];
