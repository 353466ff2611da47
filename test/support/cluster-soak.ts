/** Plays a cluster while everything fails, and judges what its clients were answered. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFailed, onTestFinished } from 'vitest';
import { ClusterClients } from './cluster-clients.ts';
import { expectExactLedger, expectFreeMoney, expectWholeLogs, expectWinners, keepHistory } from './cluster-verdict.ts';
import { askDatabase, FAULTS, type FaultyCluster, startFaultyCluster } from './faulty-cluster.ts';
import type { TestNats } from './nats.ts';
import { policyFile } from './policies.ts';
import { randomOf } from './random.ts';
import { startSoak } from './soak.ts';

/** A round has an org of its own: money of gateways that died is held for 10 minutes. */
const ROUNDS = 40;
const ROUND_MS = 60_000;
const CLIENTS = 12;
/** How many faults there may be at once. */
const BREAKERS = 4;
/** In an org that runs out of money in seconds, and in one that never does. */
const COSTS = { tight: 500_000, roomy: 2_000 };
const CAP_USD = 20;
const CAP = CAP_USD * 1_000_000;
/** Checks that an org may make of what is limited. */
const MAX_CALLS = 120;
const LIMITED = 'limited';
const CALM_MS = 8_000;
/** How long it takes, at least, until an older copy of the database takes over. */
const LOST_MS = 500;
const POLICY = `
name: everything
scope: global
rules:
  - { id: all, actions: ["*"], effect: allow }
limits:
  - { id: few, per: org, calls: ${MAX_CALLS}, every: 31d, resources: ["${LIMITED}"] }
budget:
  org_daily_limit_usd: ${CAP_USD}
  org_monthly_limit_usd: ${CAP_USD}
`;

type Kind = keyof typeof FAULTS;

/** Faults of each kind, one after the other of a kind at one gateway, but several kinds at once. */
class Breaker {
  readonly counts = new Map<string, number>();
  /** Begun at a gateway that had another trouble. */
  both = 0;
  readonly #cluster: FaultyCluster;
  readonly #random: () => number;
  readonly #faults;
  readonly #troubles = new Set<string>();

  constructor(cluster: FaultyCluster, random: () => number) {
    this.#cluster = cluster;
    this.#random = random;
    const kinds = (Object.keys(FAULTS) as Kind[]).filter(
      (kind) => cluster.nats !== undefined || (kind !== 'NATS' && kind !== 'bus'),
    );
    this.#faults = kinds.flatMap((kind) => Object.entries(FAULTS[kind]).map(([name, harm]) => ({ kind, name, harm })));
  }

  async breakThings(isOver: () => boolean): Promise<void> {
    const pick = <T>(list: readonly T[]): T => list[Math.floor(this.#random() * list.length)]!;
    while (!isOver()) {
      await sleep(this.#random() * 1_500);
      const { kind, name, harm } = pick(this.#faults);
      const gateway = pick(this.#cluster.gateways);
      const isOfAll = kind === 'database' || kind === 'NATS';
      const trouble = isOfAll ? kind : `${gateway.name} ${kind}`;
      if (this.#troubles.has(trouble)) continue;
      if (!isOfAll && [...this.#troubles].some((each) => each.startsWith(`${gateway.name} `))) this.both += 1;
      this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
      this.#troubles.add(trouble);
      const ms = Math.floor(200 + this.#random() * 4_000);
      await harm(this.#cluster, gateway, ms).finally(() => this.#troubles.delete(trouble));
    }
  }
}

/** Has an older copy of the database take over, once all gateways are back. Resolves with what was lost of the log. */
async function loseTail(cluster: FaultyCluster, random: () => number): Promise<number> {
  await sleep(CALM_MS);
  const head = async (): Promise<number> => {
    const [row] = await askDatabase<{ seq: number }>(cluster.databaseUrl, 'SELECT seq::int FROM cluster_head');
    return row!.seq;
  };
  const takeOver = await cluster.copyDatabase();
  const copied = await head();
  await sleep(LOST_MS * (1 + 3 * random()));
  const lost = (await head()) - copied;
  await takeOver();
  return lost;
}

/** The name is that of the file in test/soak/. */
export async function playCluster(name: string, nats?: TestNats): Promise<void> {
  const soak = startSoak(name);
  const random = randomOf(soak.seed);
  const cluster = await startFaultyCluster({ policy: policyFile(POLICY).path, nats });
  onTestFinished(() => cluster.close());
  const clients = new ClusterClients(cluster, random);
  const breaker = new Breaker(cluster, random);
  const { history, counts } = clients;
  onTestFailed(() => keepHistory(history));
  const rounds = soak.of(ROUNDS);
  let probed = 0;
  let lost = 0;
  let calls = 0;
  for (let round = 0; round < rounds; round += 1) {
    const [tight, roomy, limited] = await Promise.all([
      clients.register(`tight-${round}`, 'crawler', COSTS.tight),
      clients.register(`roomy-${round}`, 'crawler', COSTS.roomy),
      clients.register(`limited-${round}`, 'crawler', COSTS.roomy, LIMITED),
    ]);
    const endMs = performance.now() + Math.min(ROUND_MS, soak.of(ROUNDS * ROUND_MS));
    let isCalm = false;
    const broken = Array.from({ length: BREAKERS }, () => breaker.breakThings(() => performance.now() > endMs));
    const older = Promise.all(broken).then(() => loseTail(cluster, random));
    await Promise.all([
      ...Array.from({ length: CLIENTS }, (_, at) => clients.work([tight, roomy, limited][at % 3]!, () => isCalm)),
      clients.operate(`stopped-${round}`, () => isCalm),
      older.finally(() => {
        isCalm = true;
      }),
    ]);
    lost += await older;
    await sleep(CALM_MS);
    expect(history.allowedAfterStop()).toEqual([]);
    expect(history.wonTwice()).toEqual([]);
    const counted = history.of('check').filter(({ org, decision }) => org === limited.org && decision === 'allow');
    calls += counted.length;
    expect(counted.length).toBeLessThanOrEqual(MAX_CALLS);
    await expectWinners(cluster, clients);
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
    ...Object.fromEntries(Array.from(breaker.counts, ([fault, count]) => [`faults: ${fault}`, count])),
    'faults: an older copy of the database took over': rounds,
    'entries of the log that these lacked': lost,
    'faults at a gateway that had another one': breaker.both,
    checks: checks.length,
    'of them allowed': checks.filter(({ decision }) => decision === 'allow').length,
    'requests without an answer': counts.cutOff,
    'moments over a cap': 0,
    [`checks allowed by limits of ${MAX_CALLS} a round`]: calls,
    'orgs with money free after the faults, at every gateway': probed,
    'halts, revocations, rotations and pauses': history.stops.filter(({ answeredMs }) => answeredMs !== undefined)
      .length,
    'gateways named as unconfirmed': counts.unconfirmed,
    'checks allowed after one': 0,
    'registrations at two gateways at once': 2 * history.of('contest').length,
    'tokens with two holders, agents with two tokens': 0,
    'usage ids': new Set(history.of('usage').map(({ usageId }) => usageId)).size,
    'answered decisions in no log': 0,
  });
}
