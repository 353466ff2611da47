/**
 * OpenAI Agents SDK: `new Agent({ tools: guardTools(agent, [pay, refund]), … })`.
 *
 * A denial is what the model reads as the tool's output, and the run goes on. An approval is an interruption of the
 * run, as that of `needsApproval`: `state.approve(item)` and run again; then the gateway, where people decide, is asked
 * again. Hosted tools, which run at the provider, never pass here.
 */
import type { AgentClient } from './client.ts';
import { recordTokens } from './tokens.ts';
import { type Approvals, callTool, Questions } from './tool-gate.ts';

type Details = { readonly toolCall?: { readonly callId?: string } | undefined };
type FunctionTool = {
  readonly type: 'function';
  readonly name: string;
  readonly invoke: (context: never, input: string, details?: never) => Promise<unknown>;
  readonly needsApproval: (context: never, input: never, callId?: string) => Promise<boolean>;
};

export type GuardToolsOptions = {
  /** The id of the conversation: half of the ids of its calls. Default: the id of each call. */
  readonly session?: string | undefined;
  readonly approvals?: Approvals | undefined;
};

/** How the SDK begins what the model reads of a tool that has thrown. */
const FAILURE = 'An error occurred while running the tool';

/**
 * The tools behind a check of `tool.call` on their names; the arguments are the attributes. Throws a TypeError for a
 * tool that runs at the provider.
 */
export const guardTools = <Tool extends { readonly type: string }>(
  agent: AgentClient,
  tools: readonly Tool[],
  options: GuardToolsOptions = {},
): Tool[] => tools.map((tool) => guardedTool(agent, tool as unknown as FunctionTool, options) as unknown as Tool);

function guardedTool(
  agent: AgentClient,
  tool: FunctionTool,
  { session, approvals = 'native' }: GuardToolsOptions,
): FunctionTool {
  const { name, type, invoke, needsApproval } = tool;
  if (type !== 'function') throw new TypeError(`${name} runs at the provider, where no check can stop it`);
  const questions = new Questions(agent);
  const callOf = (args: unknown, callId: string) => ({ name, args, session: session ?? callId, callId });
  return {
    ...tool,
    needsApproval: async (context, input, callId = ''): Promise<boolean> => {
      if (await needsApproval(context, input, callId)) return true;
      return approvals === 'native' && (await questions.ask(callOf(input, callId)))?.kind === 'pending';
    },
    invoke: async (context, input, details): Promise<unknown> => {
      const callId = (details as Details | undefined)?.toolCall?.callId ?? crypto.randomUUID();
      const refusal = questions.refusalOf(callId);
      if (refusal !== undefined) return refusal;
      const args = parsed(input);
      // The SDK says to the model what is wrong with them, and calls nothing.
      if (args === undefined) return invoke(context, input, details);
      let failure: string | undefined;
      const run = async (edited: never): Promise<unknown> => {
        const result = await invoke(context, edited === args ? input : JSON.stringify(edited), details);
        if (typeof result !== 'string' || !result.startsWith(FAILURE)) return result;
        failure = result;
        throw new Error(result);
      };
      try {
        const called = await callTool(agent, callOf(args, callId), run, 'wait');
        return called.kind === 'done' ? called.value : called.text;
      } catch (error) {
        if (failure !== undefined) return failure;
        throw error;
      }
    },
  };
}

function parsed(input: string): object | undefined {
  try {
    const args: unknown = JSON.parse(input === '' ? '{}' : input);
    return typeof args === 'object' && args !== null && !Array.isArray(args) ? args : undefined;
  } catch {
    return undefined;
  }
}

type ModelEnd = {
  readonly responseId?: string | undefined;
  readonly usage: {
    readonly inputTokens: number;
    readonly outputTokens: number;
    /** An item for each request of the answer. */
    readonly inputTokensDetails?: readonly Readonly<Record<string, number>>[] | undefined;
  };
};

/** Records the tokens of model answers: `await countTokens(agent, 'gpt-5', result.rawResponses)`. */
export async function countTokens(agent: AgentClient, model: string, responses: readonly ModelEnd[]): Promise<void> {
  for (const { responseId, usage } of responses)
    await recordTokens(agent, {
      model,
      inputTokens: usage.inputTokens,
      outputTokens: usage.outputTokens,
      cacheReadTokens: usage.inputTokensDetails?.reduce((sum, { cached_tokens = 0 }) => sum + cached_tokens, 0),
      usageId: responseId,
    });
}
