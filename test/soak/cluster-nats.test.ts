/** The same promises with NATS as the bus, which fails too. */
import { describe, test } from 'vitest';
import { playCluster } from '../support/cluster-soak.ts';
import { NATS_SERVER, startNats } from '../support/nats.ts';

describe.skipIf(NATS_SERVER === undefined)('a cluster with NATS while everything fails', () => {
  test('overruns no cap, and keeps what it has answered', async () => playCluster('cluster-nats', await startNats()));
});
