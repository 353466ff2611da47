/** Statistics of checks: of this gateway, and of all gateways of a cluster. */

import { ok } from '../core/base/result.ts';
import { orgInReach } from '../core/identity/access.ts';
import { mergedStats } from '../core/stats/merge.ts';
import type { Stats } from '../core/stats/stats.ts';
import type { StatsView } from '../core/stats/view.ts';
import type { StatsWindow } from '../core/stats/windows.ts';
import type { Peers } from '../ports/cluster.ts';
import type { Clock } from '../ports/ports.ts';
import type { UseCases } from './use-cases.ts';

export type StatsParts = {
  readonly stats: Stats;
  readonly clock: Clock;
  /** Counts what has been written meanwhile. */
  readonly audit: { catchUp(): void };
  /** Undefined for a gateway alone. */
  readonly peers: Pick<Peers, 'askAll' | 'serve'> | undefined;
};

export function createStatsUseCases({ stats, clock, audit, peers }: StatsParts): Pick<UseCases, 'readStats'> {
  peers?.serve('stats', async ({ orgId, window }) => {
    audit.catchUp();
    return stats.view(orgId, clock.nowMs(), window);
  });
  return {
    readStats: async ({ principal, orgId, window }) => {
      const org = orgInReach(principal, orgId);
      if (!org.ok) return org;
      const own = stats.view(org.value, clock.nowMs(), window);
      return ok(peers === undefined ? own : await withOthers(own, { orgId: org.value, window }, peers));
    },
  };
}

/** If a gateway does not answer in time, the view says that it is incomplete. */
async function withOthers(
  own: StatsView,
  asked: { readonly orgId: string | undefined; readonly window: StatsWindow },
  peers: Pick<Peers, 'askAll'>,
): Promise<StatsView> {
  const gathered = await peers.askAll('stats', asked);
  if (!gathered.ok) return { ...own, isIncomplete: true };
  const { answers, missing } = gathered.value;
  const merged = mergedStats([own, ...answers.map(({ answer }) => answer)]);
  return missing.length === 0 ? merged : { ...merged, isIncomplete: true };
}
