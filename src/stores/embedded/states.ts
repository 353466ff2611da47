import type { StateStore } from '../../ports/ports.ts';
import { type EmbeddedStore, storedKey } from './lmdb.ts';

type Stored = { readonly id: string; readonly row: unknown };

/** What operators have decided, in the embedded store: a table for each kind, a row for each id. */
export function createLmdbStates(store: EmbeddedStore): StateStore {
  const tables = {
    halts: store.table<string, Stored>('halts'),
    approvals: store.table<string, Stored>('approvals'),
    webhooks: store.table<string, Stored>('webhooks'),
  };
  return {
    *load(table) {
      for (const [, { id, row }] of tables[table].entries()) yield { id, row };
    },
    save: (table, id, row) => tables[table].put(storedKey(id), { id, row }),
    remove: (table, id) => tables[table].remove(storedKey(id)),
  };
}
