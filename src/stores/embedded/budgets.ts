import type { BudgetStore, StoredRow } from '../../ports/ports.ts';
import { type EmbeddedStore, storedKey } from './store.ts';

/** Spend, and what limits have counted, in the embedded store. */
export function createEmbeddedBudgets(store: EmbeddedStore): BudgetStore {
  const table = store.table<StoredRow>('budgets');
  return {
    *load() {
      for (const [, row] of table.entries()) yield row;
    },
    save: (changes) =>
      store.transaction((inside) => {
        const inTransaction = inside(table);
        for (const { key, row } of changes) {
          if (row === undefined) inTransaction.remove(storedKey(key));
          else inTransaction.put(storedKey(key), row);
        }
      }),
  };
}
