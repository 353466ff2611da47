/** Token prices of models (docs/spec.md, Prices). */
import { usdToMicro } from '../base/money.ts';

/** Tokens of one model, as its caller has counted them. */
export type TokenUsage = {
  readonly model: string;
  /** Who serves the model; undefined: the model says it. */
  readonly provider: string | undefined;
  /** Including those read from a cache or written to it. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
};

/** US dollars per million tokens. With `tiers`, the last one that the input is longer than prices all tokens. */
export type Rate = number | { readonly base: number; readonly tiers: readonly Tier[] };
type Tier = { readonly start: number; readonly price: number };

export const RATES = ['input_mtok', 'output_mtok', 'cache_read_mtok', 'cache_write_mtok'] as const;
export type RateName = (typeof RATES)[number];
export type Rates = Readonly<Partial<Record<RateName, Rate>>>;

/** Whose price it is: of the operator's file, of the table in the package, or the highest of both. */
export type PriceSource = 'file' | 'table' | 'highest';

export type Price = {
  readonly model: string;
  readonly provider: string | undefined;
  readonly rates: Rates;
  readonly source: PriceSource;
};

/** More than any model takes in a day. */
export const MAX_TOKENS = 1_000_000_000;

/** Undefined: more than a single cost may be. Tokens of a cache without a price of their own cost what others do. */
export function costOfTokens(rates: Rates, tokens: TokenUsage): number | undefined {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = tokens;
  const input = rates.input_mtok ?? 0;
  const freshTokens = inputTokens - cacheReadTokens - cacheWriteTokens;
  const priced: readonly (readonly [number, Rate])[] = [
    [freshTokens, input],
    [cacheReadTokens, rates.cache_read_mtok ?? input],
    [cacheWriteTokens, rates.cache_write_mtok ?? input],
    [outputTokens, rates.output_mtok ?? 0],
  ];
  const perMillion = priced.reduce((sum, [count, rate]) => sum + count * usdPerMillion(rate, inputTokens), 0);
  return usdToMicro(perMillion / 1_000_000);
}

function usdPerMillion(rate: Rate, inputTokens: number): number {
  if (typeof rate === 'number') return rate;
  return rate.tiers.reduce((usd, { start, price }) => (inputTokens > start ? price : usd), rate.base);
}

/** Returns the greatest value of each rate. */
export function highestRates(all: Iterable<Rates>): Rates {
  const highest: Partial<Record<RateName, number>> = {};
  for (const rates of all) {
    for (const name of RATES) {
      const rate = rates[name];
      if (rate === undefined) continue;
      const most = typeof rate === 'number' ? rate : Math.max(rate.base, ...rate.tiers.map(({ price }) => price));
      highest[name] = Math.max(highest[name] ?? 0, most);
    }
  }
  return highest;
}
