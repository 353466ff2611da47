import type { StateStore } from '../../ports/ports.ts';
import { type EmbeddedStore, storedKey } from './store.ts';

type Stored = { readonly id: string; readonly row: unknown };

/** Keeps operators' decisions in the embedded store: a table for each kind, a row for each id. */
export function createEmbeddedStates(store: EmbeddedStore): StateStore {
  const tables = {
    halts: store.table<Stored>('halts'),
    approvals: store.table<Stored>('approvals'),
    webhooks: store.table<Stored>('webhooks'),
  };
  return {
    *load(table) {
      for (const [, { id, row }] of tables[table].entries()) yield { id, row };
    },
    save: (table, id, row) => tables[table].put(storedKey(id), { id, row }),
    remove: (table, id) => tables[table].remove(storedKey(id)),
  };
}
