/** Promises of a cluster, while its gateways, its database, its network and its clocks fail (docs/cluster.md). */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, onTestFailed, test } from 'vitest';
import { ClusterClients } from '../support/cluster-clients.ts';
import { expectExactLedger, expectFreeMoney, expectWholeLogs, keepHistory } from '../support/cluster-verdict.ts';
import {
  FAULTS,
  type FaultName,
  type FaultyCluster,
  type FaultyGateway,
  startFaultyCluster,
} from '../support/faulty-cluster.ts';
import { policyFile } from '../support/policies.ts';
import { randomOf } from '../support/random.ts';
import { startSoak } from '../support/soak.ts';

/** A round has an org of its own: money of gateways that died is held for 10 minutes. */
const ROUNDS = 40;
const ROUND_MS = 60_000;
const CLIENTS = 12;
/** In an org that runs out of money in seconds, and in one that never does. */
const COSTS = { tight: 500_000, roomy: 10_000 };
const CAP_USD = 20;
const CAP = CAP_USD * 1_000_000;
const CALM_MS = 8_000;
const POLICY = `
name: everything
scope: global
rules:
  - { id: all, actions: ["*"], effect: allow }
budget:
  org_daily_limit_usd: ${CAP_USD}
  org_monthly_limit_usd: ${CAP_USD}
`;

let cluster: FaultyCluster | undefined;
const faults = new Map<FaultName, number>();
const broken = new Set<FaultyGateway>();

/** Several at once, but each gateway has one trouble at a time. */
async function breakThings(random: () => number, isOver: () => boolean, names: readonly FaultName[]): Promise<void> {
  while (!isOver()) {
    await sleep(random() * 1_500);
    const name = names[Math.floor(random() * names.length)]!;
    const gateway = cluster!.gateways[Math.floor(random() * 3)]!;
    if (broken.has(gateway)) continue;
    broken.add(gateway);
    faults.set(name, (faults.get(name) ?? 0) + 1);
    await FAULTS[name](cluster!, gateway, Math.floor(200 + random() * 4_000)).finally(() => broken.delete(gateway));
  }
}

describe('a cluster while everything fails', () => {
  afterAll(() => cluster?.close());

  test('overruns no cap, and keeps what it has answered', async () => {
    const soak = startSoak('cluster');
    const random = randomOf(soak.seed);
    cluster = await startFaultyCluster({ policy: policyFile(POLICY).path });
    const clients = new ClusterClients(cluster, random);
    const { history, counts } = clients;
    onTestFailed(() => keepHistory(history));
    const rounds = soak.of(ROUNDS);
    let probed = 0;
    for (let round = 0; round < rounds; round += 1) {
      const [tight, roomy] = await Promise.all([
        clients.register(`tight-${round}`, 'crawler', COSTS.tight),
        clients.register(`roomy-${round}`, 'crawler', COSTS.roomy),
      ]);
      const endMs = performance.now() + Math.min(ROUND_MS, soak.of(ROUNDS * ROUND_MS));
      const isOver = (): boolean => performance.now() > endMs;
      const names = Object.keys(FAULTS) as FaultName[];
      await Promise.all([
        ...Array.from({ length: CLIENTS }, (_, at) => clients.work(at % 3 === 0 ? tight : roomy, isOver)),
        clients.operate(`stopped-${round}`, isOver),
        breakThings(random, isOver, names),
        breakThings(random, isOver, names.slice(0, 6)),
      ]);
      await sleep(CALM_MS);
      expect(history.allowedAfterStop()).toEqual([]);
      for (const agent of [tight, roomy]) {
        if (await expectFreeMoney(cluster, clients, agent, CAP)) probed += 1;
        expect(history.overruns(agent.org, CAP)).toEqual([]);
        await expectExactLedger(cluster, history, agent.org);
      }
    }
    await Promise.all(cluster.gateways.map((gateway) => gateway.stop('SIGTERM')));
    await expectWholeLogs(cluster, history);
    const checks = history.of('check');
    soak.done({
      rounds,
      ...Object.fromEntries(Array.from(faults, ([name, count]) => [`faults: ${name}`, count])),
      checks: checks.length,
      'of them allowed': checks.filter(({ decision }) => decision === 'allow').length,
      'requests without an answer': counts.cutOff,
      'moments over a cap': 0,
      'orgs with money free after the faults, at every gateway': probed,
      'halts, revocations and pauses': history.stops.filter(({ answeredMs }) => answeredMs !== undefined).length,
      'gateways named as unconfirmed': counts.unconfirmed,
      'checks allowed after one': 0,
      'usage ids': new Set(history.of('usage').map(({ usageId }) => usageId)).size,
      'answered decisions in no log': 0,
    });
  });
});
