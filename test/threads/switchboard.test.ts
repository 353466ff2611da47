import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { decodeToIo, encodeToMain } from '../../src/threads/codec.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN, checkOf, controlOf, CRAWLER, digestOf, opId, SIBLING } from '../support/governor.ts';
import { openSwitchboard } from '../support/switchboard.ts';

const UNWRITABLE = 'the audit log cannot be written, so nothing is allowed until it can';

const register = { type: 'register-agent', principal: ADMIN, agent: { ...CRAWLER, agentId: 'new' }, credential: 'digest-of-new' as never, parent: undefined } as const;

test('the answers to what must be recorded go to the audit thread, in the order of the commands and with the place of their entry', async () => {
  const { ask, batches, sent } = openSwitchboard();
  ask(checkOf(CRAWLER, 't:1'), checkOf(SIBLING, 't:2', { resource: 'forbidden' }), { type: 'get-op', principal: ADMIN, opId: opId('t:1') });
  expect(batches).toHaveLength(1);
  expect(batches[0]).toMatchObject({ batch: 1, io: 0, count: 2 });
  expect(batches[0]!.bodies.split('\n').map((body) => body.includes('"ActionAllowed"'))).toEqual([true, false]);
  expect(decodeToIo(batches[0]!.replies!)).toMatchObject([
    { type: 'command-reply', id: 1, auditIndex: 0, reply: { value: { decision: 'allow', opState: 'running' } } },
    { type: 'command-reply', id: 2, auditIndex: 1, reply: { value: { decision: 'deny', opState: 'terminated' } } },
  ]);
  // Reading needs no record, and waits for none.
  expect(sent).toMatchObject([{ type: 'command-reply', id: 3, auditIndex: -1, reply: { value: { state: 'running' } } }]);
});

test('checks of a batch that could not be written are denied, and the operations they began are over', async () => {
  const { ask, refuse, replyTo, governor, troubles } = openSwitchboard();
  const [first] = ask(checkOf(CRAWLER, 't:1'), controlOf('t:1', 'pause'));
  refuse(1);
  expect(await replyTo(first!)).toMatchObject({ ok: true, value: { decision: 'deny', reason: UNWRITABLE } });
  expect(await replyTo(first! + 1)).toEqual({ ok: false, fault: { kind: 'audit_unavailable' } });
  expect(governor.ops.stateOf(governor.ops.find(opId('t:1'))!)).toBe('terminated');
  // Until it can be written again nothing is even tried.
  const [refused, read] = ask(checkOf(CRAWLER, 't:2'), { type: 'list-ops', principal: ADMIN, orgId: undefined, perPage: 10, cursor: undefined });
  expect(await replyTo(refused!)).toMatchObject({ value: { decision: 'deny', reason: UNWRITABLE } });
  expect(governor.ops.find(opId('t:2'))).toBeUndefined();
  expect(await replyTo(read!)).toMatchObject({ ok: true });
  expect(troubles).toEqual([{ isWritable: false, reason: 'ENOSPC' }]);
});

test('a control that could not be recorded is answered 503, has no effect, and its signal reaches no agent', async () => {
  const { ask, write, refuse, replyTo, governor, sent } = openSwitchboard();
  const stateOf = () => governor.ops.stateOf(governor.ops.find(opId('t:1'))!);
  ask(checkOf(CRAWLER, 't:1'), { type: 'open-control', agent: CRAWLER, credential: digestOf(CRAWLER), principal: undefined, stream: 7 });
  write(1);
  const [paused] = ask(controlOf('t:1', 'pause'));
  refuse(2);
  expect(await replyTo(paused!)).toEqual({ ok: false, fault: { kind: 'audit_unavailable' } });
  expect(stateOf()).toBe('running');
  expect(sent.filter(({ type }) => type === 'signal')).toEqual([]);
});

test('a batch that could not be written is not taken for written because a later one was, though the word of it has not come', async () => {
  const { ask, write, fail, tellOfFailed, replyTo, audit, sent } = openSwitchboard();
  ask(checkOf(CRAWLER, 't:1'), { type: 'open-control', agent: CRAWLER, credential: digestOf(CRAWLER), principal: undefined, stream: 7 });
  write(1);
  const [paused] = ask(controlOf('t:1', 'pause'));
  ask(checkOf(CRAWLER, 't:2'));
  fail();
  write(3);
  audit.catchUp();
  tellOfFailed(2);
  expect(await replyTo(paused!)).toEqual({ ok: false, fault: { kind: 'audit_unavailable' } });
  expect(sent.filter(({ type }) => type === 'signal')).toEqual([]);
});

test('a signal leaves once its entry is written, and not before', async () => {
  const { ask, write, audit, batches, sent } = openSwitchboard();
  ask(checkOf(CRAWLER, 't:1'), { type: 'open-control', agent: CRAWLER, credential: digestOf(CRAWLER), principal: undefined, stream: 7 });
  ask(controlOf('t:1', 'pause'));
  expect(batches.map(({ isAwaited }) => isAwaited)).toEqual([false, true]);
  await sleep(20);
  expect(sent.filter(({ type }) => type === 'signal')).toEqual([]);
  write(2);
  audit.receive({ type: 'written' });
  await eventually(() => expect(sent.filter(({ type }) => type === 'signal')).toEqual([{ type: 'signal', stream: 7, message: { opId: 't:1', signal: 'pause', sequence: 1_000 } }]));
});

test('an agent that connects after the operator has an answer finds the signal, though the word of the write has not come', async () => {
  const { ask, write, replyTo } = openSwitchboard();
  ask(checkOf(CRAWLER, 't:1'));
  ask(controlOf('t:1', 'pause'));
  write(2);
  const [opened] = ask({ type: 'open-control', agent: CRAWLER, credential: digestOf(CRAWLER), principal: undefined, stream: 7 });
  expect(await replyTo(opened!)).toMatchObject({ value: { pending: [{ opId: 't:1', signal: 'pause' }] } });
});

test('with allow a control takes effect and its signal leaves, recorded or not', async () => {
  const { ask, refuse, replyTo, sent } = openSwitchboard({ onAuditFailure: 'allow' });
  ask(checkOf(CRAWLER, 't:1'), { type: 'open-control', agent: CRAWLER, credential: digestOf(CRAWLER), principal: undefined, stream: 7 });
  const [paused] = ask(controlOf('t:1', 'pause'));
  refuse(1);
  refuse(2);
  expect(await replyTo(paused!)).toMatchObject({ ok: true, value: { state: 'paused' } });
  expect(sent.filter(({ type }) => type === 'signal')).toHaveLength(1);
});

test('a rotation that could not be recorded leaves the old token in force, here and in the store', async () => {
  const saved: unknown[] = [];
  const { ask, refuse, replyTo, governor, batches } = openSwitchboard({ agents: { save: (registration) => { saved.push(registration.credential); return Promise.resolve(); } } });
  const [id] = ask({ ...register, agent: CRAWLER });
  await eventually(() => expect(batches).toHaveLength(1));
  refuse(1);
  expect(await replyTo(id!)).toEqual({ ok: false, fault: { kind: 'audit_unavailable' } });
  expect(saved).toEqual(['digest-of-new', digestOf(CRAWLER)]);
  expect(governor.agents.ownerOf(digestOf(CRAWLER))?.identity).toEqual(CRAWLER);
});

test('of two checks at once of an operation that waited, the second is recorded and allowed: the operation runs, and holds what the second may spend', async () => {
  const { ask, write, refuse, replyTo, governor, audit } = openSwitchboard();
  ask({ type: 'register-op', principal: ADMIN, opId: opId('t:1'), agent: CRAWLER });
  const [first] = ask(checkOf(CRAWLER, 't:1', { estimatedCostMicroUsd: 5_000_000 }));
  ask(checkOf(CRAWLER, 't:1', { estimatedCostMicroUsd: 2_000_000 }));
  write(1);
  refuse(2);
  write(3);
  audit.catchUp();
  expect(await replyTo(first!)).toMatchObject({ value: { decision: 'deny', reason: UNWRITABLE } });
  expect(governor.ops.stateOf(governor.ops.find(opId('t:1'))!)).toBe('running');
  expect(governor.budgets.reservations).toEqual({ count: 1, microUsd: 2_000_000 });
});

test('of two rotations at once, neither of which could be recorded, the token of before is in force', async () => {
  const { ask, refuse, replyTo, governor, batches } = openSwitchboard();
  const [first] = ask({ ...register, agent: CRAWLER, credential: 'first' as never });
  const [second] = ask({ ...register, agent: CRAWLER, credential: 'second' as never });
  await eventually(() => expect(batches).toHaveLength(2));
  refuse(1);
  refuse(2);
  for (const id of [first, second]) expect(await replyTo(id!)).toEqual({ ok: false, fault: { kind: 'audit_unavailable' } });
  expect(['first', 'second', digestOf(CRAWLER)].map((credential) => governor.agents.ownerOf(credential as never)?.identity)).toEqual([undefined, undefined, CRAWLER]);
});

test('what an earlier batch has recorded stays, when a later one fails', async () => {
  const { ask, write, refuse, governor, audit } = openSwitchboard();
  ask(checkOf(CRAWLER, 't:1'));
  write(1);
  expect(audit.entriesInFlight).toBe(0);
  ask(checkOf(CRAWLER, 't:2'));
  refuse(2);
  expect(governor.ops.stateOf(governor.ops.find(opId('t:2'))!)).toBe('terminated');
  expect([audit.entriesLost, audit.entriesInFlight]).toEqual([1, 0]);
});

test.each([['deny', { ok: false, fault: { kind: 'audit_unavailable' } }], ['allow', { ok: true, value: { rotated: false } }]] as const)(
  'a registration whose record is lost with the audit thread is answered all the same (%s)', async (onAuditFailure, expected) => {
    const { ask, replyTo, audit, batches } = openSwitchboard({ onAuditFailure });
    const [id] = ask(register);
    await eventually(() => expect(batches).toHaveLength(1));
    audit.disconnect();
    expect(await replyTo(id!)).toMatchObject(expected);
  },
);

test('answers whose entries are written, but which are lost with the audit thread, are given all the same, once', async () => {
  const { ask, replyTo, audit, write, release, sent } = openSwitchboard();
  const [released] = ask(checkOf(CRAWLER, 't:1'));
  const [lost] = ask(checkOf(CRAWLER, 't:2'));
  write(2);
  release(1);
  audit.disconnect();
  expect(await replyTo(lost!)).toMatchObject({ ok: true, value: { decision: 'allow', opState: 'running' } });
  expect(sent.flatMap((message) => (message.type === 'command-reply' ? [message.id] : []))).not.toContain(released);
  expect(audit.entriesLost).toBe(0);
});

test('a registration that is still on its way to the store when the audit thread dies is answered too', async () => {
  let saved: () => void = () => {};
  const { ask, replyTo, audit } = openSwitchboard({ agents: { save: () => new Promise((resolve) => { saved = resolve; }) } });
  const [id] = ask(register);
  audit.disconnect();
  saved();
  expect(await replyTo(id!)).toEqual({ ok: false, fault: { kind: 'audit_unavailable' } });
});

test('with allow, checks are allowed while there is no audit thread, and every one is counted', async () => {
  const { ask, replyTo, audit } = openSwitchboard({ onAuditFailure: 'allow' });
  audit.disconnect();
  const [id] = ask(checkOf(CRAWLER, 't:1'));
  expect(await replyTo(id!)).toMatchObject({ value: { decision: 'allow', opState: 'running' } });
  expect(audit.entriesLost).toBe(1);
});

test('an agent that could not be stored is answered with an error, and not recorded as registered', async () => {
  const { ask, replyTo, batches, defects } = openSwitchboard({ agents: { save: () => Promise.reject(new Error('the disk is gone')) } });
  const [id] = ask(register);
  expect(await replyTo(id!)).toEqual({ ok: false, fault: { kind: 'internal' } });
  expect(batches).toEqual([]);
  expect(defects).toHaveLength(1);
});

test('more than may wait for the log is refused at once, until it has caught up', async () => {
  const { ask, replyTo, write, governor } = openSwitchboard({ maxUnrecorded: 3 });
  const ids = ask(...Array.from({ length: 5 }, (_, index) => checkOf(CRAWLER, `t:${index}`)));
  for (const id of ids.slice(3)) expect(await replyTo(id)).toEqual({ ok: false, fault: { kind: 'overloaded', retryAfterSecs: 1, what: 'the audit log' } });
  expect(governor.ops.size).toBe(3);
  write(1);
  ask(checkOf(CRAWLER, 't:9'));
  expect(governor.ops.size).toBe(4);
});

test('a use case that fails is answered `internal`, and its cause is told to the gateway alone', async () => {
  const { switchboard, sent, defects } = openSwitchboard();
  switchboard.receive(0, encodeToMain([{ type: 'call', id: 7, name: 'listPolicies', input: {} }]));
  await eventually(() => expect(sent).toEqual([{ type: 'call-reply', id: 7, reply: { ok: false, fault: { kind: 'internal' } } }]));
  expect(defects).toEqual([new Error('a defect')]);
});

test('answers for a thread that is gone are dropped', async () => {
  const { ask, switchboard, sent, refuse } = openSwitchboard();
  ask(checkOf(CRAWLER, 't:1'));
  switchboard.disconnect(0);
  refuse(1);
  await sleep(20);
  expect(sent).toEqual([]);
});
