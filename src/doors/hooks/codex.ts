/** The hooks of Codex: Claude Code's events, for tools of its own. */
import { decisionOf, readToolUse } from './claude-code.ts';
import { file, patch, search, shell, type ToolTable } from './subjects.ts';
import type { HookTool } from './tool.ts';

const TOOLS: ToolTable = new Map([
  ['Bash', shell('command')],
  ['shell', shell('command')],
  ['exec_command', shell('cmd', 'command')],
  ['apply_patch', patch('command', 'input', 'patch')],
  ['view_image', file('file.read', { path: ['path'] })],
  ['web_search', search],
]);

export const codex: HookTool = {
  name: 'codex',
  timeoutSecs: 600,
  read: (body) => readToolUse(body, TOOLS),
  // Before a tool, Codex takes `continue: false`, or any member that it does not know, for a failure of the hook, and
  // runs the tool. So an operator's stop is a deny there. After a tool it ends the turn.
  answer: (event, answer) =>
    event.kind === 'after' && answer.kind === 'stop'
      ? { continue: false, stopReason: answer.reason }
      : decisionOf(event, answer),
};
