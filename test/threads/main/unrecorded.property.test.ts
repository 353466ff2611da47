import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { agentKeyOf } from '../../../src/core/base/ids.ts';
import type { CHANGES, Command, CommandType } from '../../../src/core/commands.ts';
import { HeldAnswers } from '../../../src/threads/io/held-answers.ts';
import type { AuditToMain, MainToDoors } from '../../../src/threads/protocol.ts';
import { ADMIN, CRAWLER, checkOf, controlOf, digestOf, opId } from '../../support/governor.ts';
import { runs } from '../../support/runs.ts';
import { openSwitchboard } from '../../support/switchboard.ts';

const OPS = ['t:0', 't:1'];
const NEW = { ...CRAWLER, agentId: 'new' };
const CREDENTIALS = ['first', 'second', 'third'];
const STATE_AFTER = { pause: 'paused', resume: 'running', terminate: 'terminated', complete: 'completing' } as const;

type Shown = { state: string; heldMicroUsd: number; signal: string | undefined };
/** `ids`: of the requests, by the id of their entry. */
type Log = { readonly ops: Map<string, Shown>; credential: string | undefined; readonly ids: Map<number, number> };
type Reply = { readonly ok: boolean; readonly value?: unknown };

/** Models the log entry of this command with this answer. */
function record(log: Log, command: Command, reply: Reply): void {
  if (!reply.ok) return;
  if (command.type === 'register-agent') log.credential = command.credential;
  else if (command.type === 'deregister-agent') log.credential = undefined;
  else recordOp(log.ops.get((command as { readonly opId: string }).opId)!, command, reply);
}

function recordOp(op: Shown, command: Command, reply: Reply): void {
  const hasBegun = op.state !== 'unknown' && op.state !== 'pending';
  switch (command.type) {
    case 'register-op':
      op.state = 'pending';
      return;
    case 'control-op':
      op.state = STATE_AFTER[command.trigger];
      op.signal = command.trigger === 'complete' ? undefined : command.trigger;
      if (op.state === 'terminated' || op.state === 'completing') op.heldMicroUsd = 0;
      return;
    case 'check': {
      const { decision, reason, opState } = reply.value as {
        readonly decision: string;
        readonly reason: string;
        readonly opState: string;
      };
      if (decision === 'allow') {
        if (!hasBegun) op.state = 'running';
        op.heldMicroUsd = Math.max(op.heldMicroUsd, command.estimatedCostMicroUsd);
      } else if (reason === 'forbidden' && opState === 'terminated' && !hasBegun) op.state = 'terminated';
      return;
    }
    default:
      throw new Error(command.type);
  }
}

/**
 * A completion is the same move whoever asks for it, money that was spent stays spent, and a refusal changes nothing;
 * test/core/halts has the halts.
 */
type ChangingCommand = { [T in CommandType]: (typeof CHANGES)[T] extends true ? T : never }[CommandType];
type RolledBack = Exclude<
  ChangingCommand,
  | 'complete-op'
  | 'record-usage'
  | 'refuse-action'
  | 'create-halt'
  | 'release-halt'
  | 'enforce-halt'
  | 'resume-halted'
  | 'decide-approval'
  | 'cancel-approval'
  | 'cancel-own-approval'
  | 'tick-approvals'
  | 'halt-approval'
  | 'leave-approval'
  | 'follow-approval'
>;
const COMMANDS = {
  check: {
    weight: 5,
    arbitrary: fc
      .tuple(fc.constantFrom(...OPS), fc.constantFrom('web', 'web', 'web', 'forbidden'), fc.integer({ min: 0, max: 3 }))
      .map(([op, resource, cost]): Command => checkOf(CRAWLER, op, { resource, estimatedCostMicroUsd: cost })),
  },
  'control-op': {
    weight: 4,
    arbitrary: fc
      .tuple(
        fc.constantFrom(...OPS),
        fc.constantFrom('pause', 'pause', 'resume', 'resume', 'terminate', 'complete') as fc.Arbitrary<
          keyof typeof STATE_AFTER
        >,
      )
      .map(([op, trigger]): Command => controlOf(op, trigger)),
  },
  'register-op': {
    weight: 1,
    arbitrary: fc
      .constantFrom(...OPS)
      .map((op): Command => ({ type: 'register-op', principal: ADMIN, opId: opId(op), agent: CRAWLER })),
  },
  'register-agent': {
    weight: 1,
    arbitrary: fc.constantFrom(...CREDENTIALS).map(
      (credential): Command => ({
        type: 'register-agent',
        principal: ADMIN,
        agent: NEW,
        credential: credential as never,
        parent: undefined,
      }),
    ),
  },
  'deregister-agent': {
    weight: 1,
    arbitrary: fc.constant<Command>({ type: 'deregister-agent', principal: ADMIN, agent: NEW }),
  },
} satisfies Record<RolledBack, { readonly weight: number; readonly arbitrary: fc.Arbitrary<Command> }>;
const command = fc.oneof(...Object.values(COMMANDS));
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      does: fc.constant('ask' as const),
      commands: fc.array(command, { minLength: 1, maxLength: 3, size: 'max' }),
      waitsMs: fc.constantFrom(0, 1),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constant('take' as const),
      most: fc.integer({ min: 1, max: 3 }),
      canWrite: fc.constantFrom(true, true, true, false),
    }),
  },
  { weight: 3, arbitrary: fc.record({ does: fc.constant('hear' as const) }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constant('read' as const), most: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('probe' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constant('save' as const), isSaved: fc.constantFrom(true, true, false) }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constantFrom('die' as const, 'start' as const) }) },
);

type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/**
 * The gateway with an audit thread and a store that do what they are told, when they are told, in the order in which
 * they were asked.
 */
function openScene(onAuditFailure: 'deny' | 'allow') {
  let nowMs = 1_000;
  const saves: ((isSaved: boolean) => void)[] = [];
  const store = (): Promise<void> =>
    new Promise((resolve, reject) => {
      saves.push((isSaved) => (isSaved ? resolve() : reject(new Error('the store is full'))));
    });
  const { ask, audit, auditOutlet, fail, governor, held, sent, sentToAudit, write } = openSwitchboard({
    onAuditFailure,
    nowMs: () => nowMs,
    agents: { save: store, remove: store },
  });
  const asked = new Map<number, Command>();
  const log: Log = {
    ops: new Map(OPS.map((op) => [op, { state: 'unknown', heldMicroUsd: 0, signal: undefined }])),
    credential: undefined,
    ids: new Map(),
  };
  const unheard: AuditToMain[] = [];
  const given = new Map<number, { readonly auditId: number; readonly reply: Reply }>();
  const give = (firstId: number | undefined, replies: readonly MainToDoors[]): void => {
    for (const answer of replies)
      if (answer.type === 'command-reply' && !given.has(answer.id))
        given.set(answer.id, { auditId: (firstId ?? 0) + answer.auditIndex, reply: answer.reply });
  };
  const holding = new HeldAnswers({ counters: audit.counters, release: give });
  /** The I/O thread reads what was sent to it. */
  let read = 0;
  const readAll = (most = Number.POSITIVE_INFINITY): void => {
    give(undefined, holding.take(sent.slice(read, read + most)));
    read = Math.min(sent.length, read + most);
  };
  const writtenBatches: number[] = [];
  const sizeOf = (batch: number): number =>
    sentToAudit.reduce(
      (sum, message) => (message.type === 'append' && message.batch === batch ? message.count : sum),
      0,
    );
  let taken = 0;
  let writtenEntries = 0;
  let isFailing = false;
  let isProbing = false;
  const append = (group: typeof sentToAudit, canWrite: boolean): void => {
    for (const message of group) {
      if (message.type !== 'append') continue;
      if (!canWrite) {
        isFailing = isProbing = true;
        fail();
        unheard.push({ type: 'not-written', reason: 'ENOSPC' });
        return;
      }
      write(message.batch);
      writtenEntries += message.count;
      if (message.isAwaited) unheard.push({ type: 'written', batch: message.batch, isAwaited: true });
      writtenBatches.push(message.batch);
    }
  };
  const hear = (): void => {
    const message = unheard.shift();
    if (message?.type === 'written' || message?.type === 'not-written' || message?.type === 'writable')
      audit.receive(message);
  };
  return {
    asked,
    audit,
    given,
    governor,
    log,
    saves,
    readAll,
    /** Reads what the log says, and whose entries it has. */
    readLog: () => {
      for (const [nth, batch] of writtenBatches.entries()) {
        const { replies } = held().find((message) => message.batch === batch)!;
        for (const answer of replies) {
          if (answer.type !== 'command-reply') continue;
          const before = writtenBatches.slice(0, nth).map((each) => sizeOf(each));
          log.ids.set(answer.id, before.reduce((sum, each) => sum + each, 1) + answer.auditIndex);
          record(log, asked.get(answer.id)!, answer.reply);
        }
      }
    },
    hear,
    lostEntries: () =>
      sentToAudit.reduce((sum, message) => sum + (message.type === 'append' ? message.count : 0), 0) - writtenEntries,
    isQuiet: () => saves.length === 0 && taken === sentToAudit.length && unheard.length === 0 && !isProbing,
    ask: (commands: readonly Command[], waitsMs: number) => {
      nowMs += waitsMs;
      ask(...commands).forEach((id, index) => asked.set(id, commands[index]!));
    },
    take: (most: number, canWrite: boolean) => {
      nowMs += 1;
      const group: typeof sentToAudit = [];
      for (; taken < sentToAudit.length && group.length < most; taken += 1) {
        if (sentToAudit[taken]!.type === 'resume') isFailing = false;
        else if (!isFailing) group.push(sentToAudit[taken]!);
      }
      append(group, canWrite);
    },
    probe: () => {
      if (!isProbing) return;
      isProbing = false;
      unheard.push({ type: 'writable' });
    },
    save: (isSaved: boolean) => {
      saves.shift()?.(isSaved);
      return turn();
    },
    die: () => {
      while (unheard.length > 0) hear();
      taken = sentToAudit.length;
      isFailing = isProbing = false;
      audit.disconnect();
    },
    start: () => audit.connect(auditOutlet, writtenEntries),
  };
}

/** Plays the steps, then lets everything that is under way come to its end. */
async function play(steps: readonly Step[], onAuditFailure: 'deny' | 'allow') {
  const scene = openScene(onAuditFailure);
  let isRunning = true;
  for (const each of steps) {
    switch (each.does) {
      case 'ask':
        scene.ask(each.commands, each.waitsMs);
        break;
      case 'take':
        if (isRunning) scene.take(each.most, each.canWrite);
        break;
      case 'hear':
        scene.hear();
        break;
      case 'read':
        scene.readAll(each.most);
        break;
      case 'probe':
        scene.probe();
        break;
      case 'save':
        await scene.save(each.isSaved);
        break;
      default:
        if (isRunning === (each.does === 'start')) break;
        isRunning = each.does === 'start';
        scene[each.does]();
    }
  }
  if (!isRunning) scene.start();
  while (!scene.isQuiet()) {
    scene.take(1, true);
    scene.probe();
    scene.hear();
    await scene.save(true);
  }
  await turn();
  scene.readAll();
  await turn();
  scene.readLog();
  expect({ entriesInFlight: scene.audit.entriesInFlight, isWritable: scene.audit.isWritable }).toEqual({
    entriesInFlight: 0,
    isWritable: true,
  });
  const unrecorded = [...scene.asked]
    .filter(([id]) => !scene.log.ids.has(id))
    .map(([id, { type }]) => ({ type, answer: scene.given.get(id)?.reply }));
  return { ...scene, unrecorded };
}

describe('unrecorded properties', () => {
  test("after any failed writes the state is what the log's entries say", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60, size: 'max' }), async (steps) => {
        const { given, governor, log, unrecorded } = await play(steps, 'deny');
        const shown = OPS.map((op) => {
          const slot = governor.ops.find(opId(op), 'acme');
          return slot === undefined ? 'unknown' : governor.ops.stateOf(slot);
        });
        // An operation that only a check without a record began is over; nobody may have begun it.
        OPS.forEach((op, index) =>
          expect(log.ops.get(op)!.state === 'unknown' ? ['unknown', 'terminated'] : [log.ops.get(op)!.state]).toContain(
            shown[index],
          ),
        );
        const held = [...log.ops.values()].map(({ heldMicroUsd }) => heldMicroUsd).filter((microUsd) => microUsd > 0);
        expect(governor.budgets.reservations).toEqual({
          count: held.length,
          microUsd: held.reduce((sum, microUsd) => sum + microUsd, 0),
        });
        const box = governor.apply<'open-control'>(
          { type: 'open-control', agent: CRAWLER, credential: digestOf(CRAWLER), principal: undefined, stream: 7 },
          100_000,
        ).reply;
        const pending = OPS.map((op) =>
          box.ok ? box.value.pending.find((message) => message.opId === op)?.signal : undefined,
        );
        expect(pending).toEqual(OPS.map((op) => log.ops.get(op)!.signal));
        expect([
          governor.agents.get(agentKeyOf(NEW))?.credential,
          ...CREDENTIALS.filter((credential) => governor.agents.ownerOf(credential as never) !== undefined),
        ]).toEqual(log.credential === undefined ? [undefined] : [log.credential, log.credential]);

        // Each caller has an answer, and no check is allowed that is not in the log.
        for (const { type, answer } of unrecorded) {
          expect(answer).toBeDefined();
          if (type === 'check') expect(answer).not.toMatchObject({ value: { decision: 'allow' } });
        }
        // Each caller in the log has the id of its entry.
        for (const [id, auditId] of log.ids) expect(given.get(id)).toMatchObject({ auditId });
      }),
      { numRuns: runs(40) },
    );
  });

  test('keep the answers with allow through failed writes, and count missing entries', async () => {
    const withoutDeath = step.filter(({ does }) => does !== 'die' && does !== 'start');
    await fc.assert(
      fc.asyncProperty(fc.array(withoutDeath, { minLength: 1, maxLength: 60, size: 'max' }), async (steps) => {
        const { audit, lostEntries, unrecorded } = await play(steps, 'allow');
        expect(audit.entriesLost).toBe(lostEntries());
        for (const { answer } of unrecorded) {
          expect(answer).toBeDefined();
          expect(answer).not.toMatchObject({ fault: { kind: 'audit_unavailable' } });
        }
      }),
      { numRuns: runs(20) },
    );
  });
});
