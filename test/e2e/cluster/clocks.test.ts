/** A cluster in which the clock of one gateway is a day off while it runs: what all share ends by the database's. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { type FaultyCluster, startFaultyCluster } from '../../support/faulty-cluster.ts';
import type { TestGateway } from '../../support/gateway.ts';
import { policyFile } from '../../support/policies.ts';
import { withPostgres } from '../../support/postgres.ts';
import { startReceiver } from '../../support/receiver.ts';
import { openStream } from '../../support/stream.ts';

const newDatabase = withPostgres();
const DAY_MS = 24 * 3_600_000;
const HOUR_MS = 3_600_000;
/** The machine is busy, and timers come by every second. */
const LATE_MS = 20_000;
/** A gateway alone follows a clock that was set back after 10 s. */
const FOLLOWED_MS = 12_000;
const SEEN_MS = 2_000;
const BRIEF_MS = 8_000;
const POLICY = `
name: clocked
scope: global
rules:
  - { id: brief, resources: ["brief*"], effect: require_approval, approval: { expires: 8s } }
  - { id: pay, resources: ["pay*"], effect: require_approval, approval: { expires: 1h } }
  - { id: all, actions: ["*"], effect: allow }
budget: { org_daily_limit_usd: 100 }
`;
const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
const ALLOWED = { decision: 'DECISION_ALLOW' };
const PENDING = { decision: 'DECISION_PENDING' };

/** Sees the time of an answer in that of this test, which shares the database's machine. */
const isAbout = (atMs: number): unknown => ({
  asymmetricMatch: (shown: unknown) => Math.abs(Date.parse(String(shown)) - atMs) < LATE_MS,
});

describe('a gateway of a cluster whose clock is set while it runs', () => {
  let cluster: FaultyCluster;
  let wrong: TestGateway;
  let right: TestGateway;
  let credentialToken: string;
  let spans = 0;

  beforeAll(async () => {
    cluster = await startFaultyCluster({
      ...{ policy: policyFile(POLICY, afterAll).path, databaseUrl: await newDatabase() },
      env: { SVC_WEBHOOKS_ALLOW_PRIVATE: '1' },
    });
    [wrong, right] = cluster.gateways.map(({ running }) => running!) as [TestGateway, TestGateway];
    const agent = { org_id: 'acme', team_id: 'search', agent_id: 'crawler' };
    credentialToken = (await right.call('POST', '/api/v1/agents', { agent })).body.credential_token;
  });
  afterAll(() => cluster?.close());

  const check = async (gateway: TestGateway, resource: string, more: object = {}) => {
    spans += 1;
    const asked = { agent: AGENT, credentialToken, traceId: 't', spanId: `s${spans}`, action: 'tool.call', resource };
    const path = '/svc.governance.v1.PolicyService/CheckAction';
    return (await gateway.call('POST', path, { ...asked, ...more }, null)).body;
  };
  const approvalAt = async (gateway: TestGateway, id: string) =>
    (await gateway.call('GET', `/api/v1/approvals/${id}`)).body.approval;
  const approveAt = async (gateway: TestGateway, id: string) => {
    expect((await gateway.call('POST', `/api/v1/approvals/${id}/approve`, { reason: 'ok' })).status).toBe(200);
  };
  /** The order of the two, each way around. */
  const bothWays = () =>
    [
      [wrong, right, 'wrong'],
      [right, wrong, 'right'],
    ] as const;

  /** Both gateways answer so from this time on, and neither does before. */
  const expectEnd = async (ended: string, untilMs: number, ask: (at: TestGateway) => Promise<string>) => {
    let firstMs = Infinity;
    await eventually(async () => {
      const answers = await Promise.all([ask(wrong), ask(right)]);
      if (answers.includes(ended)) firstMs = Math.min(firstMs, Date.now());
      expect(answers).toEqual([ended, ended]);
    });
    expect(firstMs).toBeGreaterThan(untilMs - 500);
    expect(Date.now()).toBeLessThan(untilMs + LATE_MS);
  };

  describe.each([
    ['ahead', DAY_MS, SEEN_MS],
    ['back', -DAY_MS, FOLLOWED_MS],
  ])('%s by a day', (way, offsetMs, standsMs) => {
    beforeAll(async () => {
      cluster.gateways[0]!.setClock(offsetMs);
      await sleep(standsMs);
      await eventually(async () =>
        expect((await wrong.call('GET', '/readyz')).body).toMatchObject({ status: 'degraded', cluster: 'wrong_clock' }),
      );
    });

    test('has approvals last as long as elsewhere, and be used once', async () => {
      for (const [one, other, name] of bothWays()) {
        const resource = `pay-${way}-${name}`;
        const { approvalId: id } = await check(one, resource);
        for (const at of [one, other])
          expect(await approvalAt(at, id)).toMatchObject({
            ...{ state: 'pending', requested_at: isAbout(Date.now()), expires_at: isAbout(Date.now() + HOUR_MS) },
          });
        await approveAt(other, id);
        await sleep(2_000); // by then it would have ended where its time is over
        for (const at of [one, other])
          expect(await approvalAt(at, id)).toMatchObject({
            ...{ state: 'approved', expires_at: isAbout(Date.now() + HOUR_MS) },
          });
        expect(await check(one, resource)).toMatchObject(ALLOWED);
        for (const at of [one, other]) expect(await check(at, resource)).toMatchObject(PENDING);
      }
    });

    test('ends approvals that nobody decides when their time is over, and not before', async () => {
      const asked = await Promise.all(
        bothWays().map(async ([one, , name]) => {
          const untilMs = Date.now() + BRIEF_MS;
          return { id: (await check(one, `brief-${way}-${name}`)).approvalId as string, untilMs };
        }),
      );
      await Promise.all(
        asked.map(({ id, untilMs }) =>
          expectEnd('expired', untilMs, async (at) => (await approvalAt(at, id)).state as string),
        ),
      );
    });

    test('has halts end at all of them together', async () => {
      const ends = bothWays().map(async ([one, , name]) => {
        const untilMs = Date.now() + 6_000;
        const halt = { scope: 'org:acme', actions: [`${name}.*`], reason: 'an incident' };
        const expires_at = new Date(untilMs).toISOString();
        const made = await one.call('POST', '/api/v1/halts', { ...halt, expires_at });
        expect([made.status, made.headers.get('svc-unconfirmed')]).toEqual([201, null]);
        const action = `${name}.call`;
        await expectEnd('DECISION_ALLOW', untilMs, async (at) => (await check(at, 'web', { action })).decision);
      });
      await Promise.all(ends);
    });

    test('has API keys end in their time, and streams with them', async () => {
      const untilMs = Date.now() + 6_000;
      const key = { name: 'short', scopes: ['read'], expires_at: new Date(untilMs).toISOString() };
      const bearer: string = (await right.call('POST', '/api/v1/iam/api-keys', key)).body.key;
      const stream = await openStream(wrong, '', { bearer });
      const closed = stream.closed.then(({ code }) => ({ code, atMs: Date.now() }));
      await expectEnd('401', untilMs, async (at) =>
        String((await at.call('GET', '/api/v1/ops', undefined, bearer)).status),
      );
      const { code, atMs } = await closed;
      expect(code).toBe(4401);
      expect(atMs).toBeGreaterThan(untilMs - 500);
    });

    test('calls webhooks with the time that receivers expect', async () => {
      const receiver = await startReceiver();
      onTestFinished(() => receiver.close());
      const hook = { url: receiver.url, events: ['budget.exceeded'], org_id: 'acme' };
      const { id } = (await right.call('POST', '/api/v1/webhooks', hook)).body;
      for (let nth = 1; nth <= 6; nth += 1) {
        await wrong.call('POST', `/api/v1/webhooks/${id}/test`);
        await eventually(() => expect(receiver.received).toHaveLength(nth));
      }
      const sent = receiver.received.map(({ timestamp, body }) => [
        new Date(Number(timestamp) * 1_000).toISOString(),
        JSON.parse(body).timestamp,
      ]);
      expect(sent).toEqual(sent.map(() => [isAbout(Date.now()), isAbout(Date.now())]));
    });

    test('goes on within the caps of the day', async () => {
      expect(await check(wrong, 'web', { estimatedCostUsd: 0.01 })).toMatchObject(ALLOWED);
    });

    test('keeps halts while the database is away, also when their time is over', async () => {
      const expires_at = new Date(Date.now() + 3_000).toISOString();
      const halt = { scope: 'org:acme', actions: ['halted.*'], reason: 'an incident', expires_at };
      expect((await wrong.call('POST', '/api/v1/halts', halt)).status).toBe(201);
      for (const { proxy } of cluster.gateways) proxy.refuse();
      await sleep(6_000);
      for (const at of [wrong, right]) {
        expect(await check(at, 'web', { action: 'halted.call' })).toMatchObject({ cause: 'DECISION_CAUSE_HALT' });
        expect(await check(at, 'pay-nobody')).toMatchObject({ code: 'unavailable' });
        expect(await check(at, 'web')).toMatchObject(ALLOWED);
      }
      for (const { proxy } of cluster.gateways) proxy.serve();
      for (const at of [wrong, right])
        await eventually(async () => expect(await check(at, 'web', { action: 'halted.call' })).toMatchObject(ALLOWED));
    });
  });
});
