/** Defects that somebody might make, to show that the simulation finds each, and what it says of it. */
import { ok } from '../../src/core/base/result.ts';
import { FAILURES } from '../../src/threads/audit/audit-counters.ts';
import type { MainToIo } from '../../src/threads/protocol.ts';
import type { GatewayRun, Mutation } from './process.ts';
import type { Invariant } from './violation.ts';

export type Mutant = {
  readonly name: string;
  /** The seed that is tried first. */
  readonly seed: number;
  readonly found: readonly Invariant[];
  readonly mutation: Mutation;
};

/** Answers leave as soon as they are decided, with the numbers that their entries will have if all goes well. */
function answerEarly(run: GatewayRun): void {
  for (const thread of run.ios) {
    const { held, receiver } = thread;
    if (held === undefined) continue;
    const take = held.take.bind(held);
    held.take = (messages) => {
      for (const message of messages) if (message.type === 'held') receiver.release(message.firstId, message.replies);
      return take(messages);
    };
  }
}

/** After a failed write, what is written later counts for what was lost. */
function forgetFailures(run: GatewayRun): void {
  for (const { held } of run.ios) {
    if (held === undefined) continue;
    const take = held.take.bind(held);
    held.take = (messages) =>
      take(
        messages.flatMap((message): MainToIo[] => {
          if (message.type === 'not-recorded') return [];
          if (message.type !== 'held') return [message];
          const failures = Atomics.load(new Int32Array(run.audit.counters), FAILURES);
          return [{ ...message, failures }];
        }),
      );
  }
}

export const MUTANTS: readonly Mutant[] = [
  { name: 'answers before the record', seed: 5, found: ['record'], mutation: { main: answerEarly } },
  {
    name: 'takes what is written after a failure for what was lost',
    seed: 8,
    found: ['record', 'answer'],
    mutation: { main: forgetFailures },
  },
  {
    name: 'answers although the write failed',
    seed: 2,
    found: ['record', 'rollback'],
    mutation: {
      writer: (writer) => {
        const append = writer.append.bind(writer);
        writer.append = (bodies, count) => {
          const written = append(bodies, count);
          return written.ok ? written : ok({ firstId: writer.head().id + 1 });
        };
      },
    },
  },
  {
    name: 'rolls nothing back',
    seed: 1,
    found: ['rollback', 'operation', 'agent'],
    mutation: {
      main: ({ governor }) => {
        governor.rollBack = () => [];
      },
    },
  },
  {
    name: 'does not give held money back',
    seed: 2,
    found: ['rollback'],
    mutation: {
      main: ({ governor }) => {
        governor.budgets.holdAgain = () => undefined;
      },
    },
  },
  {
    name: 'answers spend before it is stored',
    seed: 2,
    found: ['budget'],
    mutation: {
      main: ({ recording }) => {
        recording.spend.save = () => Promise.resolve();
      },
    },
  },
  {
    name: 'counts a repeated report twice',
    seed: 1,
    found: ['budget'],
    mutation: {
      main: ({ governor: { budgets } }) => {
        const record = budgets.record.bind(budgets);
        budgets.record = (agent, cost, options, nowMs) =>
          record(agent, cost, { ...options, usageId: undefined }, nowMs);
      },
    },
  },
  {
    name: 'looks at no cap',
    seed: 1,
    found: ['cap'],
    mutation: {
      main: ({ governor: { budgets } }) => {
        const reserve = budgets.reserve.bind(budgets);
        budgets.reserve = (agent, op, cost, nowMs) => {
          const reserved = reserve(agent, op, cost, nowMs);
          if (reserved.ok) return reserved;
          budgets.holdAgain(agent, op, { microUsd: cost, untilMs: nowMs + 600_000 }, nowMs);
          return ok(undefined);
        };
      },
    },
  },
  {
    name: 'checks no halt',
    seed: 6,
    found: ['halt'],
    mutation: {
      main: ({ governor }) => {
        governor.halts.covering = () => undefined;
      },
    },
  },
  {
    name: 'pauses nothing',
    seed: 1,
    found: ['rollback', 'operation'],
    mutation: {
      main: ({ governor: { ops } }) => {
        const advance = ops.advance.bind(ops);
        ops.advance = (slot, trigger, nowMs, end) =>
          trigger === 'pause' && ops.stateOf(slot) === 'running' ? 'paused' : advance(slot, trigger, nowMs, end);
      },
    },
  },
  {
    name: 'drops an answer',
    seed: 1,
    found: ['answer'],
    mutation: {
      main: ({ recording: { recorder } }) => {
        const answer = recorder.answer.bind(recorder);
        let nth = 0;
        recorder.answer = (io, id, reply) => {
          nth += 1;
          if (nth % 40 !== 0) answer(io, id, reply);
        };
      },
    },
  },
];
