/** The table of prices in the package, by the library that has it: dated, and asked of nobody at run time. */
import { calcPrice, type ModelPrice, waitForUpdate } from '@pydantic/genai-prices';
import { highestRates, RATES, type Rates } from '../../core/prices/price.ts';

export type TablePrice = { readonly provider: string | undefined; readonly rates: Rates };

/** As of this time. Undefined: the table does not have the model, or has no price for its tokens. */
export function findPrice(model: string, provider: string | undefined, nowMs: number): TablePrice | undefined {
  const found = priceAt(model, provider, nowMs);
  if (found !== undefined || provider !== undefined) return found;
  // As routers and frameworks write it: `anthropic/claude-sonnet-4-5`, `openai:gpt-5`.
  const [, before, after] = /^([\w-]+)[/:](.+)$/.exec(model) ?? [];
  return after === undefined ? undefined : priceAt(after, before, nowMs);
}

function priceAt(model: string, provider: string | undefined, nowMs: number): TablePrice | undefined {
  const options = { timestamp: new Date(nowMs), ...(provider !== undefined && { providerId: provider }) };
  const found = calcPrice({ input_tokens: 1, output_tokens: 1 }, model, options);
  if (found === null) return undefined;
  const rates = ratesOf(found.model_price);
  const hasPrice = rates.input_mtok !== undefined || rates.output_mtok !== undefined;
  return hasPrice ? { provider: found.provider.id, rates } : undefined;
}

/** Returns the greatest value of each rate among all providers. */
export async function highestOfTable(nowMs: number): Promise<Rates> {
  // Without an update, which nobody starts, this is the table in the package.
  const providers = (await waitForUpdate()) ?? [];
  const all = providers.flatMap(({ id, models }) => models.map((each) => findPrice(each.id, id, nowMs)?.rates ?? {}));
  return highestRates(all);
}

const ratesOf = (price: ModelPrice): Rates =>
  Object.fromEntries(RATES.flatMap((name) => (price[name] === undefined ? [] : [[name, plain(price[name])]])));

/** Without the class of the library, which does not cross threads. */
const plain = (rate: NonNullable<ModelPrice[string]>): Rates[keyof Rates] & {} =>
  typeof rate === 'number'
    ? rate
    : { base: rate.base, tiers: rate.tiers.map(({ start, price }) => ({ start, price })) };
