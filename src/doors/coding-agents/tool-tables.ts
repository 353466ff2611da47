/**
 * Maps every tool of every coding agent to an action and a resource, and names the arguments they come from. Tests
 * compare it with the tools that the agents really offer; docs/hook-tools.md is written from it.
 */
import { file, files, patch } from './file-rows.ts';
import {
  either,
  keystrokes,
  mcpResource,
  passing,
  type Row,
  shell,
  shellOf,
  type ToolTable,
  tool,
  toolAnd,
} from './rows.ts';
import { readMany, search } from './search-rows.ts';
import { engine, socket, web, webPrompt } from './web-rows.ts';

type NamedRow = readonly [name: string, row: Row];

const table = (...rows: readonly NamedRow[]): ToolTable => new Map(rows);

/** Tools of Claude Code that reach files, programs and the network. */
function claudeReach(): readonly NamedRow[] {
  const command = passing(
    shell('command'),
    ...['description', 'timeout', 'run_in_background', 'dangerouslyDisableSandbox'],
  );
  const written = { content: ['content'] };
  const edited = { old_string: ['old_string'], new_string: ['new_string'] };
  const published = toolAnd(file('file.read', { path: ['file_path'] }), files('file.read', 'file_paths'), {
    ...file('file.write', { path: ['out_dir'] }),
    becomes: '`file.write` on the folder',
  });
  const script = toolAnd(file('file.read', { path: ['scriptPath'] }));
  const uploaded = toolAnd(file('file.read', { path: ['local_path'] }));
  const entered = toolAnd(file('file.read', { path: ['path'] }));
  const grep = search({ path: ['path'], patterns: ['glob'], hasContent: true });
  return [
    ['Bash', command],
    ['PowerShell', command],
    ['REPL', passing(shell('code'), 'description', 'timeout_ms')],
    ['Monitor', passing(either(shell('command'), socket('ws')), 'description', 'timeout_ms', 'persistent')],
    ['Read', passing(file('file.read', { path: ['file_path'] }), 'offset', 'limit', 'pages', 'allow_large')],
    ['NotebookRead', passing(file('file.read', { path: ['notebook_path'] }), 'cell_id')],
    ['LS', passing(file('file.read', { path: ['path'], isOptional: true }), 'ignore')],
    ['Glob', search({ path: ['path'], patterns: ['pattern'], hasContent: false })],
    [
      'Grep',
      passing(
        grep,
        ...['pattern', 'output_mode', 'type', '-A', '-B', '-C', '-i', '-n', '-o', 'context', 'head_limit', 'offset'],
        'multiline',
      ),
    ],
    ['Write', file('file.write', { path: ['file_path'], contents: written })],
    ['Edit', passing(file('file.edit', { path: ['file_path'], contents: edited }), 'replace_all')],
    ['MultiEdit', file('file.edit', { path: ['file_path'], contents: { edits: ['edits'] } })],
    [
      'NotebookEdit',
      passing(
        file('file.edit', { path: ['notebook_path'], contents: { content: ['new_source'] } }),
        ...['cell_id', 'cell_type', 'edit_mode'],
      ),
    ],
    ['WebFetch', passing(web, 'prompt', 'offset')],
    ['WebSearch', passing(engine, 'query', 'allowed_domains', 'blocked_domains')],
    ['ReadMcpResourceTool', mcpResource('server', 'uri')],
    ['ReadMcpResourceDirTool', mcpResource('server', 'uri')],
    ['ListMcpResourcesTool', tool('server')],
    ['RefreshMcpTools', tool('server')],
    [
      'Artifact',
      passing(
        published,
        ...['action', 'url', 'prompt', 'title', 'description', 'label', 'icon', 'favicon', 'scope', 'limit', 'after'],
        ...['page_token', 'pin', 'force', 'asset_id', 'capabilities', 'contract'],
      ),
    ],
    ['Projects', passing(uploaded, 'method', 'path', 'content', 'present_to_user', 'query', 'n')],
    ['Workflow', passing(script, 'script', 'name', 'description', 'title', 'args', 'resumeFromRunId')],
    ['EnterWorktree', passing(entered, 'name')],
    ['ExitWorktree', tool('action', 'discard_changes')],
  ];
}

/** Tools that change only the agent itself, or that its maker runs. */
function claudeOwn(): readonly NamedRow[] {
  const task = ['subject', 'description', 'activeForm', 'metadata'];
  // Starts another agent, whose own calls are asked for like any other.
  const agent = tool(
    ...['description', 'prompt', 'subagent_type', 'model', 'effort', 'run_in_background', 'name', 'team_name'],
    ...['mode', 'isolation'],
  );
  return [
    ['Agent', agent],
    ['Task', agent],
    ['ToolSearch', tool('query', 'max_results')],
    ['DeferredToolPlaceholder', tool()],
    ['TodoWrite', tool('todos')],
    ['TaskCreate', tool(...task)],
    ['TaskUpdate', tool(...task, 'taskId', 'status', 'owner', 'addBlocks', 'addBlockedBy')],
    ['TaskGet', tool('taskId')],
    ['TaskList', tool()],
    ['TaskStop', tool('task_id', 'shell_id')],
    ['Skill', tool('skill', 'args')],
    ['ListAgents', tool('channel', 'q', 'cursor')],
    ['SendMessage', tool('to', 'summary', 'message', 'notify_when_idle')],
    ['AskUserQuestion', tool('questions', 'answers', 'annotations', 'metadata')],
    ['EnterPlanMode', tool()],
    ['ExitPlanMode', tool('allowedPrompts', 'plan')],
    ['ReportFindings', tool('level', 'findings')],
    ['SendFeedback', tool('type', 'title', 'details', 'area', 'failure_mode', 'task_category')],
    ['ClaudeDesign', tool('operation', 'arguments')],
    ['CronCreate', tool('cron', 'prompt', 'recurring', 'durable')],
    ['CronDelete', tool('id')],
    ['CronList', tool()],
    ['ScheduleWakeup', tool('delaySeconds', 'reason', 'prompt', 'stop', 'noop')],
    ['RemoteTrigger', tool('action', 'trigger_id', 'session_id', 'cursor', 'body')],
    ['ProposeGoal', tool('condition', 'ask_user')],
    ['ProposeSkills', tool('proposals')],
    ['PushNotification', tool('message', 'status')],
    ['ReadNotifications', tool()],
    ['OfferChromeSetup', tool('reason')],
    ['ShowOnboardingRolePicker', tool()],
  ];
}

function codex(): ToolTable {
  const patched = patch('command', 'input', 'patch');
  return table(
    ['Bash', shell('command')],
    ['shell', passing(shell('command'), 'workdir', 'timeout_ms', 'with_escalated_permissions', 'justification')],
    ['local_shell', passing(shell('command'), 'workdir', 'timeout_ms')],
    ['shell_command', passing(shell('command'), 'workdir', 'timeout_ms', 'login', 'justification')],
    [
      'exec_command',
      passing(
        shellOf('shell', 'cmd', 'command'),
        ...['workdir', 'login', 'tty', 'yield_time_ms', 'max_output_tokens', 'justification', 'prefix_rule'],
        'sandbox_permissions',
      ),
    ],
    ['write_stdin', passing(keystrokes('chars'), 'session_id', 'yield_time_ms', 'max_output_tokens')],
    // A program that calls tools: those of its calls that are tools are asked for, too.
    ['exec', shell('code', 'input', 'command')],
    ['wait', tool('cell_id', 'max_tokens', 'terminate', 'yield_time_ms')],
    ['apply_patch', patched],
    ['view_image', file('file.read', { path: ['path'] })],
    ['web_search', passing(engine, 'query', 'action')],
    ['read_mcp_resource', mcpResource('server', 'uri')],
    ['list_mcp_resources', tool('server', 'cursor')],
    ['list_mcp_resource_templates', tool('server', 'cursor')],
    ['tool_search', tool('query', 'limit')],
    ['update_plan', tool('plan', 'explanation')],
    ['create_goal', tool('objective', 'token_budget')],
    ['get_goal', tool()],
    ['update_goal', tool('status')],
    ['curr_time', tool()],
    ['sleep', tool('duration_ms')],
    ['request_permissions', tool('environment_id', 'permissions', 'reason')],
    ['request_user_input', tool('questions')],
    ['request_user_input_async', tool('questions')],
    ['send_message_to_user_async', tool('message')],
    [
      'spawn_agent',
      tool(...['message', 'items', 'model', 'reasoning_effort', 'fork_context', 'fork_turns', 'task_name']),
    ],
    ['send_input', tool('target', 'message', 'items', 'interrupt')],
    ['send_message', tool('target', 'message')],
    ['followup_task', tool('target', 'message')],
    ['interrupt_agent', tool('target')],
    ['close_agent', tool('target')],
    ['resume_agent', tool('id')],
    ['wait_agent', tool('targets', 'timeout_ms')],
    ['list_agents', tool('path_prefix')],
  );
}

function cursor(): ToolTable {
  const path = ['file_path', 'path', 'target_file'];
  const content = ['content', 'contents'];
  const edited = { old_string: ['old_string'], new_string: ['new_string'], code_edit: ['code_edit'] };
  const folder = ['path', 'target_directory'];
  return table(
    ['Shell', passing(shell('command'), 'working_directory', 'description', 'is_background', 'timeout')],
    ['Read', passing(file('file.read', { path }), 'offset', 'limit')],
    ['Grep', passing(search({ path: folder, patterns: ['glob'], hasContent: true }), 'pattern', 'output_mode', 'type')],
    ['Glob', search({ path: folder, patterns: ['pattern', 'glob_pattern'], hasContent: false })],
    ['LS', passing(file('file.read', { path: [...path, 'target_directory'], isOptional: true }), 'ignore_globs')],
    ['SemanticSearch', passing(search({ path: ['target_directories'], patterns: [], hasContent: true }), 'query')],
    ['Write', file('file.write', { path, contents: { content } })],
    ['Delete', file('file.write', { path })],
    ['StrReplace', passing(file('file.edit', { path, contents: edited }), 'replace_all')],
    ['Edit', passing(file('file.edit', { path, contents: edited }), 'instructions')],
    ['TabWrite', file('file.edit', { path, contents: { edits: ['edits'], content } })],
    ['WebFetch', web],
    ['WebSearch', passing(engine, 'search_term', 'query')],
  );
}

function gemini(): ToolTable {
  const path = ['file_path', 'absolute_path', 'path'];
  const folder = ['dir_path', 'path'];
  const edited = { old_string: ['old_string'], new_string: ['new_string'] };
  const grep = (patterns: readonly string[]): Row =>
    passing(
      search({ path: folder, patterns, hasContent: true }),
      ...['pattern', 'exclude_pattern', 'names_only', 'max_matches_per_file', 'total_max_matches', 'case_sensitive'],
      ...['fixed_strings', 'context', 'before', 'after', 'no_ignore'],
    );
  const task = ['title', 'description', 'type', 'status', 'dependencies'];
  const wait = 'wait_for_previous';
  return table(
    [
      'run_shell_command',
      passing(
        shell('command'),
        ...['description', 'dir_path', 'directory', 'is_background', 'delay_ms', 'additional_permissions', wait],
      ),
    ],
    ['list_background_processes', tool(wait)],
    ['read_background_output', tool('pid', 'lines', 'delay_ms', wait)],
    ['read_file', passing(file('file.read', { path }), 'start_line', 'end_line', 'offset', 'limit', wait)],
    [
      'read_many_files',
      passing(readMany('include', 'paths'), 'exclude', 'recursive', 'useDefaultExcludes', 'file_filtering_options'),
    ],
    [
      'list_directory',
      passing(file('file.read', { path: folder, isOptional: true }), 'ignore', 'file_filtering_options', wait),
    ],
    [
      'glob',
      passing(
        search({ path: folder, patterns: ['pattern'], hasContent: false }),
        ...['case_sensitive', 'respect_git_ignore', 'respect_gemini_ignore', wait],
      ),
    ],
    ['grep_search', grep(['include_pattern', 'include'])],
    ['search_file_content', grep(['include', 'include_pattern'])],
    ['write_file', passing(file('file.write', { path, contents: { content: ['content'] } }), wait)],
    [
      'replace',
      passing(file('file.edit', { path, contents: edited }), 'instruction', 'allow_multiple', 'expected_replacements'),
    ],
    ['web_fetch', webPrompt('prompt')],
    ['google_web_search', passing(engine, 'query')],
    ['read_mcp_resource', tool('uri')],
    ['list_mcp_resources', tool('serverName')],
    ['get_internal_docs', tool('path')],
    ['activate_skill', tool('name')],
    ['invoke_agent', tool('agent_name', 'prompt', wait)],
    ['complete_task', tool('result')],
    ['ask_user', tool('questions')],
    ['enter_plan_mode', tool('reason')],
    ['exit_plan_mode', tool('plan_filename', 'plan_path')],
    ['update_topic', tool('title', 'summary', 'strategic_intent', wait)],
    ['write_todos', tool('todos')],
    ['save_memory', tool('fact')],
    ['tracker_create_task', tool(...task, 'parentId')],
    ['tracker_update_task', tool(...task, 'id')],
    ['tracker_get_task', tool('id')],
    ['tracker_list_tasks', tool('status', 'type', 'parentId')],
    ['tracker_add_dependency', tool('taskId', 'dependencyId')],
    ['tracker_visualize', tool()],
  );
}

function copilot(): ToolTable {
  const path = ['path', 'file_path', 'filePath'];
  const content = ['file_text', 'content'];
  const edited = { old_string: ['old_str', 'old_string'], new_string: ['new_str', 'new_string'] };
  const command = passing(
    shell('command'),
    ...['description', 'shellId', 'sessionId', 'mode', 'async', 'detach', 'initial_wait', 'timeout'],
  );
  const grep = passing(
    search({ path: ['paths', ...path], patterns: ['glob'], hasContent: true }),
    ...['pattern', 'output_mode', 'type', '-i', '-A', '-B', '-C', '-n', 'head_limit', 'multiline'],
  );
  const typed = passing(keystrokes('input'), 'shellId', 'sessionId', 'delay');
  const ofShell = tool('shellId', 'sessionId', 'delay');
  return table(
    ['bash', command],
    ['powershell', command],
    ['shell', command],
    ['write_bash', typed],
    ['write_powershell', typed],
    ['read_bash', ofShell],
    ['read_powershell', ofShell],
    ['stop_bash', ofShell],
    ['stop_powershell', ofShell],
    ['list_bash', tool()],
    ['list_powershell', tool()],
    ['view', passing(file('file.read', { path }), 'view_range', 'forceReadLargeFiles')],
    ['grep', grep],
    ['rg', grep],
    ['glob', search({ path: ['paths', ...path], patterns: ['pattern'], hasContent: false })],
    ['create', file('file.write', { path, contents: { content } })],
    ['edit', file('file.edit', { path, contents: edited })],
    [
      'str_replace_editor',
      passing(file('file.edit', { path, contents: { content, ...edited } }), 'command', 'insert_line', 'view_range'),
    ],
    ['apply_patch', patch('input', 'patch', 'command')],
    ['web_fetch', passing(web, 'max_length', 'start_index', 'raw')],
    ['fetch', passing(web, 'max_length', 'start_index', 'raw')],
    ['web_search', passing(engine, 'query')],
    ['fetch_copilot_cli_documentation', tool()],
    ['skill', tool('skill')],
    ['sql', tool('description', 'query')],
    ['session_store_sql', tool('description', 'query', 'source')],
    ['task', tool('description', 'prompt', 'agent_type', 'name', 'model', 'reasoning_effort', 'context_tier', 'mode')],
    ['read_agent', tool('agent_id', 'wait', 'timeout', 'since_turn')],
    ['list_agents', tool('include_completed', 'scope')],
    ['write_agent', tool('agent_id', 'agent_ids', 'scope', 'message')],
    ['report_intent', tool('intent')],
    ['update_todo', tool('todos')],
    ['ask_user', tool('question', 'choices')],
  );
}

/** By the name of the route. */
export const TOOL_TABLES: Readonly<Record<'claude-code' | 'codex' | 'cursor' | 'gemini' | 'copilot', ToolTable>> = {
  'claude-code': table(...claudeReach(), ...claudeOwn()),
  codex: codex(),
  cursor: cursor(),
  gemini: gemini(),
  copilot: copilot(),
};
