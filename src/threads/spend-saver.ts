import type { BudgetTracker } from '../core/budget.ts';
import type { BudgetStore } from '../gateway/ports.ts';

/** Takes spend to its store. */
export class SpendSaver {
  readonly #budgets: BudgetTracker;
  readonly #store: Pick<BudgetStore, 'save'>;
  /** Writes under way. */
  readonly #saving = new Set<Promise<void>>();

  constructor(budgets: BudgetTracker, store: Pick<BudgetStore, 'save'>) {
    this.#budgets = budgets;
    this.#store = store;
  }

  /** Resolves once the store has what was spent since the last call; what it could not take comes again with the next. */
  async save(): Promise<void> {
    const changes = this.#budgets.drainChanges();
    const saving = this.#store.save(changes);
    this.#saving.add(saving);
    try {
      await saving;
    } catch (error) {
      this.#budgets.requeueChanges(changes);
      throw error;
    } finally {
      this.#saving.delete(saving);
    }
  }

  /** Resolves once the store has all spend, also what is on its way. */
  async saveAll(): Promise<void> { await Promise.all([...this.#saving, this.save()]); }
}
