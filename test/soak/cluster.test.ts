/** Promises of a cluster, while its gateways, its database, its network and its clocks fail (docs/cluster.md). */
import { describe, test } from 'vitest';
import { playCluster } from '../support/cluster-soak.ts';

describe('a cluster while everything fails', () => {
  test('overruns no cap, and keeps what it has answered', () => playCluster('cluster'));
});
