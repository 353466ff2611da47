/** Reports the tokens of model answers for the adapters of agent frameworks: failures never end the agent's run. */
import type { AgentClient } from './client.ts';
import { warnOf } from './options.ts';
import type { TokenUsage } from './types.ts';

type Counted = TokenUsage & { readonly usageId: string | undefined };

/** Records them once for each id. Failures, such as a model without a price, go to `onWarning`. */
export async function recordTokens(agent: AgentClient, usage: Counted): Promise<void> {
  const { inputTokens, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage;
  const cached = cacheReadTokens + cacheWriteTokens;
  // Some providers count tokens of a cache apart from the others.
  const all = cached > inputTokens ? inputTokens + cached : inputTokens;
  try {
    await agent.recordUsage({ ...usage, inputTokens: all });
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    warnOf(agent, new Error(`the tokens of ${usage.model} are not recorded: ${said}`, { cause: error }));
  }
}
