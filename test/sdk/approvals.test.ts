/** Decisions of people and obligations of rules, as an agent meets them in the SDK. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  ActionDeniedError,
  type AgentClient,
  type AgentClientOptions,
  createAgentClient,
  GatewayError,
  type Notice,
  OpTerminatedError,
} from '../../sdk/typescript/src/index.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';
import { policyFile } from '../support/policies.ts';
import { type Answer, scriptedAgent, scriptedGateway } from '../support/scripted-gateway.ts';

const POLICY = `
name: p
scope: global
limits:
  - { id: mails, per: agent, calls: 1, every: 1h, actions: [mail], on_exceed: ask, step: 2 }
rules:
  - { id: open, actions: ["*"], effect: allow }
  - { id: ask, actions: [pay], effect: require_approval, reason: money leaves }
  - id: refunds
    actions: [refund]
    effect: allow
    obligations:
      - { id: little, type: cap, path: amount, max: 100 }
      - { id: hide, type: redact, paths: [card.number, result.rows.iban] }
      - { id: look, type: notify, message: a refund }
`;

let gateway: GatewayHere;
let approver: string;
const clients: AgentClient[] = [];

/** Each has an agent of its own, so that no two tests share an approval. */
function connect(options: Partial<AgentClientOptions> = {}): AgentClient {
  const client = createAgentClient({
    address: gateway.grpc,
    agent: { orgId: 'acme', teamId: 'pay', agentId: `payer-${clients.length}` },
    apiKey: ADMIN_KEY,
    onWarning: () => {},
    onNotice: () => {},
    ...options,
  } as AgentClientOptions);
  clients.push(client);
  return client;
}

const PAY = { action: 'pay', resource: 'invoice', attributes: { amount: 5 } };
const REFUND = { action: 'refund', attributes: { amount: 500, card: { number: '4111', name: 'Ada' } } };
const ALL = ['redact', 'set', 'cap', 'notify'] as const;

/** The approval that the newest agent waits for. */
const asked = () =>
  eventually(async () => {
    const { approvals } = (await gateway.call('GET', '/api/v1/approvals?state=pending')).body;
    const found = approvals.find(
      ({ agent }: { agent: { agent_id: string } }) => agent.agent_id === `payer-${clients.length - 1}`,
    );
    if (found === undefined) throw new Error('nothing is asked yet');
    return found as { readonly id: string; readonly op_id: string };
  });
const decide = (id: string, verb: 'approve' | 'deny') =>
  gateway.call('POST', `/api/v1/approvals/${id}/${verb}`, { reason: 'seen' }, approver);
const failureOf = (promise: Promise<unknown>): Promise<any> =>
  promise.then(
    () => {
      throw new Error('it did not fail');
    },
    (error: unknown) => error,
  );

beforeAll(async () => {
  gateway = await startGatewayHere({ env: { SVC_POLICY_PATH: policyFile(POLICY, afterAll).path } });
  approver = (await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'boss', scopes: ['admin'] })).body.key;
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await gateway?.stop();
});

describe('run', () => {
  test('waits until people have approved, then calls the body once', async () => {
    let calls = 0;
    const result = connect().run(PAY, (op) => {
      calls += 1;
      return [op.answer.approvalId, op.attributes];
    });
    const { id } = await asked();
    expect(calls).toBe(0);
    await decide(id, 'approve');
    expect(await result).toEqual([id, PAY.attributes]);
    expect(calls).toBe(1);
  });

  test('waits until people have raised a limit, then goes on within it', async () => {
    const agent = connect();
    const mail = () => agent.run({ action: 'mail', resource: 'news' }, () => 'sent');
    expect(await mail()).toBe('sent');
    const waiting = mail();
    const { id } = await asked();
    await decide(id, 'approve');
    expect([await waiting, await mail()]).toEqual(['sent', 'sent']);
    const denied = failureOf(mail());
    await decide((await asked()).id, 'deny');
    expect(await denied).toMatchObject({ name: 'ActionDeniedError', policy: 'p' });
  });

  test('rejects when people deny, with their reason', async () => {
    const result = failureOf(connect().run(PAY, () => 'paid'));
    const { id } = await asked();
    await decide(id, 'deny');
    const error = await result;
    expect(error).toBeInstanceOf(ActionDeniedError);
    expect(error).toMatchObject({ cause: 'approval', approvalId: id, reason: expect.stringContaining(': seen') });
  });

  test('gives up after approvalMs, and a later run uses the approval', async () => {
    const agent = connect({ deadlines: { approvalMs: 300 } });
    const error = await failureOf(agent.run(PAY, () => 'paid'));
    const { id } = await asked();
    expect(error).toMatchObject({
      name: 'ActionDeniedError',
      cause: 'approval',
      approvalId: id,
      reason: `nobody has decided on approval ${id} within 300 ms`,
    });
    await decide(id, 'approve');
    expect(await agent.run(PAY, () => 'paid')).toBe('paid');
  });

  test('stops waiting when its signal is aborted', async () => {
    const leaving = new AbortController();
    const result = failureOf(connect().run(PAY, () => 'paid', { signal: leaving.signal }));
    await asked();
    leaving.abort(new Error('the user has left'));
    expect(await result).toEqual(new Error('the user has left'));
  });

  test('stops waiting when an operator terminates the operation', async () => {
    const agent = connect();
    await agent.ready();
    const result = failureOf(agent.run(PAY, () => 'paid'));
    await gateway.call('POST', `/api/v1/ops/${(await asked()).op_id}/terminate`);
    expect(await result).toBeInstanceOf(OpTerminatedError);
  });

  test.each([
    ['people who deny', 'approval', 'ActionDeniedError'],
    ['an operator', 'operation_state', 'OpTerminatedError'],
  ] as const)('tells the end by %s, even if its signal comes first', async (_, cause, name) => {
    let checks = 0;
    const scripted = await scriptedGateway(({ method, opId }) => {
      if (method === 'WaitApproval') {
        scripted.opened[0]?.write({ opId: 'trace:span', signal: 'terminate', sequence: 1 });
        return new Promise(() => {});
      }
      if (method !== 'CheckAction' || opId !== 'trace:span') return undefined;
      checks += 1;
      return checks === 1
        ? { decision: 'pending', approvalId: 'a1', opState: 'pending' }
        : { decision: 'deny', cause, approvalId: 'a1', opState: 'terminated', policy: 'p' };
    });
    const agent = scriptedAgent(scripted);
    await agent.ready();
    const error = await failureOf(agent.run({ action: 'pay', traceId: 'trace', spanId: 'span' }, () => 'paid'));
    expect(error.name).toBe(name);
  });

  test('stops waiting when the client is closed', async () => {
    const scripted = await scriptedGateway(({ method }) =>
      method === 'CheckAction'
        ? { decision: 'pending', approvalId: 'a1', opState: 'pending' }
        : method === 'WaitApproval'
          ? new Promise(() => {})
          : undefined,
    );
    const agent = scriptedAgent(scripted);
    const result = failureOf(agent.run({ action: 'pay' }, () => 'paid'));
    await eventually(() => expect(scripted.calls.some(({ method }) => method === 'WaitApproval')).toBe(true));
    await agent.close();
    expect((await result).name).toBe('ClientClosedError');
  });

  test('goes on waiting while the gateway restarts, and asks anew for what is used up', async () => {
    const answers: Record<string, readonly Answer[]> = {
      CheckAction: [
        { decision: 'pending', approvalId: 'a1', opState: 'pending' },
        { decision: 'pending', approvalId: 'a2', opState: 'pending' },
        { decision: 'allow', approvalId: 'a2', opState: 'running' },
      ],
      WaitApproval: [{ fails: 'UNAVAILABLE' }, { state: 'pending' }, { state: 'used' }, { state: 'approved' }],
    };
    const made: Record<string, number> = {};
    const scripted = await scriptedGateway(({ method }) => {
      made[method] = (made[method] ?? 0) + 1;
      return answers[method]?.[made[method] - 1];
    });
    const agent = scriptedAgent(scripted);
    expect(await agent.run({ action: 'pay' }, (op) => op.answer.approvalId)).toBe('a2');
    expect({ checks: made.CheckAction, waits: made.WaitApproval }).toEqual({ checks: 3, waits: 4 });
  });
});

describe('check', () => {
  test('answers pending; waitApproval resolves with the decision', async () => {
    const agent = connect();
    const named = { ...PAY, traceId: 'order', spanId: 'payment' };
    const answer = await agent.check(named);
    expect(answer).toMatchObject({ decision: 'pending', opState: 'pending', cause: undefined, obligations: [] });
    const { id } = await asked();
    expect(answer.approvalId).toBe(id);
    const waiting = agent.waitApproval(id);
    await decide(id, 'approve');
    expect(await waiting).toEqual({ approvalId: id, state: 'approved', reason: 'seen', expiresAt: expect.any(Date) });
    expect(await agent.check(named)).toMatchObject({ decision: 'allow', opState: 'running', approvalId: id });
  });

  test('waitApproval ends in time, with its signal, and where there is none', async () => {
    const agent = connect({ deadlines: { approvalMs: 200 } });
    const { approvalId = '' } = await agent.check(PAY);
    expect(await agent.waitApproval(approvalId)).toMatchObject({ state: 'pending', reason: undefined });
    const late = AbortSignal.abort(new Error('too late'));
    expect(await failureOf(agent.waitApproval(approvalId, { signal: late }))).toEqual(new Error('too late'));
    const unknown = await failureOf(agent.waitApproval('none'));
    expect(unknown).toBeInstanceOf(GatewayError);
    expect(unknown.code).toBe('not_found');
    // Another agent's is none of its own.
    expect((await failureOf(connect().waitApproval(approvalId))).code).toBe('not_found');
  });

  test('has obligations only for a caller that supports them', async () => {
    const agent = connect();
    expect(await agent.check(REFUND)).toMatchObject({ decision: 'deny', cause: 'obligation', obligations: [] });
    expect(await agent.check({ ...REFUND, supportedObligations: ALL })).toMatchObject({
      decision: 'allow',
      obligations: [
        { id: 'little', type: 'cap', properties: { path: 'amount', max: 100 } },
        { id: 'hide', type: 'redact', properties: { paths: ['card.number', 'result.rows.iban'] } },
        { id: 'look', type: 'notify', properties: { message: 'a refund' } },
      ],
    });
  });
});

describe('obligations of a run', () => {
  const obliged = { ...REFUND, supportedObligations: ALL };

  test('edit the attributes and the result, and are shown', async () => {
    const notices: Notice[] = [];
    const agent = connect({ onNotice: (notice) => notices.push(notice) });
    let seen: unknown;
    const result = await agent.run(obliged, (op) => {
      seen = op.attributes;
      return { rows: [{ iban: 'DE1', id: 1 }, { id: 2 }], text: 'DE1' };
    });
    expect(seen).toEqual({ amount: 100, card: { number: '[redacted]', name: 'Ada' } });
    expect(REFUND.attributes.amount).toBe(500);
    expect(result).toEqual({ rows: [{ iban: '[redacted]', id: 1 }, { id: 2 }], text: 'DE1' });
    expect(notices).toMatchObject([{ message: 'a refund', action: 'refund' }]);
  });

  test('deny a run that would ignore changed attributes', async () => {
    const agent = connect();
    let hasRun = false;
    const named = { ...REFUND, traceId: 'unobliged', spanId: 's' };
    const error = await failureOf(agent.run(named, () => (hasRun = true)));
    expect(error).toMatchObject({ name: 'ActionDeniedError', cause: 'obligation', opId: 'unobliged:s' });
    expect(hasRun).toBe(false);
    // An allowed action that was not done does not stay open.
    await eventually(async () =>
      expect((await gateway.call('GET', '/api/v1/ops/unobliged:s')).body.state).toBe('completing'),
    );
    expect(await agent.run({ action: 'refund', attributes: { amount: 7 } }, () => 'small')).toBe('small');
  });

  test('are met in JSON that is text, and never left out of what cannot be edited', async () => {
    const agent = connect();
    const run = (result: unknown) => agent.run(obliged, () => result);
    expect(await run('{"rows":[{"iban":"DE1"}]}')).toBe('{"rows":[{"iban":"[redacted]"}]}');
    expect(await run(['x', 1, null])).toEqual(['x', 1, null]);
    expect(await run(undefined)).toBeUndefined();
    for (const result of [new Map([['rows', 1]]), new (class Rows {})(), { rows: new Response('DE1') }])
      expect(await failureOf(run(result))).toBeInstanceOf(TypeError);
  });
});
