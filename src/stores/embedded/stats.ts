import type { StatsRow, UnsavedStats } from '../../core/stats/stats.ts';
import type { StatsStore } from '../../ports/ports.ts';
import { type EmbeddedStore, storedKey } from './store.ts';

/** Statistics in the embedded store: a row for each hour of an org, and of latencies. */
export function createEmbeddedStats(store: EmbeddedStore): StatsStore {
  const table = store.table<StatsRow>('stats');
  return {
    *load() {
      for (const [, row] of table.entries()) yield row;
    },
    save: (unsaved: readonly UnsavedStats[]) =>
      store.transaction((inside) => {
        const inTransaction = inside(table);
        for (const { key, row } of unsaved) {
          if (row === undefined) inTransaction.remove(storedKey(key));
          else inTransaction.put(storedKey(key), row);
        }
      }),
  };
}
