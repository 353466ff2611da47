/** Stored counts of limits. */
import type { BudgetRow } from '../budget/rows.ts';
import type { LimitState } from './table.ts';

export type LimitRow = {
  readonly kind: 'limit';
  /** Its policy, id, key, unit and span, as JSON. */
  readonly limit: string;
  readonly key: string;
  readonly state: LimitState;
};

export type LimitChange = { readonly key: string; readonly row: LimitRow | undefined };

/** The other rows of a store, one by one: there may be more than fit into the memory. Rows of limits are set aside. */
export function* withoutLimits(rows: Iterable<BudgetRow | LimitRow>, limits: LimitRow[]): Generator<BudgetRow> {
  for (const row of rows) {
    if (row.kind === 'limit') limits.push(row);
    else yield row;
  }
}
