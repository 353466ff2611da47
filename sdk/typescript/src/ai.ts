/**
 * Vercel AI SDK: `generateText({ tools: guardTools(agent, { pay, refund }), … })`.
 *
 * A denied tool's result is what the model reads of it, and the run goes on. An approval is a `tool-approval-request`:
 * answered with `tool-approval-response`, the call is checked again, and waits for people where they have not decided.
 * Tools without `execute`, of the client or the provider, never pass here.
 */
import type { AgentClient } from './client.ts';
import { recordTokens } from './tokens.ts';
import { type Approvals, callTool, isRefusal, Questions } from './tool-gate.ts';

type CallOptions = { readonly toolCallId: string };
type ToModel = { readonly output: unknown };
type AnyTool = {
  readonly execute?: ((input: never, options: never) => unknown) | undefined;
  readonly needsApproval?: unknown;
  readonly toModelOutput?: ((given: ToModel) => unknown) | undefined;
};
type OwnApproval = boolean | ((input: unknown, options: unknown) => boolean | PromiseLike<boolean>) | undefined;

export type GuardToolsOptions = {
  /** The id of the conversation: half of the ids of its calls. Default: the id of each call. */
  readonly session?: string | undefined;
  readonly approvals?: Approvals | undefined;
};

/** The tools behind a check of `tool.call` on their names; the input is the attributes. */
export function guardTools<Tools extends Readonly<Record<string, object>>>(
  agent: AgentClient,
  tools: Tools,
  options: GuardToolsOptions = {},
): Tools {
  return Object.fromEntries(
    Object.entries(tools).map(([name, tool]) => [name, guardedTool(agent, name, tool as AnyTool, options)]),
  ) as Tools;
}

function guardedTool(
  agent: AgentClient,
  name: string,
  tool: AnyTool,
  { session, approvals = 'native' }: GuardToolsOptions,
): AnyTool {
  const { execute, needsApproval, toModelOutput } = tool;
  if (execute === undefined) return tool;
  const questions = new Questions(agent);
  const callOf = (args: unknown, { toolCallId }: CallOptions) => ({
    name,
    args,
    session: session ?? toolCallId,
    callId: toolCallId,
  });
  return {
    ...tool,
    // The tool's own knows its results only.
    ...(toModelOutput !== undefined && {
      toModelOutput: (given: ToModel): unknown =>
        isRefusal(name, given.output)
          ? { type: 'error-text', value: given.output }
          : Reflect.apply(toModelOutput, tool, [given]),
    }),
    needsApproval: async (input: unknown, call: CallOptions): Promise<boolean> => {
      const own = needsApproval as OwnApproval;
      if (typeof own === 'function' ? await own(input, call) : own === true) return true;
      return approvals === 'native' && (await questions.ask(callOf(input, call)))?.kind === 'pending';
    },
    execute: async (input: unknown, call: CallOptions): Promise<unknown> => {
      const refusal = questions.refusalOf(call.toolCallId);
      if (refusal !== undefined) return refusal;
      const run = (args: never) => Reflect.apply(execute, tool, [args, call]) as unknown;
      const called = await callTool(agent, callOf(input, call), run, 'wait');
      return called.kind === 'done' ? called.value : called.text;
    },
  };
}

type StepEnd = {
  readonly usage: {
    readonly inputTokens?: number | undefined;
    readonly outputTokens?: number | undefined;
    readonly inputTokenDetails?: {
      readonly cacheReadTokens?: number | undefined;
      readonly cacheWriteTokens?: number | undefined;
    };
  };
  readonly response: { readonly id: string; readonly modelId: string };
};

/** Records the tokens of each step: `generateText({ onStepEnd: countTokens(agent), … })`. */
export const countTokens =
  (agent: AgentClient) =>
  async ({ usage, response }: StepEnd): Promise<void> => {
    await recordTokens(agent, {
      model: response.modelId,
      inputTokens: usage.inputTokens ?? 0,
      outputTokens: usage.outputTokens ?? 0,
      cacheReadTokens: usage.inputTokenDetails?.cacheReadTokens,
      cacheWriteTokens: usage.inputTokenDetails?.cacheWriteTokens,
      usageId: response.id,
    });
  };
