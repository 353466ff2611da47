/** Limits of use over all gateways of a cluster, whatever dies. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { type FaultyCluster, startFaultyCluster } from '../../support/faulty-cluster.ts';
import type { TestGateway } from '../../support/gateway.ts';
import { policyFile } from '../../support/policies.ts';
import { withPostgres } from '../../support/postgres.ts';

const newDatabase = withPostgres();
const POLICY = `
name: limited
scope: global
rules:
  - { id: all, effect: allow }
limits:
  - { id: hourly, per: org, calls: 20, every: 1h, resources: ["hourly"] }
  - { id: loops, per: session, calls: 5, on_exceed: ask, resources: ["looped"] }
  - { id: costs, per: team, usd: 1, every: 1d, resources: ["priced"] }
  - { id: bursts, per: agent, calls: 10, every: 10s, resources: ["burst"] }
`;

type Answer = {
  readonly decision: string;
  readonly reason: string;
  readonly approvalId?: string;
  readonly cause?: string;
};

describe('limits of a cluster', () => {
  let cluster: FaultyCluster;
  const running = (): readonly TestGateway[] => cluster.gateways.flatMap((each) => each.running ?? []);

  beforeAll(async () => {
    const databaseUrl = await newDatabase();
    cluster = await startFaultyCluster({ policy: policyFile(POLICY, afterAll).path, databaseUrl });
  });
  afterAll(() => cluster?.close());

  const register = async (org: string): Promise<string> => {
    const agent = { org_id: org, team_id: 'search', agent_id: 'crawler' };
    return (await running()[0]!.call('POST', '/api/v1/agents', { agent })).body.credential_token;
  };
  let made = 0;
  const check = async (
    gateway: TestGateway,
    { org, token }: { org: string; token: string },
    resource: string,
    more: object = {},
  ): Promise<Answer> => {
    made += 1;
    const answered = await gateway
      .call(
        'POST',
        '/svc.governance.v1.PolicyService/CheckAction',
        {
          agent: { orgId: org, teamId: 'search', agentId: 'crawler' },
          ...{
            credentialToken: token,
            traceId: `t${made}`,
            spanId: `s${made}`,
            action: 'tool.call',
            resource,
            ...more,
          },
        },
        null,
      )
      .catch(() => undefined);
    return (answered?.body as Answer | undefined) ?? { decision: 'none', reason: 'cut off' };
  };
  const allowed = (answers: readonly Answer[]): number =>
    answers.filter(({ decision }) => decision === 'DECISION_ALLOW').length;
  /** Checks at all running gateways, so many at once, until none is allowed any more. */
  const useAll = async (agent: { org: string; token: string }, resource: string, more: object = {}) => {
    let sum = 0;
    await eventually(async () => {
      const gateways = running();
      const asked = Array.from({ length: 12 }, (_, nth) =>
        check(gateways[nth % gateways.length]!, agent, resource, more),
      );
      const answers = await Promise.all(asked);
      sum += allowed(answers);
      expect(answers.map(({ cause }) => cause)).toEqual(answers.map(() => 'DECISION_CAUSE_LIMIT'));
      expect(answers.at(-1)!.reason).toContain(' is reached ');
    });
    return sum;
  };

  /** A gateway knows what the others have used as of its latest question to the ledger. */
  const expectUsedUp = (gateway: TestGateway, agent: { org: string; token: string }) =>
    eventually(async () => {
      await check(gateway, agent, 'hourly');
      const { body } = await gateway.call('GET', `/api/v1/limits?org_id=${agent.org}&limit=hourly`);
      expect(body.limits).toMatchObject([{ key: agent.org, max: 20, used: 20 }]);
    });

  test('let 64 checks at three gateways pass 20 times, and not once more', async () => {
    const agent = { org: 'acme', token: await register('acme') };
    const gateways = running();
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, nth) => check(gateways[nth % 3]!, agent, 'hourly')),
    );
    const first = allowed(answers);
    expect(first).toBeLessThanOrEqual(20);
    expect(first + (await useAll(agent, 'hourly'))).toBe(20);
    await expectUsedUp(gateways[1]!, agent);
  });

  test('hold while a gateway is killed, which counts on once it is back', async () => {
    const agent = { org: 'globex', token: await register('globex') };
    const [one, killed, three] = cluster.gateways;
    const asked = Array.from({ length: 45 }, (_, nth) => check(running()[nth % 3]!, agent, 'hourly'));
    await Promise.race(asked);
    await killed!.stop('SIGKILL');
    const first = allowed(await Promise.all(asked));
    const others = first + (await useAll(agent, 'hourly'));
    expect(others).toBeLessThanOrEqual(20);
    await killed!.start();
    expect(others + (await useAll(agent, 'hourly'))).toBeLessThanOrEqual(20);
    // With those whose answers were cut off.
    for (const gateway of [one!, killed!, three!]) await expectUsedUp(gateway.running!, agent);
  });

  test('let a session go on at all gateways once one of them has approved more', async () => {
    const agent = { org: 'hooli', token: await register('hooli') };
    const [one, two, three] = running() as [TestGateway, TestGateway, TestGateway];
    const ask = (gateway: TestGateway, spanId: string) => check(gateway, agent, 'looped', { traceId: 'run', spanId });
    for (let nth = 0; nth < 5; nth += 1)
      expect(await ask([one, two, three][nth % 3]!, `s${nth}`)).toMatchObject({ decision: 'DECISION_ALLOW' });
    const waiting = await ask(two, 'more');
    expect(waiting).toMatchObject({
      decision: 'DECISION_PENDING',
      reason: expect.stringContaining('5 calls per session'),
    });
    expect((await ask(three, 'others')).approvalId).toBe(waiting.approvalId);
    const approved = await one.call('POST', `/api/v1/approvals/${waiting.approvalId}/approve`, { reason: 'ok' });
    expect([approved.status, approved.headers.get('svc-unconfirmed')]).toEqual([200, null]);
    expect(await ask(two, 'more')).toMatchObject({ decision: 'DECISION_ALLOW' });
    expect(await ask(three, 'others')).toMatchObject({ decision: 'DECISION_ALLOW' });
    for (let nth = 0; nth < 3; nth += 1)
      expect(await ask([one, two, three][nth]!, `t${nth}`)).toMatchObject({ decision: 'DECISION_ALLOW' });
    const again = await ask(one, 'too-much');
    expect(again.decision).toBe('DECISION_PENDING');
    const denied = await three.call('POST', `/api/v1/approvals/${again.approvalId}/deny`, { reason: 'enough' });
    expect(denied.status).toBe(200);
    expect(await ask(two, 'never')).toMatchObject({
      ...{ decision: 'DECISION_DENY', cause: 'DECISION_CAUSE_LIMIT' },
      reason: expect.stringContaining('a person has denied more'),
    });
  });

  test('hold for estimates, to the last cent', async () => {
    const agent = { org: 'initech', token: await register('initech') };
    expect(await useAll(agent, 'priced', { estimatedCostUsd: 0.1 })).toBe(10);
    const cheap = await check(running()[0]!, agent, 'priced', { estimatedCostUsd: 0.01 });
    expect(cheap).toMatchObject({ cause: 'DECISION_CAUSE_LIMIT' });
  });

  test('are published, and deny at all gateways once recorded usage has reached them', async () => {
    const agent = { org: 'wayne', token: await register('wayne') };
    const [one, two, three] = running() as [TestGateway, TestGateway, TestGateway];
    const text = 'name: wayne\nscope: org:wayne\nlimits: [{ id: tokens, per: org, tokens: 1000, every: 1d }]\n';
    const files = [
      { name: 'limited.yaml', text: POLICY },
      { name: 'wayne.yaml', text },
    ];
    const published = await one.call('POST', '/api/v1/policies', { files });
    expect([published.status, published.headers.get('svc-unconfirmed')]).toEqual([200, null]);
    for (const gateway of [one, two, three])
      expect(await check(gateway, agent, 'other')).toMatchObject({ decision: 'DECISION_ALLOW' });
    const usage = {
      agent: { org_id: 'wayne', team_id: 'search', agent_id: 'crawler' },
      ...{ model: 'gpt-4o', input_tokens: 900, output_tokens: 100 },
    };
    expect((await two.call('POST', '/api/v1/usage', usage)).status).toBe(200);
    for (const gateway of [one, two, three])
      await eventually(async () =>
        expect(await check(gateway, agent, 'other')).toMatchObject({
          ...{ cause: 'DECISION_CAUSE_LIMIT', policy: 'wayne' },
          reason: 'the limit of 1000 tokens per org every 1d is reached (limit tokens of policy wayne)',
        }),
      );
  });

  test('let more pass when the span has slid, wherever it was used', async () => {
    const agent = { org: 'umbrella', token: await register('umbrella') };
    const gateways = running();
    const at: number[] = [];
    await eventually(async () => {
      const asked = Array.from({ length: 6 }, async (_, nth) => {
        const sentAtMs = Date.now();
        const answer = await check(gateways[nth % 3]!, agent, 'burst');
        if (answer.decision === 'DECISION_ALLOW') at.push(sentAtMs);
      });
      await Promise.all(asked);
      expect(at.length).toBeGreaterThan(15);
    });
    expect(at.length).toBeLessThanOrEqual(20);
    // The gateways decide between a check's beginning and its answer: at most the time that one takes.
    expect(at.filter((each) => each < at[0]! + 9_000).length).toBeLessThanOrEqual(10);
  });

  test('are given back by a gateway that stops in order', async () => {
    const agent = { org: 'stark', token: await register('stark') };
    const stopped = cluster.gateways[2]!;
    for (let nth = 0; nth < 3; nth += 1)
      expect(await check(stopped.running!, agent, 'hourly')).toMatchObject({ decision: 'DECISION_ALLOW' });
    expect(await stopped.stop('SIGTERM')).toBe(0);
    expect(await useAll(agent, 'hourly')).toBe(17);
    await stopped.start();
    expect(await useAll(agent, 'hourly')).toBe(0);
  });
});
