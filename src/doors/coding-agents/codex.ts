/** The hooks of Codex: Claude Code's events, for tools of its own. */
import { decisionOf, readToolUse } from './claude-code.ts';
import { readNotice } from './event-fields.ts';
import type { HookTool } from './tool.ts';
import { TOOL_TABLES } from './tool-tables.ts';

const NOTICES: ReadonlySet<string> = new Set([
  ...['SessionStart', 'SessionEnd', 'UserPromptSubmit', 'Stop', 'SubagentStart', 'SubagentStop', 'PreCompact'],
  ...['PostCompact', 'Notification', 'Interrupt'],
]);

export const codex: HookTool = {
  name: 'codex',
  timeoutSecs: 600,
  read: (body) => readNotice(body, NOTICES) ?? readToolUse(body, TOOL_TABLES.codex),
  // Before a tool, Codex takes `continue: false`, or any member that it does not know, for a failure of the hook, and
  // runs the tool. So an operator's stop is a deny there. After a tool it ends the turn.
  answer: (event, answer) =>
    event.kind === 'after' && answer.kind === 'stop'
      ? { continue: false, stopReason: answer.reason }
      : decisionOf(event, answer),
};
