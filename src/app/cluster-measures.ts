/** Metrics of a gateway in a cluster. */
import type { Routing } from '../cluster/routing.ts';
import type { Member } from '../ports/cluster.ts';
import type { DurationCounts } from '../threads/durations.ts';
import type { Closers } from './closers.ts';
import type { Cluster } from './start-cluster.ts';

export type ClusterMeasures = {
  /** Runs that take part, with this one. */
  readonly members: () => Readonly<Record<'live' | 'suspect', number>>;
  readonly parkedChecks: () => number;
  readonly exchanges: () => DurationCounts;
  readonly passedOn: () => number;
  readonly unconfirmedBarriers: () => number;
  readonly waitingOrders: () => number;
  /** As of half a minute ago. */
  readonly strandedMicroUsd: () => number;
};

/** It is a question to the database. */
const LOOK_FOR_STRANDED_MS = 30_000;

export function measuresOf(
  { membership, members, money, states: { everywhere, orders } }: Cluster,
  routing: Routing | undefined,
  closers: Closers,
): ClusterMeasures {
  let strandedMicroUsd = 0;
  const look = async (): Promise<void> => {
    const listed = await members.list();
    if (listed.ok) strandedMicroUsd = [...listed.value.stranded.values()].reduce((sum, microUsd) => sum + microUsd, 0);
  };
  void look();
  const looking = setInterval(() => void look(), LOOK_FOR_STRANDED_MS);
  closers.add('the measures of the cluster', () => clearInterval(looking));
  const count = (state: Member['state']): number => membership.others().filter((other) => other.state === state).length;
  return {
    members: () => ({
      live: count('live') + (membership.isLeased ? 1 : 0),
      suspect: count('suspect') + (membership.isLeased ? 0 : 1),
    }),
    parkedChecks: () => money.measured().parked,
    exchanges: () => money.measured().exchanges,
    passedOn: () => routing?.passedOn ?? 0,
    unconfirmedBarriers: () => everywhere.unconfirmed,
    waitingOrders: () => orders.size,
    strandedMicroUsd: () => strandedMicroUsd,
  };
}
