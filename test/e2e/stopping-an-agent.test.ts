/** The order of the handbook: An agent that must be stopped. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { connectAgent } from '../support/agent.ts';
import { startTestGateway } from '../support/gateway.ts';

const WORK = 'name: work\nscope: global\nrules:\n  - { id: tools, actions: ["tool.call"], effect: allow }\n';
const INCIDENT = `name: incident
scope: global
rules:
  - id: frozen
    actions: ["*"]
    when: agent.org_id == "acme" && agent.agent_id in ["crawler", "crawler-part"]
    effect: deny
    reason: frozen by security
`;
const CRAWLER = { org_id: 'acme', team_id: 'search', agent_id: 'crawler' };
const TOKEN = 'the-token-of-crawler-0123456789-0123456789';

describe('stopping an agent', () => {
  test('stopping an agent as documented blocks new work, ends running work and its key', async () => {
    const policies = mkdtempSync(join(tmpdir(), 'svc-policies-'));
    onTestFinished(() => rmSync(policies, { recursive: true, force: true }));
    writeFileSync(join(policies, 'work.yaml'), WORK);
    const gateway = await startTestGateway({ env: { SVC_POLICY_PATH: policies } });
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

    // Nothing new begins, and what runs is left alone.
    writeFileSync(join(policies, 'incident.yaml'), INCIDENT);
    expect((await gateway.call('POST', '/api/v1/policies/reload')).status).toBe(200);
    expect(await agent.check('late')).toMatchObject({
      decision: 'deny',
      ruleId: 'frozen',
      cause: 'rule',
      opState: 'terminated',
    });
    expect(await agent.check('told')).toMatchObject({
      decision: 'deny',
      ruleId: 'frozen',
      cause: 'rule',
      opState: 'running',
    });

    // What runs hears its end, and obeys.
    await gateway.call('POST', `/api/v1/ops/${told}/terminate`);
    const [signal] = await feed.received(1);
    expect(signal).toMatchObject({ opId: told, signal: 'terminate' });
    await agent.acknowledge(told, signal!.sequence);
    expect(await stateOf(told)).toMatchObject({ state: 'terminated', acknowledged_at: expect.any(String) });

    // Its key brings it back no more. That alone leaves its own token good.
    expect((await gateway.call('POST', `/api/v1/iam/api-keys/${keyId}/revoke`)).status).toBe(204);
    expect((await register()).status).toBe(401);
    expect(await agent.check('still')).toMatchObject({ decision: 'deny', ruleId: 'frozen' });
    expect((await gateway.call('DELETE', '/api/v1/agents/acme/search/crawler')).status).toBe(204);
    expect(await feed.ended).toBe('UNAUTHENTICATED');
    expect(await agent.check('gone')).toMatchObject({ decision: 'deny', ruleId: '', opState: 'unspecified' });

    // What was forgotten runs on, and is ended without the agent being told.
    expect(await stateOf(missed)).toMatchObject({ state: 'running' });
    expect((await gateway.call('POST', `/api/v1/ops/${missed}/terminate`)).status).toBe(200);
    expect(await stateOf(missed)).toMatchObject({ state: 'terminated', acknowledged_at: null });
    expect(feed.signals).toHaveLength(1);
  });
});
