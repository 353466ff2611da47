import { fakeGateway } from 'svc-gateway-sdk/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

function gatewayOfTest(policy?: string) {
  const gateway = fakeGateway({ policy });
  onTestFinished(() => gateway.close());
  return gateway;
}

const CAP = [{ id: 'few', type: 'cap', properties: { path: 'amount', max: 100 } }];

describe('a guarded function', () => {
  test('is a tool call on its name, with the members of its argument as attributes', async () => {
    const gateway = gatewayOfTest();
    gateway.allow('tool.call', 'pay');
    const pay = gateway.client.guard('pay', ({ amount }: { amount: number }, memo: string) => `${amount} ${memo}`);
    expect(await pay({ amount: 5 }, 'rent')).toBe('5 rent');
    expect(gateway.ops).toMatchObject([
      { action: 'tool.call', resource: 'pay', attributes: { amount: 5 }, state: 'completing', outcome: 'success' },
    ]);
  });

  test('is not called when it is denied', async () => {
    const gateway = gatewayOfTest();
    gateway.deny('tool.call', 'rm', { reason: 'too dangerous' });
    let hasRun = false;
    const remove = gateway.client.guard('rm', () => {
      hasRun = true;
    });
    await expect(remove()).rejects.toMatchObject({
      name: 'ActionDeniedError',
      cause: 'rule',
      message: 'tool.call on rm is denied: too dangerous (rule rule-1 of policy test-rules)',
    });
    expect(hasRun).toBe(false);
  });

  test('says to its caller what may be done instead', async () => {
    const rule = '{ id: no, actions: ["*"], effect: deny, reason: too dangerous, remedy: move it to the bin }';
    const gateway = gatewayOfTest(`name: p\nscope: global\nrules:\n  - ${rule}\n`);
    await expect(gateway.client.guard('rm', () => {})()).rejects.toMatchObject({ remedy: 'move it to the bin' });
  });

  test('is called with arguments and returns a result as obligations change them', async () => {
    const gateway = gatewayOfTest();
    const obligations = [...CAP, { id: 'secret', type: 'redact', properties: { paths: ['result.card'] } }];
    gateway.allow('tool.call', 'pay', { obligations });
    const at = new Date(0);
    const pay = gateway.client.guard('pay', (order: object) => ({ order, card: '4242' }));
    expect(await pay({ amount: 500, at })).toEqual({ order: { amount: 100, at }, card: '[redacted]' });
  });

  test('is not called when an obligation changes what is no plain JSON', async () => {
    const gateway = gatewayOfTest();
    const set = { id: 'when', type: 'set', properties: { path: 'at', value: 'now' } };
    gateway.allow('tool.call', 'pay', { obligations: [set] });
    let hasRun = false;
    const pay = gateway.client.guard('pay', (_order: object) => {
      hasRun = true;
    });
    await expect(pay({ at: new Date(0) })).rejects.toThrow(
      'an obligation changes the argument.at, which is not plain JSON',
    );
    expect({ hasRun, outcome: gateway.ops[0]?.outcome }).toEqual({ hasRun: false, outcome: 'failure' });
  });

  test('ends its operation as failed if it throws, and passes its error on', async () => {
    const gateway = gatewayOfTest();
    gateway.allow('*');
    const failure = new RangeError('no money');
    const pay = gateway.client.guard('pay', () => {
      throw failure;
    });
    await expect(pay()).rejects.toBe(failure);
    expect(gateway.ops).toMatchObject([{ outcome: 'failure', error: 'no money' }]);
  });

  test('waits for people, and runs once when they approve', async () => {
    const gateway = gatewayOfTest();
    gateway.requireApproval('tool.call', 'pay');
    let count = 0;
    const paid = gateway.client.guard('pay', (_order: object) => {
      count += 1;
      return 'paid';
    })({ amount: 5 });
    const { id } = await gateway.pendingApproval();
    expect(count).toBe(0);
    gateway.decide(id, 'approve');
    expect({ result: await paid, count, state: gateway.approvals[0]?.state }).toEqual({
      result: 'paid',
      count: 1,
      state: 'used',
    });
  });

  test('is not called when people deny it, and says why', async () => {
    const gateway = gatewayOfTest();
    gateway.requireApproval('tool.call', 'pay');
    const paid = gateway.client.guard('pay', () => 'paid')();
    gateway.decide((await gateway.pendingApproval()).id, 'deny', 'not today');
    await expect(paid).rejects.toMatchObject({ cause: 'approval', reason: 'a person has denied it: not today' });
  });

  test('rejects at once where its caller has people asked', async () => {
    const gateway = gatewayOfTest();
    gateway.requireApproval('tool.call', 'pay');
    const pay = gateway.client.guard('pay', () => 'paid', { approvals: 'throw' });
    await expect(pay()).rejects.toMatchObject({ name: 'ApprovalPendingError', approvalId: 'appr-1' });
  });

  test('takes what JSON cannot hold, and sends what JSON makes of it', async () => {
    const gateway = gatewayOfTest();
    gateway.allow('*');
    const circle: Record<string, unknown> = { size: 10n, at: new Date(0), bytes: new Uint8Array(3), not: Number.NaN };
    circle.self = circle;
    circle.callback = () => {};
    expect(await gateway.client.guard('odd', (argument: object) => argument === circle)(circle)).toBe(true);
    expect(gateway.ops[0]?.attributes).toEqual({
      size: '10',
      at: '1970-01-01T00:00:00.000Z',
      bytes: '3 bytes',
      not: 'NaN',
      self: '...',
    });
  });

  test('does not run while nobody answers', async () => {
    const gateway = gatewayOfTest();
    gateway.allow('*');
    gateway.setReachable(false);
    let hasRun = false;
    const pay = gateway.client.guard('pay', () => {
      hasRun = true;
    });
    await expect(pay()).rejects.toMatchObject({
      unreachable: true,
      reason: 'cannot reach the gateway: no connection to http://gateway.test: the connection was refused',
    });
    expect(hasRun).toBe(false);
  });

  test.each([
    [{ actoin: 'x' }, "the options of guard has an unknown key 'actoin': did you mean 'action'?"],
    [null, 'the options of guard must be an object'],
  ])('names a mistake in its options: %#', (options, message) => {
    expect(() => gatewayOfTest().client.guard('pay', () => 1, options as object)).toThrow(new TypeError(message));
  });
});

describe('a fake gateway', () => {
  test('decides by a policy file, as the gateway does', async () => {
    const gateway = gatewayOfTest(`
name: desk
scope: team:acme/test
rules:
  - { id: small, actions: ["refund"], when: "attributes.amount <= 50", effect: allow }
`);
    const { client } = gateway;
    expect(await client.check({ action: 'refund', attributes: { amount: 50 } })).toMatchObject({
      decision: 'allow',
      policy: 'desk',
      ruleId: 'small',
    });
    expect(await client.check({ action: 'refund', attributes: { amount: 51 } })).toMatchObject({
      decision: 'deny',
      cause: 'no_rule',
    });
  });

  test('names each mistake of a policy file with its place', () => {
    expect(() => fakeGateway({ policy: 'name: desk\nscope: globall\nrules: []\n' })).toThrow(/^policy:2:8: scope: /);
  });

  test('pauses, resumes and terminates like an operator, without a stream', async () => {
    const gateway = gatewayOfTest();
    gateway.allow('*');
    const states: string[] = [];
    const run = gateway.client.run({ action: 'tool.call' }, async (op) => {
      gateway.pause(op.opId);
      await expect.poll(() => op.state).toBe('paused');
      gateway.resume(op.opId);
      await op.checkpoint();
      states.push(op.state);
      gateway.terminate(op.opId);
      await new Promise((resolve) => op.signal.addEventListener('abort', resolve));
    });
    await expect(run).rejects.toMatchObject({ name: 'OpTerminatedError' });
    expect(states).toEqual(['running']);
  });

  test('takes back what nobody has to decide any more', async () => {
    const gateway = gatewayOfTest();
    gateway.requireApproval('*');
    const { approvalId = '' } = await gateway.client.check({ action: 'pay' });
    expect(await gateway.client.cancelApproval(approvalId)).toBe(true);
    expect(await gateway.client.cancelApproval(approvalId)).toBe(false);
    await expect(gateway.client.cancelApproval('appr-9')).rejects.toMatchObject({ code: 'not_found' });
  });
});
