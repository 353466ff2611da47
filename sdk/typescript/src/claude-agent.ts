/**
 * Claude Agent SDK: `query({ prompt, options: { hooks: guardHooks(agent) } })`.
 *
 * Every tool call is checked before it runs, and reported after. A denial is the hook's own, which the model reads. An
 * approval holds the call, up to the hook's time, and is denied then with its id. Whatever goes wrong, and whatever
 * ends the hook, the tool does not run (`onFailure: 'block'`).
 */
import { attributesOf, restored } from './arguments.ts';
import type { AgentClient } from './client.ts';
import { editedAttributes, editedResult } from './obligations.ts';
import { actionOf, denialText, pendingText, uncheckedText } from './tool-gate.ts';
import type { CheckAnswer } from './types.ts';

type Input = {
  readonly session_id: string;
  readonly hook_event_name: string;
  readonly tool_name: string;
  readonly tool_input: unknown;
  readonly tool_use_id: string;
  readonly tool_response?: unknown;
  readonly error?: string;
};
type Output = {
  hookSpecificOutput?:
    | {
        hookEventName: 'PreToolUse';
        permissionDecision: 'allow' | 'deny';
        permissionDecisionReason: string;
        updatedInput?: Record<string, unknown>;
      }
    | { hookEventName: 'PostToolUse'; updatedToolOutput: unknown };
};
type Hook = (input: unknown, toolUseId: string | undefined, options: { signal: AbortSignal }) => Promise<Output>;
type Matcher = { hooks: Hook[]; timeout: number; onFailure: 'block' };

export type GuardHooksOptions = {
  /** How long a call waits for people, in seconds. Default 60. */
  readonly timeout?: number | undefined;
};

/** The hooks for `options.hooks`. */
export function guardHooks(
  agent: AgentClient,
  { timeout = 60 }: GuardHooksOptions = {},
): { PreToolUse: Matcher[]; PostToolUse: Matcher[]; PostToolUseFailure: Matcher[] } {
  const running = new Map<string, CheckAnswer>();
  const hooked = (hook: (input: Input, signal: AbortSignal) => Promise<Output>): Matcher[] => [
    {
      hooks: [(input, _id, { signal }) => hook(input as Input, signal)],
      timeout: timeout + GRACE_SECONDS,
      onFailure: 'block',
    },
  ];
  const before = async (input: Input, signal: AbortSignal): Promise<Output> => {
    const { tool_name: name, tool_input: args, tool_use_id: callId } = input;
    try {
      const answer = await admitted(agent, input, signal, timeout * 1000);
      if (answer.decision !== 'allow')
        return decided('deny', answer.decision === 'pending' ? pendingText(name, answer) : denialText(name, answer));
      running.set(callId, answer);
      const attributes = attributesOf(args);
      const edited = restored(args, attributes, editedAttributes(attributes, answer.obligations) ?? {});
      // Without a decision, Claude Code's own permissions still apply.
      return edited === args ? {} : decided('allow', 'allowed with the arguments as policy changes them', edited);
    } catch (error) {
      const begun = running.get(callId);
      running.delete(callId);
      if (begun !== undefined) await agent.complete(begun.opId, { error: String(error) }).catch(() => {});
      return decided('deny', uncheckedText(name, error));
    }
  };
  const after = async (input: Input): Promise<Output> => {
    const { tool_name: name, tool_use_id: callId, tool_response: response, error } = input;
    const answer = running.get(callId);
    running.delete(callId);
    if (answer === undefined) return {};
    try {
      const edited = error === undefined ? editedResult(response, answer.obligations) : response;
      await agent.complete(answer.opId, error === undefined ? {} : { error });
      return edited === response ? {} : rewritten(edited);
    } catch (trouble) {
      // A tool that has failed has no result.
      return error === undefined ? rewritten(`The result of ${name} is withheld: ${String(trouble)}.`) : {};
    }
  };
  return { PreToolUse: hooked(before), PostToolUse: hooked(after), PostToolUseFailure: hooked(after) };
}

/** For the last check, after the wait. */
const GRACE_SECONDS = 15;

const decided = (decision: 'allow' | 'deny', reason: string, updatedInput?: unknown): Output => ({
  hookSpecificOutput: {
    hookEventName: 'PreToolUse',
    permissionDecision: decision,
    permissionDecisionReason: reason,
    ...(updatedInput !== undefined && { updatedInput: updatedInput as Record<string, unknown> }),
  },
});

const rewritten = (updatedToolOutput: unknown): Output => ({
  hookSpecificOutput: { hookEventName: 'PostToolUse', updatedToolOutput },
});

async function admitted(agent: AgentClient, input: Input, signal: AbortSignal, waitMs: number): Promise<CheckAnswer> {
  const { session_id: session, tool_name: name, tool_input: args, tool_use_id: callId } = input;
  const action = await actionOf({ name, args, session, callId });
  const answer = await agent.check(action, { signal });
  if (answer.decision !== 'pending' || answer.approvalId === undefined) return answer;
  const late = AbortSignal.timeout(waitMs);
  try {
    await agent.waitApproval(answer.approvalId, { signal: AbortSignal.any([signal, late]) });
  } catch (error) {
    if (!late.aborted) throw error;
  }
  return agent.check(action, { signal });
}
