/** The interceptor of AGENT-HOOKS-0.1 against the real command. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DoorAgent, newestEntries, registerAgent } from '../../support/door-agent.ts';
import { eventually } from '../../support/eventually.ts';
import { ADMIN_KEY } from '../../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../../support/gateway-here.ts';
import { policyFile } from '../../support/policies.ts';

const POLICIES = `
name: tools
scope: global
rules:
  - { id: search, actions: [tool.call], resources: [search], effect: allow }
  - { id: danger, actions: [tool.call], resources: [danger], effect: deny, reason: too dangerous }
  - { id: ask, actions: [tool.call], resources: [pay], effect: require_approval, reason: money leaves }
  - id: refunds
    actions: [tool.call]
    resources: [refund]
    effect: allow
    obligations:
      - { id: little, type: cap, path: amount, max: 100 }
      - { id: look, type: notify, message: a refund }
  - id: rows
    actions: [tool.call]
    resources: [rows]
    effect: allow
    obligations: [{ id: hide, type: redact, paths: [result.iban] }]
`;

let gateway: GatewayHere;
let agent: DoorAgent;
let approver: string;
beforeAll(async () => {
  const { path } = policyFile(POLICIES, afterAll);
  gateway = await startGatewayHere({ env: { SVC_POLICY_PATH: path } });
  agent = await registerAgent(gateway, 'acme/chat/assistant');
  approver = (await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'boss', scopes: ['admin'] })).body.key;
});
afterAll(async () => void (await gateway?.stop()));

let calls = 0;
/** A context as a host makes it; `call-<n>` in the session `chat`. */
const calling = (name: string, args: object = {}) => ({
  spec: 'agent-hooks/0.1',
  interception_point: 'pre_tool_call',
  timestamp: '2026-11-28T12:00:00Z',
  sequence: 3,
  agent: { id: 'assistant', framework: 'agent-framework' },
  session: { id: 'chat' },
  tool_call: { id: `call-${++calls}`, name, args },
  target: args,
});
const returning = (context: ReturnType<typeof calling>, isError = false) => ({
  ...context,
  interception_point: 'post_tool_call',
  tool_result: { value: 'a secret result', is_error: isError },
  target: 'a secret result',
});
const opOf = ({ tool_call }: ReturnType<typeof calling>) => `chat:${tool_call.id}`;

async function intercept(context: unknown, bearer: string | null = agent.token, headers: Record<string, string> = {}) {
  const response = await fetch(`${gateway.url}/v1/agent-hooks/intercept`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
      ...headers,
    },
    body: typeof context === 'string' ? context : JSON.stringify(context),
  });
  return { status: response.status, body: (await response.json()) as any };
}

describe('the interceptor of agent-hooks', () => {
  test('allows a tool call, and completes its operation after it', async () => {
    const context = calling('search', { q: 'x' });
    expect(await intercept(context)).toEqual({
      status: 200,
      body: {
        decision: 'allow',
        evidence: { verification_pointers: { audit_id: expect.stringMatching(/^\d+$/), op_id: opOf(context) } },
      },
    });
    expect((await gateway.call('GET', `/api/v1/ops/${opOf(context)}`)).body.state).toBe('running');
    expect((await intercept(returning(context))).body).toEqual({ decision: 'allow' });
    const [entry] = await newestEntries(gateway, 1);
    expect(entry).toMatchObject({ event_type: 'OpCompleted', op_id: opOf(context), payload: { outcome: 'success' } });
    expect(JSON.stringify(entry)).not.toContain('a secret result');
  });

  test('completes as failed what the host calls an error', async () => {
    const context = calling('search');
    await intercept(context);
    await intercept(returning(context, true));
    const [entry] = await newestEntries(gateway, 1);
    expect(entry.payload.outcome).toBe('failure');
  });

  test('denies with the cause as reason', async () => {
    expect((await intercept(calling('danger'))).body).toMatchObject({
      decision: 'deny',
      reason: 'rule',
      message: 'too dangerous (rule danger of policy tools)',
    });
    expect((await intercept(calling('unknown'))).body).toMatchObject({ decision: 'deny', reason: 'no_rule' });
  });

  test('transforms the target as obligations say, and warns of notices', async () => {
    expect((await intercept(calling('refund', { amount: 500, order: 'o1' }))).body).toMatchObject({
      decision: 'transform',
      transform: { path: '$target', value: { amount: 100, order: 'o1' } },
      warnings: [{ reason: 'look', message: 'a refund' }],
    });
    expect((await intercept(calling('refund', { amount: 5 }))).body).toMatchObject({
      decision: 'allow',
      warnings: [{ reason: 'look', message: 'a refund' }],
    });
  });

  test('denies an allow whose obligations are about the result', async () => {
    const context = calling('rows');
    expect((await intercept(context)).body).toMatchObject({ decision: 'deny', reason: 'obligation' });
    const [entry] = await newestEntries(gateway, 1);
    expect(entry).toMatchObject({ event_type: 'OpCompleted', op_id: opOf(context), payload: { outcome: 'failure' } });
  });

  test('a pending call is a deny that an approval lifts, once', async () => {
    const context = calling('pay', { amount: 5 });
    const first = (await intercept(context)).body;
    expect(first).toMatchObject({ decision: 'deny', reason: 'approval', approval: { id: expect.any(String) } });
    expect((await intercept(context)).body.approval).toEqual(first.approval);
    await gateway.call('POST', `/api/v1/approvals/${first.approval.id}/approve`, { reason: 'fine' }, approver);
    expect((await intercept(context)).body.decision).toBe('allow');
    expect((await intercept(returning(context))).body).toEqual({ decision: 'allow' });
    expect((await intercept(calling('pay', { amount: 5 }))).body.approval.id).not.toBe(first.approval.id);
  });

  test('holds the end of a paused operation, and denies that of a terminated one', async () => {
    const paused = calling('search');
    await intercept(paused);
    await gateway.call('POST', `/api/v1/ops/${opOf(paused)}/pause`);
    let ended = false;
    const ending = intercept(returning(paused)).then((answer) => {
      ended = true;
      return answer;
    });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(ended).toBe(false);
    await gateway.call('POST', `/api/v1/ops/${opOf(paused)}/resume`);
    expect((await ending).body).toEqual({ decision: 'allow' });

    const terminated = calling('search');
    await intercept(terminated);
    await gateway.call('POST', `/api/v1/ops/${opOf(terminated)}/terminate`);
    expect((await intercept(returning(terminated))).body).toMatchObject({
      decision: 'deny',
      reason: 'operation_state',
    });
  });

  test('lets the points pass at which it decides nothing', async () => {
    for (const interception_point of ['agent_startup', 'input', 'pre_model_call', 'output', 'agent_shutdown'])
      expect(await intercept({ ...calling('search'), interception_point })).toEqual({
        status: 200,
        body: { decision: 'allow' },
      });
  });

  test('a result of a call that was never asked for completes nothing', async () => {
    expect((await intercept(returning(calling('search')))).body).toEqual({ decision: 'allow' });
  });

  test.each([
    ['no JSON', '{'],
    ['a list', []],
    ['another standard', { ...calling('search'), spec: 'agent-hooks/1.0' }],
    ['an unknown point', { ...calling('search'), interception_point: 'pre_lunch' }],
    ['no session', { ...calling('search'), session: {} }],
    ['no tool call', { ...calling('search'), tool_call: undefined }],
    ['no arguments', { ...calling('search'), tool_call: { id: 'c', name: 'search' } }],
    ['no result', { ...calling('search'), interception_point: 'post_tool_call' }],
    ['another target than the arguments', { ...calling('search', { q: 'x' }), target: { q: 'rm' } }],
    ['a target with one member more', { ...calling('search', { q: 'x' }), target: { q: 'x', also: 1 } }],
  ])('%s is refused, and on record', async (_what, context) => {
    expect((await intercept(context)).status).toBe(400);
    const [entry] = await newestEntries(gateway, 1);
    expect(entry.event_type).toBe('ActionDenied');
  });

  test('the credential says whose call it is', async () => {
    const context = calling('search');
    expect((await intercept(context, null)).status).toBe(401);
    expect((await intercept(context, 'svcagent_wrong')).status).toBe(401);
    const foreign = await intercept(context, agent.token, { 'x-svc-agent': 'acme/chat/other' });
    expect(foreign.body).toMatchObject({ decision: 'deny', reason: 'credential' });
    expect((await intercept(context, ADMIN_KEY)).body).toMatchObject({ decision: 'deny', reason: 'credential' });
    const spoken = await intercept(context, ADMIN_KEY, { 'x-svc-agent': 'acme/chat/assistant' });
    expect(spoken.body.decision).toBe('allow');
    const [impersonated] = (await gateway.call('GET', '/api/v1/logs?event_type=A2AImpersonationAttempted')).body
      .entries;
    expect(impersonated.payload).toMatchObject({ action: 'tool.call', resource: 'search' });
  });

  test('ids that an operation cannot have are replaced, the same each time', async () => {
    const context = { ...calling('search'), session: { id: 'a:b c' } };
    const first = (await intercept(context)).body.evidence.verification_pointers.op_id;
    expect(first).toMatch(/^[0-9a-f]{32}:call-\d+$/);
    expect((await intercept(context)).body.evidence.verification_pointers.op_id).toBe(first);
    await eventually(async () => expect((await intercept(returning(context))).body).toEqual({ decision: 'allow' }));
  });
});
