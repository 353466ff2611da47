/** Prices tokens: by the operator's file first, then by the table in the package (docs/spec.md, Prices). */
import { fail, ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import { NO_OWN_PRICES, type OwnPrices } from '../core/prices/own-prices.ts';
import { costOfTokens, highestRates, type Price, type Rates, type TokenUsage } from '../core/prices/price.ts';
import type { Clock } from '../ports/ports.ts';

/** The table in the package. It is large, so whoever has it keeps it out of the main thread. Rejects if it is gone. */
export type PriceTable = {
  /** As of now; undefined: the table does not have the model. */
  find(model: string, provider: string | undefined): Promise<Pick<Price, 'provider' | 'rates'> | undefined>;
  /** Returns the greatest value of each rate in the table. */
  highest(): Promise<Rates>;
};

export type Priced = { readonly costMicroUsd: number; readonly price: Price };

/** Some models cost less at night, so what the table has said holds for so long. */
const KEPT_MS = 60_000;
/** Beyond that, all are forgotten: callers choose the names. */
const MAX_KEPT = 1_000;

type Kept = { readonly untilMs: number; readonly found: ReturnType<PriceTable['find']> };

export class PriceKeeper {
  readonly #table: PriceTable;
  readonly #clock: Clock;
  readonly #unknown: 'refuse' | 'highest';
  readonly #kept = new Map<string, Kept>();
  #own: OwnPrices = NO_OWN_PRICES;

  constructor(table: PriceTable, clock: Clock, unknown: 'refuse' | 'highest') {
    this.#table = table;
    this.#clock = clock;
    this.#unknown = unknown;
  }

  /** The operator's own, from now on. */
  set own(own: OwnPrices) {
    this.#own = own;
  }

  /** Fault: `unknown_model`. */
  async find(model: string, provider: string | undefined): Promise<Result<Price, Fault>> {
    const own = this.#own.find(model);
    if (own !== undefined) return ok({ model, provider, rates: own, source: 'file' });
    const found = await this.#ofTable(model, provider);
    if (found !== undefined) return ok({ model, ...found, source: 'table' });
    if (this.#unknown === 'refuse') return fail({ kind: 'unknown_model', model, provider });
    const rates = highestRates([...this.#own.all(), await this.#table.highest()]);
    return ok({ model, provider, rates, source: 'highest' });
  }

  /** Faults: `unknown_model`; `invalid_argument` where it is more than a single cost may be. */
  async priceOf(tokens: TokenUsage): Promise<Result<Priced, Fault>> {
    const found = await this.find(tokens.model, tokens.provider);
    if (!found.ok) return found;
    const costMicroUsd = costOfTokens(found.value.rates, tokens);
    return costMicroUsd === undefined
      ? fail({ kind: 'invalid_argument', field: 'input_tokens', problem: 'so many tokens cost more than a report may' })
      : ok({ costMicroUsd, price: found.value });
  }

  #ofTable(model: string, provider: string | undefined): ReturnType<PriceTable['find']> {
    const key = `${provider ?? ''} ${model}`;
    const nowMs = this.#clock.nowMs();
    const kept = this.#kept.get(key);
    // Further ahead, the clock was set back.
    if (kept !== undefined && kept.untilMs > nowMs && kept.untilMs - nowMs <= KEPT_MS) return kept.found;
    if (this.#kept.size >= MAX_KEPT) this.#kept.clear();
    const found = this.#table.find(model, provider);
    this.#kept.set(key, { untilMs: nowMs + KEPT_MS, found });
    // A failure is not kept.
    found.catch(() => this.#kept.delete(key));
    return found;
  }
}
