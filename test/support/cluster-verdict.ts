/** Invariants of a cluster once everything has come back, whatever has failed before. */
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { verifyAuditLog } from '../../src/audit-log/verify.ts';
import { auditEntries } from './audit-log.ts';
import type { ClusterAgent, ClusterClients } from './cluster-clients.ts';
import type { ClusterHistory } from './cluster-history.ts';
import { eventually } from './eventually.ts';
import { askDatabase, type FaultyCluster } from './faulty-cluster.ts';

/** A machine that is busy with other things may take ten times as long as it should. */
const BACK_WITHIN_MS = 60_000;

type Account = {
  readonly spent: number;
  readonly out: number;
  readonly spentByRuns: number;
  readonly outByRuns: number;
  /** Held by runs that have ended, until their reservations have expired. */
  readonly stranded: number;
};

/** In one statement, so that all of it is of one moment. */
async function accountOf({ databaseUrl }: FaultyCluster, org: string): Promise<Account> {
  const [account] = await askDatabase<Account>(
    databaseUrl,
    `SELECT a.spent::float, a.out::float, coalesce(sum(g.spent), 0)::float AS "spentByRuns",
         coalesce(sum(greatest(g.granted - g.spent, 0)), 0)::float AS "outByRuns",
         coalesce(sum(greatest(g.granted - g.spent, 0)) FILTER (WHERE n.state = 'retired'), 0)::float AS stranded
       FROM budget_account a LEFT JOIN budget_grant g USING (owner, period) LEFT JOIN cluster_node n USING (epoch)
       WHERE a.owner = 'org/${org}' AND a.period LIKE 'd:%' GROUP BY a.spent, a.out`,
  );
  return account ?? { spent: 0, out: 0, spentByRuns: 0, outByRuns: 0, stranded: 0 };
}

/** The ledger is whole, every answered usage id is in it once, and nothing beyond what was sent. */
export async function expectExactLedger(cluster: FaultyCluster, history: ClusterHistory, org: string): Promise<void> {
  const { least, most } = history.spendBounds(org);
  const account = await eventually(async () => {
    const now = await accountOf(cluster, org);
    expect(now.spent, `spend of ${org}`).toBeGreaterThanOrEqual(least);
    return now;
  }, BACK_WITHIN_MS);
  const { spent, out, spentByRuns, outByRuns } = account;
  expect(spent, `spend of ${org}`).toBeLessThanOrEqual(most);
  expect([spent, out], `sums of ${org}`).toEqual([spentByRuns, outByRuns]);
}

/** Expects every gateway to get money that is certainly free. Resolves with whether there was any. */
export async function expectFreeMoney(
  cluster: FaultyCluster,
  clients: ClusterClients,
  agent: ClusterAgent,
  cap: number,
): Promise<boolean> {
  const { spent, stranded } = await accountOf(cluster, agent.org);
  const held = spent + stranded + clients.history.mayBeHeld(agent.org);
  if (held + cluster.gateways.length * agent.cost > cap) return false;
  for (const gateway of cluster.gateways)
    await eventually(async () => {
      const { call, reason } = await clients.check(gateway, agent);
      const { name, ending } = gateway;
      const found = { gateway: name, ending, decision: call.decision, reason };
      expect(found).toMatchObject({ ending: undefined, decision: 'allow' });
    }, BACK_WITHIN_MS);
  return true;
}

/** Expects every gateway to know those that have won a token for which agents registered at several at once. */
export async function expectWinners({ gateways }: FaultyCluster, clients: ClusterClients): Promise<void> {
  for (const winner of clients.winners)
    for (const gateway of gateways)
      await eventually(async () => {
        const { call, reason } = await clients.check(gateway, winner);
        const { name, ending } = gateway;
        const found = { gateway: name, ending, winner, decision: call.decision, reason };
        expect(found).toMatchObject({ ending: undefined, decision: 'allow' });
      }, BACK_WITHIN_MS);
}

/** Every answered decision is in the log of one gateway, under the number that the answer had, in unbroken chains. */
export async function expectWholeLogs({ gateways }: FaultyCluster, history: ClusterHistory): Promise<void> {
  const logs = new Map(
    gateways.map(({ name, dataDir }) => [name, new Map(auditEntries(dataDir).map(({ id, op_id }) => [id, op_id]))]),
  );
  expect(history.unrecorded(logs)).toEqual([]);
  for (const { dataDir } of gateways) expect(await verifyAuditLog(join(dataDir, 'audit'))).toMatchObject({ ok: true });
}

/** Lets a failure be looked into without being repeated. */
export function keepHistory({ calls }: ClusterHistory): void {
  const path = join(tmpdir(), `svc-cluster-${process.pid}.ndjson`);
  writeFileSync(path, calls.map((call) => `${JSON.stringify(call)}\n`).join(''));
  console.log(`what the clients were answered: ${path}`);
}
