import type { CheckCommand, Replies } from '../../core/commands.ts';
import type { Governor } from '../../core/governor.ts';
import type { Stats } from '../../core/stats/stats.ts';
import { type Clock, Refused, type SavedAt } from '../../ports/ports.ts';
import type { AuditLink } from '../audit/audit-link.ts';
import type { IoId } from '../protocol.ts';
import {
  AUDIT_UNAVAILABLE,
  type AuditedReply,
  type Batch,
  beginningChecks,
  newBatch,
  refusalOf,
  type SignalEffect,
  settleReports,
  unrecordedReply,
} from './batches.ts';
import type { ControlStreams } from './control-streams.ts';
import type { EffectRunner } from './effect-runner.ts';
import type { IoThreads } from './io-threads.ts';

export type RecorderOptions = {
  readonly governor: Governor;
  readonly audit: AuditLink;
  readonly threads: IoThreads;
  readonly controlStreams: ControlStreams;
  readonly effectRunner: EffectRunner;
  readonly clock: Clock;
  readonly stats: Stats;
  /** What to do while the audit log cannot be written (docs/spec.md, Audit). */
  readonly onAuditFailure: 'deny' | 'allow';
  readonly onError: (error: unknown, doing: string) => void;
};

/** Answers changes once they are recorded, and rolls back those that could not be. */
export class Recorder {
  readonly #options: RecorderOptions;
  /** Registrations that wait for their store, oldest first. Each is a batch of its own. */
  readonly #saving: Batch[] = [];
  /** Counted by the decision that is sent, for the metrics. */
  readonly checks = { allow: 0, deny: 0, pending: 0, error: 0 };

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  /** Hands the batch to the audit log. Its answers leave once they are recorded: I/O threads hold theirs until then. */
  record(io: IoId, batch: Batch): void {
    const { bodies, replies, signals, strangerBytes } = batch;
    const { audit, threads } = this.#options;
    const place = audit.append(
      { bodies, strangerBytes, isAwaited: threads.isHere(io) || signals.length > 0 },
      {
        written: (firstId) => {
          this.#settle(batch);
          threads.release(io, firstId, replies);
        },
        lost: () => this.#lose(io, batch),
      },
    );
    if (place !== undefined) threads.hold(io, { type: 'held', ...place, replies });
  }

  /**
   * For a batch of one command that a store has to save first: a registration, which can be undone, or spend, which
   * cannot.
   */
  async recordWhenDurable(io: IoId, batch: Batch, durable: Promise<SavedAt>): Promise<void> {
    const isRegistration = batch.undos.length > 0;
    if (isRegistration) this.#saving.push(batch);
    try {
      nameUnconfirmed(batch, await durable);
    } catch (error) {
      // What another gateway has written is in the way: that is no defect.
      if (!(error instanceof Refused)) this.#options.onError(error, 'writing to the embedded store');
      settleReports(batch, false);
      if (isRegistration && batch.refusal === undefined) this.#rollBack(batch, refusalOf(error));
      return this.#answerAll(io, batch.replies, () => refusalOf(error));
    }
    const { refusal } = batch;
    if (refusal !== undefined) {
      settleReports(batch, false);
      return this.#answerAll(io, batch.replies, () => refusal);
    }
    if (isRegistration) this.#saving.splice(this.#saving.indexOf(batch), 1);
    if (batch.bodies.length > 0) return this.record(io, batch);
    settleReports(batch, true);
    this.#countChecks(batch, (reply) => reply);
    this.#answerAll(io, batch.replies);
  }

  /** Answers what needs no record, at once. */
  answer(io: IoId, id: number, reply: AuditedReply['reply']): void {
    // Without the id of an entry: there is none, or it is unknown.
    this.#options.threads.send(io, { type: 'command-reply', id, reply, auditIndex: -1 });
  }

  countCheck({ agent }: Pick<CheckCommand, 'agent'>, reply: Replies['check'], atMs: number): void {
    this.checks[reply.ok ? reply.value.decision : 'error'] += 1;
    if (reply.ok) this.#options.stats.countCheck(agent, reply.value, atMs);
  }

  /** Signals leave once their cause is recorded, or need not be. */
  #settle(batch: Batch): void {
    this.#countChecks(batch, (reply) => reply);
    settleReports(batch, true);
    this.#signal(batch.signals);
  }

  #lose(io: IoId, batch: Batch): void {
    if (this.#options.onAuditFailure === 'allow') {
      this.#settle(batch);
      return this.#answerAll(io, batch.replies);
    }
    this.#countChecks(batch, unrecordedReply);
    settleReports(batch, false);
    this.#rollBack(batch, AUDIT_UNAVAILABLE);
    this.#answerAll(io, batch.replies, unrecordedReply);
  }

  #countChecks(
    { commands, replies, appliedAtMs }: Batch,
    sent: (reply: AuditedReply['reply']) => AuditedReply['reply'],
  ): void {
    commands.forEach((command, at) => {
      if (command.type === 'check') this.countCheck(command, sent(replies[at]!.reply) as Replies['check'], appliedAtMs);
    });
  }

  #signal(signals: readonly SignalEffect[]): void {
    if (signals.length === 0) return;
    const { governor, clock, controlStreams, threads } = this.#options;
    const nowMs = clock.nowMs();
    for (const signal of signals) {
      const message = governor.post(signal, nowMs);
      if (message === undefined) continue;
      for (const { io, stream } of controlStreams.of(signal.agent)) {
        threads.send(io, { type: 'signal', stream, message });
      }
    }
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
    const { clock, effectRunner, governor, onError } = this.#options;
    effectRunner.withdraw(batch.signals);
    const nowMs = clock.nowMs();
    for (const effect of governor.rollBack(batch.undos, beginningChecks(batch), batch.lastOpBefore, nowMs)) {
      // Each is stored separately: the governor is already correct, and only a restart would miss what the store could
      // not take.
      const undone = newBatch(nowMs, batch.lastOpBefore);
      effectRunner
        .run([effect], nowMs, undone)
        ?.catch((error: unknown) => onError(error, 'rolling back what was not recorded'));
      for (const report of undone.reports ?? []) report.settle(false); // it is as it was before
    }
  }

  /** Answers with the reply itself, or with what `instead` makes of it. */
  #answerAll(
    io: IoId,
    replies: readonly AuditedReply[],
    instead = (reply: AuditedReply['reply']): AuditedReply['reply'] => reply,
  ): void {
    for (const { id, reply } of replies) this.answer(io, id, instead(reply));
  }
}

/** The answers say which gateways do not act by them yet. */
function nameUnconfirmed({ replies }: Batch, unconfirmed: SavedAt): void {
  if (unconfirmed === undefined || unconfirmed.length === 0) return;
  for (const [at, each] of replies.entries())
    replies[at] = { ...each, reply: Object.assign({ unconfirmed }, each.reply) };
}
