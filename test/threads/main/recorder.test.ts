import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Batch } from '../../../src/threads/main/batch.ts';
import { Recorder, type RecorderOptions } from '../../../src/threads/main/recorder.ts';
import { eventually } from '../../support/eventually.ts';
import { ADMIN, CRAWLER, checkOf, controlOf, digestOf, opId, SIBLING } from '../../support/governor.ts';
import { LogWorld } from '../../support/log-gateway.ts';
import { openSwitchboard } from '../../support/switchboard.ts';

const UNWRITABLE = 'the audit log cannot be written; until it can, everything that must be recorded is refused';

const register = {
  type: 'register-agent',
  principal: ADMIN,
  agent: { ...CRAWLER, agentId: 'new' },
  credential: 'digest-of-new' as never,
  parent: undefined,
} as const;

describe('recorder', () => {
  test('checks that could not be written are denied, and their operations are over', async () => {
    const { ask, refuse, replyTo, governor, troubles } = openSwitchboard();
    const [first] = ask(checkOf(CRAWLER, 't:1'), controlOf('t:1', 'pause'));
    refuse();
    expect(await replyTo(first!)).toMatchObject({ ok: true, value: { decision: 'deny', reason: UNWRITABLE } });
    expect(await replyTo(first! + 1)).toEqual({ ok: false, fault: { kind: 'audit_unavailable' } });
    expect(governor.ops.stateOf(governor.ops.find(opId('t:1'), 'acme')!)).toBe('terminated');
    // Until it can be written again nothing is even tried.
    const [refused, read] = ask(checkOf(CRAWLER, 't:2'), {
      type: 'list-ops',
      principal: ADMIN,
      orgId: undefined,
      perPage: 10,
      cursor: undefined,
    });
    expect(await replyTo(refused!)).toMatchObject({ value: { decision: 'deny', reason: UNWRITABLE } });
    expect(governor.ops.find(opId('t:2'), 'acme')).toBeUndefined();
    expect(await replyTo(read!)).toMatchObject({ ok: true });
    expect(troubles).toEqual([{ isWritable: false, reason: 'ENOSPC' }]);
  });

  test('an answer waits for other gateways, also with the log on this thread', async () => {
    const released: unknown[] = [];
    const recorder = new Recorder({
      audit: {
        append: (_: unknown, { written }: { readonly written: (firstId: number) => void }) => {
          written(7);
          return { batch: 1, firstId: 7, failures: 0 };
        },
      },
      threads: {
        isHere: () => true,
        release: (_: number, firstId: number, replies: readonly unknown[]) => released.push([firstId, ...replies]),
        hold: () => undefined,
        flush: () => undefined,
      },
      controlStreams: { of: () => [] },
      onError: (error: unknown) => released.push(error),
    } as unknown as RecorderOptions);
    const batch = new Batch(1, 0, 0);
    batch.begin();
    batch.addEntry({ eventType: 'OpPaused', lineage: CRAWLER, actor: 'key:a', opId: opId('t:1') } as never);
    batch.add(3, controlOf('t:1', 'pause'), { ok: true, value: {} } as never, undefined);
    let confirm: (names: readonly string[]) => void = () => undefined;
    batch.confirmLater(new Promise((resolve) => (confirm = resolve)));
    recorder.finish(batch);
    await sleep(0);
    expect(released).toEqual([]);
    confirm(['two']);
    await sleep(0);
    expect(released).toEqual([
      [7, expect.objectContaining({ id: 3, reply: expect.objectContaining({ unconfirmed: ['two'] }) })],
    ]);
  });

  test('an unrecorded check of a running operation is denied, and it stays running', async () => {
    const { ask, write, refuse, replyTo, governor } = openSwitchboard();
    ask(checkOf(CRAWLER, 't:1'));
    write(1);
    const [unwritten] = ask(checkOf(CRAWLER, 't:1'));
    refuse();
    const [refused] = ask(checkOf(CRAWLER, 't:1'));
    for (const id of [unwritten!, refused!]) {
      expect(await replyTo(id)).toEqual({
        ok: true,
        value: {
          decision: 'deny',
          reason: UNWRITABLE,
          policy: undefined,
          ruleId: undefined,
          cause: 'unrecorded',
          exceeded: undefined,
          opState: undefined,
        },
      });
    }
    expect(governor.ops.stateOf(governor.ops.find(opId('t:1'), 'acme')!)).toBe('running');
  });

  test('an unrecorded control is answered 503, has no effect and sends no signal', async () => {
    const { ask, write, refuse, replyTo, governor, sent } = openSwitchboard();
    const stateOf = () => governor.ops.stateOf(governor.ops.find(opId('t:1'), 'acme')!);
    ask(checkOf(CRAWLER, 't:1'), {
      type: 'open-control',
      agent: CRAWLER,
      credential: digestOf(CRAWLER),
      principal: undefined,
      stream: 7,
    });
    write(1);
    const [paused] = ask(controlOf('t:1', 'pause'));
    refuse();
    expect(await replyTo(paused!)).toEqual({ ok: false, fault: { kind: 'audit_unavailable' } });
    expect(stateOf()).toBe('running');
    expect(sent.filter(({ type }) => type === 'signal')).toEqual([]);
  });

  test('requests queued behind a failed write fail with it and are rolled back', async () => {
    const { ask, write, refuse, replyTo, governor, sent, audit } = openSwitchboard();
    const stateOf = () => governor.ops.stateOf(governor.ops.find(opId('t:1'), 'acme')!);
    ask(checkOf(CRAWLER, 't:1', { estimatedCostMicroUsd: 1_000_000 }), {
      type: 'open-control',
      agent: CRAWLER,
      credential: digestOf(CRAWLER),
      principal: undefined,
      stream: 7,
    });
    write(1);
    const [more] = ask(checkOf(CRAWLER, 't:1', { estimatedCostMicroUsd: 3_000_000 }));
    const controls = (['pause', 'resume', 'terminate'] as const).map((trigger) => ask(controlOf('t:1', trigger))[0]!);
    expect({ state: stateOf(), reservations: governor.budgets.reservations }).toEqual({
      state: 'terminated',
      reservations: { count: 0, microUsd: 0 },
    });
    refuse();
    expect(await replyTo(more!)).toMatchObject({ value: { decision: 'deny', reason: UNWRITABLE } });
    for (const id of controls) expect(await replyTo(id)).toEqual({ ok: false, fault: { kind: 'audit_unavailable' } });
    expect({ state: stateOf(), reservations: governor.budgets.reservations }).toEqual({
      state: 'running',
      reservations: { count: 1, microUsd: 1_000_000 },
    });
    expect(sent.filter(({ type }) => type === 'signal')).toEqual([]);
    expect({
      entriesLost: audit.entriesLost,
      failuresTotal: audit.failuresTotal,
      entriesInFlight: audit.entriesInFlight,
    }).toEqual({ entriesLost: 4, failuresTotal: 4, entriesInFlight: 0 });
  });

  test('the audit thread resumes before anything new is written, and not earlier', async () => {
    const { ask, write, refuse, replyTo, audit, sentToAudit, troubles } = openSwitchboard();
    ask(checkOf(CRAWLER, 't:1'));
    refuse();
    // Nothing is handed over meanwhile, by use cases either.
    expect(await audit.record({ eventType: 'LoginFailed', lineage: CRAWLER, actor: 'nobody' })).toEqual({
      ok: false,
      fault: { kind: 'audit_unavailable' },
    });
    expect(sentToAudit.map(({ type }) => type)).toEqual(['append']);
    audit.receive({ type: 'writable' });
    expect(troubles).toEqual([
      { isWritable: false, reason: 'ENOSPC' },
      { isWritable: true, entriesLost: 2 },
    ]);
    const [late] = ask(checkOf(CRAWLER, 't:2'), { type: 'get-op', principal: ADMIN, opId: opId('t:2') });
    expect(sentToAudit.map(({ type }) => type)).toEqual(['append', 'resume', 'append']);
    write(2);
    refuse();
    expect(await replyTo(late! + 1)).toMatchObject({ value: { state: 'running' } });
    expect({ entriesLost: audit.entriesLost, entriesInFlight: audit.entriesInFlight }).toEqual({
      entriesLost: 2,
      entriesInFlight: 0,
    });
  });

  test('resumes at once with allow, and the failure is logged once', async () => {
    const { ask, write, refuse, replyTo, audit, sentToAudit, troubles } = openSwitchboard({ onAuditFailure: 'allow' });
    const [lost] = ask(checkOf(CRAWLER, 't:1'));
    refuse();
    ask(checkOf(CRAWLER, 't:2'));
    refuse();
    ask(checkOf(CRAWLER, 't:3'));
    expect(sentToAudit.map(({ type }) => type)).toEqual(['append', 'resume', 'append', 'resume', 'append']);
    write(3);
    audit.receive({ type: 'writable' });
    expect(sentToAudit).toHaveLength(5);
    expect(await replyTo(lost!)).toMatchObject({ value: { decision: 'allow' } });
    expect({
      entriesLost: audit.entriesLost,
      entriesInFlight: audit.entriesInFlight,
      isWritable: audit.isWritable,
    }).toEqual({ entriesLost: 2, entriesInFlight: 0, isWritable: true });
    expect(troubles).toEqual([
      { isWritable: false, reason: 'ENOSPC' },
      { isWritable: true, entriesLost: 2 },
    ]);
  });

  test('a signal leaves once its entry is written, and not before', async () => {
    const { ask, write, audit, batches, sent } = openSwitchboard();
    ask(checkOf(CRAWLER, 't:1'), {
      type: 'open-control',
      agent: CRAWLER,
      credential: digestOf(CRAWLER),
      principal: undefined,
      stream: 7,
    });
    ask(controlOf('t:1', 'pause'));
    expect(batches.map(({ isAwaited }) => isAwaited)).toEqual([false, true]);
    await sleep(20);
    expect(sent.filter(({ type }) => type === 'signal')).toEqual([]);
    write(2);
    audit.receive({ type: 'written', batch: 2, isAwaited: true });
    await eventually(() =>
      expect(sent.filter(({ type }) => type === 'signal')).toEqual([
        { type: 'signal', stream: 7, message: { opId: 't:1', signal: 'pause', sequence: 1_000 } },
      ]),
    );
  });

  test("an agent connecting after the operator's answer gets the signal", async () => {
    const { ask, write, replyTo } = openSwitchboard();
    ask(checkOf(CRAWLER, 't:1'));
    ask(controlOf('t:1', 'pause'));
    write(2);
    const [opened] = ask({
      type: 'open-control',
      agent: CRAWLER,
      credential: digestOf(CRAWLER),
      principal: undefined,
      stream: 7,
    });
    expect(await replyTo(opened!)).toMatchObject({ value: { pending: [{ opId: 't:1', signal: 'pause' }] } });
  });

  test('lets a control take effect and its signal leave with allow, recorded or not', async () => {
    const { ask, refuse, replyTo, sent } = openSwitchboard({ onAuditFailure: 'allow' });
    ask(checkOf(CRAWLER, 't:1'), {
      type: 'open-control',
      agent: CRAWLER,
      credential: digestOf(CRAWLER),
      principal: undefined,
      stream: 7,
    });
    const [paused] = ask(controlOf('t:1', 'pause'));
    refuse();
    expect(await replyTo(paused!)).toMatchObject({ ok: true, value: { state: 'paused' } });
    expect(sent.filter(({ type }) => type === 'signal')).toHaveLength(1);
  });

  test('sends the signals of unrecorded controls in order with allow', () => {
    const { ask, refuse, governor } = openSwitchboard({ onAuditFailure: 'allow' });
    ask(checkOf(CRAWLER, 't:1'));
    for (const trigger of ['pause', 'resume'] as const) ask(controlOf('t:1', trigger));
    refuse();
    expect(
      governor.apply<'open-control'>(
        { type: 'open-control', agent: CRAWLER, credential: digestOf(CRAWLER), principal: undefined, stream: 7 },
        2_000,
      ).reply,
    ).toMatchObject({ value: { pending: [{ opId: 't:1', signal: 'resume' }] } });
  });

  test('a rotation that could not be recorded keeps the old token, also in the store', async () => {
    const saved: unknown[] = [];
    const { ask, refuse, replyTo, governor, batches } = openSwitchboard({
      agents: {
        save: (registration) => {
          saved.push(registration.credential);
          return Promise.resolve();
        },
      },
    });
    const [id] = ask({ ...register, agent: CRAWLER });
    await eventually(() => expect(batches).toHaveLength(1));
    refuse();
    expect(await replyTo(id!)).toEqual({ ok: false, fault: { kind: 'audit_unavailable' } });
    expect(saved).toEqual(['digest-of-new', digestOf(CRAWLER)]);
    expect(governor.agents.ownerOf(digestOf(CRAWLER))?.identity).toEqual(CRAWLER);
  });

  test('makes a waiting operation wait without money after two unrecorded checks', async () => {
    const { ask, write, refuse, replyTo, governor } = openSwitchboard();
    ask({ type: 'register-op', principal: ADMIN, opId: opId('t:1'), agent: CRAWLER });
    const checks = [5_000_000, 2_000_000].map(
      (estimatedCostMicroUsd) => ask(checkOf(CRAWLER, 't:1', { estimatedCostMicroUsd }))[0]!,
    );
    write(1);
    refuse();
    for (const id of checks)
      expect(await replyTo(id)).toMatchObject({ value: { decision: 'deny', reason: UNWRITABLE } });
    expect(governor.ops.stateOf(governor.ops.find(opId('t:1'), 'acme')!)).toBe('pending');
    expect(governor.budgets.reservations).toEqual({ count: 0, microUsd: 0 });
  });

  test('keeps the previous token in force after two unrecorded rotations', async () => {
    const { ask, refuse, replyTo, governor, batches } = openSwitchboard();
    const [first] = ask({ ...register, agent: CRAWLER, credential: 'first' as never });
    const [second] = ask({ ...register, agent: CRAWLER, credential: 'second' as never });
    await eventually(() => expect(batches).toHaveLength(2));
    refuse();
    for (const id of [first, second])
      expect(await replyTo(id!)).toEqual({ ok: false, fault: { kind: 'audit_unavailable' } });
    expect(
      ['first', 'second', digestOf(CRAWLER)].map(
        (credential) => governor.agents.ownerOf(credential as never)?.identity,
      ),
    ).toEqual([undefined, undefined, CRAWLER]);
  });

  test('a rotation still waiting for the store fails with an earlier unrecorded one', async () => {
    const saves: [credential: unknown, done: () => void][] = [];
    const { ask, refuse, replyTo, governor, audit, batches } = openSwitchboard({
      agents: {
        save: ({ credential }) =>
          new Promise((resolve) => {
            saves.push([credential, resolve]);
          }),
      },
    });
    const [first] = ask({ ...register, agent: CRAWLER, credential: 'first' as never });
    const [second] = ask({ ...register, agent: CRAWLER, credential: 'second' as never });
    saves[0]![1]();
    await eventually(() => expect(batches).toHaveLength(1));
    refuse();
    audit.receive({ type: 'writable' });
    saves[1]![1]();
    for (const id of [first, second])
      expect(await replyTo(id!)).toEqual({ ok: false, fault: { kind: 'audit_unavailable' } });
    expect(batches).toHaveLength(1);
    expect(
      ['first', 'second', digestOf(CRAWLER)].map(
        (credential) => governor.agents.ownerOf(credential as never)?.identity,
      ),
    ).toEqual([undefined, undefined, CRAWLER]);
    expect(saves.map(([credential]) => credential)).toEqual(['first', 'second', 'first', digestOf(CRAWLER)]);
  });

  test.each(['deny', 'allow'] as const)(
    'keeps the previous token if the store refuses two rotations (%s)',
    async (onAuditFailure) => {
      const saves: (() => void)[] = [];
      const { ask, replyTo, governor, batches } = openSwitchboard({
        onAuditFailure,
        agents: {
          save: () =>
            new Promise((_, reject) => {
              saves.push(() => reject(new Error('the disk is gone')));
            }),
        },
      });
      const ids = ['first', 'second'].map(
        (credential) => ask({ ...register, agent: CRAWLER, credential: credential as never })[0]!,
      );
      for (const failNow of saves) failNow();
      for (const id of ids) expect(await replyTo(id)).toEqual({ ok: false, fault: { kind: 'internal' } });
      expect(batches).toEqual([]);
      expect(
        ['first', 'second', digestOf(CRAWLER)].map(
          (credential) => governor.agents.ownerOf(credential as never)?.identity,
        ),
      ).toEqual([undefined, undefined, CRAWLER]);
    },
  );

  test('a recorded batch stays when a later one fails', async () => {
    const { ask, write, refuse, governor, audit } = openSwitchboard();
    ask(checkOf(CRAWLER, 't:1'));
    write(1);
    expect(audit.entriesInFlight).toBe(0);
    ask(checkOf(CRAWLER, 't:2'));
    refuse();
    expect(governor.ops.stateOf(governor.ops.find(opId('t:2'), 'acme')!)).toBe('terminated');
    expect({ entriesLost: audit.entriesLost, entriesInFlight: audit.entriesInFlight }).toEqual({
      entriesLost: 1,
      entriesInFlight: 0,
    });
  });

  test.each([
    ['deny', { ok: false, fault: { kind: 'audit_unavailable' } }],
    ['allow', { ok: true, value: { rotated: false } }],
  ] as const)(
    'a registration whose record is lost with the audit thread is answered (%s)',
    async (onAuditFailure, expected) => {
      const { ask, replyTo, audit, batches } = openSwitchboard({ onAuditFailure });
      const [id] = ask(register);
      await eventually(() => expect(batches).toHaveLength(1));
      audit.disconnect();
      expect(await replyTo(id!)).toMatchObject(expected);
    },
  );

  test('holds answers whose entries a dead audit thread had written until it is told', async () => {
    const { ask, replyTo, audit, auditOutlet, write, held, sent } = openSwitchboard();
    const [, lost] = [ask(checkOf(CRAWLER, 't:1'))[0]!, ask(checkOf(CRAWLER, 't:2'))[0]!];
    write(1);
    audit.disconnect();
    expect(await replyTo(lost)).toMatchObject({ ok: true, value: { decision: 'deny', cause: 'unrecorded' } });
    // The next audit thread goes before it has begun.
    audit.connect(auditOutlet, 1);
    audit.disconnect();
    expect(held()).toMatchObject([
      { batch: 1, firstId: 1, failures: 0 },
      { batch: 2, firstId: 2, failures: 0 },
    ]);
    expect(sent.filter(({ type }) => type === 'not-recorded')).toEqual([
      { type: 'not-recorded', from: 2 },
      { type: 'not-recorded', from: 3 },
    ]);
    expect(sent.flatMap((message) => (message.type === 'command-reply' ? [message.id] : []))).toEqual([lost]);
    expect(audit.entriesLost).toBe(1);
  });

  test('a registration on its way to the store is answered when the audit thread dies', async () => {
    let saved: () => void = () => {};
    const { ask, replyTo, audit } = openSwitchboard({
      agents: {
        save: () =>
          new Promise((resolve) => {
            saved = resolve;
          }),
      },
    });
    const [id] = ask(register);
    audit.disconnect();
    saved();
    expect(await replyTo(id!)).toEqual({ ok: false, fault: { kind: 'audit_unavailable' } });
  });

  test('passes and counts checks with allow while there is no audit thread', async () => {
    const { ask, replyTo, audit, auditOutlet } = openSwitchboard({ onAuditFailure: 'allow' });
    audit.disconnect();
    const [id] = ask(checkOf(CRAWLER, 't:1'));
    expect(await replyTo(id!)).toMatchObject({ value: { decision: 'allow', opState: 'running' } });
    expect({ entriesLost: audit.entriesLost, isWritable: audit.isWritable }).toEqual({
      entriesLost: 1,
      isWritable: false,
    });
    audit.connect(auditOutlet, 0);
    expect(audit.isWritable).toBe(true);
  });

  test('an agent that could not be stored gets an error and no registration entry', async () => {
    const { ask, replyTo, batches, defects } = openSwitchboard({
      agents: { save: () => Promise.reject(new Error('the disk is gone')) },
    });
    const [id] = ask(register);
    expect(await replyTo(id!)).toEqual({ ok: false, fault: { kind: 'internal' } });
    expect(batches).toEqual([]);
    expect(defects).toHaveLength(1);
  });

  test('spend that could not be stored fails no registration that waits for the store', async () => {
    let saved: () => void = () => {};
    const { ask, replyTo, governor, held } = openSwitchboard({
      agents: {
        save: () =>
          new Promise((resolve) => {
            saved = resolve;
          }),
      },
      budgets: { save: () => Promise.reject(new Error('the disk is gone')) },
    });
    const [registration] = ask(register);
    const [usage] = ask({
      type: 'record-usage',
      principal: ADMIN,
      agent: CRAWLER,
      credential: undefined,
      costMicroUsd: 1,
      opId: undefined,
      usageId: undefined,
    });
    expect(await replyTo(usage!)).toEqual({ ok: false, fault: { kind: 'internal' } });
    saved();
    await eventually(() => expect(held()).toHaveLength(1));
    expect(held()[0]!.replies).toMatchObject([
      { id: registration, reply: { ok: true, value: { agent: { identity: register.agent } } } },
    ]);
    expect(governor.agents.ownerOf(register.credential)?.identity).toEqual(register.agent);
  });

  test('a repeated usage is answered only once the first is stored', async () => {
    const stored: ((error?: Error) => void)[] = [];
    const { ask, replyTo, sent } = openSwitchboard({
      budgets: {
        save: (changes) =>
          changes.length === 0
            ? Promise.resolve()
            : new Promise((resolve, reject) =>
                stored.push((error) => (error === undefined ? resolve() : reject(error))),
              ),
      },
    });
    const usage = {
      type: 'record-usage',
      principal: ADMIN,
      agent: CRAWLER,
      credential: undefined,
      costMicroUsd: 1,
      opId: undefined,
      usageId: 'u1',
    } as const;
    const [first] = ask(usage);
    const [again] = ask(usage);
    await sleep(20);
    expect(sent).toEqual([]);
    stored[0]!(new Error('the disk is gone'));
    for (const id of [first!, again!]) expect(await replyTo(id)).toEqual({ ok: false, fault: { kind: 'internal' } });
    const [last] = ask(usage);
    await eventually(() => expect(stored).toHaveLength(2));
    stored[1]!();
    expect(await replyTo(last!)).toEqual({ ok: true, value: { status: 'ok' } });
  });

  test('checks are counted by the decision answered, also when unrecorded', async () => {
    const { ask, write, refuse, replyTo, audit, recorder } = openSwitchboard();
    const forbidden = checkOf(SIBLING, 't:0', { resource: 'forbidden' });
    ask(checkOf(CRAWLER, 't:1'), forbidden, { type: 'get-op', principal: ADMIN, opId: opId('t:1') });
    write(1);
    const [unwritten] = ask(checkOf(CRAWLER, 't:2'), controlOf('t:1', 'pause'), forbidden);
    refuse();
    const [refused] = ask(checkOf(CRAWLER, 't:3'));
    for (const id of [unwritten!, refused!]) expect(await replyTo(id)).toMatchObject({ value: { decision: 'deny' } });
    expect(recorder.checks).toEqual({ allow: 1, deny: 4, pending: 0, error: 0 });
    audit.receive({ type: 'writable' });
    ask(checkOf(CRAWLER, 't:4'));
    write(3);
    audit.catchUp();
    expect(recorder.checks).toEqual({ allow: 2, deny: 4, pending: 0, error: 0 });
  });

  test('counts unrecorded checks with allow as they were answered', async () => {
    const { ask, refuse, replyTo, recorder } = openSwitchboard({ onAuditFailure: 'allow' });
    const [unwritten] = ask(checkOf(CRAWLER, 't:1'));
    refuse();
    expect(await replyTo(unwritten!)).toMatchObject({ value: { decision: 'allow' } });
    expect(recorder.checks).toEqual({ allow: 1, deny: 0, pending: 0, error: 0 });
  });

  test('rolls back no change of a cluster because the log refuses another', async () => {
    const world = new LogWorld();
    const [elsewhere, here] = ['elsewhere', 'here'].map((name) => world.open(name));
    const { governor, decisions } = here!;
    here!.isStopped = true; // it has not heard yet of the agent that has the token
    const taking = elsewhere!.decide({ ...register, credential: 'taken' as never });
    await world.settle();
    expect(await taking).toMatchObject({ ok: true });
    const { ask, audit, write, batches, held, replyTo } = openSwitchboard({
      shared: { governor, decisions },
      agents: {
        save: (body) => decisions.save({ kind: 'agents', id: `acme/search/${body.identity.agentId}`, body }),
        remove: (id) => decisions.save({ kind: 'agents', id, body: null }),
      },
    });
    ask(checkOf(CRAWLER, 't:1'));
    const named = (agentId: string, credential: string) => ({
      ...register,
      ...{ agent: { ...CRAWLER, agentId }, credential: credential as never },
    });
    const [refused, ...others] = ask(
      named('second', 'taken'),
      ...Array.from({ length: 10 }, (_, at) => named(`agent-${at}`, `own-${at}`)),
      controlOf('t:1', 'pause'),
    );
    for (let turn = 0; held().length < 12 && turn < 200; turn += 1) {
      await world.settle();
      write(batches.length);
      audit.catchUp();
    }
    const answered = held().flatMap(({ replies }) => replies);
    const accepted = others.map((id) => expect.objectContaining({ id, reply: expect.objectContaining({ ok: true }) }));
    expect(answered).toHaveLength(12);
    expect(answered).toEqual(expect.arrayContaining(accepted));
    expect(await replyTo(refused!)).toMatchObject({ ok: false, fault: { kind: 'conflict' } });
    const kept = ['second', ...Array.from({ length: 10 }, (_, at) => `agent-${at}`)].map(
      (agentId) => governor.agents.registrationOf(`acme/search/${agentId}` as never)?.credential,
    );
    expect(kept).toEqual([undefined, ...Array.from({ length: 10 }, (_, at) => `own-${at}`)]);
    expect(governor.ops.stateOf(governor.ops.find(opId('t:1'), 'acme')!)).toBe('paused');
    for (const { log } of world.gateways) log.stop();
  });
});
