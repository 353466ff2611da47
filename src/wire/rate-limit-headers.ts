import type { Fault } from '../core/fault.ts';

/** How many requests a minute there may be, and that none is left of them (contract: Rate limits). */
export const rateLimitHeaders = ({ limit, retryAfterSecs }: Extract<Fault, { kind: 'rate_limited' }>): readonly (readonly [string, string])[] => [
  ['RateLimit-Policy', `"default";q=${limit};w=60`],
  ['RateLimit', `"default";r=0;t=${retryAfterSecs}`],
];
