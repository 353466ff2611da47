/** The files of each coding agent's hook settings, and the settings that make it ask the gateway. */
import { join } from 'node:path';

export type Fields = Readonly<Record<string, unknown>>;

/** The options of `svc hooks install`. */
export type Installation = {
  /** The gateway's address, without a slash at its end. */
  readonly url: string;
  /** `<org>/<team>/<agent>`, which a key needs. */
  readonly agent: string | undefined;
  /** The command line that runs `svc`, quoted for a shell. */
  readonly svc: string;
};

type Places = { readonly home: string; readonly env: NodeJS.ProcessEnv; readonly platform: NodeJS.Platform };

export type CodingAgent = {
  /** As in the path of its route. */
  readonly name: string;
  readonly title: string;
  readonly format: 'json' | 'toml';
  userFile(places: Places): string;
  /** The settings that its users cannot change. Undefined where it has none. */
  managedFile(places: Places): string | undefined;
  /** The members beside `hooks` that the file needs. */
  readonly frame: Fields;
  /** The hooks by event. Hooks of the first event decide whether a tool runs. */
  hooks(installation: Installation): Readonly<Record<string, readonly Fields[]>>;
  /** An event as the agent sends it before a tool call, to try the hook with. */
  readonly sample: Fields;
  /** The denial to answer with where the gateway cannot be asked. Undefined: exit status 2 blocks, and why is read. */
  readonly denial?: (reason: string) => string;
  /** Steps and facts for its user. */
  readonly notes: readonly string[];
};

/** As long as a person may take to approve something. */
const TIMEOUT_SECS = 600;

/** Quoted for a POSIX shell. */
export const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** The command that asks the gateway. Whatever goes wrong, down to a `svc` that is gone, must not end as a success. */
const commandOf = (tool: string, { svc, url, agent }: Installation, orElse = 'exit 2'): string =>
  `${svc} hooks run ${tool} --url ${quoted(url)}${agent === undefined ? '' : ` --agent ${quoted(agent)}`} --timeout ${TIMEOUT_SECS} || ${orElse}`;

const inSystem = ({ platform, env }: Places, linux: string, mac: string, windows: string): string =>
  platform === 'darwin'
    ? join('/Library/Application Support', mac)
    : platform === 'win32'
      ? join(env.ProgramData ?? 'C:\\ProgramData', windows)
      : join('/etc', linux);

const SHELL_INPUT = { tool_name: 'Bash', tool_input: { command: 'true' } };
const CLAUDE_SAMPLE = {
  session_id: 'svc-hooks-doctor',
  cwd: '/',
  hook_event_name: 'PreToolUse',
  tool_use_id: 'probe',
  ...SHELL_INPUT,
};

const claudeHook = ({ url, agent }: Installation): Fields => ({
  type: 'http',
  url: `${url}/api/v1/hooks/claude-code`,
  timeout: TIMEOUT_SECS,
  headers: {
    // The agent puts the token in: it is not in the file.
    Authorization: 'Bearer $SVC_AGENT_TOKEN',
    'x-svc-hook-timeout': String(TIMEOUT_SECS),
    ...(agent === undefined ? {} : { 'x-svc-agent': agent }),
  },
  allowedEnvVars: ['SVC_AGENT_TOKEN'],
});

const claudeCode: CodingAgent = {
  name: 'claude-code',
  title: 'Claude Code',
  format: 'json',
  userFile: ({ home, env }) => join(env.CLAUDE_CONFIG_DIR || join(home, '.claude'), 'settings.json'),
  managedFile: (places) =>
    places.platform === 'win32'
      ? join(places.env.ProgramFiles ?? 'C:\\Program Files', 'ClaudeCode', 'managed-settings.json')
      : inSystem(places, 'claude-code/managed-settings.json', 'ClaudeCode/managed-settings.json', ''),
  frame: {},
  hooks: (installation) => ({
    // Without `onFailure`, a gateway that is away or answers 500 lets the tool run.
    PreToolUse: [{ matcher: '*', hooks: [{ ...claudeHook(installation), onFailure: 'block' }] }],
    PostToolUse: [{ matcher: '*', hooks: [claudeHook(installation)] }],
    PostToolUseFailure: [{ matcher: '*', hooks: [claudeHook(installation)] }],
  }),
  sample: CLAUDE_SAMPLE,
  notes: ['Needs Claude Code 2.1.295 or later: earlier ones run the tool when the gateway is away.'],
};

const codexHooks = (installation: Installation): readonly Fields[] => [
  { hooks: [{ type: 'command', command: commandOf('codex', installation), timeout: TIMEOUT_SECS }] },
];

const codex: CodingAgent = {
  name: 'codex',
  title: 'Codex',
  format: 'toml',
  userFile: ({ home, env }) => join(env.CODEX_HOME || join(home, '.codex'), 'config.toml'),
  managedFile: (places) =>
    inSystem(places, 'codex/requirements.toml', 'Codex/requirements.toml', 'OpenAI\\Codex\\requirements.toml'),
  frame: {},
  hooks: (installation) => ({ PreToolUse: codexHooks(installation), PostToolUse: codexHooks(installation) }),
  sample: CLAUDE_SAMPLE,
  notes: [
    'Codex runs hooks of a user only once they are reviewed: start it and trust them with /hooks. Managed ones need no review.',
  ],
};

const cursorHook = (installation: Installation): Fields => ({
  command: commandOf('cursor', installation),
  timeout: TIMEOUT_SECS,
});

const cursor: CodingAgent = {
  name: 'cursor',
  title: 'Cursor',
  format: 'json',
  userFile: ({ home }) => join(home, '.cursor', 'hooks.json'),
  managedFile: (places) => inSystem(places, 'cursor/hooks.json', 'Cursor/hooks.json', 'Cursor\\hooks.json'),
  frame: { version: 1 },
  hooks: (installation) => {
    const gate = { ...cursorHook(installation), failClosed: true };
    const report = cursorHook(installation);
    // Shell commands, reads and MCP calls have events of their own, which say more.
    const matcher = '^(?!Shell$|Read$|MCP:)';
    return {
      beforeShellExecution: [gate],
      beforeMCPExecution: [gate],
      beforeReadFile: [gate],
      beforeTabFileRead: [gate],
      preToolUse: [{ ...gate, matcher }],
      afterShellExecution: [report],
      afterMCPExecution: [report],
      postToolUse: [{ ...report, matcher }],
      postToolUseFailure: [{ ...report, matcher }],
    };
  },
  sample: {
    conversation_id: 'svc-hooks-doctor',
    generation_id: 'probe',
    hook_event_name: 'beforeShellExecution',
    command: 'true',
    cwd: '/',
  },
  notes: [],
};

const copilotDenial = (reason: string): string =>
  JSON.stringify({ permissionDecision: 'deny', permissionDecisionReason: reason });
/** The answer if `svc` itself does not start. */
const COPILOT_DENY = `echo '${copilotDenial('the gateway cannot be asked')}'`;
const copilotHook = (installation: Installation): Fields => ({
  type: 'command',
  // Copilot goes on after a hook that fails, so that a failure is an answer, too.
  bash: commandOf('copilot', installation, COPILOT_DENY),
  timeoutSec: TIMEOUT_SECS,
});

const copilot: CodingAgent = {
  name: 'copilot',
  title: 'GitHub Copilot',
  format: 'json',
  userFile: ({ home, env }) => join(env.COPILOT_HOME || join(home, '.copilot'), 'hooks', 'hooks.json'),
  managedFile: () => undefined,
  frame: { version: 1 },
  hooks: (installation) => ({ preToolUse: [copilotHook(installation)], postToolUse: [copilotHook(installation)] }),
  denial: copilotDenial,
  sample: { sessionId: 'svc-hooks-doctor', timestamp: 0, cwd: '/', toolName: 'bash', toolArgs: '{"command":"true"}' },
  notes: [
    'For the cloud agent, or a Copilot without hooks of its user, copy the file to .github/hooks/ of the repository.',
  ],
};

const geminiHooks = (installation: Installation): readonly Fields[] => [
  {
    matcher: '*',
    hooks: [
      {
        type: 'command',
        name: 'svc-gateway',
        command: commandOf('gemini', installation),
        timeout: TIMEOUT_SECS * 1000,
      },
    ],
  },
];

const gemini: CodingAgent = {
  name: 'gemini',
  title: 'Gemini CLI',
  format: 'json',
  userFile: ({ home }) => join(home, '.gemini', 'settings.json'),
  managedFile: (places) =>
    inSystem(places, 'gemini-cli/settings.json', 'GeminiCli/settings.json', 'gemini-cli\\settings.json'),
  frame: {},
  hooks: (installation) => ({ BeforeTool: geminiHooks(installation), AfterTool: geminiHooks(installation) }),
  sample: {
    session_id: 'svc-hooks-doctor',
    cwd: '/',
    hook_event_name: 'BeforeTool',
    tool_name: 'run_shell_command',
    tool_input: { command: 'true' },
  },
  notes: [],
};

export const CODING_AGENTS: readonly CodingAgent[] = [claudeCode, codex, cursor, copilot, gemini];

/** Whether a hook, or a group of them, is one that `svc hooks install` has written. */
export const isOurs = (tool: string, hook: unknown): boolean =>
  new RegExp(`/api/v1/hooks/${tool}"| hooks run ${tool} `).test(JSON.stringify(hook));
