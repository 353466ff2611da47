import type { MessagePort } from 'node:worker_threads';
import { encodeDraft } from '../../core/audit/audit-line.ts';
import { agentKeyOf } from '../../core/base/ids.ts';
import { BAD_CURSOR, type PageRequest } from '../../core/base/page.ts';
import { assertNever, fail, ok } from '../../core/base/result.ts';
import { CHANGES, type Command, type CommandOf, type CommandType, type Replies } from '../../core/commands.ts';
import { type Effect, NO_EFFECTS } from '../../core/effects.ts';
import type { Governor } from '../../core/governor.ts';
import type { Outcome } from '../../core/outcome.ts';
import type { RateLimiter } from '../../limits/rate-limit.ts';
import type { GatewayEvent } from '../../ports/events.ts';
import { type AgentStore, type BudgetStore, type Clock, StoreUnwritable } from '../../ports/ports.ts';
import type { UseCases } from '../../use-cases/use-cases.ts';
import type { AuditLink } from '../audit/audit-link.ts';
import { Batcher } from '../batcher.ts';
import { decodeToMain, encodeToIo } from '../codec.ts';
import type { IoId, IoStats, IoToMain, MainToIo } from '../protocol.ts';
import {
  AUDIT_UNAVAILABLE,
  type AuditedReply,
  type Batch,
  checkedOps,
  newBatch,
  type SignalEffect,
  unrecordedCommand,
  unrecordedReply,
} from './batches.ts';
import { ControlStreams } from './control-streams.ts';
import { CursorSeal } from './cursor-seal.ts';
import { EventBoard } from './event-board.ts';
import { leftBy, NO_STATS } from './io-threads.ts';
import { SpendSaver } from './spend-saver.ts';

export type SwitchboardOptions = {
  readonly governor: Governor;
  readonly audit: AuditLink;
  readonly agents: AgentStore;
  readonly budgets: BudgetStore;
  readonly useCases: UseCases;
  readonly clock: Clock;
  /** What to do while the audit log cannot be written (docs/spec.md, Audit). */
  readonly onAuditFailure: 'deny' | 'allow';
  /** Entries on their way to the audit log at once; beyond that, what would add one is refused. */
  readonly maxUnrecorded: number;
  readonly checkLimiter?: RateLimiter | undefined;
  readonly onError: (error: unknown, doing: string) => void;
};

type Thread = {
  readonly batcher: Batcher<MainToIo>;
  stats: IoStats | undefined;
  /** The latest message of events. Further events are added to it as long as no other message comes after it. */
  events: { readonly message: MainToIo; readonly list: GatewayEvent[] } | undefined;
};
type ListCommand = Extract<Command, PageRequest>;

/**
 * Connects the I/O threads with the governor, the use cases and the audit thread, and routes every answer back to its
 * caller.
 */
export class Switchboard {
  readonly #options: SwitchboardOptions;
  readonly #threads = new Map<IoId, Thread>();
  readonly #controlStreams = new ControlStreams();
  readonly #cursors = new CursorSeal();
  readonly events: EventBoard;
  readonly spend: SpendSaver;
  /** Registrations that wait for their store, oldest first. Each is a batch of its own. */
  readonly #saving: Batch[] = [];
  /** The counts of threads that died. Without them counters would fall, which looks like a restart of the gateway. */
  #retired = NO_STATS;
  /** What has happened since the start, for the metrics. */
  readonly tally = {
    checks: { allow: 0, deny: 0, error: 0 },
    violations: 0,
    budgetExceeded: 0,
    budgetAlerts: { 80: 0, 100: 0 },
  };

  constructor(options: SwitchboardOptions) {
    this.#options = options;
    this.spend = new SpendSaver(options.governor.budgets, options.budgets);
    this.events = new EventBoard((io, event) => this.#notify(io, event), options.clock.nowMs());
  }

  connect(io: IoId, port: Pick<MessagePort, 'postMessage'>): void {
    this.#threads.set(io, { batcher: new Batcher<MainToIo>(port, encodeToIo), stats: undefined, events: undefined });
  }

  /** Call it when the thread is gone, with its sockets, readers and streams. */
  disconnect(io: IoId): void {
    const last = this.#threads.get(io)?.stats;
    if (last !== undefined) this.#retired = leftBy(last, this.#retired);
    this.#threads.delete(io);
    this.events.dropThread(io);
    this.#options.governor.isWatched = this.events.isWatched;
    this.#controlStreams.dropThread(io);
  }

  /** The counts of all threads, including those that died. */
  get stats(): readonly IoStats[] {
    return [this.#retired, ...[...this.#threads.values()].flatMap(({ stats }) => stats ?? [])];
  }

  /** Flushed at once: a revocation must reach every thread before any thread gets the answer. */
  broadcast(message: MainToIo): void {
    for (const { batcher } of this.#threads.values()) {
      batcher.send(message);
      batcher.flush();
    }
  }

  /** A batch of messages as an I/O thread sent it. Commands are applied in their order, and recorded as one batch. */
  receive(io: IoId, bytes: Uint8Array): void {
    const { audit, clock, governor } = this.#options;
    // An operator's entry counts as written before its answer leaves, so an agent that connects afterwards finds the
    // signal.
    audit.catchUp();
    const batch = newBatch(clock.nowMs(), governor.ops.lastNumber);
    for (const message of decodeToMain(bytes)) {
      if (message.type === 'command') this.#perform(io, message.id, message.command, batch);
      else this.#receiveOther(io, message);
    }
    if (batch.replies.length > 0) this.#record(io, batch);
    this.#threads.get(io)?.batcher.flush();
  }

  /**
   * Applies one command. A change is answered with its batch, or alone once a store has saved it; anything else at
   * once.
   */
  #perform(io: IoId, id: number, command: Command, batch: Batch): void {
    const { bodies, appliedAtMs } = batch;
    const auditIndex = bodies.length;
    const { reply, effects, undo } = this.#apply(command, auditIndex, appliedAtMs);
    const durable = this.#carryOut(effects, appliedAtMs, batch);
    if (command.type === 'open-control' && reply.ok)
      this.#controlStreams.open(agentKeyOf(command.agent), { io, stream: command.stream });
    if (durable !== undefined) {
      const alone: Batch = {
        ...newBatch(appliedAtMs, batch.lastOpBefore),
        bodies: bodies.splice(auditIndex),
        replies: [{ type: 'command-reply', id, reply, auditIndex: 0 }],
        undos: undo === undefined ? [] : [undo],
      };
      void this.#recordWhenDurable(io, alone, durable);
    } else if (bodies.length === auditIndex) {
      if (command.type === 'check') this.#tallyCheck(reply as Replies['check']);
      this.#answer(io, id, reply);
    } else {
      batch.replies.push({ type: 'command-reply', id, reply, auditIndex });
      batch.commands.push(command);
      if (undo !== undefined) batch.undos.push(undo);
    }
  }

  /** Counted by the decision that is sent. */
  #tallyCheck(reply: Replies['check']): void {
    this.tally.checks[reply.ok ? reply.value.decision : 'error'] += 1;
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
    switch (message.type) {
      case 'call':
        return void this.#call(io, message.id, message.name, message.input);
      case 'interest':
        this.events.setInterest(io, message.interest);
        this.#options.governor.isWatched = this.events.isWatched;
        return;
      case 'control-closed':
        return this.#controlStreams.close(message.agent, { io, stream: message.stream });
      case 'stats': {
        const thread = this.#threads.get(io);
        if (thread !== undefined) thread.stats = message.stats;
        return;
      }
      default:
        return assertNever(message);
    }
  }

  async #call(io: IoId, id: number, name: keyof UseCases, input: unknown): Promise<void> {
    try {
      const reply = await this.#options.useCases[name](input as never);
      this.#send(io, { type: 'call-reply', id, reply });
    } catch (error) {
      this.#options.onError(error, name);
      this.#send(io, { type: 'call-reply', id, reply: refusalOf(error) });
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

  /**
   * Carries out the effects, but leaves audit entries and signals to the batch. Returns a promise when the answer has
   * to wait for a store. Events are published at once; a change that is rolled back is published again.
   */
  #carryOut(
    effects: readonly Effect[],
    nowMs: number,
    { bodies, signals }: Pick<Batch, 'bodies' | 'signals'>,
  ): Promise<void> | undefined {
    let durable: Promise<void> | undefined;
    for (const effect of effects) {
      switch (effect.kind) {
        case 'audit':
          bodies.push(encodeDraft(effect.draft, nowMs));
          if (effect.draft.eventType === 'BudgetLimitExceeded') this.tally.budgetExceeded += 1;
          break;
        case 'signal':
          signals.push(effect);
          break;
        case 'violation':
          this.tally.violations += 1;
          break;
        case 'budget-alert':
          this.tally.budgetAlerts[effect.alert.percent] += 1;
          break;
        case 'spend-recorded':
          durable = this.spend.save();
          break;
        case 'agent-saved':
          durable = this.#options.agents.save(effect.registration);
          if (effect.rotated) this.broadcast({ type: 'agent-revoked', agent: effect.key });
          break;
        case 'agent-removed':
          durable = this.#options.agents.remove(effect.key);
          this.broadcast({ type: 'agent-revoked', agent: effect.key });
          break;
        default:
      }
      this.events.publishEffect(effect, nowMs);
    }
    return durable;
  }

  /** Hands the batch to the audit thread, which lets its answers go once they are recorded. */
  #record(io: IoId, batch: Batch): void {
    const { bodies, replies, signals } = batch;
    this.#options.audit.append(
      { bodies, answers: { io, replies: encodeToIo(replies) }, isAwaited: signals.length > 0 },
      {
        written: (isWritten) => this.#settle(io, batch, isWritten),
        // The ids of the entries are lost with the audit thread. Callers that already have an answer ignore this one.
        unreleased: () => this.#answerAll(io, replies),
      },
    );
  }

  /**
   * For a batch of one command that a store has to save first: a registration, which can be undone, or spend, which
   * cannot.
   */
  async #recordWhenDurable(io: IoId, batch: Batch, durable: Promise<void>): Promise<void> {
    const isRegistration = batch.undos.length > 0;
    if (isRegistration) this.#saving.push(batch);
    try {
      await durable;
    } catch (error) {
      this.#options.onError(error, 'writing to the embedded store');
      if (isRegistration && batch.refusal === undefined) this.#rollBack(batch, refusalOf(error));
      return this.#answerAll(io, batch.replies, () => refusalOf(error));
    }
    const { refusal } = batch;
    if (refusal !== undefined) return this.#answerAll(io, batch.replies, () => refusal);
    if (isRegistration) this.#saving.splice(this.#saving.indexOf(batch), 1);
    if (batch.bodies.length > 0) return this.#record(io, batch);
    this.#answerAll(io, batch.replies);
  }

  /** Signals leave once their cause is recorded, or need not be. A change that could not be recorded sends none. */
  #settle(io: IoId, batch: Batch, isWritten: boolean): void {
    const { onAuditFailure } = this.#options;
    const isAnswered = isWritten || onAuditFailure === 'allow';
    batch.commands.forEach(({ type }, at) => {
      const { reply } = batch.replies[at]!;
      if (type === 'check') this.#tallyCheck((isAnswered ? reply : unrecordedReply(reply)) as Replies['check']);
    });
    if (isAnswered) for (const signal of batch.signals) this.#signal(signal);
    if (isWritten) return;
    if (onAuditFailure === 'allow') return this.#answerAll(io, batch.replies);
    this.#rollBack(batch, AUDIT_UNAVAILABLE);
    this.#answerAll(io, batch.replies, unrecordedReply);
  }

  #signal(signal: SignalEffect): void {
    const message = this.#options.governor.post(signal, this.#options.clock.nowMs());
    if (message === undefined) return;
    for (const { io, stream } of this.#controlStreams.of(signal.agent))
      this.#send(io, { type: 'signal', stream, message });
  }

  /** Rolls back the batch, and before it the later registrations that wait for their store: they may build on it. */
  #rollBack(batch: Batch, refusal: AuditedReply['reply']): void {
    const at = this.#saving.indexOf(batch);
    for (const each of this.#saving.splice(at + 1).toReversed()) {
      each.refusal = refusal;
      this.#rollBackAlone(each);
    }
    if (at !== -1) this.#saving.pop();
    this.#rollBackAlone(batch);
  }

  #rollBackAlone(batch: Batch): void {
    const { clock, governor } = this.#options;
    const nowMs = clock.nowMs();
    for (const effect of governor.rollBack(batch.undos, checkedOps(batch), batch.lastOpBefore, nowMs)) {
      // Each is stored separately: the governor is already correct, and only a restart would miss what the store could
      // not take.
      this.#carryOut([effect], nowMs, newBatch(nowMs, batch.lastOpBefore))?.catch((error: unknown) =>
        this.#options.onError(error, 'rolling back what was not recorded'),
      );
    }
  }

  /** Events keep their place among the replies: a listing and the events after it arrive in that order. */
  #notify(io: IoId, event: GatewayEvent): void {
    const thread = this.#threads.get(io);
    if (thread === undefined) return;
    if (thread.events !== undefined && thread.batcher.last === thread.events.message)
      return void thread.events.list.push(event);
    const list = [event];
    thread.events = { message: { type: 'events', events: list }, list };
    thread.batcher.send(thread.events.message);
  }

  /** Answers with the reply itself, or with what `instead` makes of it. */
  #answerAll(
    io: IoId,
    replies: readonly AuditedReply[],
    instead = (reply: AuditedReply['reply']): AuditedReply['reply'] => reply,
  ): void {
    for (const { id, reply } of replies) this.#answer(io, id, instead(reply));
  }

  /** Answers without the id of an entry: there is none, or it is unknown. */
  #answer(io: IoId, id: number, reply: AuditedReply['reply']): void {
    this.#send(io, { type: 'command-reply', id, reply, auditIndex: -1 });
  }

  #send(io: IoId, message: MainToIo): void {
    this.#threads.get(io)?.batcher.send(message);
  }
}

const INTERNAL = fail({ kind: 'internal' } as const);
const UNWRITABLE = fail({ kind: 'store_unreachable', retryAfterSecs: 2 } as const);
const refusalOf = (error: unknown): typeof INTERNAL | typeof UNWRITABLE =>
  error instanceof StoreUnwritable ? UNWRITABLE : INTERNAL;
const BEHIND = fail({ kind: 'overloaded', retryAfterSecs: 1, what: 'the audit log' } as const);
