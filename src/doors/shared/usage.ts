/** Reads spending in every protocol: a cost, or a model with its tokens, which the gateway prices. */
import { microToUsd, usdToMicro } from '../../core/base/money.ts';
import { ok, type Result } from '../../core/base/result.ts';
import type { Completion } from '../../core/commands.ts';
import { type Fault, invalid } from '../../core/fault.ts';
import { MAX_TOKENS, type TokenUsage } from '../../core/prices/price.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import { COST_RULE, isLongerThan, MAX_LABEL_BYTES } from './limits.ts';

/** As it came. Undefined and '' stand for what is not there. */
export type UsageFields = {
  readonly costUsd?: number | undefined;
  readonly model?: string | undefined;
  readonly provider?: string | undefined;
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly cacheReadTokens?: number | undefined;
  readonly cacheWriteTokens?: number | undefined;
};

/** The reported spending. `tokens` is there if the gateway has to price it, or has. */
export type Spent = { readonly costMicroUsd: number; readonly tokens?: TokenUsage | undefined };

const TOKENS_RULE = `must be a whole number from 0 to ${MAX_TOKENS}`;
const COUNTS = {
  inputTokens: 'input_tokens',
  outputTokens: 'output_tokens',
  cacheReadTokens: 'cache_read_tokens',
  cacheWriteTokens: 'cache_write_tokens',
} as const;

/** Undefined: nothing was spent. A cost of tokens is still to be found: see `priced`. */
export function readSpent(fields: UsageFields): Result<Spent | undefined, Fault> {
  const { costUsd, model = '', provider = '' } = fields;
  const counts = Object.entries(COUNTS) as [keyof typeof COUNTS, string][];
  const given = counts.find(([key]) => fields[key] !== undefined);
  if (model === '') {
    if (given !== undefined || provider !== '') return invalid('model', 'is required with tokens or a provider');
    if (costUsd === undefined) return ok(undefined);
    const costMicroUsd = usdToMicro(costUsd);
    return costMicroUsd === undefined ? invalid('cost_usd', COST_RULE) : ok({ costMicroUsd });
  }
  if (costUsd !== undefined) return invalid('cost_usd', 'is either given or found by model; send only one of them');
  for (const [name, text] of [
    ['model', model],
    ['provider', provider],
  ] as const)
    if (isLongerThan(text, MAX_LABEL_BYTES)) return invalid(name, `must be at most ${MAX_LABEL_BYTES} bytes`);
  for (const [key, name] of counts) {
    const count = fields[key];
    if (count === undefined && (key === 'inputTokens' || key === 'outputTokens')) return invalid(name, 'is required');
    if (count !== undefined && !(Number.isInteger(count) && count >= 0 && count <= MAX_TOKENS))
      return invalid(name, TOKENS_RULE);
  }
  const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = fields;
  if (cacheReadTokens + cacheWriteTokens > inputTokens)
    return invalid('input_tokens', 'include those that were read from a cache or written to it');
  const tokens = {
    model,
    provider: provider === '' ? undefined : provider,
    inputTokens,
    outputTokens,
    cacheReadTokens,
    cacheWriteTokens,
  };
  return ok({ costMicroUsd: 0, tokens });
}

/** Faults: `unknown_model`, `invalid_argument`. */
export async function priced(link: Link, spent: Spent): Promise<Result<Spent, Fault>> {
  const { tokens } = spent;
  if (tokens === undefined) return ok(spent);
  const found = await link.call('priceTokens', { tokens });
  return found.ok ? ok({ costMicroUsd: found.value.costMicroUsd, tokens }) : found;
}

/** The cost to state in an answer: none if the caller has named it. */
export const pricedUsd = (spent: Spent | undefined): number | undefined =>
  spent?.tokens === undefined ? undefined : microToUsd(spent.costMicroUsd);

/** The note for the record of a completion. */
export const noteOf = (spent: Spent | undefined): Pick<Completion, 'priced'> =>
  spent?.tokens === undefined ? {} : { priced: { tokens: spent.tokens, costMicroUsd: spent.costMicroUsd } };
