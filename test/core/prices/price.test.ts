import { describe, expect, test } from 'vitest';
import { NO_OWN_PRICES, parseOwnPrices } from '../../../src/core/prices/own-prices.ts';
import { costOfTokens, highestRates, type TokenUsage } from '../../../src/core/prices/price.ts';

const tokens = (over: Partial<TokenUsage>): TokenUsage => ({
  model: 'm',
  provider: undefined,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  ...over,
});

describe('the cost of tokens', () => {
  test('input includes what was read from a cache and written to it', () => {
    const rates = { input_mtok: 3, output_mtok: 15, cache_read_mtok: 0.3, cache_write_mtok: 3.75 };
    const used = tokens({ inputTokens: 1_000, outputTokens: 500, cacheReadTokens: 600, cacheWriteTokens: 100 });
    expect(costOfTokens(rates, used)).toBe(8_955);
  });

  test('tokens of a cache without a price of their own cost what input does', () => {
    const used = tokens({ inputTokens: 1_000, cacheReadTokens: 600, cacheWriteTokens: 100 });
    expect(costOfTokens({ input_mtok: 2, output_mtok: 4 }, used)).toBe(2_000);
  });

  test('a tier prices all tokens of an input that is longer', () => {
    const rates = { input_mtok: { base: 1, tiers: [{ start: 200_000, price: 2 }] }, output_mtok: 0 };
    expect(costOfTokens(rates, tokens({ inputTokens: 200_000 }))).toBe(200_000);
    expect(costOfTokens(rates, tokens({ inputTokens: 200_001 }))).toBe(400_002);
  });

  test('a fraction of a micro-dollar counts as a whole one', () => {
    expect(costOfTokens({ input_mtok: 0.1 }, tokens({ inputTokens: 1 }))).toBe(1);
  });

  test('a cost over 1,000,000 USD is none', () => {
    expect(costOfTokens({ input_mtok: 10_000 }, tokens({ inputTokens: 1_000_000_000 }))).toBe(undefined);
  });

  test('the highest of each rate counts, also of a tier', () => {
    const tiered = { input_mtok: { base: 1, tiers: [{ start: 5, price: 9 }] }, output_mtok: 2 };
    expect(highestRates([{ input_mtok: 3 }, tiered])).toEqual({ input_mtok: 9, output_mtok: 2 });
  });
});

describe('own prices', () => {
  test('the name of a model goes before patterns, and the first of these before others', () => {
    const price = (input_mtok: number) => ({ input_mtok, output_mtok: 0 });
    const models = { 'my-*': price(1), 'my-large*': price(2), 'my-large-2': price(3) };
    const { prices, problems } = parseOwnPrices({ models });
    expect(problems).toEqual([]);
    expect(['my-large-1', 'my-large-2', 'your-model'].map((each) => prices.find(each)?.input_mtok)).toEqual([
      1,
      3,
      undefined,
    ]);
  });

  test.each([
    [[], [], 'must be a mapping with the key models'],
    [{}, [], 'models is missing'],
    [{ models: [] }, ['models'], 'must be a mapping of models, or patterns such as "my-model-*", to their prices'],
    [
      { models: { m: 3 } },
      ['models', 'm'],
      'must be a mapping with the keys input_mtok, output_mtok, cache_read_mtok, cache_write_mtok',
    ],
    [{ models: { m: { input_mtok: 1 } } }, ['models', 'm'], 'output_mtok is missing'],
    [
      { models: { m: { input_mtok: -1, output_mtok: 0 } } },
      ['models', 'm', 'input_mtok'],
      'must be US dollars per million tokens, from 0 to 1000000',
    ],
    [
      { models: { m: { input_mtok: 1, output_mtok: 0, output_mtk: 1 } } },
      ['models', 'm', 'output_mtk'],
      'unknown key; did you mean output_mtok?',
    ],
  ])('a mistake is named with its place: %j', (raw, path, problem) => {
    expect(parseOwnPrices(raw).problems).toEqual([expect.objectContaining({ path, problem })]);
  });

  test('without a file no model has one', () => {
    expect(NO_OWN_PRICES.find('gpt-4o')).toBe(undefined);
  });
});
