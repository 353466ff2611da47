import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Stats } from '../../core/stats/stats.ts';
import type { StatsStore } from '../../ports/ports.ts';

/** Rows that are made in one turn of the event loop. */
const ROWS_A_TURN = 50;

/** Writes statistics to their store, a few rows at a time, so that no check waits for them. */
export class StatsSaver {
  readonly #stats: Stats;
  readonly #store: Pick<StatsStore, 'save'>;
  #saving: Promise<void> | undefined;

  constructor(stats: Stats, store: Pick<StatsStore, 'save'>) {
    this.#stats = stats;
    this.#store = store;
  }

  /** Resolves once what has been counted so far is saved. What could not be written comes again with the next call. */
  save(): Promise<void> {
    this.#saving ??= this.#saveAll().finally(() => {
      this.#saving = undefined;
    });
    return this.#saving;
  }

  async #saveAll(): Promise<void> {
    for (;;) {
      const rows = this.#stats.takeUnsaved(ROWS_A_TURN);
      if (rows.length === 0) return;
      try {
        await this.#store.save(rows);
      } catch (error) {
        this.#stats.putBack(rows);
        throw error;
      }
      // Hours that were counted in meanwhile are for the next call.
      if (rows.length < ROWS_A_TURN) return;
      await nextTurn();
    }
  }
}
