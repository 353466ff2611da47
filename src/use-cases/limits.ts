/** Counts of limits (docs/spec.md, Limits of use). */

import { BAD_CURSOR, type Page, type PageRequest } from '../core/base/page.ts';
import { ok, type Result } from '../core/base/result.ts';
import type { Steps } from '../core/base/steps.ts';
import type { Fault } from '../core/fault.ts';
import { orgInReach } from '../core/identity/access.ts';
import type { Principal } from '../core/identity/roles.ts';
import type { LimitTracker } from '../core/limits/limits.ts';
import { type LimitFilter, type LimitStatus, listingLimits } from '../core/limits/status.ts';

export type ListLimits = LimitFilter & PageRequest & { readonly principal: Principal };

export type ListsLimits = {
  readonly limits: Pick<LimitTracker, 'counted'>;
  readonly nowMs: () => number;
  /** Does long work without holding up checks. */
  readonly inSlices: <T>(steps: Steps<T>) => Promise<T>;
};

export async function listLimits(
  { limits, nowMs, inSlices }: ListsLimits,
  { principal, orgId, perPage, cursor, ...filter }: ListLimits,
): Promise<Result<Page<LimitStatus>, Fault>> {
  const org = orgInReach(principal, orgId);
  if (!org.ok) return org;
  const page = { perPage, after: cursor };
  const listed = await inSlices(listingLimits(limits.counted, { ...filter, orgId: org.value }, page, nowMs()));
  return listed === undefined ? BAD_CURSOR : ok(listed);
}
