/** Metrics of a gateway in a cluster. */

import type { DurationCounts } from '../core/stats/durations.ts';
import type { Closing } from '../ports/closing.ts';
import type { Member, MemberStore } from '../ports/cluster.ts';
import type { KeptMembership } from './membership.ts';
import type { Money } from './money.ts';
import type { Routing } from './routing.ts';
import type { States } from './states.ts';

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

type Measured = {
  readonly membership: Pick<KeptMembership, 'others' | 'isLeased'>;
  readonly members: Pick<MemberStore, 'list'>;
  readonly money: Pick<Money, 'measured'>;
  readonly states: Pick<States, 'everywhere' | 'orders'>;
};

/** It is a question to the database. */
const LOOK_FOR_STRANDED_MS = 30_000;

export function measuresOf(
  { membership, members, money, states: { everywhere, orders } }: Measured,
  routing: Routing | undefined,
  closers: Closing,
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
