/** Promises of a cluster while its gateways fail: caps however many clients ask at once, halts, records, reports. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFailed, onTestFinished, test } from 'vitest';
import { type Balancer, startBalancer } from '../../support/balancer.ts';
import { ClusterClients } from '../../support/cluster-clients.ts';
import { expectExactLedger, expectFreeMoney, expectWholeLogs, keepHistory } from '../../support/cluster-verdict.ts';
import { eventually } from '../../support/eventually.ts';
import { FAULTS, type FaultyCluster, startFaultyCluster } from '../../support/faulty-cluster.ts';
import type { TestGateway } from '../../support/gateway.ts';
import { policyFile } from '../../support/policies.ts';
import { withPostgres } from '../../support/postgres.ts';
import { randomOf } from '../../support/random.ts';
import { answered, isSigned, startReceiver } from '../../support/receiver.ts';

const newDatabase = withPostgres();
const POLICY = `
name: everything
scope: global
rules:
  - id: all
    actions: ["*"]
    effect: allow
budget:
  org_daily_limit_usd: 3
`;
const CAP = 3_000_000;
const COST_USD = 0.01;
const CHECKS_IN_CAP = 300;

describe('caps of a cluster', () => {
  let cluster: FaultyCluster;
  let gateways: TestGateway[] = [];
  let balancer: Balancer;
  let database: pg.Client;
  /** Uses the running gateways. */
  const useAll = (): void => {
    gateways = cluster.gateways.flatMap(({ running }) => running ?? []);
  };

  beforeAll(async () => {
    const databaseUrl = await newDatabase();
    const env = { SVC_WEBHOOKS_ALLOW_PRIVATE: '1' };
    cluster = await startFaultyCluster({ policy: policyFile(POLICY, afterAll).path, databaseUrl, env });
    useAll();
    balancer = await startBalancer(() => gateways.map((gateway) => new URL(gateway.url).host));
    database = new pg.Client({ connectionString: databaseUrl });
    await database.connect();
  });
  afterAll(async () => {
    await balancer?.close();
    await database?.end();
    await cluster?.close();
  });

  let made = 0;
  const check = async (
    orgId: string,
    credentialToken: string,
    at: string = balancer.url,
  ): Promise<{ decision?: string; reason: string }> => {
    made += 1;
    // A connection of its own, so that the balancer has a say in each.
    const response = await fetch(`${at}/svc.governance.v1.PolicyService/CheckAction`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({
        agent: { orgId, teamId: 'search', agentId: 'crawler' },
        credentialToken,
        traceId: `t${made}`,
        spanId: 's',
        action: 'tool.call',
        resource: 'web',
        estimatedCostUsd: COST_USD,
      }),
    }).catch(() => undefined);
    return response === undefined ? { reason: 'cut off' } : ((await response.json()) as { reason: string });
  };
  const register = async (org: string): Promise<string> => {
    const agent = { org_id: org, team_id: 'search', agent_id: 'crawler' };
    return (await gateways[0]!.call('POST', '/api/v1/agents', { agent })).body.credential_token;
  };
  /** Checks from many clients at once, until all of the last round are denied. */
  const spendAll = async (org: string, token: string, onRound: (round: number) => unknown = () => undefined) => {
    const answers: { decision?: string; reason: string }[] = [];
    for (let round = 0; round < 60; round += 1) {
      await onRound(round);
      const latest = await Promise.all(Array.from({ length: 20 }, () => check(org, token)));
      answers.push(...latest);
      // On a machine that is busy with other things, some cannot be confirmed in time.
      if (latest.every(({ reason }) => reason.endsWith('is exceeded'))) break;
    }
    return { allowed: answers.filter(({ decision }) => decision === 'DECISION_ALLOW').length, answers };
  };
  /** Reads the ledger's account of an org, and the sums of the runs' grants. */
  const accountOf = async (org: string) => {
    const { rows } = await database.query(
      `SELECT a.spent::int, a.out::int,
         (SELECT sum(g.spent)::int FROM budget_grant g WHERE g.owner = a.owner AND g.period = a.period) AS "spentByRuns",
         (SELECT sum(greatest(g.granted - g.spent, 0))::int FROM budget_grant g WHERE g.owner = a.owner AND g.period = a.period) AS "outByRuns"
       FROM budget_account a WHERE owner = $1 AND period LIKE 'd:%'`,
      [`org/${org}`],
    );
    return rows[0];
  };

  const SEED = 37;
  test(`hold, and halts and records too, while gateways fail at once, seed ${SEED}`, async () => {
    const clients = new ClusterClients(cluster, randomOf(SEED));
    const { history } = clients;
    onTestFailed(() => keepHistory(history));
    const [tight, roomy] = await Promise.all([
      clients.register('tight', 'crawler', 50_000),
      clients.register('roomy', 'crawler', 100),
    ]);
    let isOver = false;
    const load = [tight, roomy, tight, roomy].map((agent) => clients.work(agent, () => isOver));
    load.push(clients.operate('stopped', () => isOver));
    const [one, two, three] = cluster.gateways;
    await eventually(() => expect(history.stops.length).toBeGreaterThan(0), 90_000);
    await Promise.all([
      FAULTS.process['kill -9'](cluster, two!, 500),
      FAULTS.process.SIGSTOP(cluster, three!, 750),
      sleep(500).then(() => FAULTS.network['database out of reach'](cluster, one!, 750)),
    ]);
    await FAULTS.clock['clock set back'](cluster, three!, 500);
    isOver = true;
    await Promise.all(load);
    useAll();
    expect(history.allowedAfterStop()).toEqual([]);
    for (const { org } of [tight, roomy]) expect(history.overruns(org, CAP)).toEqual([]);
    await eventually(() => expectWholeLogs(cluster, history));
    await Promise.all([tight, roomy].map(({ org }) => expectExactLedger(cluster, history, org)));
    // Reported too, so that nothing but what was killed is held.
    expect(await expectFreeMoney(cluster, clients, roomy, CAP)).toBe(true);
  }, 300_000);

  test('are spent to the last by three gateways together, and never overrun', async () => {
    const { allowed, answers } = await spendAll('acme', await register('acme'));
    expect(allowed).toBe(CHECKS_IN_CAP);
    expect(answers.at(-1)).toMatchObject({
      cause: 'DECISION_CAUSE_BUDGET',
      reason: 'the daily budget of the org tier is exceeded',
    });
    expect(await accountOf('acme')).toEqual({ spent: 0, out: 3_000_000, spentByRuns: 0, outByRuns: 3_000_000 });
  });

  test('hold when a gateway is killed in the middle, and keep what it held', async () => {
    const killed = cluster.gateways[1]!;
    const { allowed } = await spendAll('globex', await register('globex'), async (round) => {
      if (round === 5) await killed.stop('SIGKILL');
    });
    useAll();
    expect(allowed).toBeLessThanOrEqual(CHECKS_IN_CAP);
    expect(allowed).toBeGreaterThan(CHECKS_IN_CAP / 2);
    const { spent, out, spentByRuns, outByRuns } = await accountOf('globex');
    expect([spent, out]).toEqual([spentByRuns, outByRuns]);
    expect(spent + out).toBeLessThanOrEqual(CAP);
  });

  test('are known at once to be exceeded by usage beyond what was granted', async () => {
    const token = await register('hooli');
    const agent = { org_id: 'hooli', team_id: 'search', agent_id: 'crawler' };
    const [one, two] = gateways as [TestGateway, TestGateway];
    const used = await one.call('POST', '/api/v1/usage', { agent, cost_usd: 3.5, usage_id: 'much' });
    expect(used.body).toEqual({ status: 'limit_exceeded', tier: 'org', period: 'daily' });
    expect((await check('hooli', token, two.url)).reason).toBe('the daily budget of the org tier is exceeded');
    const again = await two.call('POST', '/api/v1/usage', { agent, cost_usd: 3.5, usage_id: 'much' });
    expect(again.body).toEqual(used.body);
    expect((await accountOf('hooli')).spent).toBe(3_500_000);
  });

  test('are free again when a gateway stops in order, but for what runs', async () => {
    const token = await register('umbrella');
    const stopped = cluster.gateways[2]!;
    const { decision } = await check('umbrella', token, stopped.running!.url);
    expect(decision).toBe('DECISION_ALLOW');
    expect((await accountOf('umbrella')).out).toBeGreaterThan(0);
    expect(await stopped.stop('SIGTERM')).toBe(0);
    useAll();
    expect(await accountOf('umbrella')).toEqual({ spent: 0, out: 10_000, spentByRuns: 0, outByRuns: 10_000 });
    const { body } = await gateways[0]!.call('GET', '/api/v1/cluster');
    const left = body.members.filter(({ name }: { name: string }) => name === 'three');
    expect(left).toMatchObject([{ state: 'retired', stranded_usd: expect.any(Number) }]);
  });

  test('count what a gateway has spent that was killed, and send what it had to report', async () => {
    const receiver = await startReceiver();
    onTestFinished(() => receiver.close());
    receiver.answer = answered(500);
    const events = ['halt.created'];
    const hook = (await gateways[0]!.call('POST', '/api/v1/webhooks', { url: receiver.url, events })).body;
    const token = await register('initech');
    const agent = { org_id: 'initech', team_id: 'search', agent_id: 'crawler' };
    const back = cluster.gateways[1]!;
    await back.start();
    useAll();
    for (const gateway of gateways)
      expect((await gateway.call('POST', '/api/v1/usage', { agent, cost_usd: 0.5 })).body).toEqual({ status: 'ok' });
    const shown = await Promise.all(gateways.map((gateway) => gateway.call('GET', `/api/v1/webhooks/${hook.id}`)));
    expect(shown.map(({ body }) => body.webhook.url)).toEqual(gateways.map(() => receiver.url));
    expect((await back.running!.call('POST', '/api/v1/halts', { scope: 'org:hooli', reason: 'test' })).status).toBe(
      201,
    );
    await back.stop('SIGKILL');
    receiver.answer = answered(204);
    await back.start();
    useAll();
    const { allowed } = await spendAll('initech', token);
    expect(allowed).toBeLessThanOrEqual((CHECKS_IN_CAP * 2) / 3);
    await eventually(async () => expect((await accountOf('initech')).spent).toBe(1_000_000), 20_000);
    await eventually(async () => {
      const { body } = await gateways[0]!.call('GET', '/api/v1/budgets?org_id=initech');
      expect(body.budgets.find(({ tier }: { tier: string }) => tier === 'org').daily.spent_usd).toBe(1);
    });
    await eventually(async () => {
      const { body } = await gateways[0]!.call('GET', `/api/v1/webhooks/${hook.id}`);
      expect([body.webhook.waiting, receiver.received.at(-1)?.id.slice(0, 4)]).toEqual([0, 'msg_']);
    }, 60_000);
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1);
    expect(receiver.received.every((each) => isSigned(each, hook.secret))).toBe(true);
  });
});
