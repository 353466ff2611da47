/** The third answer: asked, decided by people, used once (docs/spec.md, Approvals). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { LOAD_AGENT, LOAD_TOKEN, registerLoadAgent } from '../support/load.ts';
import { policyFile } from '../support/policies.ts';

const POLICY = `
name: p
scope: global
rules:
  - { id: open, effect: allow }
  - { id: ask, actions: ["tool.call"], resources: ["pay*"], effect: require_approval, reason: money leaves }
  - { id: two, actions: ["tool.call"], resources: ["two"], effect: require_approval, approval: { min: 2 } }
  - { id: brief, actions: ["tool.call"], resources: ["brief"], effect: require_approval, approval: { expires: 1s } }
  - { id: often, actions: ["tool.call"], resources: ["often"], effect: require_approval, approval: { valid: 1h } }
  - { id: named, actions: ["tool.call"], resources: ["named"], effect: require_approval, approval: { approvers: ["key:boss"] } }
  - id: chief
    actions: [tool.call]
    resources: [chief]
    effect: require_approval
    approval: { approvers: ["key:chief", "key:racer"] }
  - id: refunds
    actions: [refund]
    effect: allow
    obligations:
      - { id: little, type: cap, path: amount, max: 100 }
      - { id: hide, type: redact, paths: [card.number, result.iban] }
  - { id: big-refunds, actions: [refund], resources: [big], effect: require_approval }
  - { id: never, actions: ["tool.call"], resources: ["payroll"], effect: deny }
`;

let gateway: TestGateway;
/** The trace of the operations of one test; their arguments hold it too, so that no two tests share an approval. */
let trace = 't0';
let tests = 0;

const rpc = async (method: string, body: object, to = gateway) =>
  (
    await to.call(
      'POST',
      `/svc.governance.v1.${method}`,
      { agent: LOAD_AGENT, credentialToken: LOAD_TOKEN, ...body },
      null,
    )
  ).body;
const check = (
  spanId: string,
  { attributes, ...fields }: { readonly attributes?: object; [key: string]: unknown } = {},
  to = gateway,
) =>
  rpc(
    'PolicyService/CheckAction',
    {
      traceId: trace,
      spanId,
      action: 'tool.call',
      resource: 'pay',
      attributes: { trace, ...attributes },
      ...fields,
    },
    to,
  );
const decide = (id: string, verb: string, bearer?: string) =>
  gateway.call('POST', `/api/v1/approvals/${id}/${verb}`, { reason: 'seen' }, bearer);
const approvalOf = async (id: string, to = gateway) => (await to.call('GET', `/api/v1/approvals/${id}`)).body.approval;
const keyOf = async (fields: object = {}): Promise<string> =>
  (await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'boss', scopes: ['admin'], ...fields })).body.key;
const sorted = (entries: readonly { event_type: string }[]) => entries.map(({ event_type: type }) => type).sort();

describe('approvals', () => {
  beforeAll(async () => {
    gateway = await startTestGateway({ env: { SVC_POLICY_PATH: policyFile(POLICY, afterAll).path } });
    await registerLoadAgent(gateway);
  });
  afterAll(() => gateway?.stop('SIGKILL'));
  beforeEach(() => {
    tests += 1;
    trace = `t${tests}`;
  });

  test('a check waits, is approved, runs once, and asks anew after that', async () => {
    const asked = await check('a', { attributes: { to: 'x', api_key: 'sk-123456789012345678901234' } });
    expect(asked).toMatchObject({
      decision: 'DECISION_PENDING',
      opState: 'OP_STATE_PENDING',
      ruleId: 'ask',
      reason: 'money leaves (rule ask of policy p)',
    });
    const id = asked.approvalId;
    const shown = await approvalOf(id);
    expect(shown).toMatchObject({
      id,
      state: 'pending',
      digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      agent: { org_id: LOAD_AGENT.orgId },
      op_id: `${trace}:a`,
      action: 'tool.call',
      resource: 'pay',
      attributes: { trace, to: 'x', api_key: '[redacted]' },
      estimated_cost_usd: 0,
      policy: 'p',
      rule_id: 'ask',
      decisions: [],
    });
    const same = { attributes: { to: 'x', api_key: 'sk-123456789012345678901234' } };
    expect((await check('b', same)).approvalId).toBe(id);
    expect((await check('c', { attributes: { to: 'y' } })).approvalId).not.toBe(id);
    expect(await decide(id, 'approve')).toMatchObject({
      status: 200,
      body: { approval: { state: 'approved' } },
    });
    expect(await decide(id, 'deny')).toMatchObject({ status: 409, body: { code: 'invalid_transition' } });
    const [one, other] = await Promise.all([check('a', same), check('b', same)]);
    expect([one.decision, other.decision].sort()).toEqual(['DECISION_ALLOW', 'DECISION_PENDING']);
    const winner = one.decision === 'DECISION_ALLOW' ? 'a' : 'b';
    expect(await approvalOf(id)).toMatchObject({ state: 'used', used_by: [`${trace}:${winner}`] });
    expect(await check(winner, same)).toMatchObject({
      decision: 'DECISION_ALLOW',
      opState: 'OP_STATE_RUNNING',
    });
  });

  test('let one of any number of racing uses win, and the others wait for another', async () => {
    const spans = Array.from({ length: 32 }, (_, n) => `race-${n}`);
    const asked = await Promise.all(spans.map((span) => check(span)));
    const ids = new Set(asked.map(({ approvalId }) => approvalId));
    expect(ids.size).toBe(1);
    const [id = ''] = ids;
    await decide(id, 'approve');
    const answers = await Promise.all(spans.map((span) => check(span)));
    const allowed = answers.filter(({ decision }) => decision === 'DECISION_ALLOW');
    expect(allowed.map(({ approvalId }) => approvalId)).toEqual([id]);
    const others = answers.filter(({ decision }) => decision === 'DECISION_PENDING');
    expect(others).toHaveLength(31);
    expect(new Set(others.map(({ approvalId }) => approvalId)).size).toBe(1);
    expect(others[0].approvalId).not.toBe(id);
  });

  test('a dry run answers pending and creates nothing', async () => {
    const before = (await gateway.call('GET', '/api/v1/approvals')).body;
    const answer = await check('a', { dryRun: true });
    expect(answer.decision).toBe('DECISION_PENDING');
    expect(answer.approvalId).toBeUndefined();
    expect((await gateway.call('GET', '/api/v1/approvals')).body).toEqual(before);
    expect((await gateway.call('GET', `/api/v1/ops/${trace}:a`)).status).toBe(404);
  });

  test('a deny rule wins, before and after an approval', async () => {
    expect((await check('a', { resource: 'payroll' })).decision).toBe('DECISION_DENY');
  });

  test('forbid the requester to approve, take two for min, and may be restricted by name', async () => {
    const asked = (
      await gateway.call('POST', '/svc.governance.v1.PolicyService/CheckAction', {
        agent: LOAD_AGENT,
        traceId: trace,
        spanId: 'bearer',
        action: 'tool.call',
        resource: 'pay',
      })
    ).body;
    const own = await decide(asked.approvalId, 'approve');
    expect(own).toMatchObject({ status: 403, body: { code: 'own_request' } });
    const boss = await keyOf();
    const writer = await keyOf({ name: 'writer', scopes: ['write'] });
    expect((await decide(asked.approvalId, 'approve', writer)).body.code).toBe('insufficient_scope');
    expect((await decide(asked.approvalId, 'approve', boss)).status).toBe(200);

    const two = (await check('two', { resource: 'two' })).approvalId;
    expect((await decide(two, 'approve')).body.approval.state).toBe('pending');
    expect(await decide(two, 'approve')).toMatchObject({
      status: 200,
      body: { approval: { state: 'pending' } },
    });
    expect((await decide(two, 'approve', boss)).body.approval.state).toBe('approved');

    const named = (await check('named', { resource: 'named' })).approvalId;
    expect(await decide(named, 'approve')).toMatchObject({ status: 403, body: { code: 'not_approver' } });
    expect((await decide(named, 'approve', boss)).status).toBe(200);
  });

  test('keys that a person makes are that person, for minimum, own requests and names', async () => {
    const alice = await keyOf({ name: 'alice' });
    const madeBy = async (maker: string, fields: object): Promise<string> =>
      (await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'n', scopes: ['admin'], ...fields }, maker)).body.key;
    const second = await madeBy(alice, {});
    const third = await madeBy(second, {});
    const bob = await keyOf({ name: 'bob' });

    const two = (await check('two', { resource: 'two' })).approvalId;
    for (const key of [alice, second, third])
      expect(await decide(two, 'approve', key)).toMatchObject({
        status: 200,
        body: { approval: { state: 'pending' } },
      });
    expect((await decide(two, 'approve', bob)).body.approval).toMatchObject({ state: 'approved', decisions: [{}, {}] });

    const asking = {
      agent: LOAD_AGENT,
      traceId: trace,
      spanId: 'own',
      action: 'tool.call',
      resource: 'pay',
      attributes: { trace },
    };
    const asked = (await gateway.call('POST', '/svc.governance.v1.PolicyService/CheckAction', asking, third)).body;
    for (const key of [alice, second, third])
      expect(await decide(asked.approvalId, 'approve', key)).toMatchObject({
        status: 403,
        body: { code: 'own_request' },
      });
    expect((await decide(asked.approvalId, 'approve', bob)).status).toBe(200);

    const named = (await check('named', { resource: 'chief' })).approvalId;
    const forged = await madeBy(alice, { name: 'chief', scopes: ['read'] });
    expect(await decide(named, 'approve', forged)).toMatchObject({ status: 403, body: { code: 'not_approver' } });
    const taken = await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'Chief', scopes: ['read'] });
    expect(taken).toMatchObject({ status: 409, body: { code: 'conflict', detail: expect.stringContaining('Chief') } });
    const { api_keys: keys } = (await gateway.call('GET', '/api/v1/iam/api-keys')).body;
    const { id } = keys.find(({ name }: { name: string }) => name === 'chief');
    await gateway.call('POST', `/api/v1/iam/api-keys/${id}/revoke`);
    const chief = await keyOf({ name: 'chief', scopes: ['read'] });
    expect((await decide(named, 'approve', chief)).body.approval.state).toBe('approved');
  });

  test('leave one of several keys made at once with the name of an approver', async () => {
    const make = () => gateway.call('POST', '/api/v1/iam/api-keys', { name: 'racer', scopes: ['read'] });
    const made = await Promise.all(Array.from({ length: 8 }, make));
    expect(made.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409, 409, 409, 409]);
  });

  const LITTLE = { id: 'little', type: 'cap', properties: { path: 'amount', max: 100 } };
  const HIDE = { id: 'hide', type: 'redact', properties: { paths: ['card.number', 'result.iban'] } };

  test('obligations come with an allow, also after an approval, if they are supported', async () => {
    const refund = (spanId: string, supportedObligations?: readonly string[], resource = 'small') =>
      check(spanId, { action: 'refund', resource, ...(supportedObligations && { supportedObligations }) });
    expect(await refund('none')).toMatchObject({
      decision: 'DECISION_DENY',
      cause: 'DECISION_CAUSE_OBLIGATION',
      opState: 'OP_STATE_TERMINATED',
    });
    const both = ['redact', 'cap', 'watermark'];
    expect(await refund('both', both)).toMatchObject({ decision: 'DECISION_ALLOW', obligations: [LITTLE, HIDE] });
    const asked = await refund('big', both, 'big');
    expect(asked).toMatchObject({ decision: 'DECISION_PENDING', ruleId: 'big-refunds' });
    expect(asked.obligations).toBeUndefined();
    await decide(asked.approvalId, 'approve');
    expect(await refund('big', both, 'big')).toMatchObject({
      decision: 'DECISION_ALLOW',
      approvalId: asked.approvalId,
      obligations: [LITTLE, HIDE],
    });
    const { entries } = (await gateway.call('GET', `/api/v1/logs?op_id=${trace}:both`)).body;
    expect(entries[0]).toMatchObject({ event_type: 'ActionAllowed', payload: { obligations: ['little', 'hide'] } });
  });

  test('AuthZEN and OPA take what is supported, and answer with obligations or the cause', async () => {
    const post = async (path: string, body: object) =>
      (await gateway.call('POST', path, body, LOAD_TOKEN)).body as Record<string, any>;
    const evaluate = (resource: string, context: object) =>
      post('/access/v1/evaluation', {
        subject: { type: 'user', id: trace },
        action: { name: 'refund' },
        resource: { type: 'payment', id: resource },
        context,
      });
    const supported_obligations = ['cap', 'redact'];
    expect(await evaluate('small', {})).toMatchObject({ decision: false, context: { cause: 'obligation' } });
    expect(await evaluate('small', { supported_obligations })).toMatchObject({
      decision: true,
      context: { cause: null, obligations: [LITTLE, HIDE] },
    });
    const op = { trace_id: trace, span_id: 'authzen', supported_obligations };
    const asked = (await evaluate('big', op)).context;
    expect(asked).toMatchObject({ cause: 'approval', approval_id: expect.any(String), rule_id: 'big-refunds' });
    await decide(asked.approval_id, 'approve');
    expect(await evaluate('big', op)).toMatchObject({
      decision: true,
      context: { cause: null, approval_id: asked.approval_id, op_id: `${trace}:authzen`, obligations: [LITTLE, HIDE] },
    });

    const opa = async (resource: string, more: object) =>
      (
        await post('/v1/data/svc/authz/decision', {
          input: { action: 'refund', resource, attributes: { trace }, ...more },
        })
      ).result;
    expect(await opa('small', {})).toMatchObject({ decision: 'deny', cause: 'obligation' });
    expect(await opa('small', { supported_obligations })).toMatchObject({
      decision: 'allow',
      obligations: [LITTLE, HIDE],
    });
    expect(await opa('big', { trace_id: trace, span_id: 'opa', supported_obligations })).toMatchObject({
      decision: 'requires-approval',
      cause: 'approval',
      approval_id: expect.any(String),
    });
  });

  test('a denial ends the operation, and a new one asks anew', async () => {
    const { approvalId } = await check('a');
    const waiting = rpc('ApprovalService/WaitApproval', { approvalId });
    expect((await decide(approvalId, 'deny')).body.approval.state).toBe('denied');
    expect(await waiting).toMatchObject({ approvalId, state: 'APPROVAL_STATE_DENIED', reason: 'seen' });
    expect(await check('a')).toMatchObject({
      decision: 'DECISION_DENY',
      approvalId,
      reason: expect.stringContaining('denied by key:'),
    });
    const again = await check('b');
    expect(again.decision).toBe('DECISION_PENDING');
    expect(again.approvalId).not.toBe(approvalId);
  });

  test('nobody in time is expired, never a denial by a person', async () => {
    const { approvalId } = await check('a', { resource: 'brief' });
    const { body } = await gateway.call('GET', `/api/v1/approvals/${approvalId}?wait=10`);
    expect(body.approval).toMatchObject({ state: 'expired', decisions: [] });
    await eventually(async () =>
      expect((await gateway.call('GET', `/api/v1/ops/${trace}:a`)).body.state).toBe('terminated'),
    );
    // The gateway's own change is nobody's answer: it is seen before its entry is written.
    await eventually(async () =>
      expect(sorted((await gateway.call('GET', `/api/v1/logs?op_id=${trace}:a`)).body.entries)).toEqual([
        'ApprovalExpired',
        'ApprovalRequested',
        'OpTerminated',
      ]),
    );
  });

  test('an approval for a duration is used again', async () => {
    const { approvalId } = await check('a', { resource: 'often' });
    await decide(approvalId, 'approve');
    for (const span of ['a', 'b', 'c'])
      expect((await check(span, { resource: 'often' })).decision).toBe('DECISION_ALLOW');
    expect(await approvalOf(approvalId)).toMatchObject({
      state: 'used',
      used_by: ['a', 'b', 'c'].map((span) => `${trace}:${span}`),
    });
  });

  test('the agent withdraws its request, until it is used', async () => {
    const { approvalId } = await check('a');
    expect(await rpc('ApprovalService/CancelApproval', { approvalId })).toEqual({
      approvalId,
      state: 'APPROVAL_STATE_CANCELLED',
    });
    expect((await decide(approvalId, 'approve')).body.code).toBe('invalid_transition');
    const next = (await check('b')).approvalId;
    await decide(next, 'approve');
    await check('b');
    expect(await gateway.call('POST', `/api/v1/approvals/${next}/cancel`)).toMatchObject({
      status: 409,
      body: { code: 'invalid_transition', from: 'used' },
    });
  });

  test('the agent waits and withdraws over HTTP with its token, for its own only', async () => {
    const { approvalId } = await check('a');
    const { credentialToken: another } = (
      await gateway.call('POST', '/svc.governance.v1.AgentService/RegisterAgent', {
        agent: { ...LOAD_AGENT, agentId: 'another' },
      })
    ).body;
    const path = `/api/v1/approvals/${approvalId}`;
    expect(await gateway.call('GET', path, undefined, another)).toMatchObject({ status: 404 });
    expect(await gateway.call('POST', `${path}/cancel`, undefined, another)).toMatchObject({ status: 404 });
    expect(await gateway.call('GET', `${path}?wiat=1`, undefined, LOAD_TOKEN)).toMatchObject({ status: 400 });
    const waits = gateway.call('GET', `${path}?wait=30`, undefined, LOAD_TOKEN);
    await decide(approvalId, 'approve');
    expect(await waits).toMatchObject({ status: 200, body: { approval: { id: approvalId, state: 'approved' } } });
    const cancelled = await gateway.call('POST', `${path}/cancel`, undefined, LOAD_TOKEN);
    expect(cancelled).toMatchObject({ status: 200, body: { approval: { state: 'cancelled' } } });
    const { orgId, teamId, agentId } = LOAD_AGENT;
    expect(await gateway.call('GET', '/api/v1/agents/self', undefined, LOAD_TOKEN)).toMatchObject({
      status: 200,
      body: { agent: { org_id: orgId, team_id: teamId, agent_id: agentId } },
    });
    expect((await gateway.call('GET', '/api/v1/agents/self', undefined, LOAD_TOKEN.slice(0, -1))).status).toBe(401);
    // Beside asking whose its token is, that is all it may do: it approves nothing, and lists nothing.
    expect((await decide(approvalId, 'approve', LOAD_TOKEN)).status).toBe(401);
    expect((await gateway.call('GET', '/api/v1/approvals', undefined, LOAD_TOKEN)).status).toBe(401);
  });

  test('do not exist for another org', async () => {
    const { approvalId } = await check('a');
    const other = await keyOf({ name: 'other', org_id: 'other-org' });
    expect((await decide(approvalId, 'approve', other)).status).toBe(404);
    expect((await gateway.call('GET', `/api/v1/approvals/${approvalId}`, undefined, other)).status).toBe(404);
    expect((await gateway.call('GET', '/api/v1/approvals', undefined, other)).body.approvals).toEqual([]);
    const foreign = await gateway.call('GET', `/api/v1/approvals?org_id=${LOAD_AGENT.orgId}`, undefined, other);
    expect({ status: foreign.status, code: foreign.body.code }).toEqual({ status: 403, code: 'org_forbidden' });
  });

  test('a halt that pauses freezes it, and one that terminates cancels it', async () => {
    const halt = async (mode: string) =>
      (await gateway.call('POST', '/api/v1/halts', { scope: `org:${LOAD_AGENT.orgId}`, reason: 'drill', mode })).body
        .halt.id;
    const { approvalId } = await check('a');
    const paused = await halt('pause');
    expect(await decide(approvalId, 'approve')).toMatchObject({ status: 409, body: { code: 'halted' } });
    expect((await approvalOf(approvalId)).frozen_at).toMatch(/Z$/);
    await gateway.call('POST', `/api/v1/halts/${paused}/release`, { reason: 'over' });
    expect((await approvalOf(approvalId)).frozen_at).toBe(null);
    const terminating = await halt('terminate');
    expect(await approvalOf(approvalId)).toMatchObject({
      state: 'cancelled',
      cancel_reason: `halt ${terminating}`,
    });
    await gateway.call('POST', `/api/v1/halts/${terminating}/release`, { reason: 'over' });
  });

  test('a kill ends what its operation waits for, so that nobody approves it later', async () => {
    const { approvalId } = await check('a');
    expect((await check('b')).approvalId).toBe(approvalId);
    const kill = (span: string) => gateway.call('POST', `/api/v1/ops/${trace}:${span}/terminate`);
    await kill('a');
    expect(await approvalOf(approvalId)).toMatchObject({ state: 'pending', op_ids: [`${trace}:b`] });
    const waits = rpc('ApprovalService/WaitApproval', { approvalId });
    await kill('b');
    expect(await waits).toMatchObject({ state: 'APPROVAL_STATE_CANCELLED' });
    expect(await approvalOf(approvalId)).toMatchObject({
      state: 'cancelled',
      cancel_reason: expect.stringMatching(new RegExp(`^key:\\w+ terminated operation ${trace}:b,`)),
    });
    expect(await decide(approvalId, 'approve')).toMatchObject({ status: 409, body: { code: 'invalid_transition' } });
    const { entries } = (await gateway.call('GET', `/api/v1/logs?op_id=${trace}:b`)).body;
    expect(sorted(entries)).toEqual(['ApprovalCancelled', 'ApprovalRequested', 'OpTerminated']);
    trace = `${trace}-new`;
    expect((await check('a', { attributes: { trace: trace.slice(0, -4) } })).decision).toBe('DECISION_PENDING');
  });

  test('every state survives kill -9', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'svc-approvals-'));
    onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
    const env = { SVC_POLICY_PATH: policyFile(POLICY).path };
    const first = await startTestGateway({ dataDir, env });
    onTestFinished(async () => void (await first.stop('SIGKILL')));
    await registerLoadAgent(first);
    const states = ['pending', 'approved', 'denied', 'cancelled', 'used'];
    const ids: Record<string, string> = {};
    for (const state of states) ids[state] = (await check(state, { attributes: { state } }, first)).approvalId;
    const post = (state: string, verb: string, body?: object) =>
      first.call('POST', `/api/v1/approvals/${ids[state]}/${verb}`, body);
    await post('approved', 'approve', { reason: 'seen' });
    await post('used', 'approve', { reason: 'seen' });
    await post('denied', 'deny', { reason: 'seen' });
    await post('cancelled', 'cancel');
    await check('used', { attributes: { state: 'used' } }, first);
    await first.stop('SIGKILL');
    const second = await startTestGateway({ dataDir, env });
    onTestFinished(async () => void (await second.stop('SIGKILL')));
    for (const state of states) expect((await approvalOf(ids[state]!, second)).state).toBe(state);
    const again = async (state: string, span: string) => check(span, { attributes: { state } }, second);
    expect((await again('approved', 'approved')).decision).toBe('DECISION_ALLOW');
    expect((await again('used', 'used-again')).decision).toBe('DECISION_PENDING');
    expect((await again('denied', 'denied')).decision).toBe('DECISION_DENY');
    expect((await again('pending', 'more')).approvalId).toBe(ids.pending);
  });
});
