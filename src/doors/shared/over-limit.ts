import { networkOf } from '../../core/base/client-address.ts';
import type { Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import type { Link } from '../../use-cases/use-cases.ts';

/** Which rate limit counts a request: that of its credential, that of its address, or none. */
export type Limit = 'credential' | 'address' | 'none';

/** Counts a request; the refusal when it is one too many. */
export async function overLimit(link: Link, limit: Limit, key: string): Promise<Result<never, Fault> | undefined> {
  if (limit === 'none') return undefined;
  const permit = await link.call('takePermit', { limit, key });
  return permit.ok ? undefined : permit;
}

/**
 * Counts a request with an invalid credential, separately from the public auth routes of its address: a program that
 * keeps using an expired token must not lock people at the same address out of signing in.
 */
export const overLimitOfStranger = (link: Link, address: string): ReturnType<typeof overLimit> =>
  overLimit(link, 'credential', `address:${networkOf(address)}`);
