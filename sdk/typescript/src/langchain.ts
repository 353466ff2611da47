/**
 * LangChain: `createAgent({ tools: guardTools(agent, [pay, refund], { interrupt }), … })`, with `interrupt` of
 * `@langchain/langgraph`.
 *
 * A denied tool's result is what the model reads of it, and the run goes on. An approval interrupts the graph, which
 * needs a checkpointer: resumed by `new Command({ resume: { type: 'approve' } })`, the call is checked again under the
 * same ids, and waits for people where they have not decided; `{ type: 'reject', message }` takes the request back.
 */
import type { AgentClient } from './client.ts';
import { recordTokens } from './tokens.ts';
import { callTool } from './tool-gate.ts';

type Config = {
  readonly toolCall?: { readonly id?: string | undefined } | undefined;
  readonly configurable?: Readonly<Record<string, unknown>> | undefined;
};
type AnyTool = { readonly name: string; _call(args: never, manager?: unknown, config?: Config): Promise<unknown> };

export type GuardToolsOptions = {
  /** The function of `@langchain/langgraph`. Without it, calls wait for people. */
  readonly interrupt?: ((value: never) => unknown) | undefined;
};

/** The tools behind a check of `tool.call` on their names; the arguments are the attributes. */
export const guardTools = <Tool extends { readonly name: string }>(
  agent: AgentClient,
  tools: readonly Tool[],
  options: GuardToolsOptions = {},
): Tool[] => tools.map((tool) => guardedTool(agent, tool as unknown as AnyTool, options) as unknown as Tool);

function guardedTool(agent: AgentClient, tool: AnyTool, { interrupt }: GuardToolsOptions): AnyTool {
  if (typeof tool._call !== 'function')
    throw new TypeError(`${tool.name} runs at the provider, where no check can stop it`);
  // Every way to call a tool ends there, after its arguments were checked.
  const call = async (args: unknown, manager: unknown, config: Config = {}): Promise<unknown> => {
    const callId = config.toolCall?.id ?? crypto.randomUUID();
    const session = String(config.configurable?.thread_id ?? callId);
    const asked = { name: tool.name, args, session, callId };
    const run = (edited: never) => tool._call(edited, manager, config);
    const called = await callTool(agent, asked, run, interrupt === undefined ? 'wait' : 'throw');
    if (called.kind === 'done') return called.value;
    if (called.kind === 'refused' || interrupt === undefined) return called.text;
    const { text: description, approvalId } = called;
    const request = {
      type: 'tool_approval',
      tool_call_id: callId,
      name: tool.name,
      args,
      description,
      approval_id: approvalId,
    };
    // It throws, and in the run after it returns what the user has answered.
    const answer = decisionIn(interrupt(request as never));
    if (answer.type === 'approve') {
      const resumed = await callTool(agent, asked, run, 'wait');
      return resumed.kind === 'done' ? resumed.value : resumed.text;
    }
    await agent.cancelApproval(approvalId).catch(() => false); // it expires
    return answer.message ?? `${tool.name} was rejected by a person. Do not try it again.`;
  };
  return Object.create(tool, { _call: { value: call, writable: true, configurable: true } }) as AnyTool;
}

/** Anything but an approval is a rejection. */
function decisionIn(answer: unknown): { readonly type: 'approve' | 'reject'; readonly message?: string } {
  const { decisions } = Object(answer) as { readonly decisions?: readonly unknown[] };
  const { type, message } = Object(Array.isArray(decisions) ? decisions[0] : answer) as Record<string, unknown>;
  if (answer === true || type === 'approve') return { type: 'approve' };
  return typeof message === 'string' ? { type: 'reject', message } : { type: 'reject' };
}

type Message = {
  readonly id?: string | undefined;
  readonly response_metadata?: Readonly<Record<string, unknown>> | undefined;
  readonly usage_metadata?:
    | {
        readonly input_tokens: number;
        readonly output_tokens: number;
        readonly input_token_details?: { readonly cache_read?: number; readonly cache_creation?: number };
      }
    | undefined;
};

/** Records the tokens of the model's messages, each once: `await countTokens(agent, result.messages)`. */
export async function countTokens(agent: AgentClient, messages: readonly object[]): Promise<void> {
  for (const { id, usage_metadata: usage, response_metadata: about = {} } of messages as readonly Message[])
    if (usage !== undefined)
      await recordTokens(agent, {
        model: String(about.model_name ?? about.model ?? 'unknown'),
        provider: typeof about.model_provider === 'string' ? about.model_provider : undefined,
        inputTokens: usage.input_tokens,
        outputTokens: usage.output_tokens,
        cacheReadTokens: usage.input_token_details?.cache_read,
        cacheWriteTokens: usage.input_token_details?.cache_creation,
        usageId: id,
      });
}
