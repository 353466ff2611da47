/** Changes made by people and files, and statistics that last: both over a restart (docs/spec.md, Changes). */
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

const AGENT = { org_id: 'acme', team_id: 'search', agent_id: 'crawler' };
const TOKEN = 'token-of-crawler-0123456789-0123456789';

type Change = { kind: string; summary: string; by: string; audit_id: number; details: any };

describe('changes and statistics over a restart', () => {
  let gateway: GatewayHere;
  const dataDir = mkdtempSync(join(inject('scratch'), 'changes-'));
  const start = (env: Readonly<Record<string, string>> = {}) => startGatewayHere({ dataDir, env });
  const changes = async (query = '', key = ADMIN_KEY): Promise<Change[]> =>
    (await gateway.call('GET', `/api/v1/changes${query}`, undefined, key)).body.changes;

  beforeAll(async () => {
    gateway = await start();
    await gateway.call('POST', '/api/v1/agents', { agent: AGENT, credential_token: TOKEN });
    await gateway.call('POST', '/api/v1/halts', { scope: 'org:globex', reason: 'drill' });
    await gateway.call('POST', '/api/v1/usage', { agent: AGENT, cost_usd: 3 });
    await gateway.call(
      'POST',
      '/svc.governance.v1.PolicyService/CheckAction',
      {
        agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
        credentialToken: TOKEN,
        traceId: 't',
        spanId: 's',
        action: 'tool.call',
        resource: 'web_search',
      },
      null,
    );
  });
  afterAll(() => gateway?.stop());

  test('lists changes newest first, each with who made it and its entry', async () => {
    const listed = await changes();
    expect(listed.map(({ kind, summary }) => ({ kind, summary }))).toEqual([
      { kind: 'halt', summary: 'halt of org:globex: drill' },
      { kind: 'agent', summary: 'agent acme/search/crawler registered' },
      { kind: 'key', summary: 'key SVC_BOOTSTRAP_API_KEY created' },
    ]);
    expect(listed[0]).toMatchObject({ by: expect.stringMatching(/^key:/), details: { scope: 'org:globex' } });
    const [entry] = (await gateway.call('GET', '/api/v1/logs?event_type=HaltCreated,HaltReleased')).body.entries;
    expect(entry.id).toBe(listed[0]?.audit_id);
  });

  test('pages through changes, and refuses what it does not know', async () => {
    const first = (await gateway.call('GET', '/api/v1/changes?per_page=1')).body;
    expect(first.changes).toHaveLength(1);
    const second = (await gateway.call('GET', `/api/v1/changes?per_page=1&cursor=${first.next_cursor}`)).body;
    expect(second.changes.map(({ kind }: Change) => kind)).toEqual(['agent']);
    expect((await gateway.call('GET', '/api/v1/changes?kind=halt')).status).toBe(400);
    expect((await gateway.call('GET', '/api/v1/changes?since=yesterday')).status).toBe(400);
    expect((await gateway.call('GET', '/api/v1/logs?event_type=HaltCreated,Nothing')).body.detail).toMatch(
      /^event_type: must be one or more of /,
    );
  });

  test('shows a bound credential the changes of its org alone', async () => {
    const { key } = (
      await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'acme', scopes: ['read'], org_id: 'acme' })
    ).body;
    const own = await changes('', key);
    expect(own.map(({ summary }) => summary)).toEqual([
      'key acme created of org acme',
      'agent acme/search/crawler registered',
    ]);
    expect((await gateway.call('GET', '/api/v1/changes?org_id=globex', undefined, key)).status).toBe(403);
  });

  test('after a restart knows changed settings, secrets by name, and what was counted', async () => {
    const before = (await gateway.call('GET', '/api/v1/stats?window=7d')).body;
    expect(before).toMatchObject({ window: '7d', checks: { allow: 1 }, spend_usd: 3 });
    expect(before.minutes).toBeUndefined();
    await gateway.stop();
    gateway = await start({ SVC_MAX_OPS: '4000', SVC_SMTP_PASS: 'hunter2' });
    const [settings] = await changes('?per_page=1');
    expect(settings).toMatchObject({
      kind: 'settings',
      summary: 'settings changed: SVC_SMTP_PASS, SVC_MAX_OPS',
      by: 'gateway',
      details: {
        changed: [{ name: 'SVC_SMTP_PASS' }, { name: 'SVC_MAX_OPS', before: expect.any(Number), after: 4_000 }],
      },
    });
    expect(JSON.stringify(settings)).not.toContain('hunter2');
    const after = (await gateway.call('GET', '/api/v1/stats?window=7d')).body;
    expect(after).toMatchObject({ checks: before.checks, spend_usd: 3, top: before.top, hours: before.hours });
    expect(after.top.spenders).toEqual([{ ...AGENT, spend_usd: 3 }]);
    expect(after.top.rules).toEqual([{ policy: 'starter', rule_id: 'harmless-tools', allow: 1, deny: 0, pending: 0 }]);
  });
});
