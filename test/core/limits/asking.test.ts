import { describe, expect, test } from 'vitest';
import type { AgentIdentity } from '../../../src/core/base/ids.ts';
import type { Governor } from '../../../src/core/governor.ts';
import { ADMIN, CRAWLER, checkOf, controlOf, decisionOf, digestOf, SIBLING } from '../../support/governor.ts';
import { ask, askTimes, openLimited, START_MS } from '../../support/limits.ts';

const ASKING = [{ id: 'few', per: 'session', calls: 2, on_exceed: 'ask', step: 1 }];

/** Asks twice, which is allowed, and once more. */
function askUntilPending(governor: Governor, nowMs = START_MS): string {
  expect(askTimes(governor, 2, nowMs)).toBe('allow allow');
  const { decision, approvalId } = ask(governor, 't:third', nowMs);
  expect(decision).toBe('pending');
  return approvalId!;
}

const decide = (governor: Governor, id: string, kind: 'approve' | 'deny' = 'approve', nowMs = START_MS) =>
  governor.apply<'decide-approval'>(decisionOf(governor, ADMIN, id, kind), nowMs).reply;

describe('a limit that asks', () => {
  test('holds all checks of its key for one approval, which names what was used', () => {
    const governor = openLimited(ASKING);
    const id = askUntilPending(governor);
    expect(ask(governor, 't:fourth', START_MS, {}, SIBLING)).toMatchObject({ decision: 'pending', approvalId: id });
    expect(ask(governor, 't:third')).toMatchObject({ decision: 'pending', approvalId: id, policy: 'limited' });
    expect(governor.approvals.get(id)).toMatchObject({
      state: 'pending',
      agent: CRAWLER,
      opIds: ['t:third', 't:fourth'],
      requesters: ['agent:acme/search/crawler', 'agent:acme/search/sibling'],
      policy: 'limited',
      limit: { policy: 'limited', id: 'few', per: 'session', key: 't', unit: 'calls', used: 2, max: 2, step: 1 },
      expiresAtMs: START_MS + 15 * 60_000,
    });
    expect(ask(governor, 'u:1').decision).toBe('allow');
  });

  test('goes on by as much as its step once a person has approved', () => {
    const governor = openLimited(ASKING);
    const id = askUntilPending(governor);
    ask(governor, 't:fourth', START_MS, {}, SIBLING);
    const { effects } = governor.apply<'decide-approval'>(decisionOf(governor, ADMIN, id), START_MS);
    expect(effects.filter(({ kind }) => kind === 'signal')).toMatchObject([
      { agent: 'acme/search/crawler', opId: 't:third', signal: 'resume' },
      { agent: 'acme/search/sibling', opId: 't:fourth', signal: 'resume' },
    ]);
    expect(effects.some(({ kind }) => kind === 'spend-recorded')).toBe(true);
    expect(ask(governor, 't:third').decision).toBe('allow');
    expect(governor.approvals.get(id)).toMatchObject({ state: 'used', usedBy: ['t:third'] });
    const next = ask(governor, 't:fourth', START_MS, {}, SIBLING);
    expect(next.decision).toBe('pending');
    expect(next.approvalId).not.toBe(id);
    expect(governor.approvals.get(next.approvalId!)?.limit).toMatchObject({ used: 3, max: 3 });
  });

  test('denies what waits and what comes once a person has denied, until it resets', () => {
    const governor = openLimited([{ id: 'few', per: 'agent', calls: 2, every: '10s', on_exceed: 'ask' }]);
    const id = askUntilPending(governor);
    decide(governor, id, 'deny');
    expect(ask(governor, 't:third')).toMatchObject({ decision: 'deny', cause: 'limit', approvalId: id });
    expect(ask(governor, 't:fourth', START_MS + 9_000)).toMatchObject({
      decision: 'deny',
      cause: 'limit',
      reason:
        'the limit of 2 calls per agent every 10s is reached, and a person has denied more (limit few of policy limited)',
    });
    expect(askTimes(governor, 3, START_MS + 11_000)).toBe('allow allow pending');
  });

  test('is raised for one span only', () => {
    const governor = openLimited([{ id: 'few', per: 'agent', calls: 2, every: '10s', on_exceed: 'ask', step: 5 }]);
    decide(governor, askUntilPending(governor));
    expect(askTimes(governor, 6, START_MS + 1)).toBe('allow allow allow allow allow pending');
    expect(askTimes(governor, 3, START_MS + 22_000)).toBe('allow allow pending');
  });

  test('asks anew when nobody has decided in time', () => {
    const governor = openLimited(ASKING);
    const id = askUntilPending(governor);
    governor.apply<'tick-approvals'>({ type: 'tick-approvals', most: 10 }, START_MS + 15 * 60_000);
    expect(governor.approvals.get(id)?.state).toBe('expired');
    expect(ask(governor, 't:third', START_MS + 15 * 60_000)).toMatchObject({ decision: 'deny', cause: 'limit' });
    const { decision, approvalId } = ask(governor, 't:new', START_MS + 15 * 60_000);
    expect(decision).toBe('pending');
    expect(approvalId).not.toBe(id);
  });

  test('is not raised by a credential whose checks wait for it', () => {
    const governor = openLimited(ASKING);
    const id = askUntilPending(governor);
    const operator = { subject: 'key:operator', scopes: ['admin' as const], orgId: null };
    governor.apply<'check'>({ ...checkOf(CRAWLER, 't:own'), credential: undefined, principal: operator }, START_MS);
    expect(governor.apply<'decide-approval'>(decisionOf(governor, operator, id), START_MS).reply).toMatchObject({
      ok: false,
      fault: { kind: 'own_request' },
    });
    expect(decide(governor, id).ok).toBe(true);
  });

  test('asks nobody in a dry run', () => {
    const governor = openLimited(ASKING);
    expect(askTimes(governor, 2)).toBe('allow allow');
    expect(ask(governor, 't:dry', START_MS, { dryRun: true })).toMatchObject({
      decision: 'pending',
      approvalId: undefined,
    });
    expect(governor.approvals.size).toBe(0);
  });

  test('lets one agent leave while another goes on to wait', () => {
    const governor = openLimited(ASKING);
    const id = askUntilPending(governor);
    ask(governor, 't:fourth', START_MS, {}, SIBLING);
    const cancel = (agent: AgentIdentity) =>
      governor.apply<'cancel-own-approval'>(
        { type: 'cancel-own-approval', agent, credential: digestOf(agent), principal: undefined, id },
        START_MS,
      ).reply;
    expect(cancel(SIBLING)).toMatchObject({ ok: true, value: { state: 'pending', opIds: ['t:third'] } });
    expect(ask(governor, 't:fourth', START_MS, {}, SIBLING).decision).toBe('deny');
    expect(cancel(CRAWLER)).toMatchObject({ ok: true, value: { state: 'cancelled' } });
  });

  test('is cancelled when the only operation that waits is terminated', () => {
    const governor = openLimited(ASKING);
    const id = askUntilPending(governor);
    governor.apply<'control-op'>(controlOf('t:third', 'terminate'), START_MS);
    expect(governor.approvals.get(id)?.state).toBe('cancelled');
  });

  test('takes back a raise that could not be recorded', () => {
    const governor = openLimited(ASKING);
    const id = askUntilPending(governor);
    const { undo } = governor.apply<'decide-approval'>(decisionOf(governor, ADMIN, id), START_MS);
    governor.rollBack([undo!], [], governor.ops.lastNumber, START_MS);
    expect(governor.approvals.get(id)?.state).toBe('pending');
    expect(ask(governor, 't:third')).toMatchObject({ decision: 'pending', approvalId: id });
  });
});

describe('an action that needs an approval', () => {
  test('is asked first; a limit then denies it and leaves it approved', () => {
    const policies = {
      decide: ({ resource }: { readonly resource: string }) =>
        resource === 'prod'
          ? ({ kind: 'require_approval', reason: 'ask', policy: 'p', ruleId: 'r', cause: undefined } as const)
          : ({ kind: 'allow', reason: 'ok', policy: 'p', ruleId: 'a', cause: undefined } as const),
    };
    const governor = openLimited(ASKING, { policies });
    const onProd = { resource: 'prod' };
    const { approvalId } = ask(governor, 't:deploy', START_MS, onProd);
    expect(governor.approvals.get(approvalId!)?.limit).toBeUndefined();
    expect(askTimes(governor, 2)).toBe('allow allow');
    decide(governor, approvalId!);
    expect(ask(governor, 't:deploy', START_MS, onProd)).toMatchObject({ decision: 'deny', cause: 'limit' });
    expect(governor.approvals.get(approvalId!)?.state).toBe('approved');
  });
});
