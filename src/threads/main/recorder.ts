import type { CheckCommand, Replies } from '../../core/commands.ts';
import type { Governor } from '../../core/governor.ts';
import type { Stats } from '../../core/stats/stats.ts';
import { type Clock, Refused, type SavedAt } from '../../ports/ports.ts';
import type { AuditLink } from '../audit/audit-link.ts';
import type { IoId } from '../protocol.ts';
import { type AuditedReply, Batch, type SignalEffect } from './batch.ts';
import type { ControlStreams } from './control-streams.ts';
import type { EffectRunner } from './effect-runner.ts';
import type { IoThreads } from './io-threads.ts';
import { AUDIT_UNAVAILABLE, refusalOf, unrecordedReply } from './unrecorded.ts';

export type RecorderOptions = {
  readonly governor: Governor;
  readonly audit: AuditLink;
  readonly threads: IoThreads;
  readonly controlStreams: ControlStreams;
  readonly effectRunner: EffectRunner;
  readonly clock: Clock;
  readonly stats: Stats;
  /** The policy while the audit log cannot be written (docs/spec.md, Audit). */
  readonly onAuditFailure: 'deny' | 'allow';
  readonly onError: (error: unknown, doing: string) => void;
};

type Place = ReturnType<AuditLink['append']>;

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

  /** Begins a batch of commands. */
  begin(io: IoId): Batch {
    const { audit, clock, governor } = this.#options;
    // An operator's entry counts as written before its answer leaves, so an agent that connects afterwards finds the
    // signal.
    audit.catchUp();
    return new Batch(io, clock.nowMs(), governor.ops.lastNumber);
  }

  /** Records the batch, and sends what waits for who asked. */
  finish(batch: Batch): void {
    if (batch.entryCount > 0) this.#record(batch);
    this.#options.threads.flush(batch.io);
  }

  /** Hands the batch to the audit log. Its answers leave once they are recorded: I/O threads hold theirs until then. */
  #record(batch: Batch): void {
    const { io, replies } = batch;
    const { audit, threads } = this.#options;
    const isAwaited = threads.isHere(io) || batch.signals.length > 0 || batch.isConfirmed;
    // An audit log on this thread has written them before `append` returns.
    let place: Place | undefined;
    place = audit.append(batch.entriesFor(isAwaited), {
      written: (firstId) => {
        this.#settle(batch);
        if (batch.isConfirmed) void this.#releaseLater(batch, firstId, () => place);
        else threads.release(io, firstId, replies);
      },
      lost: () => this.#lose(batch),
    });
    if (place !== undefined && !batch.isConfirmed) threads.hold(io, { type: 'held', ...place, replies });
  }

  async #releaseLater(batch: Batch, firstId: number, placeOf: () => Place | undefined): Promise<void> {
    const { threads, onError } = this.#options;
    try {
      await batch.confirmed();
    } catch (error) {
      onError(error, 'waiting for other gateways');
    }
    const { io, replies } = batch;
    const place = placeOf();
    threads.release(io, firstId, replies);
    if (place !== undefined) threads.hold(io, { type: 'held', ...place, replies });
    threads.flush(io);
  }

  /**
   * For a batch of one command that a store has to save first: a registration, which can be undone, or spend, which
   * cannot.
   */
  async recordWhenDurable(batch: Batch, durable: Promise<SavedAt>): Promise<void> {
    const isRegistration = batch.isUndoable;
    if (isRegistration) this.#saving.push(batch);
    try {
      batch.nameUnconfirmed(await durable);
    } catch (error) {
      // A row written by another gateway is in the way: that is no defect.
      if (!(error instanceof Refused)) this.#options.onError(error, 'writing to the embedded store');
      batch.settleReports(false);
      if (isRegistration && batch.refusal === undefined) this.#rollBack(batch, refusalOf(error));
      return this.#answerAll(batch, () => refusalOf(error));
    }
    const { refusal } = batch;
    if (refusal !== undefined) {
      batch.settleReports(false);
      return this.#answerAll(batch, () => refusal);
    }
    if (isRegistration) this.#saving.splice(this.#saving.indexOf(batch), 1);
    if (batch.entryCount > 0) return this.#record(batch);
    batch.settleReports(true);
    this.#countChecks(batch);
    if (batch.isConfirmed) await batch.confirmed();
    this.#answerAll(batch);
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
    this.#countChecks(batch);
    batch.settleReports(true);
    this.#signal(batch.signals);
  }

  #lose(batch: Batch): void {
    if (this.#options.onAuditFailure === 'allow') {
      this.#settle(batch);
      return this.#answerAll(batch);
    }
    this.#countChecks(batch, unrecordedReply);
    batch.settleReports(false);
    this.#rollBack(batch, AUDIT_UNAVAILABLE);
    this.#answerAll(batch, unrecordedReply);
  }

  #countChecks(batch: Batch, sent: Instead = asItIs): void {
    batch.eachCheck((command, reply) => this.countCheck(command, sent(reply) as Replies['check'], batch.appliedAtMs));
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
    for (const effect of batch.rollBack(governor, nowMs)) {
      // Each is stored separately: the governor is already correct, and only a restart would miss what the store could
      // not take.
      const undone = new Batch(batch.io, nowMs, governor.ops.lastNumber);
      effectRunner.run([effect], undone)?.catch((error: unknown) => onError(error, 'rolling back unrecorded changes'));
      undone.dropReports(); // it is as it was before
    }
  }

  #answerAll({ io, replies }: Batch, instead: Instead = asItIs): void {
    for (const { id, reply } of replies) this.answer(io, id, instead(reply));
  }
}

/** The answer in place of a reply. */
type Instead = (reply: AuditedReply['reply']) => AuditedReply['reply'];
const asItIs: Instead = (reply) => reply;
