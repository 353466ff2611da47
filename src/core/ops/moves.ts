/** The moves of operations between their states, with what is recorded and signalled of each. */
import type { AuditDraft, AuditEvent } from '../audit/audit.ts';
import { fail, ok, type Result } from '../base/result.ts';
import type { BudgetTracker } from '../budget/budget.ts';
import type { Effect } from '../effects.ts';
import type { Fault } from '../fault.ts';
import type { MoveOp } from '../halts/commands.ts';
import { unchanged } from '../outcome.ts';
import type { OpUndo, Undo } from '../rollback.ts';
import type { ControlTrigger } from './op-state.ts';
import { isFinished, type OpEnd } from './op-state.ts';
import type { OpView } from './op-view.ts';
import { viewOfOp } from './op-view.ts';
import type { OpSlot, OpsRegistry } from './ops.ts';
import type { SignalBoxes } from './signals.ts';

export type Moved = {
  readonly reply: Result<OpView, Fault>;
  readonly effects: readonly Effect[];
  readonly undo?: Undo;
};

/** A move of an operation, and what is said with it. */
type Move = {
  readonly trigger: ControlTrigger;
  /** How it ends, if the trigger ends it; undefined: as the trigger says. */
  readonly end?: OpEnd;
  readonly error?: string | undefined;
  /** Takes the place of the reason for which it was to wait. */
  readonly reason?: string;
  readonly actor: string;
  readonly payload?: AuditDraft['payload'] | undefined;
};

const EVENT_OF: Readonly<Record<ControlTrigger, AuditEvent>> = {
  pause: 'OpPaused',
  resume: 'OpResumed',
  terminate: 'OpTerminated',
  complete: 'OpCompleted',
};

type Moving = {
  readonly ops: OpsRegistry;
  readonly budgets: BudgetTracker;
  readonly signals: SignalBoxes;
  /** Whether anybody watches operations. */
  readonly isWatched: () => boolean;
};

export class OpMoves {
  readonly #ops: OpsRegistry;
  readonly #budgets: BudgetTracker;
  readonly #signals: SignalBoxes;
  readonly #isWatched: () => boolean;

  constructor({ ops, budgets, signals, isWatched }: Moving) {
    this.#ops = ops;
    this.#budgets = budgets;
    this.#signals = signals;
    this.#isWatched = isWatched;
  }

  /** Moves the operations of a halt, as far as the table has such a move. */
  haltedAt(nowMs: number): MoveOp {
    return (slot, trigger, { actor, payload }) => {
      const step = this.#step(slot, { trigger, end: 'halted', actor, payload }, nowMs);
      return step.ok ? step.value : undefined;
    };
  }

  move(slot: OpSlot, move: Move, nowMs: number): Moved {
    const step = this.#step(slot, move, nowMs);
    if (!step.ok) return unchanged(step);
    const reply = ok(this.viewOf(slot));
    return step.value === undefined ? unchanged(reply) : { reply, ...step.value };
  }

  /** Undefined where it is in that state already. */
  #step(
    slot: OpSlot,
    { trigger, end, error, reason, actor, payload }: Move,
    nowMs: number,
  ): Result<{ readonly effects: readonly Effect[]; readonly undo: OpUndo } | undefined, Fault> {
    const ops = this.#ops;
    const budgets = this.#budgets;
    const signals = this.#signals;
    const opId = ops.idOf(slot);
    const from = ops.stateOf(slot);
    const about = error === undefined && reason === undefined ? undefined : ops.aboutOf(slot);
    const to = ops.advance(slot, trigger, nowMs, end);
    if (to === undefined) return fail({ kind: 'invalid_transition', opId, from, trigger });
    if (to === from) return ok(undefined);
    if (error !== undefined) ops.setError(slot, error);
    if (reason !== undefined) ops.setReason(slot, reason);
    const owner = ops.ownerOf(slot);
    // A completion sends no signal, so what the agent acknowledged is still the last one.
    const number = ops.numberOf(slot);
    const acknowledgedAtMs =
      trigger === 'complete' ? signals.acknowledgedAtMs(slot, number) : signals.expect(slot, number);
    const effects = this.moved(slot, EVENT_OF[trigger], actor, payload);
    const heldMicroUsd = budgets.heldBy(slot);
    const heldUntilMs = budgets.heldUntilMs(slot);
    if (isFinished(to)) budgets.release(slot);
    if (trigger !== 'complete') effects.push({ kind: 'signal', agent: owner.key, opId, slot, number, signal: trigger });
    return ok({
      effects,
      undo: { kind: 'op', slot, number, from, about, heldMicroUsd, heldUntilMs, acknowledgedAtMs },
    });
  }

  /** A view is made only for those who watch: a halt moves a hundred thousand operations. */
  moved(slot: OpSlot, eventType: AuditEvent, actor: string, payload?: AuditDraft['payload']): Effect[] {
    const draft = { eventType, lineage: this.#ops.ownerOf(slot).identity, actor, opId: this.#ops.idOf(slot), payload };
    const effects: Effect[] = [{ kind: 'audit', draft }];
    if (this.#isWatched()) effects.push({ kind: 'op-changed', op: this.viewOf(slot) });
    return effects;
  }

  viewOf(slot: OpSlot): OpView {
    return viewOfOp(this.#ops.recordOf(slot), this.#signals.acknowledgedAtMs(slot, this.#ops.numberOf(slot)));
  }
}
