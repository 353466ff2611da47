import { type AgentKey, agentKeyOf, type OpId } from '../../core/base/ids.ts';
import { BAD_CURSOR, type PageRequest } from '../../core/base/page.ts';
import { fail, ok } from '../../core/base/result.ts';
import { CHANGES, type Command, type CommandOf, type CommandType, type Replies } from '../../core/commands.ts';
import { NO_EFFECTS } from '../../core/effects.ts';
import type { Fault } from '../../core/fault.ts';
import type { Governor } from '../../core/governor.ts';
import type { SignalMessage } from '../../core/ops/op-view.ts';
import type { Outcome, UsageKey } from '../../core/outcome.ts';
import type { RateLimiter } from '../../fairness/rate-limit.ts';
import type { Verdict } from '../../ports/cluster-log.ts';
import type { Clock, SavedAt } from '../../ports/ports.ts';
import type { Accepted, SharedDecisions, SharedMoney, Trial } from '../../ports/sharing.ts';
import type { AuditLink } from '../audit/audit-link.ts';
import { type IoId, OWN } from '../protocol.ts';
import type { Batch } from './batch.ts';
import type { ControlStreams } from './control-streams.ts';
import { CursorSeal } from './cursor-seal.ts';
import type { EffectRunner } from './effect-runner.ts';
import type { IoThreads } from './io-threads.ts';
import type { Recorder } from './recorder.ts';
import { isUnauthenticated, type UnauthenticatedCallers } from './unauthenticated-callers.ts';
import { INTERNAL, refusalOf, unrecordedCommand } from './unrecorded.ts';

/** The signals of other gateways' operations. */
export type SharedSignals = {
  pendingOf(agent: AgentKey): readonly SignalMessage[];
  /** False where no such signal is known. */
  acknowledge(agent: AgentKey, opId: OpId, sequence: number): boolean;
};

export type CommandRunnerOptions = {
  readonly governor: Governor;
  readonly audit: AuditLink;
  readonly threads: IoThreads;
  readonly controlStreams: ControlStreams;
  readonly effectRunner: EffectRunner;
  readonly recorder: Recorder;
  readonly clock: Clock;
  /** The policy while the audit log cannot be written (docs/spec.md, Audit). */
  readonly onAuditFailure: 'deny' | 'allow';
  /** Entries on their way to the audit log at once; beyond that, what would add one is refused. */
  readonly maxUnrecorded: number;
  readonly checkLimiter?: RateLimiter | undefined;
  readonly unauthenticated: UnauthenticatedCallers;
  /** Set in a cluster. */
  readonly money?: SharedMoney | undefined;
  readonly decisions?: SharedDecisions | undefined;
  readonly controls?: SharedSignals | undefined;
  /** Set in a cluster: see `CursorSeal`. */
  readonly home?: string | undefined;
  readonly onError: (error: unknown, doing: string) => void;
};

type Asked = { readonly io: IoId; readonly id: number; readonly command: Command };

/** For how long a command is decided anew that others were faster than. */
const TRY_FOR_MS = 3_000;
const FAULT_OF = {
  changed: { kind: 'overloaded', retryAfterSecs: 1, what: 'what others change at the same time' },
  credential: {
    kind: 'conflict',
    detail: 'this credential token is already in use; choose another, or omit it to have one generated',
  },
  parent: { kind: 'conflict', detail: 'an agent cannot descend from itself' },
} as const satisfies Record<Exclude<Verdict, 'accepted'>, Fault>;

type ListCommand = Extract<Command, PageRequest>;

/** Has commands decided by the governor, refuses those that must not be applied, and sees to their answers. */
export class CommandRunner {
  readonly #options: CommandRunnerOptions;
  readonly #cursors: CursorSeal;
  /** The main thread's own questions, by number. */
  readonly #own = new Map<number, (reply: Replies[CommandType]) => void>();
  #lastAsked = 0;

  constructor(options: CommandRunnerOptions) {
    this.#options = options;
    this.#cursors = new CursorSeal(options.home);
    options.threads.connectOwn((message) => {
      if (message.type !== 'command-reply') return;
      this.#own.get(message.id)?.(message.reply);
      this.#own.delete(message.id);
    });
  }

  /** Asks the governor for a use case or a timer. Resolves as an I/O thread is answered: once saved and recorded. */
  ask<T extends CommandType>(command: CommandOf<T> & { readonly type: T }): Promise<Replies[T]> {
    return this.#asked<T>((id) => this.performAlone(OWN, id, command));
  }

  #asked<T extends CommandType>(perform: (id: number) => void): Promise<Replies[T]> {
    this.#lastAsked += 1;
    const id = this.#lastAsked;
    const reply = new Promise<Replies[T]>((resolve) => {
      this.#own.set(id, (answer) => resolve(answer as Replies[T]));
    });
    perform(id);
    return reply;
  }

  /**
   * Call it every second: records how many unauthenticated callers were denied without an entry of their own. A report
   * that cannot be written is a failure of the audit log, which is logged as such.
   */
  reportUnauthenticated(): void {
    const { audit, clock, unauthenticated } = this.#options;
    for (const draft of unauthenticated.report(clock.nowMs())) void audit.record(draft);
  }

  /** Answers the check of an unauthenticated caller, now that the doors have told its network. */
  performLocated(id: number, network: string, batch: Batch): void {
    const held = this.#options.unauthenticated.release(batch.io, id, network, batch.appliedAtMs);
    if (held !== undefined) this.#finish(id, held.command, held.outcome, batch);
  }

  /** Call it when the thread is gone. */
  dropThread(io: IoId): void {
    this.#options.unauthenticated.dropThread(io);
  }

  /**
   * Applies one command. A change is answered with its batch, or alone once a store has saved it; anything else at
   * once.
   */
  perform(id: number, command: Command, batch: Batch, isLookedFor = false): void {
    const { money, decisions } = this.#options;
    const { io } = batch;
    if (money !== undefined && command.type === 'list-budgets') return void this.#listShared(io, id, command, money);
    if (decisions?.concerns(command)) return this.#decideInLog({ io, id, command }, undefined);
    const outcome = this.#apply(command, batch.entryCount, batch.appliedAtMs);
    const { turn } = outcome;
    if (turn !== undefined && decisions !== undefined) {
      if ('digest' in turn) return this.#decideInLog({ io, id, command }, turn.digest);
      if (!isLookedFor) return void decisions.follow().then(() => this.performAlone(io, id, command, true));
    }
    if (outcome.short !== undefined) {
      const retry = (): void => this.performAlone(io, id, command);
      if (money?.park(command, outcome.short, retry) === true) return;
    }
    if (money !== undefined && outcome.claims !== undefined) {
      void this.#claim(io, id, command as CommandOf<'record-usage'>, outcome.claims, money);
      return;
    }
    if (money !== undefined && outcome.exceedsGrants) {
      void this.#judge(io, id, command as CommandOf<'record-usage'>, outcome.effects, money);
      return;
    }
    if (command.type !== 'check' || !isUnauthenticated(outcome)) return this.#finish(id, command, outcome, batch);
    const { unauthenticated, threads } = this.#options;
    unauthenticated.hold(io, id, { command, outcome });
    threads.send(io, { type: 'locate', id });
  }

  /** Decides a change of shared state at its place in the cluster's log. The change is tried first. */
  #decideInLog(asked: Asked, digest: string | undefined): void {
    const untilMs = performance.now() + TRY_FOR_MS;
    this.#options.decisions!.inTurn(digest, (done) => this.#tryInLog(asked, digest, untilMs, done));
  }

  #tryInLog(asked: Asked, digest: string | undefined, untilMs: number, done: () => void): void {
    const { clock, decisions, onError, money } = this.#options;
    const { io, id, command } = asked;
    const end = (answer: () => void): void => {
      answer();
      done();
    };
    const refusal = command.type === 'check' ? undefined : this.#refusal(command, 0, clock.nowMs());
    if (refusal !== undefined) return end(() => this.#answerNow(asked, refusal));
    try {
      const trial = decisions!.tryOut(command, digest, clock.nowMs());
      const { short } = trial.outcome;
      const retry = (): void => this.performAlone(io, id, command);
      if (short !== undefined && money?.park(command, short, retry) === true) return done();
      if (trial.entries.length === 0) return end(() => this.#decideNow(asked, trial, undefined));
      decisions!.propose(trial, {
        accepted: (accepted) => end(() => this.#decideNow(asked, trial, accepted)),
        refused: (verdict) => {
          if (verdict === 'changed' && performance.now() < untilMs) this.#tryInLog(asked, digest, untilMs, done);
          else end(() => this.#answerNow(asked, fail(FAULT_OF[verdict])));
        },
        failed: (fault) =>
          end(() => {
            // An order to an operation of this gateway holds here, and is told when it can be.
            if (command.type === 'control-op') this.#decideNow(asked, trial, undefined);
            else this.#answerNow(asked, fail(fault));
          }),
      });
    } catch (error) {
      onError(error, command.type);
      end(() => this.#answerNow(asked, INTERNAL));
    }
  }

  /** `accepted`: what it changes is in the log. */
  #decideNow({ io, id, command }: Asked, trial: Trial, accepted: Accepted | undefined): void {
    const { decisions, recorder, onError } = this.#options;
    const batch = recorder.begin(io);
    try {
      const outcome = decisions!.decide(trial);
      if (accepted === undefined) this.#finish(id, command, outcome, batch);
      else {
        batch.confirmLater(decisions!.confirmed(accepted, trial));
        decisions!.carryingOut(trial, () => this.#finish(id, command, outcome, batch));
      }
    } catch (error) {
      onError(error, command.type);
      this.#options.recorder.answer(io, id, INTERNAL);
    }
    recorder.finish(batch);
  }

  #answerNow({ io, id }: Asked, reply: Replies[CommandType]): void {
    this.#options.recorder.answer(io, id, reply);
    this.#options.threads.flush(io);
  }

  /** Has an order carried out that is in the log already, as that of another gateway. */
  carryOut(command: CommandOf<'control-op'>): Promise<Replies['control-op']> {
    return this.#asked<'control-op'>((id) => {
      const batch = this.#options.recorder.begin(OWN);
      this.#finish(id, command, this.#apply(command, 0, batch.appliedAtMs), batch);
      this.#options.recorder.finish(batch);
    });
  }

  /** Counts the record here, or answers that another gateway has. */
  async #claim(
    io: IoId,
    id: number,
    command: CommandOf<'record-usage'>,
    key: UsageKey,
    money: SharedMoney,
  ): Promise<void> {
    const claim = await money.claim(key);
    if (claim !== 'busy') return this.performAlone(io, id, { ...command, claim });
    this.#options.recorder.answer(io, id, fail({ kind: 'store_unreachable', retryAfterSecs: 1 }));
    this.#options.threads.flush(io);
  }

  /** Counted here at once; whether a cap is exceeded is answered once all gateways can know of it. */
  async #judge(
    io: IoId,
    id: number,
    command: CommandOf<'record-usage'>,
    effects: Outcome['effects'],
    money: SharedMoney,
  ): Promise<void> {
    const { effectRunner, recorder, threads, onError } = this.#options;
    const counted = recorder.begin(io);
    try {
      const saved = effectRunner.run(effects, counted);
      await (command.claim === 'mine' && saved !== undefined ? this.#settled(command, saved) : saved);
      counted.settleReports(true);
      await money.report(command.agent);
      this.performAlone(io, id, { ...command, claim: 'judged' });
    } catch (error) {
      onError(error, command.type);
      recorder.answer(io, id, refusalOf(error));
      threads.flush(io);
    }
  }

  async #listShared(io: IoId, id: number, command: CommandOf<'list-budgets'>, money: SharedMoney): Promise<void> {
    const { onError, recorder, threads } = this.#options;
    const { cursor } = command;
    const opened = cursor === undefined ? undefined : this.#cursors.open('list-budgets', cursor);
    let reply: Replies['list-budgets'] = BAD_CURSOR;
    try {
      if ((cursor === undefined) === (opened === undefined))
        reply = await money.listBudgets({ ...command, cursor: opened });
    } catch (error) {
      onError(error, command.type);
      reply = INTERNAL;
    }
    recorder.answer(io, id, this.#sealed('list-budgets', reply));
    threads.flush(io);
  }

  /** A command that had to wait, in a batch of its own. */
  performAlone(io: IoId, id: number, command: Command, isLookedFor = false): void {
    const { recorder } = this.#options;
    const batch = recorder.begin(io);
    this.perform(id, command, batch, isLookedFor);
    recorder.finish(batch);
  }

  #finish(id: number, command: Command, { reply, effects, undo }: Outcome, batch: Batch): void {
    const { controlStreams, effectRunner, recorder } = this.#options;
    const { io } = batch;
    batch.begin();
    let durable = effectRunner.run(effects, batch);
    if (command.type === 'record-usage' && command.claim === 'mine' && durable !== undefined)
      durable = this.#settled(command, durable);
    if (command.type === 'open-control' && reply.ok)
      controlStreams.open(agentKeyOf(command.agent), { io, stream: command.stream });
    if (durable !== undefined || batch.isConfirmed) {
      const alone = batch.detach(id, command, reply, undo);
      return void recorder.recordWhenDurable(alone, durable ?? Promise.resolve());
    }
    if (batch.add(id, command, reply, undo)) return;
    if (command.type === 'check') recorder.countCheck(command, reply as Replies['check'], batch.appliedAtMs);
    recorder.answer(io, id, reply);
  }

  /** Saved here first: a claim that is settled is counted nowhere else. */
  async #settled({ agent, usageId }: CommandOf<'record-usage'>, durable: Promise<SavedAt>): Promise<SavedAt> {
    const saved = await durable;
    if (usageId !== undefined) await this.#options.money?.settle({ agent: agentKeyOf(agent), usageId });
    return saved;
  }

  /** A defect met by one command must not lose the others of its batch, nor leave its caller waiting. */
  #apply(command: Command, unsentEntries: number, nowMs: number): Outcome {
    try {
      const refusal = this.#refusal(command, unsentEntries, nowMs);
      if (refusal !== undefined) return { reply: refusal, effects: NO_EFFECTS };
      if ('cursor' in command) return this.#list(command, nowMs);
      const { controls, governor } = this.#options;
      const outcome = governor.apply<CommandType>(command as never, nowMs);
      return controls === undefined ? outcome : withShared(controls, command, outcome);
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
    return { reply: this.#sealed(command.type, reply), effects };
  }

  #sealed<T extends ListCommand['type']>(type: T, reply: Replies[T]): Replies[T] {
    if (!reply.ok || reply.value.next === undefined) return reply;
    return ok({ ...reply.value, next: this.#cursors.seal(type, reply.value.next) }) as typeof reply;
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

  /**
   * Only where a limit is configured: by default checks are not counted (docs/spec.md, Rate limits). A credential that
   * is not known has no limit of its own, or there would be as many as anybody makes up: see `UnauthenticatedCallers`.
   */
  #overCheckLimit({ credential, principal }: CommandOf<'check'>, nowMs: number): Replies['check'] | undefined {
    const { checkLimiter, governor } = this.#options;
    if (checkLimiter === undefined) return undefined;
    if (credential !== undefined && governor.agents.ownerOf(credential) === undefined) return undefined;
    const caller = credential ?? principal?.subject;
    if (caller === undefined) return undefined;
    const permit = checkLimiter.take(caller, nowMs);
    return permit.ok ? undefined : permit;
  }
}

const BEHIND = fail({ kind: 'overloaded', retryAfterSecs: 1, what: 'the audit log' } as const);

/** Signals may be about operations at other gateways, or at one that has ended. */
function withShared(controls: SharedSignals, command: Command, outcome: Outcome): Outcome {
  if (command.type === 'open-control') {
    const reply = outcome.reply as Replies['open-control'];
    const elsewhere = reply.ok ? controls.pendingOf(agentKeyOf(command.agent)) : [];
    if (!reply.ok || elsewhere.length === 0) return outcome;
    const pending = [...reply.value.pending, ...elsewhere].sort((one, other) => one.sequence - other.sequence);
    return { ...outcome, reply: ok({ pending }) };
  }
  if (command.type !== 'ack-signal') return outcome;
  const { reply } = outcome;
  if (!reply.ok && reply.fault.kind !== 'not_found') return outcome;
  const isKnown = controls.acknowledge(agentKeyOf(command.agent), command.opId, command.sequence);
  return isKnown && !reply.ok ? { ...outcome, reply: ok(undefined) } : outcome;
}
