/** The hooks of GitHub Copilot: `preToolUse` and `postToolUse`, which bodies do not name. */
import { isMapping } from '../../core/base/mapping.ts';
import { ok } from '../../core/base/result.ts';
import { invalid } from '../../core/fault.ts';
import { halfOf, readInput, readText, spanOfCall } from './event-fields.ts';
import { subjectsOf } from './rows.ts';
import type { Fields, HookEvent, HookTool, Read } from './tool.ts';
import { TOOL_TABLES } from './tool-tables.ts';

/** Members by which events that are not about a tool are known, since bodies do not name their event. */
const NOTICES = ['source', 'reason', 'prompt', 'error', 'stopReason', 'agentName', 'trigger', 'notificationType'];
const OF_TOOLS = ['toolName', 'toolArgs', 'toolResult', 'tool_name', 'tool_input', 'serverName'];

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
  const notice = OF_TOOLS.some((name) => name in body) ? undefined : NOTICES.find((name) => name in body);
  if (notice !== undefined) return ok({ kind: 'notice', name: notice });
  const tool = readText(body, 'toolName');
  if (!tool.ok) return tool;
  const input = readArguments(tool.value, body.toolArgs);
  if (!input.ok) return input;
  const cwd = typeof body.cwd === 'string' && body.cwd !== '' ? body.cwd : undefined;
  const session = typeof body.sessionId === 'string' && body.sessionId !== '' ? body.sessionId : undefined;
  if (session === undefined && cwd === undefined) return invalid('cwd', 'must be a non-empty string');
  const subjects = subjectsOf(TOOL_TABLES.copilot, { tool: tool.value, input: input.value, cwd });
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

/** A patch is not wrapped in JSON, since its tool takes text. */
const readArguments = (tool: string, args: unknown): Read<Fields> =>
  tool === 'apply_patch' && typeof args === 'string' && !args.trimStart().startsWith('{')
    ? ok({ input: args })
    : readInput(args, 'toolArgs');

function hasFailed({ toolResult, error }: Fields): boolean {
  const { resultType } = isMapping(toolResult) ? toolResult : {};
  return error !== undefined || (resultType !== undefined && resultType !== 'success');
}
