/**
 * Mastra: `new Agent({ tools: guardTools(agent, { pay, refund }), … })`.
 *
 * A denied tool's result is what the model reads of it, and the run goes on. People who have to approve it are waited
 * for, up to `deadlines.approvalMs` of the client. Tools without `execute`, of the client, never pass here.
 */
import type { AgentClient } from './client.ts';
import { callTool } from './tool-gate.ts';

type Context = {
  readonly agent?: { readonly toolCallId?: string; readonly threadId?: string } | undefined;
};
type AnyTool = { readonly id?: string; readonly execute?: (input: never, context: never) => unknown };

/** The tools behind a check of `tool.call` on their ids; the input is the attributes. */
export const guardTools = <Tools extends Readonly<Record<string, object>>>(agent: AgentClient, tools: Tools): Tools =>
  Object.fromEntries(
    Object.entries(tools).map(([key, tool]) => [key, guardedTool(agent, key, tool as AnyTool)]),
  ) as Tools;

function guardedTool(agent: AgentClient, key: string, tool: AnyTool): AnyTool {
  const { id: name = key, execute } = tool;
  if (execute === undefined) return tool;
  const guarded = async (args: unknown, context: Context = {}): Promise<unknown> => {
    const callId = context.agent?.toolCallId ?? crypto.randomUUID();
    const session = context.agent?.threadId ?? callId;
    const run = (edited: never) => Reflect.apply(execute, tool, [edited, context]) as unknown;
    const called = await callTool(agent, { name, args, session, callId }, run, 'wait');
    return called.kind === 'done' ? called.value : called.text;
  };
  return Object.create(tool, {
    execute: { value: guarded, writable: true, enumerable: true, configurable: true },
  }) as AnyTool;
}
