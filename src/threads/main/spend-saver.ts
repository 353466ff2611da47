import type { BudgetTracker } from '../../core/budget/budget.ts';
import type { LimitTracker } from '../../core/limits/limits.ts';
import type { BudgetStore } from '../../ports/ports.ts';

/**
 * Writes spend, and what limits have counted, to their store, one write at a time. A write holds all that an owner has
 * spent. If one began before another had failed, the store could hold the spend of a usage without its id, and a retry
 * after a restart would count twice.
 */
export class SpendSaver {
  readonly #budgets: BudgetTracker;
  readonly #limits: LimitTracker;
  readonly #store: Pick<BudgetStore, 'save'>;
  /** The latest write, once it has ended in whichever way. */
  #written: Promise<void> = Promise.resolve();
  /** The write that has not begun, for all who ask meanwhile. */
  #next: Promise<void> | undefined;

  constructor(budgets: BudgetTracker, limits: LimitTracker, store: Pick<BudgetStore, 'save'>) {
    this.#budgets = budgets;
    this.#limits = limits;
    this.#store = store;
  }

  /** Resolves once the store has all spend; what it could not take comes again with the next call. */
  save(): Promise<void> {
    this.#next ??= this.#saveAfter(this.#written);
    return this.#next;
  }

  async #saveAfter(written: Promise<void>): Promise<void> {
    await written;
    this.#next = undefined;
    const saving = this.#write();
    this.#written = saving.catch(() => undefined);
    return saving;
  }

  async #write(): Promise<void> {
    const spend = this.#budgets.drainChanges();
    const counts = this.#limits.drainChanges();
    try {
      await this.#store.save(counts.length === 0 ? spend : [...spend, ...counts]);
    } catch (error) {
      this.#budgets.requeueChanges(spend);
      this.#limits.requeueChanges(counts);
      throw error;
    }
  }
}
