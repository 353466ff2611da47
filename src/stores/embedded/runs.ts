import type { BudgetRow, SpendRow } from '../../core/budget/rows.ts';
import type { EmbeddedStore } from './store.ts';

/** Which run of a gateway in a cluster the spend in this store is of. */
export type StoredRuns<Run extends string> = {
  /** Undefined: the gateway was alone. */
  readonly last: Run | undefined;
  /** What that run has spent: a row is saved before its spend is answered. */
  readonly spend: readonly SpendRow[];
  /** From here on the spend in this store is of this run. What another had spent is settled, and leaves it. */
  begin(run: Run): Promise<void>;
};

/** Whether a gateway on this store was ever one of a cluster: what it has of its own ended then. */
export const wasInCluster = (store: Pick<EmbeddedStore, 'table'>): boolean =>
  store.table<string>('cluster').get('run') !== undefined;

export function readStoredRuns<Run extends string>(store: EmbeddedStore): StoredRuns<Run> {
  const runs = store.table<Run>('cluster');
  const budgets = store.table<BudgetRow>('budgets');
  const last = runs.get('run');
  const rows = [...budgets.entries()].filter((entry): entry is [string, SpendRow] => entry[1].kind === 'spend');
  return {
    last,
    spend: rows.map(([, row]) => row),
    begin: (run) =>
      store.transaction((inside) => {
        inside(runs).put('run', run);
        if (last !== undefined) for (const [key] of rows) inside(budgets).remove(key);
      }),
  };
}
