import type { BudgetChange, BudgetRow } from '../../core/budget/rows.ts';
import type { BudgetStore } from '../../ports/ports.ts';
import { type EmbeddedStore, storedKey } from './store.ts';

/** Spend in the embedded store. */
export function createEmbeddedBudgets(store: EmbeddedStore): BudgetStore {
  const table = store.table<BudgetRow>('budgets');
  return {
    *load() {
      for (const [, row] of table.entries()) yield row;
    },
    save: (changes: readonly BudgetChange[]) =>
      store.transaction((inside) => {
        const inTransaction = inside(table);
        for (const { key, row } of changes) {
          if (row === undefined) inTransaction.remove(storedKey(key));
          else inTransaction.put(storedKey(key), row);
        }
      }),
  };
}
