/** Reads spending from request bodies: a cost, or a model with its tokens. */
import { z } from 'zod';
import { MAX_TOKENS } from '../../core/prices/price.ts';
import { optional } from '../shared/input.ts';
import { MAX_LABEL_BYTES } from '../shared/limits.ts';
import { pricedUsd, type Spent, type UsageFields } from '../shared/usage.ts';
import { moneyUsd } from './body.ts';

const label = (description: string) =>
  optional(z.string().meta({ description: `${description}; at most ${MAX_LABEL_BYTES} bytes.`, minLength: 1 }));
const count = (description: string) => optional(z.number().meta({ description, minimum: 0, maximum: MAX_TOKENS }));

export const spentFields = {
  cost_usd: optional(moneyUsd),
  model: label('In place of `cost_usd`: the model, whose tokens the gateway prices'),
  provider: label('Who serves the model, such as `anthropic`'),
  input_tokens: count('Including those read from a cache or written to it.'),
  output_tokens: count('The output of the model.'),
  cache_read_tokens: count('The part of the input that was read from a cache.'),
  cache_write_tokens: count('The part of the input that was written to a cache.'),
};

export const spentOf = (
  body: Readonly<Partial<Record<keyof typeof spentFields, number | string | undefined>>>,
): UsageFields => {
  const { cost_usd, model, provider, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } =
    body as Readonly<Record<string, never>>;
  return {
    costUsd: cost_usd,
    model,
    provider,
    inputTokens: input_tokens,
    outputTokens: output_tokens,
    cacheReadTokens: cache_read_tokens,
    cacheWriteTokens: cache_write_tokens,
  };
};

/** In an answer: what the tokens cost. */
export function costView(spent: Spent | undefined): { readonly cost_usd?: number } {
  const usd = pricedUsd(spent);
  return usd === undefined ? {} : { cost_usd: usd };
}
