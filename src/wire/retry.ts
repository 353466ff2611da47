import type { Fault } from '../core/fault.ts';

/** The headers of a refused request: the limit in requests per minute, and that none is left (contract: Rate limits). */
export const rateLimitHeaders = ({ limit, retryAfterSecs }: Extract<Fault, { kind: 'rate_limited' }>): readonly (readonly [string, string])[] => [
  ['RateLimit-Policy', `"default";q=${limit};w=60`],
  ['RateLimit', `"default";r=0;t=${retryAfterSecs}`],
];
