import { expect, onTestFinished, test } from 'vitest';
import { connectAgent } from '../../support/agent.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestGateway } from '../../support/gateway.ts';

type Agent = {
  readonly of: { readonly agent: Parameters<typeof connectAgent>[1]; readonly credentialToken: string };
  readonly check: (gateway: TestGateway, spanId: string, resource?: string) => Promise<any>;
  readonly opState: (gateway: TestGateway, spanId: string) => Promise<any>;
  readonly scope: string;
};

/**
 * Approvals of a cluster, asked for, decided and used at any of its gateways. Resources that begin with pay need one.
 */
export function describeApprovals(
  gateways: () => readonly [TestGateway, TestGateway, TestGateway],
  newAgent: (agentId: string) => Promise<Agent>,
): void {
  const PENDING = { decision: 'DECISION_PENDING' };
  const approvalAt = async (gateway: TestGateway, path: string) =>
    (await gateway.call('GET', `/api/v1/approvals${path}`)).body;

  test('ask people for an approval at any of them, and let it be used once', async () => {
    const [one, two, three] = gateways();
    const { of, check, opState } = await newAgent('payer');
    const connected = connectAgent(three.grpc, of.agent, of.credentialToken);
    onTestFinished(() => connected.close());
    const feed = await connected.control();
    const asked = await check(one, 's', 'pay-1');
    expect(asked).toMatchObject(PENDING);
    const id = asked.approvalId as string;
    expect(await check(two, 't', 'pay-1')).toMatchObject({ ...PENDING, approvalId: id });
    expect((await approvalAt(three, '?state=pending')).approvals).toMatchObject([
      { id, op_ids: ['payer:s', 'payer:t'] },
    ]);
    const waits = approvalAt(three, `/${id}?wait=30`);
    const approve = (gateway: TestGateway) => gateway.call('POST', `/api/v1/approvals/${id}/approve`, { reason: 'ok' });
    const deny = (gateway: TestGateway) => gateway.call('POST', `/api/v1/approvals/${id}/deny`, { reason: 'no' });
    const approved = await approve(two);
    expect([approved.status, approved.body.approval?.state]).toEqual([200, 'approved']);
    expect((await waits).approval).toEqual(approved.body.approval);
    // A signal may come again until it is acknowledged.
    await eventually(async () => {
      const sent = (await feed.received(2)).map(({ opId, signal }) => `${opId} ${signal}`);
      expect(new Set(sent)).toEqual(new Set(['payer:s resume', 'payer:t resume']));
    });
    expect([(await deny(one)).status, (await deny(three)).status]).toEqual([409, 409]);
    const uses = await Promise.all(
      [one, two, three].flatMap((gateway, at) => [0, 1, 2].map((each) => check(gateway, `u${at}-${each}`, 'pay-1'))),
    );
    expect(uses.filter(({ decision }) => decision === 'DECISION_ALLOW').length).toBe(1);
    expect(new Set(uses.map(({ decision }) => decision))).toEqual(new Set(['DECISION_ALLOW', 'DECISION_PENDING']));
    // All others ask anew, together.
    const { approvals } = await approvalAt(one, '?state=pending&org_id=acme');
    expect(approvals.map((each: { op_ids: string[] }) => each.op_ids.length)).toEqual([8]);
    const denied = await three.call('POST', `/api/v1/approvals/${approvals[0].id}/deny`, { reason: 'enough' });
    expect(denied.status).toBe(200);
    const waiting = uses.findIndex(({ decision }) => decision === 'DECISION_PENDING');
    const [gateway, spanId] = [
      [one, two, three][Math.floor(waiting / 3)]!,
      `u${Math.floor(waiting / 3)}-${waiting % 3}`,
    ];
    await eventually(async () => expect(await opState(gateway, spanId)).toMatchObject({ ended: 'denied' }));
    expect(await check(two, spanId, 'pay-1')).toMatchObject({ cause: 'DECISION_CAUSE_APPROVAL' });
  });

  test('cancel an approval with the last operation that is terminated, wherever they live', async () => {
    const [one, two, three] = gateways();
    const { check } = await newAgent('killed');
    const { approvalId: id } = await check(one, 's', 'pay-3');
    expect((await check(two, 't', 'pay-3')).approvalId).toBe(id);
    const kill = async (span: string) =>
      expect((await three.call('POST', `/api/v1/ops/killed:${span}/terminate`)).status).toBe(200);
    const shown = async (gateway: TestGateway) => (await approvalAt(gateway, `/${id}`)).approval;
    await kill('s');
    await eventually(async () => expect(await shown(two)).toMatchObject({ state: 'pending', op_ids: ['killed:t'] }));
    await kill('t');
    await eventually(async () => expect(await shown(one)).toMatchObject({ state: 'cancelled' }));
    expect((await two.call('POST', `/api/v1/approvals/${id}/approve`, { reason: 'ok' })).status).toBe(409);
    expect(await check(two, 'u', 'pay-3')).toMatchObject(PENDING);
  });

  test('know who is behind a key that was made at another of them', async () => {
    const [one, two, three] = gateways();
    const { of } = await newAgent('asked-for');
    const make = async (gateway: TestGateway, maker?: string): Promise<string> => {
      const made = await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'n', scopes: ['admin'] }, maker);
      return made.body.key;
    };
    const alice = await make(one);
    const hers = await make(two, alice);
    const asking = { agent: of.agent, traceId: 'lineage', spanId: 's', action: 'tool.call', resource: 'pay-4' };
    const asked = await one.call('POST', '/svc.governance.v1.PolicyService/CheckAction', asking, alice);
    const id = asked.body.approvalId as string;
    const approve = (gateway: TestGateway, key: string) =>
      gateway.call('POST', `/api/v1/approvals/${id}/approve`, { reason: 'ok' }, key);
    expect(await approve(three, hers)).toMatchObject({ status: 403, body: { code: 'own_request' } });
    expect((await approve(three, await make(two))).status).toBe(200);
  });

  test('freeze an approval for a halt at another gateway, or end it for one', async () => {
    const [one, two, three] = gateways();
    const { check, scope } = await newAgent('frozen');
    const halt = (gateway: TestGateway, more = {}) =>
      gateway.call('POST', '/api/v1/halts', { scope, reason: 'an incident', ...more });
    const { approvalId: id } = await check(one, 's', 'pay-2');
    const paused = (await halt(two, { mode: 'pause' })).body.halt;
    expect((await approvalAt(three, `/${id}`)).approval.frozen_at).not.toBe(null);
    const refused = await three.call('POST', `/api/v1/approvals/${id}/approve`, { reason: 'ok' });
    expect([refused.status, refused.body.code]).toEqual([409, 'halted']);
    await three.call('POST', `/api/v1/halts/${paused.id}/release`, { reason: 'over' });
    expect((await approvalAt(one, `/${id}`)).approval).toMatchObject({ state: 'pending', frozen_at: null });
    const ended = (await halt(three)).body.halt;
    expect((await approvalAt(one, `/${id}`)).approval).toMatchObject({ state: 'cancelled' });
    await one.call('POST', `/api/v1/halts/${ended.id}/release`, { reason: 'over' });
  });
}
