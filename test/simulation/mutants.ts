/** Defects that somebody might make, to show that the simulation finds each, and what it says of it. */
import { ok } from '../../src/core/base/result.ts';
import { decodeToAudit, decodeToIo } from '../../src/threads/codec.ts';
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
  const push = run.toAudit.push.bind(run.toAudit);
  run.toAudit.push = (...batches) => {
    for (const bytes of batches) {
      const message = decodeToAudit(bytes.slice());
      if (message.type !== 'append' || message.replies === undefined) continue;
      const thread = run.ios.find(({ io }) => io === message.io);
      thread?.receiver.release((run.writer?.head().id ?? 0) + 1, decodeToIo(message.replies));
    }
    return push(...batches);
  };
}

export const MUTANTS: readonly Mutant[] = [
  { name: 'answers before the record', seed: 5, found: ['record'], mutation: { main: answerEarly } },
  {
    name: 'answers although the write failed',
    seed: 1,
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
