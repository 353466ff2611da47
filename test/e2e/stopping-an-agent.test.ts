/** The order of the handbook: An agent that must be stopped. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { connectAgent } from '../support/agent.ts';
import { startGatewayHere } from '../support/gateway-here.ts';

const WORK = 'name: work\nscope: global\nrules:\n  - { id: tools, actions: ["tool.call"], effect: allow }\n';
const CRAWLER = { org_id: 'acme', team_id: 'search', agent_id: 'crawler' };
const TOKEN = 'the-token-of-crawler-0123456789-0123456789';

describe('stopping an agent', () => {
  test('stopping an agent as documented blocks new work, ends running work and its key', async () => {
    const policies = mkdtempSync(join(tmpdir(), 'svc-policies-'));
    onTestFinished(() => rmSync(policies, { recursive: true, force: true }));
    writeFileSync(join(policies, 'work.yaml'), WORK);
    const gateway = await startGatewayHere({ env: { SVC_POLICY_PATH: policies } });
    onTestFinished(async () => {
      await gateway.stop();
    });
    const {
      body: { id: keyId, key },
    } = await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'fleet', scopes: ['write'], org_id: 'acme' });
    const register = () => gateway.call('POST', '/api/v1/agents', { agent: CRAWLER, credential_token: TOKEN }, key);
    expect((await register()).status).toBe(201);
    const agent = connectAgent(gateway.grpc, { orgId: 'acme', teamId: 'search', agentId: 'crawler' }, TOKEN);
    onTestFinished(() => agent.close());
    const feed = await agent.control();
    const [told, missed] = [(await agent.check('told')).opId, (await agent.check('missed')).opId];
    const stateOf = async (opId: string) => (await gateway.call('GET', `/api/v1/ops/${opId}`)).body;

    // Nothing new begins, and what runs hears its end, and obeys.
    const halted = await gateway.call('POST', '/api/v1/halts', {
      scope: 'lineage:acme/search/crawler',
      reason: 'frozen',
    });
    expect(halted.status).toBe(201);
    const signals = await feed.received(2);
    expect(signals.map(({ opId, signal }) => [opId, signal]).sort()).toEqual(
      [told, missed].map((opId) => [opId, 'terminate']).sort(),
    );
    expect(await agent.check('late')).toMatchObject({ decision: 'deny', cause: 'halt' });
    await agent.acknowledge(told, signals.find(({ opId }) => opId === told)!.sequence);
    expect(await stateOf(told)).toMatchObject({ state: 'terminated', acknowledged_at: expect.any(String) });
    expect(await stateOf(missed)).toMatchObject({ state: 'terminated', acknowledged_at: null });

    // Its key brings it back no more. That alone leaves its own token good.
    expect((await gateway.call('POST', `/api/v1/iam/api-keys/${keyId}/revoke`)).status).toBe(204);
    expect((await register()).status).toBe(401);
    expect(await agent.check('still')).toMatchObject({ decision: 'deny', cause: 'halt' });
    expect((await gateway.call('DELETE', '/api/v1/agents/acme/search/crawler')).status).toBe(204);
    expect(await feed.ended).toBe('UNAUTHENTICATED');
    expect(await agent.check('gone')).toMatchObject({ decision: 'deny', ruleId: '', opState: 'unspecified' });

    // A new token under the same name is stopped as well, until the halt is released.
    const again = await gateway.call('POST', '/api/v1/agents', { agent: CRAWLER });
    const anew = connectAgent(
      gateway.grpc,
      { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
      again.body.credential_token,
    );
    onTestFinished(() => anew.close());
    expect(await anew.check('early')).toMatchObject({ decision: 'deny', cause: 'halt' });
    const release = { reason: 'new key, new token' };
    expect((await gateway.call('POST', `/api/v1/halts/${halted.body.halt.id}/release`, release)).status).toBe(200);
    expect(await anew.check('mended')).toMatchObject({ decision: 'allow' });
  });
});
