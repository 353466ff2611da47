import { agentKeyOf } from '../../core/base/ids.ts';
import { BAD_CURSOR, type PageRequest } from '../../core/base/page.ts';
import { assertNever, fail, ok } from '../../core/base/result.ts';
import { CHANGES, type Command, type CommandOf, type CommandType, type Replies } from '../../core/commands.ts';
import { NO_EFFECTS } from '../../core/effects.ts';
import type { Governor } from '../../core/governor.ts';
import type { Outcome } from '../../core/outcome.ts';
import type { RateLimiter } from '../../limits/rate-limit.ts';
import type { Clock } from '../../ports/ports.ts';
import type { UseCases } from '../../use-cases/use-cases.ts';
import type { AuditLink } from '../audit/audit-link.ts';
import { decodeToMain } from '../codec.ts';
import type { IoId, IoToMain } from '../protocol.ts';
import { type Batch, INTERNAL, newBatch, refusalOf, unrecordedCommand } from './batches.ts';
import type { ControlStreams } from './control-streams.ts';
import { CursorSeal } from './cursor-seal.ts';
import type { EffectRunner } from './effect-runner.ts';
import type { EventBoard } from './event-board.ts';
import type { IoThreads } from './io-threads.ts';
import type { Recorder } from './recorder.ts';

export type SwitchboardOptions = {
  readonly governor: Governor;
  readonly audit: AuditLink;
  readonly threads: IoThreads;
  readonly events: EventBoard;
  readonly controlStreams: ControlStreams;
  readonly effectRunner: EffectRunner;
  readonly recorder: Recorder;
  readonly useCases: UseCases;
  readonly clock: Clock;
  /** What to do while the audit log cannot be written (docs/spec.md, Audit). */
  readonly onAuditFailure: 'deny' | 'allow';
  /** Entries on their way to the audit log at once; beyond that, what would add one is refused. */
  readonly maxUnrecorded: number;
  readonly checkLimiter?: RateLimiter | undefined;
  readonly onError: (error: unknown, doing: string) => void;
};

type ListCommand = Extract<Command, PageRequest>;

/** Takes what I/O threads ask, has it decided by the governor or done by a use case, and refuses what it must. */
export class Switchboard {
  readonly #options: SwitchboardOptions;
  readonly #cursors = new CursorSeal();

  constructor(options: SwitchboardOptions) {
    this.#options = options;
  }

  /** Call it when the thread is gone, with its sockets, readers and streams. */
  disconnect(io: IoId): void {
    const { threads, events, governor, controlStreams } = this.#options;
    threads.disconnect(io);
    events.dropThread(io);
    governor.isWatched = events.isWatched;
    controlStreams.dropThread(io);
  }

  /** A batch of messages as an I/O thread sent it. Commands are applied in their order, and recorded as one batch. */
  receive(io: IoId, bytes: Uint8Array): void {
    const { audit, clock, governor, recorder, threads } = this.#options;
    // An operator's entry counts as written before its answer leaves, so an agent that connects afterwards finds the
    // signal.
    audit.catchUp();
    const batch = newBatch(clock.nowMs(), governor.ops.lastNumber);
    for (const message of decodeToMain(bytes)) {
      if (message.type === 'command') this.#perform(io, message.id, message.command, batch);
      else this.#receiveOther(io, message);
    }
    if (batch.replies.length > 0) recorder.record(io, batch);
    threads.flush(io);
  }

  /**
   * Applies one command. A change is answered with its batch, or alone once a store has saved it; anything else at
   * once.
   */
  #perform(io: IoId, id: number, command: Command, batch: Batch): void {
    const { controlStreams, effectRunner, recorder } = this.#options;
    const { bodies, appliedAtMs } = batch;
    const auditIndex = bodies.length;
    const { reply, effects, undo } = this.#apply(command, auditIndex, appliedAtMs);
    const durable = effectRunner.run(effects, appliedAtMs, batch);
    if (command.type === 'open-control' && reply.ok)
      controlStreams.open(agentKeyOf(command.agent), { io, stream: command.stream });
    if (durable !== undefined) {
      const alone: Batch = {
        ...newBatch(appliedAtMs, batch.lastOpBefore),
        bodies: bodies.splice(auditIndex),
        replies: [{ type: 'command-reply', id, reply, auditIndex: 0 }],
        undos: undo === undefined ? [] : [undo],
      };
      void recorder.recordWhenDurable(io, alone, durable);
    } else if (bodies.length === auditIndex) {
      if (command.type === 'check') recorder.countCheck(reply as Replies['check']);
      recorder.answer(io, id, reply);
    } else {
      batch.replies.push({ type: 'command-reply', id, reply, auditIndex });
      batch.commands.push(command);
      if (undo !== undefined) batch.undos.push(undo);
    }
  }

  /** A defect met by one command must not lose the others of its batch, nor leave its caller waiting. */
  #apply(command: Command, unsentEntries: number, nowMs: number): Outcome {
    try {
      const refusal = this.#refusal(command, unsentEntries, nowMs);
      if (refusal !== undefined) return { reply: refusal, effects: NO_EFFECTS };
      return 'cursor' in command ? this.#list(command, nowMs) : this.#options.governor.apply(command, nowMs);
    } catch (error) {
      this.#options.onError(error, command.type);
      return { reply: INTERNAL, effects: NO_EFFECTS };
    }
  }

  /** Answers a listing. Its cursors are sealed on their way out and opened on their way in. */
  #list(command: ListCommand, nowMs: number): Outcome {
    const cursor = command.cursor === undefined ? undefined : this.#cursors.open(command.type, command.cursor);
    if (command.cursor !== undefined && cursor === undefined) return { reply: BAD_CURSOR, effects: NO_EFFECTS };
    const { reply, effects } = this.#options.governor.apply<ListCommand['type']>({ ...command, cursor }, nowMs);
    if (!reply.ok || reply.value.next === undefined) return { reply, effects };
    return {
      reply: ok({ ...reply.value, next: this.#cursors.seal(command.type, reply.value.next) }) as typeof reply,
      effects,
    };
  }

  #receiveOther(io: IoId, message: Exclude<IoToMain, { type: 'command' }>): void {
    const { controlStreams, events, governor, threads } = this.#options;
    switch (message.type) {
      case 'call':
        return void this.#call(io, message.id, message.name, message.input);
      case 'interest':
        events.setInterest(io, message.interest);
        governor.isWatched = events.isWatched;
        return;
      case 'control-closed':
        return controlStreams.close(message.agent, { io, stream: message.stream });
      case 'stats':
        threads.noteStats(io, message.stats);
        return threads.sendAgentCount(io, governor.agents.registeredCount);
      default:
        return assertNever(message);
    }
  }

  async #call(io: IoId, id: number, name: keyof UseCases, input: unknown): Promise<void> {
    try {
      const reply = await this.#options.useCases[name](input as never);
      this.#options.threads.send(io, { type: 'call-reply', id, reply });
    } catch (error) {
      this.#options.onError(error, name);
      this.#options.threads.send(io, { type: 'call-reply', id, reply: refusalOf(error) });
    }
  }

  /**
   * The refusal of a change that could not be recorded, and of a check beyond its limit; undefined where the command
   * may be applied.
   */
  #refusal(command: Command, unsentEntries: number, nowMs: number): Replies[CommandType] | undefined {
    if (!CHANGES[command.type]) return undefined;
    const { audit, onAuditFailure, maxUnrecorded } = this.#options;
    if (!audit.isWritable && onAuditFailure === 'deny') return unrecordedCommand(command.type);
    if (audit.entriesInFlight + unsentEntries >= maxUnrecorded) return BEHIND;
    return command.type === 'check' ? this.#overCheckLimit(command, nowMs) : undefined;
  }

  /** Only where a limit is configured: by default checks are not counted (docs/spec.md, Rate limits). */
  #overCheckLimit({ credential, principal }: CommandOf<'check'>, nowMs: number): Replies['check'] | undefined {
    const permit = this.#options.checkLimiter?.take(credential ?? principal?.subject ?? 'anonymous', nowMs);
    return permit === undefined || permit.ok ? undefined : permit;
  }
}

const BEHIND = fail({ kind: 'overloaded', retryAfterSecs: 1, what: 'the audit log' } as const);
