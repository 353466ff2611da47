import { calcPrice, waitForUpdate } from '@pydantic/genai-prices';
import { describe, expect, test } from 'vitest';
import { costOfTokens } from '../../../src/core/prices/price.ts';
import { findPrice, highestOfTable } from '../../../src/threads/prices/price-table.ts';

const NOW_MS = Date.UTC(2026, 10, 28, 12);

describe('the table of prices', () => {
  test('every model costs what the library says, to the micro-dollar', async () => {
    const used = { input_tokens: 300_000, output_tokens: 7_000, cache_read_tokens: 90_000, cache_write_tokens: 1_000 };
    const tokens = {
      model: '',
      provider: undefined,
      inputTokens: 300_000,
      outputTokens: 7_000,
      cacheReadTokens: 90_000,
      cacheWriteTokens: 1_000,
    };
    const differing: string[] = [];
    let compared = 0;
    for (const { id: providerId, models } of (await waitForUpdate()) ?? []) {
      for (const { id } of models) {
        const rates = findPrice(id, providerId, NOW_MS)?.rates;
        const theirs = calcPrice(used, id, { providerId, timestamp: new Date(NOW_MS) });
        if (rates === undefined || theirs === null) continue;
        const perRequest = Number(theirs.model_price.requests_kcount ?? 0) / 1_000;
        const expected = (theirs.total_price - perRequest) * 1_000_000;
        compared += 1;
        if (Math.abs((costOfTokens(rates, tokens) ?? 0) - expected) > 1) differing.push(`${providerId} ${id}`);
      }
    }
    expect(differing).toEqual([]);
    expect(compared).toBeGreaterThan(500);
  });

  test('a model is found without its provider, and not under another', () => {
    expect(findPrice('claude-sonnet-4-5', undefined, NOW_MS)?.provider).toBe('anthropic');
    expect(findPrice('claude-sonnet-4-5', 'openai', NOW_MS)).toBe(undefined);
    expect(findPrice('no-such-model', undefined, NOW_MS)).toBe(undefined);
  });

  test.each([
    ['anthropic/claude-sonnet-4-5', 'anthropic'],
    ['openai:gpt-5', 'openai'],
    ['gemini/gemini-2.5-flash', 'google'],
    ['openrouter/anthropic/claude-sonnet-4.5', 'openrouter'],
    ['openai/claude-sonnet-4-5', undefined],
    ['nobody/gpt-5', undefined],
    ['/gpt-5', undefined],
    ['anthropic/', undefined],
  ])('%s is the model of %s', (model, provider) => {
    expect(findPrice(model, undefined, NOW_MS)?.provider).toBe(provider);
  });

  test('no model asks more than the highest price', async () => {
    const { input_mtok: input, output_mtok: output } = await highestOfTable(NOW_MS);
    expect(input).toBeGreaterThanOrEqual(150);
    expect(output).toBeGreaterThanOrEqual(600);
  });
});
