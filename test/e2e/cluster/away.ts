import { expect } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import type { TestGateway } from '../../support/gateway.ts';

const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'left-alone' };
const CLOSED = { decision: 'DECISION_DENY', opState: 'OP_STATE_TERMINATED' };

/** An operation whose gateway is stopped, and told of an order when it goes on. */
export async function operationAt(home: TestGateway) {
  const agent = { org_id: AGENT.orgId, team_id: AGENT.teamId, agent_id: AGENT.agentId };
  const credentialToken = (await home.call('POST', '/api/v1/agents', { agent })).body.credential_token;
  const check = async (at: TestGateway, spanId: string) => {
    const body = { agent: AGENT, credentialToken, traceId: 'away', spanId, action: 'tool.call', resource: 'web' };
    return (await at.call('POST', '/svc.governance.v1.PolicyService/CheckAction', body, null)).body;
  };
  const order = (at: TestGateway, op: string, query: string) =>
    at.call('POST', `/api/v1/ops/away:${op}/terminate${query}`);
  const { opHome } = await check(home, 'found');
  await check(home, 'named');
  return {
    /** While it does not answer: both what is known to live there and what is looked for. */
    async isTerminatedFrom(at: TestGateway, elsewhere: TestGateway): Promise<void> {
      for (const [op, query] of [
        ['found', ''],
        ['named', `?op_home=${opHome}`],
      ] as const) {
        const { status, body, headers } = await order(at, op, query);
        expect([status, body.state, body.op_home]).toEqual([200, 'terminated', opHome]);
        expect(headers.get('svc-unconfirmed')?.split(', ')).toContain('three');
      }
      for (const op of ['found', 'named'])
        for (const gateway of [at, elsewhere]) expect((await check(gateway, op)).decision).toBe('DECISION_DENY');
    },
    /** When it goes on. */
    async isClosedThere(): Promise<void> {
      for (const op of ['found', 'named']) expect(await check(home, op)).toMatchObject(CLOSED);
      // With an entry of its own in the log of its gateway, by whoever has ordered it.
      await eventually(async () => {
        const { body } = await home.call('GET', '/api/v1/logs?event_type=OpTerminated&op_id=away:found');
        const entries = body.entries.map(({ gateway, actor }: { gateway: string; actor: string }) => [gateway, actor]);
        expect(entries.map(([gateway]: string[]) => gateway).sort()).toEqual(['three', 'two']);
        expect(new Set(entries.map(([, actor]: string[]) => actor)).size).toBe(1);
      });
    },
  };
}
