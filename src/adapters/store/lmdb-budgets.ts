import { createHash } from 'node:crypto';
import type { BudgetChange, BudgetRow } from '../../core/budget-rows.ts';
import type { BudgetStore } from '../../gateway/ports.ts';
import type { EmbeddedStore } from './lmdb.ts';

// Keys of the store are limited in bytes and names are not that short, so the key of a row is the digest of its own.
const storedKey = (key: string): string => createHash('sha256').update(key).digest('base64url');

/** Spend in the embedded store. */
export function createLmdbBudgets(store: EmbeddedStore): BudgetStore {
  const table = store.table<string, BudgetRow>('budgets');
  return {
    *load() {
      for (const [, row] of table.entries()) yield row;
    },
    save: (changes: readonly BudgetChange[]) => table.transaction((inTransaction) => {
      for (const { key, row } of changes) {
        if (row === undefined) inTransaction.remove(storedKey(key));
        else inTransaction.put(storedKey(key), row);
      }
    }),
  };
}
