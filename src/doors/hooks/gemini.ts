/** The hooks of Gemini CLI: `BeforeTool` and `AfterTool`. */
import { isMapping } from '../../core/base/mapping.ts';
import { ok } from '../../core/base/result.ts';
import { invalid } from '../../core/fault.ts';
import { file, files, mcp, search, shell, subjectsOf, type ToolTable, webPrompt } from './subjects.ts';
import {
  type Fields,
  type HookEvent,
  type HookTool,
  halfOf,
  type Read,
  readInput,
  readText,
  spanOfCall,
} from './tool.ts';

const PATH = ['file_path', 'absolute_path', 'path', 'dir_path'];

const TOOLS: ToolTable = new Map([
  ['run_shell_command', shell('command')],
  ['read_file', file('file.read', { path: PATH })],
  ['read_many_files', files('file.read', 'include', 'paths')],
  ['list_directory', file('file.read', { path: PATH, isOptional: true })],
  ['glob', file('file.read', { path: PATH, isOptional: true, patterns: ['pattern'] })],
  ['search_file_content', file('file.read', { path: PATH, isOptional: true })],
  ['grep_search', file('file.read', { path: PATH, isOptional: true })],
  ['write_file', file('file.write', { path: PATH, contents: ['content'] })],
  ['replace', file('file.edit', { path: PATH, contents: ['old_string', 'new_string'] })],
  ['web_fetch', webPrompt('prompt')],
  ['google_web_search', search],
]);

export const gemini: HookTool = {
  name: 'gemini',
  timeoutSecs: 60,
  read: readEvent,
  answer: (event, answer) => {
    const stop = answer.kind === 'stop' ? { continue: false, stopReason: answer.reason } : {};
    if (event.kind === 'after') return stop;
    if (answer.kind !== 'allow') return { decision: 'deny', reason: answer.reason, ...stop };
    if (answer.input === undefined) return { decision: 'allow' };
    return { decision: 'allow', hookSpecificOutput: { hookEventName: event.name, tool_input: answer.input } };
  },
};

function readEvent(body: Fields): Read<HookEvent> {
  const name = body.hook_event_name;
  if (name !== 'BeforeTool' && name !== 'AfterTool')
    return invalid('hook_event_name', 'must be BeforeTool or AfterTool');
  const session = readText(body, 'session_id');
  if (!session.ok) return session;
  const tool = readText(body, 'tool_name');
  if (!tool.ok) return tool;
  const input = readInput(body.tool_input, 'tool_input');
  if (!input.ok) return input;
  const cwd = typeof body.cwd === 'string' ? body.cwd : undefined;
  const use = { tool: tool.value, input: input.value, cwd };
  // Says of a tool that it is an MCP server's, and which one's.
  const { server_name: server, tool_name: name_ } = isMapping(body.mcp_context) ? body.mcp_context : {};
  const subjects =
    typeof server === 'string' && server !== '' && typeof name_ === 'string'
      ? mcp(server, name_, input.value)
      : subjectsOf(TOOLS, use);
  if (!subjects.ok) return subjects;
  const call = {
    traceId: halfOf(session.value),
    spanId: spanOfCall('', tool.value, input.value),
    isNumbered: true,
    subjects: subjects.value,
    input: input.value,
  };
  if (name === 'BeforeTool') return ok({ kind: 'before', name, call, isEditable: true, isOnly: false });
  return ok({ kind: 'after', name, call, hasFailed: hasFailed(body.tool_response) });
}

const hasFailed = (response: unknown): boolean =>
  isMapping(response) && response.error !== undefined && response.error !== null;
