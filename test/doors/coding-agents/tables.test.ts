import { describe, expect, test } from 'vitest';
import { claudeCode } from '../../../src/doors/coding-agents/claude-code.ts';
import { codex } from '../../../src/doors/coding-agents/codex.ts';
import { copilot } from '../../../src/doors/coding-agents/copilot.ts';
import { cursor } from '../../../src/doors/coding-agents/cursor.ts';
import { gemini } from '../../../src/doors/coding-agents/gemini.ts';
import { MAX_FILES } from '../../../src/doors/coding-agents/patch.ts';
import type { Answer, Fields, HookTool, ToolEvent } from '../../../src/doors/coding-agents/tool.ts';

const CLAUDE = { session_id: 's', cwd: '/repo', hook_event_name: 'PreToolUse', tool_use_id: 'id' };
const CURSOR = { conversation_id: 's', generation_id: 'g', workspace_roots: ['/repo'] };
const PRE = { ...CURSOR, hook_event_name: 'preToolUse', tool_use_id: 'id' };
const GEMINI = { session_id: 's', cwd: '/repo', hook_event_name: 'BeforeTool' };

const claude = (tool_name: string, tool_input: object) => ({ ...CLAUDE, tool_name, tool_input });
const pre = (tool_name: string, tool_input: object) => ({ ...PRE, tool_name, tool_input });
const call = (toolName: string, args: object) => ({
  cwd: '/repo',
  sessionId: 's',
  toolName,
  toolArgs: JSON.stringify(args),
});
const asked = (tool_name: string, tool_input: object) => ({ ...GEMINI, tool_name, tool_input });

function eventOf(tool: HookTool, body: Fields): ToolEvent {
  const event = tool.read(body);
  if (!event.ok) throw new Error(JSON.stringify(event.fault));
  if (event.value.kind === 'notice') throw new Error('it is not about a tool');
  return event.value;
}

/** `action resource`, and the names of the attributes. */
const shown = (tool: HookTool, body: Fields): readonly string[] =>
  eventOf(tool, body).call.subjects.map(
    ({ action, resource, attributes }) => `${action} ${resource} ${Object.keys(attributes).join(',')}`,
  );

describe('the tools of coding agents', () => {
  test.each<[name: string, tool: HookTool, body: Fields, subjects: readonly string[]]>([
    [
      'Claude Bash',
      claudeCode,
      claude('Bash', { command: 'ls -l', description: 'd' }),
      ['process.exec ls -l command,description'],
    ],
    ['Claude Read', claudeCode, claude('Read', { file_path: 'a/../b' }), ['file.read /repo/b file_path']],
    [
      'Claude Write',
      claudeCode,
      claude('Write', { file_path: '/x//y', content: 'SECRET' }),
      ['file.write /x/y file_path,content_sha256,content_bytes'],
    ],
    [
      'Claude Edit',
      claudeCode,
      claude('Edit', { file_path: 'e', old_string: 'a', new_string: 'b' }),
      ['file.edit /repo/e file_path,old_string_sha256,old_string_bytes,new_string_sha256,new_string_bytes'],
    ],
    [
      'Claude MultiEdit',
      claudeCode,
      claude('MultiEdit', { file_path: 'e', edits: [] }),
      ['file.edit /repo/e file_path,edits_sha256,edits_bytes'],
    ],
    [
      'Claude NotebookEdit',
      claudeCode,
      claude('NotebookEdit', { notebook_path: 'n', new_source: 'x' }),
      ['file.edit /repo/n notebook_path,content_sha256,content_bytes'],
    ],
    ['Claude Grep', claudeCode, claude('Grep', { pattern: 'x' }), ['file.search /repo pattern']],
    [
      'Claude WebFetch',
      claudeCode,
      claude('WebFetch', { url: 'HTTPS://u:p@Example.com/a/../b?token=1', prompt: 'p' }),
      ['net.connect https://example.com/b prompt,url_sha256,url_bytes,url'],
    ],
    ['Claude WebSearch', claudeCode, claude('WebSearch', { query: 'q' }), ['net.connect WebSearch query']],
    [
      'Claude MCP',
      claudeCode,
      claude('mcp__github__create_issue', { title: 't' }),
      ['mcp.call github/create_issue title'],
    ],
    ['Claude unknown', claudeCode, claude('Task', { prompt: 'p' }), ['tool.call Task prompt']],
    ['Claude, a name of every object', claudeCode, claude('constructor', {}), ['tool.call constructor ']],
    ['Codex Bash', codex, claude('Bash', { command: 'ls' }), ['process.exec ls command']],
    [
      'Codex Bash, a list',
      codex,
      claude('Bash', { command: ['bash', '-lc', 'ls'] }),
      ['process.exec bash -lc ls command'],
    ],
    [
      'Codex apply_patch',
      codex,
      claude('apply_patch', {
        command:
          '*** Begin Patch\n*** Add File: a\n+x\n *** Update File: b \n*** Move to: ../c\n*** Delete File: /d\r\n*** End Patch',
      }),
      [
        'file.write /repo/a change,content_sha256,content_bytes',
        'file.edit /repo/b change,content_sha256,content_bytes',
        'file.write /c change,from,content_sha256,content_bytes',
        'file.write /d change,content_sha256,content_bytes',
      ],
    ],
    ['Codex MCP', codex, claude('mcp__a__b__c', {}), ['mcp.call a/b__c ', 'mcp.call a__b/c ']],
    [
      'Cursor shell',
      cursor,
      { ...CURSOR, hook_event_name: 'beforeShellExecution', command: 'ls', cwd: '/' },
      ['process.exec ls command'],
    ],
    [
      'Cursor MCP by URL',
      cursor,
      {
        ...CURSOR,
        hook_event_name: 'beforeMCPExecution',
        tool_name: 't',
        tool_input: '{"a":1}',
        url: 'https://mcp.example.com/x',
      },
      ['mcp.call mcp.example.com/t a'],
    ],
    [
      'Cursor MCP by command',
      cursor,
      {
        ...CURSOR,
        hook_event_name: 'beforeMCPExecution',
        tool_name: 't',
        tool_input: {},
        command: '/usr/bin/github-mcp --stdio',
      },
      ['mcp.call /usr/bin/github-mcp --stdio/t '],
    ],
    [
      'Cursor read',
      cursor,
      { ...CURSOR, hook_event_name: 'beforeReadFile', file_path: '/repo/a', content: 'SECRET' },
      ['file.read /repo/a file_path'],
    ],
    [
      'Cursor Write',
      cursor,
      pre('Write', { path: 'a', contents: 'SECRET' }),
      ['file.write /repo/a path,content_sha256,content_bytes'],
    ],
    ['Cursor Delete', cursor, pre('Delete', { path: 'a' }), ['file.write /repo/a path']],
    ['Cursor Task', cursor, pre('Task', { x: 1 }), ['tool.call Task x']],
    ['Copilot bash', copilot, call('bash', { command: 'ls' }), ['process.exec ls command']],
    [
      'Copilot create',
      copilot,
      call('create', { path: 'a', file_text: 'SECRET' }),
      ['file.write /repo/a path,content_sha256,content_bytes'],
    ],
    [
      'Copilot edit',
      copilot,
      call('edit', { path: 'a', old_str: 'x', new_str: 'y' }),
      ['file.edit /repo/a path,old_string_sha256,old_string_bytes,new_string_sha256,new_string_bytes'],
    ],
    ['Copilot view', copilot, call('view', { path: '/a' }), ['file.read /a path']],
    ['Gemini shell', gemini, asked('run_shell_command', { command: 'ls' }), ['process.exec ls command']],
    [
      'Gemini write_file',
      gemini,
      asked('write_file', { file_path: 'a', content: 'SECRET' }),
      ['file.write /repo/a file_path,content_sha256,content_bytes'],
    ],
    [
      'Gemini replace',
      gemini,
      asked('replace', { file_path: 'a', old_string: 'x', new_string: 'y' }),
      ['file.edit /repo/a file_path,old_string_sha256,old_string_bytes,new_string_sha256,new_string_bytes'],
    ],
    [
      'Gemini read_many_files',
      gemini,
      asked('read_many_files', { include: ['a', './a', 'b'] }),
      ['file.read /repo/a include', 'file.read /repo/b include'],
    ],
    [
      'Gemini web_fetch',
      gemini,
      asked('web_fetch', { prompt: 'see https://a.example/x?k=1 and http://b.example' }),
      [
        'net.connect https://a.example/x prompt_sha256,prompt_bytes',
        'net.connect http://b.example/ prompt_sha256,prompt_bytes',
      ],
    ],
    [
      'Gemini web_fetch, as far as it reads a URL',
      gemini,
      asked('web_fetch', { prompt: 'see http://a.example"@b.example/ and\nHTTP://a.example/b)/../../c' }),
      [
        'net.connect http://b.example/ prompt_sha256,prompt_bytes',
        'net.connect http://a.example/c prompt_sha256,prompt_bytes',
      ],
    ],
    [
      'Gemini both lists',
      gemini,
      asked('read_many_files', { include: 'a', paths: ['/b'] }),
      ['file.read /repo/a include,paths', 'file.read /b include,paths'],
    ],
    [
      'Codex write_stdin of nothing',
      codex,
      claude('write_stdin', { chars: '', session_id: 1 }),
      ['tool.call write_stdin chars,session_id'],
    ],
    [
      'Gemini glob',
      gemini,
      asked('glob', { pattern: './**', path: '/a' }),
      ['file.search /a pattern,path', 'file.search /a/** pattern,path'],
    ],
    ['equal names', cursor, pre('Read', { path: 'a', target_file: 'a' }), ['file.read /repo/a path,target_file']],
    [
      'Gemini MCP',
      gemini,
      { ...asked('mcp_gh_list', { q: 1 }), mcp_context: { server_name: 'gh', tool_name: 'list' } },
      ['mcp.call gh/list q'],
    ],
  ])('%s', (_, tool, body, subjects) => {
    expect(shown(tool, body)).toEqual(subjects);
    expect(JSON.stringify(eventOf(tool, body).call.subjects)).not.toContain('SECRET');
  });

  test('a session is the trace and a call the span, whatever characters they have', () => {
    expect(eventOf(claudeCode, claude('Bash', { command: 'ls' })).call).toMatchObject({ traceId: 's', spanId: 'id' });
    const odd = { ...claude('Bash', { command: 'ls' }), session_id: 'a:b', tool_use_id: 'x y' };
    const { traceId, spanId } = eventOf(claudeCode, odd).call;
    expect(traceId).toMatch(/^[0-9a-f]{32}$/);
    expect(spanId).toMatch(/^[0-9a-f]{32}$/);
    expect(traceId).not.toBe(spanId);
  });

  test('without ids, the event after a call has the span of the one before', () => {
    const shell = { ...CURSOR, command: 'ls', cwd: '/repo' };
    const spans = [
      eventOf(cursor, { ...shell, hook_event_name: 'beforeShellExecution' }),
      eventOf(cursor, { ...shell, hook_event_name: 'afterShellExecution', cwd: undefined, output: 'x', duration: 3 }),
      eventOf(cursor, { ...shell, hook_event_name: 'beforeShellExecution', command: 'ls -l' }),
    ].map(({ call: { spanId } }) => spanId);
    expect(spans[0]).toBe(spans[1]);
    expect(spans[0]).not.toBe(spans[2]);
    expect(spans[0]).toMatch(/^g\./);
    const copied = eventOf(copilot, { ...call('bash', { command: 'ls' }), toolResult: { resultType: 'failure' } });
    expect(copied).toMatchObject({ kind: 'after', hasFailed: true });
    expect(copied.call.spanId).toBe(eventOf(copilot, call('bash', { command: 'ls' })).call.spanId);
  });

  test.each<[problem: string, tool: HookTool, body: Fields, field: string]>([
    ['a home that only the agent knows', claudeCode, claude('Read', { file_path: '~/.ssh/id_rsa' }), 'path'],
    ['white space that the agent cuts off', claudeCode, claude('Read', { file_path: ' /etc/shadow' }), 'path'],
    ['a URL', claudeCode, claude('Read', { file_path: 'file:///etc/shadow' }), 'path'],
    ['a NUL', claudeCode, claude('Read', { file_path: '/a\0b' }), 'path'],
    ['a relative path without a folder', claudeCode, { ...claude('Read', { file_path: 'a' }), cwd: undefined }, 'cwd'],
    ['a relative folder', claudeCode, { ...claude('Read', { file_path: 'a' }), cwd: 'repo' }, 'cwd'],
    ['another path under another name', cursor, pre('Read', { path: 'a', target_file: '/b' }), 'target_file'],
    ['another command', codex, claude('exec_command', { cmd: 'ls', command: ['rm'] }), 'command'],
    ['another patch', copilot, call('apply_patch', { input: '*** Add File: a', patch: '*** Add File: b' }), 'patch'],
    ['a page beside a prompt', gemini, asked('web_fetch', { prompt: 'http://a', url: 'http://b' }), 'url'],
    ...['/etc/*', '../*', 'a/../../*', '{/etc,a}/*', '{.,a}./*', '[.][.]/*', '~/*', 'C:/*', { toString: 1 }].map(
      (pattern): [string, HookTool, Fields, string] => [
        `the pattern ${JSON.stringify(pattern)}`,
        claudeCode,
        claude('Glob', { pattern }),
        'pattern',
      ],
    ),
    ['no path', claudeCode, claude('Write', { content: 'x' }), 'file_path'],
    ['no command', claudeCode, claude('Bash', { command: '' }), 'command'],
    ['a patch without files', codex, claude('apply_patch', { command: '*** Begin Patch' }), 'patch'],
    [
      'a patch of too many files',
      codex,
      claude('apply_patch', {
        command: Array.from({ length: MAX_FILES + 1 }, (_, n) => `*** Add File: ${n}`).join('\n'),
      }),
      'patch',
    ],
    ['no URL', claudeCode, claude('WebFetch', { url: 'http://' }), 'url'],
    ['arguments that are no object', gemini, { ...GEMINI, tool_name: 'x', tool_input: [1] }, 'tool_input'],
    [
      'arguments nested too deep',
      claudeCode,
      claude('x', JSON.parse(`${'{"a":'.repeat(40)}1${'}'.repeat(40)}`)),
      'tool_input',
    ],
    ['an event that nobody knows', claudeCode, { ...CLAUDE, hook_event_name: 'Begin' }, 'hook_event_name'],
    [
      'an event without a tool that has one',
      claudeCode,
      { ...claude('Bash', {}), hook_event_name: 'Stop' },
      'tool_name',
    ],
    ...[claudeCode, codex, cursor, gemini].map((tool): [string, HookTool, Fields, string] => [
      `an event of ${tool.name} that is an object`,
      tool,
      { hook_event_name: { toString: 1 } },
      'hook_event_name',
    ]),
    ['no session', gemini, { ...GEMINI, session_id: '' }, 'session_id'],
    ['no call id', claudeCode, { ...claude('x', {}), tool_use_id: undefined }, 'tool_use_id'],
  ])('%s is refused', (_, tool, body, field) => {
    expect(tool.read(body)).toMatchObject({ ok: false, fault: { kind: 'invalid_argument', field } });
  });

  test('a path on Windows is absolute, with slashes', () => {
    const read = (file_path: string, cwd = 'C:\\repo') =>
      shown(claudeCode, { ...claude('Read', { file_path }), cwd })[0];
    expect(read('a\\..\\b')).toBe('file.read C:/repo/b file_path');
    expect(read('\\windows')).toBe('file.read C:/windows file_path');
    expect(read('D:\\x\\.\\y', '/repo')).toBe('file.read D:/x/y file_path');
  });
});

const ALLOW: Answer = { kind: 'allow', input: undefined };
const EDITED: Answer = { kind: 'allow', input: { command: 'ls' } };
const DENY: Answer = { kind: 'deny', reason: 'no' };
const STOP: Answer = { kind: 'stop', reason: 'halt' };
const hookSpecificOutput = (permissionDecision: string, more: object) => ({
  hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision, ...more },
});

describe('the answers of coding agents', () => {
  const DENIED = hookSpecificOutput('deny', { permissionDecisionReason: 'no' });
  const HALTED = hookSpecificOutput('deny', { permissionDecisionReason: 'halt' });
  const UPDATED = hookSpecificOutput('allow', { updatedInput: { command: 'ls' } });
  const STOPPED = { continue: false, stopReason: 'halt' };
  test.each<[name: string, tool: HookTool, body: Fields, answers: readonly object[]]>([
    ['Claude', claudeCode, claude('Bash', { command: 'x' }), [{}, UPDATED, DENIED, { ...STOPPED, ...HALTED }]],
    // A stop is a deny here: Codex runs the tool on `continue: false`.
    ['Codex', codex, claude('Bash', { command: 'x' }), [{}, UPDATED, DENIED, HALTED]],
    [
      'Cursor',
      cursor,
      pre('Shell', { command: 'x' }),
      [
        { permission: 'allow' },
        { permission: 'allow', updated_input: { command: 'ls' } },
        { permission: 'deny', user_message: 'no', agent_message: 'no' },
        { permission: 'deny', user_message: 'halt', agent_message: 'halt. Stop here, and do not try another way.' },
      ],
    ],
    [
      'Copilot',
      copilot,
      call('bash', { command: 'x' }),
      [
        { permissionDecision: 'allow' },
        { permissionDecision: 'allow', modifiedArgs: { command: 'ls' } },
        { permissionDecision: 'deny', permissionDecisionReason: 'no' },
        { permissionDecision: 'deny', permissionDecisionReason: 'halt. Stop here, and do not try another way.' },
      ],
    ],
    [
      'Gemini',
      gemini,
      asked('run_shell_command', { command: 'x' }),
      [
        { decision: 'allow' },
        { decision: 'allow', hookSpecificOutput: { hookEventName: 'BeforeTool', tool_input: { command: 'ls' } } },
        { decision: 'deny', reason: 'no' },
        { decision: 'deny', reason: 'halt', ...STOPPED },
      ],
    ],
  ])('before a tool of %s', (_, tool, body, answers) => {
    const event = eventOf(tool, body);
    expect([ALLOW, EDITED, DENY, STOP].map((answer) => tool.answer(event, answer))).toEqual(answers);
  });

  test.each<[name: string, tool: HookTool, body: Fields, stop: object]>([
    ['Claude', claudeCode, { ...claude('Bash', { command: 'x' }), hook_event_name: 'PostToolUse' }, STOPPED],
    ['Codex', codex, { ...claude('Bash', { command: 'x' }), hook_event_name: 'PostToolUse' }, STOPPED],
    ['Cursor', cursor, { ...pre('Shell', { command: 'x' }), hook_event_name: 'postToolUse' }, {}],
    ['Copilot', copilot, { ...call('bash', { command: 'x' }), toolResult: {} }, {}],
    ['Gemini', gemini, { ...asked('run_shell_command', { command: 'x' }), hook_event_name: 'AfterTool' }, STOPPED],
  ])('after a tool of %s', (_, tool, body, stop) => {
    const event = eventOf(tool, body);
    expect(tool.answer(event, ALLOW)).toEqual({});
    expect(tool.answer(event, STOP)).toEqual(stop);
  });
});
