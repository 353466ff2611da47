import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { ADMIN, CRAWLER, checkOf, opId, SIBLING } from '../../support/governor.ts';
import { openSwitchboard } from '../../support/switchboard.ts';

const register = {
  type: 'register-agent',
  principal: ADMIN,
  agent: { ...CRAWLER, agentId: 'new' },
  credential: 'digest-of-new' as never,
  parent: undefined,
} as const;

describe('switchboard', () => {
  test("answers to record are held for the audit thread, with their entry's position", async () => {
    const { ask, batches, held, sent } = openSwitchboard();
    ask(checkOf(CRAWLER, 't:1'), checkOf(SIBLING, 't:2', { resource: 'forbidden' }), {
      type: 'get-op',
      principal: ADMIN,
      opId: opId('t:1'),
    });
    expect(batches).toHaveLength(1);
    expect(batches[0]).toMatchObject({ batch: 1, firstId: 1, count: 2 });
    expect(batches[0]!.bodies.split('\n').map((body) => body.includes('"ActionAllowed"'))).toEqual([true, false]);
    expect(held()).toMatchObject([{ batch: 1, firstId: 1, failures: 0 }]);
    expect(held()[0]!.replies).toMatchObject([
      { type: 'command-reply', id: 1, auditIndex: 0, reply: { value: { decision: 'allow', opState: 'running' } } },
      { type: 'command-reply', id: 2, auditIndex: 1, reply: { value: { decision: 'deny', opState: 'terminated' } } },
    ]);
    // Reading needs no record, and waits for none.
    expect(sent.filter(({ type }) => type !== 'held')).toMatchObject([
      { type: 'command-reply', id: 3, auditIndex: -1, reply: { value: { state: 'running' } } },
    ]);
  });

  test("more than the log's queue is refused at once until it has caught up", async () => {
    const { ask, replyTo, write, governor } = openSwitchboard({ maxUnrecorded: 3 });
    const ids = ask(...Array.from({ length: 5 }, (_, index) => checkOf(CRAWLER, `t:${index}`)));
    for (const id of ids.slice(3))
      expect(await replyTo(id)).toEqual({
        ok: false,
        fault: { kind: 'overloaded', retryAfterSecs: 1, what: 'the audit log' },
      });
    expect(governor.ops.size).toBe(3);
    write(1);
    ask(checkOf(CRAWLER, 't:9'));
    expect(governor.ops.size).toBe(4);
  });

  test('a use case that throws is answered `internal`; only the gateway sees the cause', async () => {
    const { switchboard, sent, defects } = openSwitchboard();
    switchboard.receive(0, [{ type: 'call', id: 7, name: 'listPolicies', input: {} as never }]);
    await eventually(() =>
      expect(sent).toEqual([{ type: 'call-reply', id: 7, reply: { ok: false, fault: { kind: 'internal' } } }]),
    );
    expect(defects).toEqual([new Error('a defect')]);
  });

  test('answers for a dead thread are dropped', async () => {
    const { ask, switchboard, sent, refuse } = openSwitchboard();
    ask(checkOf(CRAWLER, 't:1'));
    switchboard.disconnect(0);
    refuse();
    await sleep(20);
    expect(sent.filter(({ type }) => type !== 'held')).toEqual([]);
  });

  test('re-registering or removing an agent closes its open streams and requests', async () => {
    const { ask, sent } = openSwitchboard();
    const revoked = () => sent.flatMap((message) => (message.type === 'agent-revoked' ? [message.agent] : []));
    ask(register, { ...register, agent: CRAWLER, credential: 'another-digest' as never });
    await eventually(() => expect(revoked()).toEqual(['acme/search/crawler']));
    ask({ type: 'deregister-agent', principal: ADMIN, agent: SIBLING });
    await eventually(() => expect(revoked()).toEqual(['acme/search/crawler', `acme/search/${SIBLING.agentId}`]));
  });

  test('a credential over its rate of checks is told when to retry, and starts nothing', async () => {
    const { ask, batches, governor, replyTo } = openSwitchboard({ checksAMinute: 2 });
    const ids = ask(checkOf(CRAWLER, 't:1'), checkOf(CRAWLER, 't:2'), checkOf(CRAWLER, 't:3'), checkOf(SIBLING, 't:4'));
    expect(await replyTo(ids[2]!)).toEqual({
      ok: false,
      fault: { kind: 'rate_limited', retryAfterSecs: 30, limit: 2 },
    });
    expect(batches.map(({ count }) => count)).toEqual([3]);
    expect(['t:1', 't:2', 't:3', 't:4'].map((id) => governor.ops.find(opId(id), 'acme') !== undefined)).toEqual([
      true,
      true,
      false,
      true,
    ]);
  });
});
