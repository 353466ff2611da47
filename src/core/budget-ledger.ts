/** Where an envelope keeps its numbers: `CELLS` of them from `at` on. */
export type LedgerRow = { readonly cells: Float64Array; readonly at: number };

/** What is in the cells of a row. */
export const MONTHLY = 0;
export const DAILY = 1;
export const RESERVED = 2;
export const DAY = 3; // the day, counted from the epoch, to which MONTHLY and DAILY belong
const CELLS = 4;

/** A row of zeros that is in no ledger. */
export const looseRow = (): LedgerRow => ({ cells: new Float64Array(CELLS), at: 0 });

const ROWS_PER_BLOCK = 4_096;

/**
 * The numbers of all envelopes. As fields of an object each would be a box of its own somewhere on the heap; here the
 * four that every check reads lie side by side, in one line of the processor's cache.
 */
export class Ledger {
  #block = new Float64Array(0);
  #used = 0;
  readonly #free: LedgerRow[] = [];

  /** A row of zeros. */
  take(): LedgerRow {
    const freed = this.#free.pop();
    if (freed !== undefined) return freed;
    if (this.#used === this.#block.length) {
      this.#block = new Float64Array(ROWS_PER_BLOCK * CELLS);
      this.#used = 0;
    }
    const row = { cells: this.#block, at: this.#used };
    this.#used += CELLS;
    return row;
  }

  /** Nobody reads or writes the row any more. */
  giveBack(row: LedgerRow): void {
    row.cells.fill(0, row.at, row.at + CELLS);
    this.#free.push(row);
  }
}
