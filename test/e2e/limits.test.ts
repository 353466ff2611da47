/** Limits of use at a real gateway: never passed, asked about, kept across a kill (docs/spec.md, Limits of use). */
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { LOAD_AGENT, LOAD_TOKEN, registerLoadAgent } from '../support/load.ts';
import { policyFile } from '../support/policies.ts';
import { openStream } from '../support/stream.ts';

const POLICY = `
name: p
scope: global
rules:
  - { id: open, effect: allow }
limits:
  - { id: race, per: session, calls: 20, resources: ["race"] }
  - { id: ask, per: session, calls: 2, resources: ["ask", "/ask/*"], on_exceed: ask, step: 1 }
  - { id: money, per: agent, usd: 1, every: 1h, resources: ["pay"] }
`;

const GOES_ON = [200, undefined];

let gateway: TestGateway;
let dataDir: string;

const start = () => startTestGateway({ dataDir, env: { SVC_POLICY_PATH: policyFile(POLICY, afterAll).path } });
const rpc = async (method: string, body: object) =>
  (
    await gateway.call(
      'POST',
      `/svc.governance.v1.${method}`,
      { agent: LOAD_AGENT, credentialToken: LOAD_TOKEN, ...body },
      null,
    )
  ).body;
const check = (traceId: string, spanId: string, resource: string, fields: object = {}) =>
  rpc('PolicyService/CheckAction', { traceId, spanId, action: 'tool.call', resource, ...fields });
const decide = (id: string, verb: string) =>
  gateway.call('POST', `/api/v1/approvals/${id}/${verb}`, { reason: 'seen' });

describe('limits', () => {
  beforeAll(async () => {
    dataDir = mkdtempSync(join(inject('scratch'), 'limits-'));
    gateway = await start();
    await registerLoadAgent(gateway);
  });
  afterAll(() => gateway?.stop('SIGKILL'));

  test('64 checks at once never pass one, and neither do more after a kill', async () => {
    const answers = await Promise.all(Array.from({ length: 64 }, (_, nth) => check('race', `s${nth}`, 'race')));
    const allowed = answers.filter(({ decision }) => decision === 'DECISION_ALLOW');
    expect(allowed).toHaveLength(20);
    const denied = answers.find(({ decision }) => decision === 'DECISION_DENY');
    expect(denied).toMatchObject({ cause: 'DECISION_CAUSE_LIMIT', policy: 'p' });
    const { entries } = (await gateway.call('GET', '/api/v1/logs?cause=limit&per_page=1')).body;
    expect(entries[0]).toMatchObject({
      event_type: 'ActionDenied',
      cause: 'limit',
      payload: { limit: { policy: 'p', id: 'race', per: 'session', key: 'race', used: 20, max: 20 } },
    });
    for (let nth = 0; nth < 5; nth += 1) await check('killed', `s${nth}`, 'race');
    expect((await check('money', 's', 'pay', { estimatedCostUsd: 0.5 })).decision).toBe('DECISION_ALLOW');
    await rpc('AgentService/CompleteOp', { opId: 'money:s', costUsd: 0.9 });
    await gateway.stop('SIGKILL');
    gateway = await start();
    expect((await check('race', 'late', 'race')).cause).toBe('DECISION_CAUSE_LIMIT');
    const rest = await Promise.all(Array.from({ length: 30 }, (_, nth) => check('killed', `r${nth}`, 'race')));
    expect(rest.filter(({ decision }) => decision === 'DECISION_ALLOW')).toHaveLength(15);
    const dear = await check('money', 'late', 'pay', { estimatedCostUsd: 0.2 });
    expect(dear).toMatchObject({ decision: 'DECISION_DENY', cause: 'DECISION_CAUSE_LIMIT' });
    expect(Date.parse(dear.resetsAt)).toBeGreaterThan(Date.now());
    expect((await check('money', 'small', 'pay', { estimatedCostUsd: 0.1 })).decision).toBe('DECISION_ALLOW');
  });

  test('a check that waits goes on once a person has raised the limit', async () => {
    for (const span of ['1', '2']) expect((await check('asks', span, 'ask')).decision).toBe('DECISION_ALLOW');
    const asked = await check('asks', '3', 'ask');
    expect(asked).toMatchObject({ decision: 'DECISION_PENDING', opState: 'OP_STATE_PENDING', policy: 'p' });
    const waiting = rpc('ApprovalService/WaitApproval', { approvalId: asked.approvalId });
    const { approval } = (await gateway.call('GET', `/api/v1/approvals/${asked.approvalId}`)).body;
    expect(approval).toMatchObject({
      kind: 'limit',
      limit: { policy: 'p', id: 'ask', per: 'session', key: 'asks', unit: 'calls', used: 2, max: 2 },
      step: 1,
    });
    expect((await decide(asked.approvalId, 'approve')).status).toBe(200);
    expect((await waiting).state).toBe('APPROVAL_STATE_APPROVED');
    expect((await check('asks', '3', 'ask')).decision).toBe('DECISION_ALLOW');
    const again = await check('asks', '4', 'ask');
    expect(again.decision).toBe('DECISION_PENDING');
    await decide(again.approvalId, 'deny');
    expect(await check('asks', '4', 'ask')).toMatchObject({ cause: 'DECISION_CAUSE_LIMIT' });
    expect(await check('asks', '5', 'ask')).toMatchObject({ cause: 'DECISION_CAUSE_LIMIT' });
  });

  test('are listed, the fullest first, and tell their readers at 80 and 100 percent', async () => {
    const stream = await openStream(gateway, '?types=limit');
    for (const span of ['1', '2']) await check('watched', span, 'ask');
    for (const trace of ['few', 'more']) await check(trace, '1', 'race');
    await check('more', '2', 'race');
    const levels = await eventually(async () => {
      const frames = stream.frames.filter(({ payload }) => payload.key === 'watched');
      expect(frames).toHaveLength(2);
      return frames;
    });
    expect(levels).toMatchObject([
      { event_type: 'limit', org_id: LOAD_AGENT.orgId, payload: { id: 'ask', percent: 80, used: 2, max: 2 } },
      { event_type: 'limit', org_id: LOAD_AGENT.orgId, payload: { id: 'ask', percent: 100, used: 2, max: 2 } },
    ]);
    await stream.close();
    const list = async (query: string) => (await gateway.call('GET', `/api/v1/limits?${query}`)).body;
    const all = await list('policy=p&limit=race&per=session');
    const keys = all.limits.map(({ key }: any) => key);
    expect(keys).toEqual(['killed', 'race', 'more', 'few']);
    expect(all.limits[0]).toEqual({
      ...{ policy: 'p', id: 'race', per: 'session', key: 'killed', org_id: LOAD_AGENT.orgId, unit: 'calls' },
      ...{ used: 20, reserved: 0, max: 20, raised: 0, resets_at: null },
    });
    const first = await list('limit=race&per_page=3');
    const rest = await list(`limit=race&per_page=3&cursor=${encodeURIComponent(first.next_cursor)}`);
    expect([...first.limits, ...rest.limits].map(({ key }) => key)).toEqual(keys);
    expect(rest.next_cursor).toBeNull();
    expect((await list('limit=ask')).limits.find(({ key }: any) => key === 'asks')).toMatchObject({
      used: 3,
      max: 3,
      raised: 1,
    });
    expect((await list('org_id=globex')).limits).toEqual([]);
    expect((await gateway.call('GET', '/api/v1/limits?cursor=x')).status).toBe(400);
    expect((await gateway.call('GET', '/api/v1/limits?per=user')).status).toBe(400);
    const explained = await gateway.call('POST', '/api/v1/policies/explain', {
      agent: { org_id: LOAD_AGENT.orgId, team_id: LOAD_AGENT.teamId, agent_id: LOAD_AGENT.agentId },
      action: 'tool.call',
      resource: 'pay',
      estimated_cost_usd: 1,
    });
    expect(explained.body.overruled_by).toMatchObject({ cause: 'limit' });
    const about = (trace_id: string | undefined) =>
      gateway.call('POST', '/api/v1/policies/explain', {
        agent: { org_id: LOAD_AGENT.orgId, team_id: LOAD_AGENT.teamId, agent_id: LOAD_AGENT.agentId },
        ...{ action: 'tool.call', resource: 'ask', trace_id },
      });
    expect((await about('asks')).body.overruled_by.reason).toContain('the limit of 3 calls per session');
    expect((await about('other')).body.overruled_by).toBeNull();
    expect((await about(undefined)).body.overruled_by).toBeNull();
    expect((await about('a b')).body.detail).toContain('trace_id');
  });

  test('a hook of a coding agent is held until a person has raised the limit', async () => {
    const read = async (nth: number) => {
      const response = await fetch(`${gateway.url}/api/v1/hooks/claude-code`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${LOAD_TOKEN}` },
        body: JSON.stringify({
          session_id: 'coder',
          cwd: '/ask',
          hook_event_name: 'PreToolUse',
          tool_name: 'Read',
          tool_use_id: `toolu_${nth}`,
          tool_input: { file_path: `/ask/${nth}` },
        }),
      });
      // An answer without an opinion lets the tool run.
      return [response.status, ((await response.json()) as any).hookSpecificOutput?.permissionDecision];
    };
    expect([await read(1), await read(2)]).toEqual([GOES_ON, GOES_ON]);
    const held = read(3);
    await eventually(async () => {
      const { approvals } = (await gateway.call('GET', '/api/v1/approvals?state=pending')).body;
      const [found] = approvals.filter((each: any) => each.limit?.key === 'coder');
      expect(found).toBeDefined();
      await decide(found.id, 'approve');
    });
    expect(await held).toEqual(GOES_ON);
  });
});
