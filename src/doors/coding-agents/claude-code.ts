/** The hooks of Claude Code: `PreToolUse`, `PostToolUse`, `PostToolUseFailure`. */
import { ok } from '../../core/base/result.ts';
import { invalid } from '../../core/fault.ts';
import { halfOf, readInput, readNotice, readText } from './event-fields.ts';
import { subjectsOf, type ToolTable } from './rows.ts';
import type { Answer, Fields, HookEvent, HookTool, Read, ToolEvent } from './tool.ts';
import { TOOL_TABLES } from './tool-tables.ts';

/** Hooks that hear of something: what they may do about it is not the gateway's to say. */
const NOTICES: ReadonlySet<string> = new Set([
  ...['SessionStart', 'SessionEnd', 'Setup', 'UserPromptSubmit', 'UserPromptExpansion', 'Stop', 'StopFailure'],
  ...[
    'SubagentStart',
    'SubagentStop',
    'Notification',
    'PreCompact',
    'PostCompact',
    'PreModelSwitch',
    'PostModelSwitch',
  ],
  ...['TeammateIdle', 'TaskCreated', 'TaskCompleted', 'Elicitation', 'ElicitationResult', 'ConfigChange'],
  ...['InstructionsLoaded', 'DirectoryAdded', 'CwdChanged', 'FileChanged', 'WorktreeRemove'],
]);

export const claudeCode: HookTool = {
  name: 'claude-code',
  timeoutSecs: 600,
  read: (body) => readNotice(body, NOTICES) ?? readToolUse(body, TOOL_TABLES['claude-code']),
  answer: (event, answer) => ({
    // Unlike a deny alone, this ends the turn of the agent.
    ...(answer.kind === 'stop' ? { continue: false, stopReason: answer.reason } : {}),
    ...decisionOf(event, answer),
  }),
};

/** Claude Code's events and fields, which Codex has taken over. */
export function readToolUse(body: Fields, tools: ToolTable): Read<HookEvent> {
  const name = body.hook_event_name;
  if (name !== 'PreToolUse' && name !== 'PostToolUse' && name !== 'PostToolUseFailure')
    return invalid(
      'hook_event_name',
      'must be PreToolUse, PostToolUse, PostToolUseFailure or an event that decides nothing',
    );
  const session = readText(body, 'session_id');
  if (!session.ok) return session;
  const id = readText(body, 'tool_use_id');
  if (!id.ok) return id;
  const tool = readText(body, 'tool_name');
  if (!tool.ok) return tool;
  const input = readInput(body.tool_input, 'tool_input');
  if (!input.ok) return input;
  const cwd = typeof body.cwd === 'string' ? body.cwd : undefined;
  const subjects = subjectsOf(tools, { tool: tool.value, input: input.value, cwd });
  if (!subjects.ok) return subjects;
  const call = {
    traceId: halfOf(session.value),
    spanId: halfOf(id.value),
    isNumbered: false,
    subjects: subjects.value,
    input: input.value,
  };
  if (name === 'PreToolUse') return ok({ kind: 'before', name, call, isEditable: true, isOnly: false });
  return ok({ kind: 'after', name, call, hasFailed: name === 'PostToolUseFailure' });
}

/**
 * An allow without changes says nothing: `permissionDecision: "allow"` would skip the agent's own question to its user,
 * and is an error for Codex.
 */
export function decisionOf({ kind, name }: ToolEvent, answer: Answer): Fields {
  if (kind === 'after') return {};
  if (answer.kind !== 'allow')
    return {
      hookSpecificOutput: {
        hookEventName: name,
        permissionDecision: 'deny',
        permissionDecisionReason: answer.reason,
      },
    };
  if (answer.input === undefined) return {};
  return { hookSpecificOutput: { hookEventName: name, permissionDecision: 'allow', updatedInput: answer.input } };
}
