import { redactText } from '../audit/redact-text.ts';
import { microToUsd } from '../base/money.ts';
import type { Completion } from '../commands.ts';
import type { TokenUsage } from './price.ts';

/** The audit payload of reported tokens. Callers choose the names. */
export const tokensPayload = (tokens: TokenUsage): Readonly<Record<string, unknown>> => ({
  model: redactText(tokens.model),
  ...(tokens.provider !== undefined && { provider: redactText(tokens.provider) }),
  input_tokens: tokens.inputTokens,
  output_tokens: tokens.outputTokens,
  cache_read_tokens: tokens.cacheReadTokens,
  cache_write_tokens: tokens.cacheWriteTokens,
});

/** The audit payload of a completion; undefined: its agent reported nothing. */
export const completionPayload = (
  outcome: Completion['outcome'],
  error: string | undefined,
  priced: Completion['priced'],
): Readonly<Record<string, unknown>> | undefined =>
  outcome === undefined && priced === undefined
    ? undefined
    : {
        ...(outcome && { outcome }),
        ...(error !== undefined && { error }),
        ...(priced && { cost_usd: microToUsd(priced.costMicroUsd), ...tokensPayload(priced.tokens) }),
      };
