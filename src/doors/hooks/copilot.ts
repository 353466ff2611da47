/** The hooks of GitHub Copilot: `preToolUse` and `postToolUse`, which bodies do not name. */
import { isMapping } from '../../core/base/mapping.ts';
import { ok } from '../../core/base/result.ts';
import { invalid } from '../../core/fault.ts';
import { file, patch, search, shell, subjectsOf, type ToolTable, web } from './subjects.ts';
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

const PATH = ['path', 'file_path', 'filePath'];

const TOOLS: ToolTable = new Map([
  ['bash', shell('command')],
  ['powershell', shell('command')],
  ['shell', shell('command')],
  ['view', file('file.read', { path: PATH })],
  ['grep', file('file.read', { path: PATH, isOptional: true })],
  ['glob', file('file.read', { path: PATH, isOptional: true, patterns: ['pattern'] })],
  ['create', file('file.write', { path: PATH, contents: ['file_text', 'content'] })],
  ['edit', file('file.edit', { path: PATH, contents: ['old_str', 'new_str', 'old_string', 'new_string'] })],
  ['str_replace_editor', file('file.edit', { path: PATH, contents: ['old_str', 'new_str', 'file_text'] })],
  ['apply_patch', patch('input', 'patch', 'command')],
  ['web_fetch', web],
  ['fetch', web],
  ['web_search', search],
]);

export const copilot: HookTool = {
  name: 'copilot',
  timeoutSecs: 30,
  read: readEvent,
  answer: (event, answer) => {
    if (event.kind === 'after') return {};
    if (answer.kind === 'allow')
      return { permissionDecision: 'allow', ...(answer.input === undefined ? {} : { modifiedArgs: answer.input }) };
    return {
      permissionDecision: 'deny',
      permissionDecisionReason:
        answer.kind === 'stop' ? `${answer.reason}. Stop here, and do not try another way.` : answer.reason,
    };
  },
};

/** The event after a call has its result. Without a session, calls in a folder belong together. */
function readEvent(body: Fields): Read<HookEvent> {
  const tool = readText(body, 'toolName');
  if (!tool.ok) return tool;
  const input = readInput(body.toolArgs, 'toolArgs');
  if (!input.ok) return input;
  const cwd = typeof body.cwd === 'string' && body.cwd !== '' ? body.cwd : undefined;
  const session = typeof body.sessionId === 'string' && body.sessionId !== '' ? body.sessionId : undefined;
  if (session === undefined && cwd === undefined) return invalid('cwd', 'must be a non-empty string');
  const subjects = subjectsOf(TOOLS, { tool: tool.value, input: input.value, cwd });
  if (!subjects.ok) return subjects;
  const call = {
    traceId: session === undefined ? `copilot-${halfOf(`folder:${cwd}`)}` : halfOf(session),
    spanId: spanOfCall('', tool.value, input.value),
    isNumbered: true,
    subjects: subjects.value,
    input: input.value,
  };
  if (body.toolResult === undefined && body.error === undefined)
    return ok({ kind: 'before', name: 'preToolUse', call, isEditable: true, isOnly: false });
  return ok({ kind: 'after', name: 'postToolUse', call, hasFailed: hasFailed(body) });
}

function hasFailed({ toolResult, error }: Fields): boolean {
  const { resultType } = isMapping(toolResult) ? toolResult : {};
  return error !== undefined || (resultType !== undefined && resultType !== 'success');
}
