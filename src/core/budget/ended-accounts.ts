/** An account of the ledger in one named period, which ends then. */
type Named = { readonly owner: string; readonly period: string };
type Ending = Named & { readonly toMs: number };

/** The ledger forgets accounts this long after their period. */
const KEPT_MS = 2 * 24 * 3_600_000;
const AT_ONCE = 100;

const keyOf = ({ owner, period }: Named): string => `${owner} ${period}`;

/** The last word about accounts of periods that have ended, until the ledger has heard it. */
export class EndedAccounts<Row extends Ending> {
  readonly #rows = new Map<string, Row>();

  add(row: Row): void {
    this.#rows.set(keyOf(row), row);
  }

  /** The ledger has heard it. */
  drop(account: Named): void {
    this.#rows.delete(keyOf(account));
  }

  /** How many are to be told at once. */
  get due(): number {
    return Math.min(this.#rows.size, AT_ONCE);
  }

  /** Adds them, up to so many rows in all. Of a period that the clock shows again, `running` says more. */
  behind(running: readonly Row[], most: number, nowMs: number): readonly Row[] {
    if (this.#rows.size === 0) return running;
    for (const row of running) this.drop(row);
    for (const [key, { toMs }] of this.#rows) if (nowMs - toMs > KEPT_MS) this.#rows.delete(key);
    return [...running, ...[...this.#rows.values()].slice(0, most - running.length)];
  }
}
