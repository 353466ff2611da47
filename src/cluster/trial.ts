/** Commands that are tried before they are decided: what they would change, with nothing changed. */
import type { Command, CommandType } from '../core/commands.ts';
import type { Governor } from '../core/governor.ts';
import type { Outcome } from '../core/outcome.ts';
import type { OpUndo } from '../core/rollback.ts';

/** New ids, which come again when a command that was tried is decided. */
export class ReplayedIds {
  readonly #make: () => string;
  #given: string[] = [];
  #again: string[] = [];

  constructor(make: () => string) {
    this.#make = make;
  }

  readonly next = (): string => {
    const id = this.#again.shift() ?? this.#make();
    this.#given.push(id);
    return id;
  };

  /** Has these ids given out first. Returns which were, and what `work` returns. */
  within<T>(again: readonly string[], work: () => T): { readonly ids: readonly string[]; readonly value: T } {
    this.#again = [...again];
    this.#given = [];
    const value = work();
    this.#again = [];
    return { ids: this.#given, value };
  }
}

/** Returns what the command would come to. Nothing has changed when it returns. */
export function tryOut(governor: Governor, command: Command, nowMs: number): Outcome {
  const { ops, budgets } = governor;
  const lastBefore = ops.lastNumber;
  const outcome = governor.apply<CommandType>(command as never, nowMs);
  const undos = outcome.undo === undefined ? [] : [outcome.undo];
  governor.rollBack(undos, [], lastBefore, nowMs);
  if (command.type !== 'check' || command.dryRun) return outcome;
  const slot = ops.find(command.opId, command.agent.orgId);
  if (slot === undefined || ops.numberOf(slot) <= lastBefore) return outcome;
  budgets.release(slot);
  const begun: OpUndo = {
    ...{ kind: 'op', slot, number: ops.numberOf(slot), from: 'absent', about: undefined },
    ...{ heldMicroUsd: 0, heldUntilMs: 0, acknowledgedAtMs: undefined },
  };
  governor.rollBack([begun], [], lastBefore, nowMs);
  return outcome;
}
