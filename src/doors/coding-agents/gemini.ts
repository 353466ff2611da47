/** The hooks of Gemini CLI: `BeforeTool` and `AfterTool`. */
import { isMapping } from '../../core/base/mapping.ts';
import { ok } from '../../core/base/result.ts';
import { invalid } from '../../core/fault.ts';
import { halfOf, readInput, readNotice, readText, spanOfCall } from './event-fields.ts';
import { mcp, subjectsOf } from './rows.ts';
import type { Fields, HookEvent, HookTool, Read } from './tool.ts';
import { TOOL_TABLES } from './tool-tables.ts';

const NOTICES: ReadonlySet<string> = new Set([
  ...['SessionStart', 'SessionEnd', 'BeforeAgent', 'AfterAgent', 'BeforeModel', 'AfterModel', 'BeforeToolSelection'],
  ...['PreCompress', 'Notification'],
]);

export const gemini: HookTool = {
  name: 'gemini',
  timeoutSecs: 60,
  read: (body) => readNotice(body, NOTICES) ?? readEvent(body),
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
    return invalid('hook_event_name', 'must be BeforeTool, AfterTool or an event that decides nothing');
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
      : subjectsOf(TOOL_TABLES.gemini, use);
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
