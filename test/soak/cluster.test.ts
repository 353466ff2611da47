/** What a cluster promises, while its gateways, its database, its network and its clocks fail (docs/cluster.md). */
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, onTestFailed, test } from 'vitest';
import { verifyAuditLog } from '../../src/audit-log/verify.ts';
import { auditEntries } from '../support/audit-log.ts';
import { type CheckCall, ClusterHistory } from '../support/cluster-history.ts';
import { eventually } from '../support/eventually.ts';
import {
  askDatabase,
  FAULTS,
  type FaultName,
  type FaultyCluster,
  type FaultyGateway,
  startFaultyCluster,
} from '../support/faulty-cluster.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { policyFile } from '../support/policies.ts';
import { randomOf } from '../support/random.ts';
import { startSoak } from '../support/soak.ts';

/** A round has an org of its own: money of gateways that died is held for 10 minutes. */
const ROUNDS = 60;
const ROUND_MS = 60_000;
const CLIENTS = 12;
/** In an org that runs out of money in seconds, and in one that never does. */
const COSTS = { tight: 500_000, roomy: 10_000 };
const CAP_USD = 20;
const CAP = CAP_USD * 1_000_000;
const ANSWER_WITHIN_MS = 5_000;
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
const CHECK = '/svc.governance.v1.PolicyService/CheckAction';
const GOOD_FOR_A_RETRY = new Set([429, 500, 502, 503, 504]);

let cluster: FaultyCluster | undefined;
const history = new ClusterHistory();
const counts = { faults: new Map<FaultName, number>(), cutOff: 0, unconfirmed: 0, probes: 0 };
let made = 0;

type Answer = { readonly status: number; readonly body: any; readonly unconfirmed: readonly string[] };

/** Undefined where no answer came, or one that does not say what became of it. */
async function ask(
  gateway: FaultyGateway,
  method: string,
  path: string,
  body?: object,
  bearer: string | null = ADMIN_KEY,
): Promise<Answer | undefined> {
  const url = gateway.running?.url;
  if (url === undefined) return undefined;
  try {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    });
    const text = await response.text();
    if (GOOD_FOR_A_RETRY.has(response.status)) return undefined;
    const unconfirmed = response.headers.get('svc-unconfirmed')?.split(', ') ?? [];
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text), unconfirmed };
  } catch {
    counts.cutOff += 1;
    return undefined;
  }
}

type Agent = { readonly org: string; readonly name: string; readonly token: string; readonly cost: number };

async function register(org: string, name: string, cost: number): Promise<Agent> {
  const agent = { org_id: org, team_id: 'search', agent_id: name };
  return eventually(async () => {
    const answer = await ask(cluster!.gateways[made++ % 3]!, 'POST', '/api/v1/agents', { agent });
    expect(answer?.body.credential_token).toBeDefined();
    return { org, name, token: answer!.body.credential_token as string, cost };
  });
}

async function check(gateway: FaultyGateway, { org, name, token, cost }: Agent) {
  made += 1;
  const traceId = `t${made}`;
  const call = history.add({
    kind: 'check',
    gateway: gateway.name,
    org,
    agent: name,
    cost,
    opId: `${traceId}:s`,
    askedMs: performance.now(),
  } as CheckCall);
  const body = {
    agent: { orgId: org, teamId: 'search', agentId: name },
    credentialToken: token,
    traceId,
    spanId: 's',
    action: 'tool.call',
    resource: 'web',
    estimatedCostUsd: cost / 1_000_000,
  };
  const answer = await ask(gateway, 'POST', CHECK, body, null);
  if (answer?.body.decision === undefined) return { call, reason: undefined };
  call.decision = answer.body.decision === 'DECISION_ALLOW' ? 'allow' : 'deny';
  if (answer.body.auditId !== undefined) call.auditId = Number(answer.body.auditId);
  call.answeredMs = performance.now();
  return { call, reason: answer.body.reason as string };
}

/** Some of what is allowed is spent, and reported until that is answered; the money of the rest comes back. */
async function work(random: () => number, agent: Agent, isOver: () => boolean): Promise<void> {
  const anywhere = (): FaultyGateway => cluster!.gateways[Math.floor(random() * 3)]!;
  while (!isOver()) {
    const gateway = anywhere();
    const { call } = await check(gateway, agent);
    if (call.decision !== 'allow') await sleep(20);
    if (call.decision !== 'allow') continue;
    const ids = { agent: { org_id: agent.org, team_id: 'search', agent_id: agent.name } };
    const usageId = `usage-${call.opId}`;
    const isSpent = random() < 0.3;
    while (isSpent && !isOver()) {
      const usage = history.add({
        kind: 'usage' as const,
        org: agent.org,
        usageId,
        cost: agent.cost,
        askedMs: performance.now(),
      });
      const at = random() < 0.7 ? gateway : anywhere();
      const told = await ask(at, 'POST', '/api/v1/usage', {
        ...ids,
        cost_usd: agent.cost / 1_000_000,
        usage_id: usageId,
        ...(at === gateway ? { op_id: call.opId } : {}),
      });
      if (told?.status === 200) Object.assign(usage, { answeredMs: performance.now() });
      if (told?.status === 200) break;
      await sleep(50);
    }
    if (isSpent) continue;
    const complete = history.add({ kind: 'complete' as const, opId: call.opId, askedMs: performance.now() });
    const ended = await ask(gateway, 'POST', `/api/v1/ops/${call.opId}/complete?org_id=${agent.org}`, {});
    if (ended?.status === 200) Object.assign(complete, { answeredMs: performance.now() });
  }
}

/** Registers agents, uses them everywhere, and deregisters them; halts orgs and releases them. */
async function operate(random: () => number, round: number, isOver: () => boolean): Promise<void> {
  const anywhere = (): FaultyGateway => cluster!.gateways[Math.floor(random() * 3)]!;
  for (let nth = 0; !isOver(); nth += 1) {
    const org = `stopped-${round}-${nth}`;
    const agent = await register(org, `${org}-agent`, 0);
    const use = () => Promise.all(cluster!.gateways.map((gateway) => check(gateway, agent)));
    await use();
    const isHalt = nth % 2 === 0;
    const stop = history.add({
      kind: isHalt ? ('halt' as const) : ('revocation' as const),
      of: isHalt ? org : agent.name,
      askedMs: performance.now(),
    });
    const by = anywhere();
    const answer = isHalt
      ? await ask(by, 'POST', '/api/v1/halts', { scope: `org:${org}`, reason: 'a soak' })
      : await ask(by, 'DELETE', `/api/v1/agents/${org}/search/${agent.name}`);
    if (answer === undefined || answer.status >= 400) continue;
    Object.assign(stop, { answeredMs: performance.now(), unconfirmed: answer.unconfirmed });
    counts.unconfirmed += answer.unconfirmed.length;
    for (let again = 0; again < 3; again += 1) await use();
    if (isHalt) {
      Object.assign(stop, { releasedMs: performance.now() });
      await ask(anywhere(), 'POST', `/api/v1/halts/${answer.body.halt.id}/release`, { reason: 'over' });
    }
  }
}

async function breakThings(random: () => number, isOver: () => boolean, names: readonly FaultName[]): Promise<void> {
  while (!isOver()) {
    await sleep(random() * 1_500);
    const name = names[Math.floor(random() * names.length)]!;
    // Each gateway has one trouble at a time: `breakers` of them break one gateway each.
    const gateway = cluster!.gateways[Math.floor(random() * 3)]!;
    if (broken.has(gateway)) continue;
    broken.add(gateway);
    counts.faults.set(name, (counts.faults.get(name) ?? 0) + 1);
    await FAULTS[name](cluster!, gateway, Math.floor(200 + random() * 4_000)).finally(() => broken.delete(gateway));
  }
}
const broken = new Set<FaultyGateway>();

/** Everything has come back: then what the ledger has free is to be had at every gateway. */
async function probeMoney(agent: Agent): Promise<void> {
  const [account] = await askDatabase<{ spent: string; stranded: string }>(
    cluster!.databaseUrl,
    `SELECT a.spent, coalesce((SELECT sum(g.granted - g.spent) FROM budget_grant g JOIN cluster_node n USING (epoch)
         WHERE g.owner = a.owner AND g.period = a.period AND g.granted > g.spent AND n.state = 'retired'), 0) AS stranded
       FROM budget_account a WHERE owner = 'org/${agent.org}' AND period LIKE 'd:%'`,
  );
  const held = Number(account?.spent ?? 0) + Number(account?.stranded ?? 0) + history.mayBeHeld(agent.org);
  if (held + 3 * agent.cost > CAP) return;
  for (const gateway of cluster!.gateways)
    await eventually(async () => {
      counts.probes += 1;
      const { call, reason } = await check(gateway, agent);
      expect({ gateway: gateway.name, decision: call.decision, reason }).toMatchObject({ decision: 'allow' });
    }, 20_000);
}

/** So that a failure can be looked into without being repeated. */
function keepHistory(): void {
  const path = join(tmpdir(), `svc-cluster-${process.pid}.ndjson`);
  writeFileSync(path, history.calls.map((call) => `${JSON.stringify(call)}\n`).join(''));
  console.log(`what the clients were answered: ${path}`);
}

/** Every answered usage id once, and nothing beyond what was sent. */
async function expectSpend(org: string): Promise<void> {
  const { least, most } = history.spendBounds(org);
  const spent = await eventually(async () => {
    const [row] = await askDatabase<{ spent: string }>(
      cluster!.databaseUrl,
      `SELECT spent FROM budget_account WHERE owner = 'org/${org}' AND period LIKE 'd:%'`,
    );
    expect(Number(row?.spent ?? 0)).toBeGreaterThanOrEqual(least);
    return Number(row?.spent ?? 0);
  });
  expect(spent, `spend of ${org}`).toBeLessThanOrEqual(most);
}

describe('a cluster while everything fails', () => {
  afterAll(() => cluster?.close());

  test('overruns no cap, and keeps what it has answered', async () => {
    onTestFailed(keepHistory);
    const soak = startSoak('cluster');
    const random = randomOf(soak.seed);
    cluster = await startFaultyCluster(policyFile(POLICY).path);
    const rounds = soak.of(ROUNDS);
    for (let round = 0; round < rounds; round += 1) {
      const [tight, roomy] = await Promise.all([
        register(`tight-${round}`, 'crawler', COSTS.tight),
        register(`roomy-${round}`, 'crawler', COSTS.roomy),
      ]);
      const endMs = performance.now() + Math.min(ROUND_MS, soak.of(ROUNDS * ROUND_MS));
      const isOver = (): boolean => performance.now() > endMs;
      const names = Object.keys(FAULTS) as FaultName[];
      await Promise.all([
        ...Array.from({ length: CLIENTS }, (_, at) => work(random, at % 3 === 0 ? tight : roomy, isOver)),
        operate(random, round, isOver),
        breakThings(random, isOver, names),
        breakThings(random, isOver, names.slice(0, 6)),
      ]);
      await sleep(CALM_MS);
      expect(history.allowedAfterStop()).toEqual([]);
      for (const agent of [tight, roomy]) {
        await probeMoney(agent);
        expect(history.overruns(agent.org, CAP)).toEqual([]);
        await expectSpend(agent.org);
      }
    }
    const { gateways } = cluster;
    await Promise.all(gateways.map((gateway) => gateway.stop('SIGTERM')));
    const logs = new Map(
      gateways.map(({ name, dataDir }) => [name, new Map(auditEntries(dataDir).map(({ id, op_id }) => [id, op_id]))]),
    );
    expect(history.unrecorded(logs)).toEqual([]);
    for (const { dataDir } of gateways)
      expect(await verifyAuditLog(join(dataDir, 'audit'))).toMatchObject({ ok: true });
    const checks = history.of('check');
    soak.done({
      rounds,
      ...Object.fromEntries(Array.from(counts.faults, ([name, count]) => [`faults: ${name}`, count])),
      checks: checks.length,
      'of them allowed': checks.filter(({ decision }) => decision === 'allow').length,
      'requests without an answer': counts.cutOff,
      'moments over a cap': 0,
      'checks denied for a cap with money free, after the faults': 0,
      'halts and revocations': history.of('halt').length + history.of('revocation').length,
      'gateways named as unconfirmed': counts.unconfirmed,
      'checks allowed after one': 0,
      'usage ids': new Set(history.of('usage').map(({ usageId }) => usageId)).size,
      'answered decisions in no log': 0,
    });
  });
});
