/** The hooks of Cursor: one event each before shell commands, MCP calls and reads, and `preToolUse` for all tools. */
import { ok } from '../../core/base/result.ts';
import { invalid } from '../../core/fault.ts';
import { halfOf, readInput, readNotice, readText, spanOfCall } from './event-fields.ts';
import { serverOfCommand } from './mcp-names.ts';
import { mcp, subjectsOf, type Use } from './rows.ts';
import type { Fields, HookEvent, HookTool, Read, Subject } from './tool.ts';
import { TOOL_TABLES } from './tool-tables.ts';

const NOTICES: ReadonlySet<string> = new Set([
  ...['sessionStart', 'sessionEnd', 'beforeSubmitPrompt', 'afterFileEdit', 'afterTabFileEdit', 'afterAgentResponse'],
  ...['afterAgentThought', 'subagentStart', 'subagentStop', 'preCompact', 'stop'],
]);

type Event = {
  readonly kind: 'before' | 'after';
  /** Reads the called tool from the fields of the event. */
  readonly use: (body: Fields) => Read<Use>;
  readonly subjects: (use: Use, body: Fields) => Read<readonly Subject[]>;
  /** Whether it has an id that the event after the call has, too. */
  readonly hasId: boolean;
  readonly isOnly?: true;
  readonly hasFailed?: true;
};

const byTable = (use: Use): Read<readonly Subject[]> => subjectsOf(TOOL_TABLES.cursor, use);
const SHELL = { use: usedShell, subjects: byTable, hasId: false };
const MCP = { use: usedTool, subjects: subjectsOfMcp, hasId: false };
const TOOL = { use: usedTool, subjects: byTable, hasId: true };

const EVENTS: ReadonlyMap<string, Event> = new Map([
  ['beforeShellExecution', { kind: 'before', ...SHELL }],
  ['afterShellExecution', { kind: 'after', ...SHELL }],
  ['beforeMCPExecution', { kind: 'before', ...MCP }],
  ['afterMCPExecution', { kind: 'after', ...MCP }],
  ['beforeReadFile', { kind: 'before', use: usedFile, subjects: byTable, hasId: false, isOnly: true }],
  ['beforeTabFileRead', { kind: 'before', use: usedFile, subjects: byTable, hasId: false, isOnly: true }],
  ['preToolUse', { kind: 'before', ...TOOL }],
  ['postToolUse', { kind: 'after', ...TOOL }],
  ['postToolUseFailure', { kind: 'after', ...TOOL, hasFailed: true }],
] as const);

export const cursor: HookTool = {
  name: 'cursor',
  timeoutSecs: 60,
  read: (body) => readNotice(body, NOTICES) ?? readEvent(body),
  answer: (event, answer) => {
    if (event.kind === 'after') return {};
    if (answer.kind !== 'allow')
      return {
        permission: 'deny',
        user_message: answer.reason,
        agent_message:
          answer.kind === 'stop' ? `${answer.reason}. Stop here, and do not try another way.` : answer.reason,
      };
    return { permission: 'allow', ...(answer.input === undefined ? {} : { updated_input: answer.input }) };
  },
};

function readEvent(body: Fields): Read<HookEvent> {
  const name = body.hook_event_name as string;
  const event = EVENTS.get(name); // whatever else it is, it names none
  if (event === undefined) return invalid('hook_event_name', `must be one of ${[...EVENTS.keys()].join(', ')}`);
  const session = readText(body, 'conversation_id');
  if (!session.ok) return session;
  const use = event.use(body);
  if (!use.ok) return use;
  const { tool, input } = use.value;
  const id = readText(body, event.hasId ? 'tool_use_id' : 'generation_id');
  if (!id.ok) return id;
  const subjects = event.subjects(use.value, body);
  if (!subjects.ok) return subjects;
  const call = {
    traceId: halfOf(session.value),
    spanId: event.hasId ? halfOf(id.value) : spanOfCall(id.value, tool, input),
    isNumbered: !event.hasId,
    subjects: subjects.value,
    input,
  };
  if (event.kind === 'before')
    return ok({ kind: 'before', name, call, isEditable: event.hasId, isOnly: event.isOnly === true });
  return ok({ kind: 'after', name, call, hasFailed: event.hasFailed === true });
}

function cwdIn({ cwd, workspace_roots: roots }: Fields): string | undefined {
  if (typeof cwd === 'string' && cwd !== '') return cwd;
  const first: unknown = Array.isArray(roots) ? roots[0] : undefined;
  return typeof first === 'string' ? first : undefined;
}

function usedShell(body: Fields): Read<Use> {
  const command = readText(body, 'command');
  if (!command.ok) return command;
  const cwd = cwdIn(body);
  // The event after the call may not repeat the folder, and the call must be recognized there.
  return ok({ tool: 'Shell', input: { command: command.value }, cwd });
}

function usedTool(body: Fields): Read<Use> {
  const tool = readText(body, 'tool_name');
  if (!tool.ok) return tool;
  const input = readInput(body.tool_input, 'tool_input');
  return input.ok ? ok({ tool: tool.value, input: input.value, cwd: cwdIn(body) }) : input;
}

/** Without the content of the file. */
function usedFile(body: Fields): Read<Use> {
  const path = readText(body, 'file_path');
  return path.ok ? ok({ tool: 'Read', input: { file_path: path.value }, cwd: cwdIn(body) }) : path;
}

/** The server is the host of its URL, or its command. */
function subjectsOfMcp({ tool, input }: Use, { url, command }: Fields): Read<readonly Subject[]> {
  const host = typeof url === 'string' && URL.canParse(url) ? new URL(url).host : '';
  const server = host === '' && typeof command === 'string' ? serverOfCommand(command) : host;
  return mcp(server === '' ? 'unknown' : server, tool, input);
}
