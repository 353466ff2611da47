import type { BudgetTracker } from '../../core/budget/budget.ts';
import type { BudgetStore } from '../../ports/ports.ts';

/**
 * Writes spend to its store, one write at a time. A write holds all that an owner has spent. If one began before
 * another had failed, the store could hold the spend of a usage without its id, and a retry after a restart would count
 * twice.
 */
export class SpendSaver {
  readonly #budgets: BudgetTracker;
  readonly #store: Pick<BudgetStore, 'save'>;
  /** The latest write, once it has ended in whichever way. */
  #written: Promise<void> = Promise.resolve();
  /** The write that has not begun, for all who ask meanwhile. */
  #next: Promise<void> | undefined;

  constructor(budgets: BudgetTracker, store: Pick<BudgetStore, 'save'>) {
    this.#budgets = budgets;
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
    const changes = this.#budgets.drainChanges();
    try {
      await this.#store.save(changes);
    } catch (error) {
      this.#budgets.requeueChanges(changes);
      throw error;
    }
  }
}
