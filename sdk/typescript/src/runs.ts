/** `run`: checks, calls the body, and reports its end, whatever the body, operators and the gateway do meanwhile. */

import { AmbientValue } from './ambient.ts';
import type { Approvals } from './approvals.ts';
import type { Calls, Ended } from './calls.ts';
import type { Checker, CheckOptions } from './checks.ts';
import type { Control } from './control.ts';
import { isOfProxy, isVerdict } from './credential.ts';
import {
  ActionDeniedError,
  ApprovalPendingError,
  ClientClosedError,
  GatewayError,
  OpTerminatedError,
} from './errors.ts';
import { type CheckBody, checkBodyOf, type OpName, requireUsage } from './messages.ts';
import { editedAttributes, editedResult, noticesIn, OBLIGATION_TYPES } from './obligations.ts';
import { type Op, RunningOp } from './op.ts';
import type { Settings } from './options.ts';
import type { Orphans } from './orphans.ts';
import { newSpanId, newTraceId } from './text.ts';
import type { Action, CheckAnswer, JsonObject, RunOptions } from './types.ts';
import { type Backoff, backoffMs, onAbort, Sleeper, type Underway, unlessAborted } from './waiters.ts';

export type RunsOptions = {
  readonly settings: Settings;
  readonly checker: Checker;
  readonly control: Control;
  readonly calls: Calls;
  readonly approvals: Approvals;
  readonly orphans: Orphans;
  readonly underway: Underway;
};

type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

/** The interval of checks while the gateway reports `paused` and the signal is still on its way. */
const PAUSE_POLL_MS = 250;
/** How long a signal may be on its way after the stream was reopened. */
const SIGNAL_MS = 1_000;
const ANNOUNCE_BACKOFF: Backoff = { baseMs: 500, maxMs: 10_000 };

/** The body that is running, and the one of another client around it, if there is one. */
type EnclosingRun = { readonly runs: Runs; readonly op: RunningOp; readonly outer: EnclosingRun | undefined };

// A single storage serves all clients: Node.js before 24 copies each storage into each promise of the process, also of
// clients that are closed.
const ENCLOSING = new AmbientValue<EnclosingRun>();

export class Runs {
  readonly #options: RunsOptions;
  /** Operations whose bodies run, with the checks that allowed them. */
  readonly #live = new Map<RunningOp, CheckBody>();
  /** Ends the waits of operations whose bodies are over, and which are paused. */
  readonly #resting = new Set<() => void>();
  readonly #sleeper = new Sleeper();
  /** How often all operations were announced. */
  #rounds = 0;
  #isClosing = false;

  constructor(options: RunsOptions) {
    this.#options = options;
    options.control.on('returned', () => this.#announceAll());
  }

  /** Whether the caller is itself the body of an operation. */
  get isWithin(): boolean {
    return this.#around() !== undefined;
  }

  /** Within the body of an operation, everything belongs to its trace. */
  nameOf({ traceId, spanId }: Action): OpName {
    return { traceId: traceId ?? this.#around()?.traceId ?? newTraceId(), spanId: spanId ?? newSpanId() };
  }

  async run<T>(action: Action, body: (op: Op) => T | Promise<T>, options: RunOptions): Promise<T> {
    const { signal } = options;
    const { settings, control, calls, underway } = this.#options;
    const { traceId, spanId } = this.nameOf(action);
    const op = new RunningOp(traceId, spanId, this.#around(), async (spent, opId) => {
      const usage = typeof spent === 'object' ? { ...spent, opId } : { costUsd: spent, opId };
      requireUsage(usage);
      return underway.during(() => calls.recordUsage(usage));
    });
    if (control.has(op.opId)) throw new TypeError(`operation ${op.opId} is already running`);
    const { supportedObligations = OBLIGATION_TYPES } = action;
    const check = checkBodyOf({ ...action, supportedObligations }, settings.agent, op);
    // Before the check: a signal may overtake its answer.
    control.attach(op);
    try {
      const answer = await this.#admitted(op, check, options, action.spanId === undefined);
      if (answer.decision === 'pending') throw new ApprovalPendingError(action.action, action.resource, answer);
      if (answer.decision !== 'allow') throw new ActionDeniedError(action.action, action.resource, answer);
      op.begin(answer, this.#obliged(action, answer));
    } catch (error) {
      control.detach(op);
      throw error;
    }
    for (const message of noticesIn(op.answer.obligations))
      settings.onNotice({ message, opId: op.opId, action: action.action, resource: action.resource });
    return this.#act(op, check, body, signal);
  }

  /** The answer of the gateway, and that of people where it leaves the action to them. */
  async #admitted(op: RunningOp, check: CheckBody, run: RunOptions, isFresh: boolean): Promise<CheckAnswer> {
    const { checker, approvals, settings } = this.#options;
    const options: CheckOptions = { isFresh, signal: run.signal };
    let answer = await checker.check(check, options);
    if (run.approvals === 'throw') return answer;
    const endMs = performance.now() + settings.approvalMs;
    // An operator may end it while it waits, or what is around it.
    const signals = [options.signal, op.signal, op.parent?.signal].filter((each) => each !== undefined);
    for (let round = 0; answer.decision === 'pending'; round += 1) {
      const { approvalId } = answer;
      if (approvalId === undefined) return undecided(answer, 'the gateway names no approval to wait for');
      const leftMs = Math.max(0, endMs - performance.now());
      const waited = await settled(() => approvals.wait(approvalId, leftMs, { signal: AbortSignal.any(signals) }));
      if (!waited.ok) {
        // People who say no end the operation, too, and that may be known before what they have said.
        const isOver = op.state === 'terminated' && options.signal?.aborted !== true;
        const after = isOver ? await checker.check(check, options) : undefined;
        if (after?.cause === 'approval' || after?.cause === 'limit') return after;
        throw waited.error;
      }
      if (waited.value.state === 'pending')
        return undecided(answer, `nobody has decided on approval ${approvalId} within ${settings.approvalMs} ms`);
      // The approval may be used up by now, or the action changed: then people are asked anew.
      if (round > 0) await this.#sleeper.sleep(PAUSE_POLL_MS, options.signal);
      answer = await checker.check(check, options);
      // The end of its approval may be known before the signal that ends the operation.
      if (answer.cause === 'operation_state' && answer.opState === 'terminated') {
        op.terminate(`operation ${op.opId} may not continue: ${answer.reason}`);
        throw op.signal.reason;
      }
    }
    return answer;
  }

  /** The attributes that the body is to act on. Throws where nobody would do what the answer obliges to. */
  #obliged({ action, resource, attributes, supportedObligations }: Action, answer: CheckAnswer) {
    const refuse = (reason: string): never => {
      // It was allowed, and nobody acts on it.
      this.#options.orphans.add(answer.opId);
      throw new ActionDeniedError(action, resource, { ...answer, cause: 'obligation', reason });
    };
    let edited: JsonObject | undefined;
    try {
      edited = editedAttributes(attributes, answer.obligations);
    } catch (error) {
      return refuse(error instanceof Error ? error.message : String(error));
    }
    if (edited === attributes || supportedObligations !== undefined) return edited;
    return refuse(
      'its obligations change the attributes, and the action does not say that its body uses op.attributes',
    );
  }

  /** Aborts all bodies, and waits for no operator any longer. */
  abortAll(): void {
    this.#isClosing = true;
    for (const op of this.#live.keys()) op.abort(new ClientClosedError());
    this.#wake();
  }

  /** Nothing is announced or waited for any more. */
  close(): void {
    this.#sleeper.end();
  }

  /** Operations with something left to report: their bodies are running, or have ended during a pause. */
  get count(): number {
    return this.#live.size + this.#resting.size;
  }

  /**
   * The gateway was away and may have forgotten its operations, as it does when it restarts. It is asked for each
   * again, so that operators see them and can stop them; one that may not go on is stopped. To a gateway that knows
   * them this changes nothing.
   */
  #announceAll(): void {
    this.#wake();
    this.#rounds += 1;
    for (const [op, check] of this.#live) {
      this.#untilAnnounced(op, check, this.#rounds).catch((error: unknown) => {
        if (!(error instanceof ClientClosedError))
          this.#options.settings.onWarning(
            new Error(`could not announce operation ${op.opId} again`, { cause: error }),
          );
      });
    }
  }

  /** The operation of this client, not of another, in whose body the caller is. */
  #around(): RunningOp | undefined {
    let around = ENCLOSING.current;
    while (around !== undefined && around.runs !== this) around = around.outer;
    return around?.op;
  }

  /** A gateway that is too busy is asked again: before it knows the operation, no operator does. */
  async #untilAnnounced(op: RunningOp, check: CheckBody, round: number): Promise<void> {
    const { underway } = this.#options;
    for (let attempt = 0; this.#live.has(op) && round === this.#rounds; attempt += 1) {
      const announced = await underway.during(() => this.#announce(op, check));
      if (announced === true) return;
      // A restarted gateway does not remember that the operation runs: people decide whether it may go on.
      if (announced !== false)
        await this.#options.approvals.wait(announced, this.#options.settings.approvalMs, { signal: op.signal });
      await this.#sleeper.sleep(backoffMs(attempt, ANNOUNCE_BACKOFF));
    }
  }

  /** Whether no further attempt is needed, or the approval to wait for before the next one. */
  async #announce(op: RunningOp, check: CheckBody): Promise<boolean | string> {
    const { checker, orphans } = this.#options;
    const { decision, opState, auditId, reason, approvalId } = await checker.check(check);
    if (decision === 'pending' && approvalId !== undefined && this.#live.has(op)) return approvalId;
    if (opState === 'terminated') op.terminate(`operation ${op.opId} may not continue: ${reason}`);
    // The report of its end may have come before the announcement, whose answer may be lost besides.
    else if (opState !== 'completing' && !this.#live.has(op)) orphans.add(op.opId);
    else if (opState === undefined) return auditId !== undefined;
    else if (opState === 'running' && op.state === 'paused') await this.#warnOfPause(op, check);
    return true;
  }

  /** The gateway has forgotten that it is paused; or it was resumed just now, and the signal is on its way. */
  async #warnOfPause(op: RunningOp, check: CheckBody): Promise<void> {
    const { checker, settings } = this.#options;
    await this.#sleeper.sleep(SIGNAL_MS);
    if (op.state !== 'paused' || op.signal.aborted || (await checker.stateOf(check)) !== 'running') return;
    settings.onWarning(
      new Error(
        `operation ${op.opId} was paused when the gateway restarted, and still is; to let it continue, pause and resume it`,
      ),
    );
  }

  async #act<T>(
    op: RunningOp,
    check: CheckBody,
    body: (op: Op) => T | Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    this.#live.set(op, check);
    const stopListening = onAbort(signal, () => op.abort(signal?.reason));
    const outcome = await settled(() =>
      ENCLOSING.run({ runs: this, op, outer: ENCLOSING.current }, async () => {
        op.signal.throwIfAborted();
        const value = await body(op);
        // Paused: it is not complete before it is resumed. Terminated: what comes after it must not go on.
        await op.checkpoint();
        return editedResult(value, op.answer.obligations);
      }),
    );
    stopListening();
    this.#live.delete(op);
    op.end();
    const wait = await settled(() => unlessAborted(signal, this.#reported(op, check, outcome)));
    if (op.state === 'terminated' || (op.signal.aborted && !outcome.ok)) throw stopOf(op, outcome);
    if (!outcome.ok) throw outcome.error;
    if (!wait.ok) throw wait.error;
    return outcome.value;
  }

  /**
   * The gateway knows that the body is over, or will. The work is done by now, so nothing of this fails the run.
   * When the body has thrown, its error does not wait until an operator ends a pause.
   */
  #reported(op: RunningOp, check: CheckBody, outcome: Outcome<unknown>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#report(op, check, outcome, outcome.ok ? () => {} : resolve)
        .finally(() => this.#options.control.detach(op))
        .then(resolve, reject);
    });
  }

  /** Reports to the gateway that the body is over. `onRest` is called when that has to wait until a pause is over. */
  async #report(op: RunningOp, check: CheckBody, outcome: Outcome<unknown>, onRest: () => void): Promise<void> {
    const { calls, checker, orphans, underway } = this.#options;
    if (op.answer.unreachable && op.state !== 'terminated') return orphans.add(op.opId);
    for (;;) {
      if (op.state === 'paused' && !this.#isClosing) {
        onRest();
        await this.#rest(op);
      }
      if (op.state === 'terminated') return;
      const reported = await settled(() => underway.during(() => calls.completeUnlessLost(op.opId, endedBy(outcome))));
      if (reported.ok) return op.complete();
      if (!(reported.error instanceof GatewayError) || reported.error.code !== 'failed_precondition')
        return this.#explainUnreported(op, reported.error);
      if (this.#isClosing) return;
      const state = await checker.stateOf(check);
      if (state === 'terminated') op.obey('terminate', () => {});
      if (state !== 'paused' && state !== 'running') return;
      if (state === 'paused' && op.state !== 'paused') await this.#sleeper.sleep(PAUSE_POLL_MS);
    }
  }

  /** Until the pause is over, or may be: a gateway that comes back may have forgotten it. */
  #rest(op: RunningOp): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#resting.delete(wake);
        resolve();
      };
      this.#resting.add(wake);
      void op.pauseOver().then(wake);
    });
  }

  #wake(): void {
    for (const wake of this.#resting) wake();
  }

  #explainUnreported(op: RunningOp, error: unknown): void {
    // The gateway has restarted and does not know the operation.
    if (error instanceof ClientClosedError || (error instanceof GatewayError && error.code === 'not_found')) return;
    // Away, behind a proxy or not, or too busy for as long as a call may take.
    if (error instanceof GatewayError && (isOfProxy(error) || !isVerdict(error))) this.#options.orphans.add(op.opId);
    else
      this.#options.settings.onWarning(
        new Error(`could not report operation ${op.opId} as complete`, { cause: error }),
      );
  }
}

const endedBy = (outcome: Outcome<unknown>): Ended =>
  outcome.ok
    ? { succeeded: true }
    : { failure: outcome.error instanceof Error ? outcome.error.message : String(outcome.error) };

/** People have not decided in time: as if they had said no. */
const undecided = (answer: CheckAnswer, reason: string): CheckAnswer => ({
  ...answer,
  decision: 'deny',
  cause: 'approval',
  reason,
});

async function settled<T>(work: () => Promise<T>): Promise<Outcome<T>> {
  try {
    return { ok: true, value: await work() };
  } catch (error) {
    return { ok: false, error };
  }
}

/** Why the operation was stopped, even if the body threw another error for it, such as an AbortError. */
function stopOf(op: RunningOp, outcome: Outcome<unknown>): unknown {
  const reason: unknown = op.signal.reason;
  if (outcome.ok || outcome.error === reason) return reason;
  if (reason instanceof OpTerminatedError)
    return new OpTerminatedError(reason.opId, reason.message, { cause: outcome.error });
  // A caller who aborts is given back the very reason that it gave.
  return reason instanceof ClientClosedError ? new ClientClosedError({ cause: outcome.error }) : reason;
}
