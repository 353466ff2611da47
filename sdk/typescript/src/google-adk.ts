/**
 * Google ADK: `new LlmAgent({ tools: guardTools(agent, [pay, refund]), … })`.
 *
 * A denied tool answers `{ error }` with the reason, which the model reads, and the run goes on. An approval is ADK's
 * own confirmation: once the client has answered `adk_request_confirmation`, the call is checked again under the same
 * ids, and waits for people where they have not decided.
 */
import type { AgentClient } from './client.ts';
import { type Approvals, callTool } from './tool-gate.ts';

type Context = {
  readonly functionCallId?: string | undefined;
  readonly toolConfirmation?: { readonly confirmed: boolean } | undefined;
  readonly invocationContext?: { readonly session?: { readonly id?: string } };
  readonly actions?: { skipSummarization?: boolean };
  requestConfirmation(request: { hint?: string; payload?: unknown }): void;
};
type Request = { readonly args: unknown; readonly toolContext: Context };
type AnyTool = { readonly name: string; runAsync(request: never): Promise<unknown> };

export type GuardToolsOptions = { readonly approvals?: Approvals | undefined };

/** The tools behind a check of `tool.call` on their names; the arguments are the attributes. */
export const guardTools = <Tool extends { readonly name: string }>(
  agent: AgentClient,
  tools: readonly Tool[],
  options: GuardToolsOptions = {},
): Tool[] => tools.map((tool) => guardedTool(agent, tool as unknown as AnyTool, options) as unknown as Tool);

function guardedTool(agent: AgentClient, tool: AnyTool, { approvals = 'native' }: GuardToolsOptions): AnyTool {
  const { name } = tool;
  if (typeof tool.runAsync !== 'function') throw new TypeError(`${name} is not a tool that can be guarded`);
  const runAsync = async (request: Request): Promise<unknown> => {
    const { args, toolContext } = request;
    const callId = toolContext.functionCallId ?? crypto.randomUUID();
    const session = toolContext.invocationContext?.session?.id ?? callId;
    const { toolConfirmation: answered } = toolContext;
    const asks = approvals === 'native' && answered === undefined;
    const run = (edited: never) => tool.runAsync({ ...request, args: edited } as never);
    if (answered?.confirmed === false) return { error: `${name} was rejected by a person. Do not try it again.` };
    const called = await callTool(agent, { name, args, session, callId }, run, asks ? 'throw' : 'wait');
    if (called.kind === 'done') return called.value;
    if (called.kind === 'pending') {
      toolContext.requestConfirmation({ hint: called.text, payload: { approval_id: called.approvalId } });
      if (toolContext.actions !== undefined) toolContext.actions.skipSummarization = true;
    }
    return { error: called.text };
  };
  // ADK asks before it takes an answer. The gateway, which is asked again then, knows which calls wait.
  const checkRequireConfirmation = async (): Promise<boolean> => true;
  return Object.create(tool, {
    runAsync: { value: runAsync, writable: true, configurable: true },
    checkRequireConfirmation: { value: checkRequireConfirmation, writable: true, configurable: true },
  }) as AnyTool;
}
