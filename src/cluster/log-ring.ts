import type { Place } from '../ports/cluster.ts';
import type { LogRow } from '../ports/cluster-log.ts';

/** For so long a server that takes over may lag behind the one before. */
const KEPT_MS = 5 * 60_000;
/** Beyond that, the oldest are let go sooner. */
const MOST_ENTRIES = 200_000;

/** The latest rows that this gateway has applied, one after the other, to be offered to a server that has lost them. */
export class LogRing {
  readonly #steadyMs: () => number;
  /** The place before the first row. */
  #base: Place;
  #rows: { readonly row: LogRow; readonly atMs: number }[] = [];
  #entries = 0;

  constructor(steadyMs: () => number, base: Place) {
    this.#steadyMs = steadyMs;
    this.#base = base;
  }

  get base(): Place {
    return this.#base;
  }

  add(row: LogRow): void {
    const nowMs = this.#steadyMs();
    this.#rows.push({ row, atMs: nowMs });
    this.#entries += row.entries.length;
    let gone = 0;
    while (gone < this.#rows.length && this.#isTooMuch(this.#rows[gone]!.atMs, nowMs)) {
      this.#entries -= this.#rows[gone]!.row.entries.length;
      gone += 1;
    }
    if (gone > 0) this.#base = placeOf(this.#rows.splice(0, gone).at(-1)!.row);
  }

  #isTooMuch(atMs: number, nowMs: number): boolean {
    return atMs < nowMs - KEPT_MS || this.#entries > MOST_ENTRIES;
  }

  /** These are known from now on, and no others. */
  reset(base: Place, rows: readonly LogRow[] = []): void {
    this.#base = base;
    this.#rows = [];
    this.#entries = 0;
    for (const row of rows) this.add(row);
  }

  /** Undefined: it is too old, or has not come yet. */
  markAt(seq: number): string | undefined {
    return seq === this.#base.seq ? this.#base.mark : this.#rows[seq - this.#base.seq - 1]?.row.mark;
  }

  /**
   * Returns the rows that a server with these places has, and those that it lacks. Undefined: the two have nothing in
   * common that is known here, so that nobody can say what is newer.
   */
  split(places: readonly Place[]): { readonly kept: readonly LogRow[]; readonly lost: readonly LogRow[] } | undefined {
    const marks = new Map(places.map(({ seq, mark }) => [seq, mark]));
    // Older rows are the same: the server keeps rows for longer than it may lag behind.
    const isSame = ({ seq, mark }: Place): boolean => marks.get(seq) === mark || seq < (places[0]?.seq ?? 0);
    if (!isSame(this.#base)) return undefined;
    const rows = this.#rows.map(({ row }) => row);
    const at = rows.findIndex((row) => !isSame(row));
    return at === -1 ? { kept: rows, lost: [] } : { kept: rows.slice(0, at), lost: rows.slice(at) };
  }
}

export const placeOf = ({ seq, mark }: Place): Place => ({ seq, mark });
