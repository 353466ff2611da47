import type { Rates } from '../../core/prices/price.ts';
import type { Clock } from '../../ports/ports.ts';
import type { PriceTable } from '../../use-cases/prices.ts';
import { ThreadLink } from '../thread-link.ts';
import type { TablePrice } from './price-table.ts';
import type { PriceAnswer, PriceQuestion } from './price-thread.ts';

/** The main thread's link to the thread that has the table of prices. */
export class PriceLink implements PriceTable {
  readonly #clock: Clock;
  readonly #thread = new ThreadLink<PriceQuestion, PriceAnswer>({ entry: 'prices' });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  find(model: string, provider: string | undefined): Promise<TablePrice | undefined> {
    return this.#ask({ model, provider, nowMs: this.#clock.nowMs() });
  }

  highest(): Promise<Rates> {
    return this.#ask({ highestAtMs: this.#clock.nowMs() });
  }

  close(): Promise<void> {
    return this.#thread.close();
  }

  #ask<T extends PriceAnswer>(question: PriceQuestion): Promise<T> {
    return this.#thread.ask(question) as Promise<T>;
  }
}
