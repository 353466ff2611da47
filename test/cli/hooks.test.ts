/** `svc hooks`, in a home of its own. */
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createCliHome } from '../support/cli.ts';
import { freePort } from '../support/free-port.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

const TOKEN = 'token-of-coder-0123456789-0123456789';

const FILES: Readonly<Record<string, string>> = {
  'claude-code': '.claude/settings.json',
  codex: '.codex/config.toml',
  cursor: '.cursor/hooks.json',
  copilot: '.copilot/hooks/hooks.json',
  gemini: '.gemini/settings.json',
};
const TOOLS = Object.keys(FILES);

/** Settings that a user had before, in a layout that no program would write. */
const EXISTING: Readonly<Record<string, string>> = {
  'claude-code':
    '{"model": "opus",\n    "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}]}}',
  codex: '# mine\nmodel = "o4" # keep\n\n[[hooks.PreToolUse]]\nhooks = [{ type = "command", command = "true" }]',
  cursor: '{"version": 1, "hooks": {"beforeShellExecution": [{"command": "true"}], "stop": []}}\n\n',
  copilot: '{"version":1,"hooks":{"preToolUse":[{"type":"command","bash":"true"}]}}',
  gemini: '{\n\t"theme": "dark",\n\t"hooks": { "enabled": true }\n}',
};

function openHome() {
  const cli = createCliHome();
  onTestFinished(cli.remove);
  const { home } = cli;
  return {
    path: (tool: string): string => join(home, FILES[tool]!),
    read: (tool: string): string => readFileSync(join(home, FILES[tool]!), 'utf8'),
    write(tool: string, text: string): void {
      mkdirSync(dirname(join(home, FILES[tool]!)), { recursive: true });
      writeFileSync(join(home, FILES[tool]!), text, { mode: 0o640 });
    },
    svc: (args: readonly string[], input = '', token = TOKEN) =>
      cli.run(['hooks', ...args], { env: { SVC_AGENT_TOKEN: token }, input }),
  };
}

const valueOf = (tool: string, text: string): any => (tool === 'codex' ? parse(text) : JSON.parse(text));

let gateway: GatewayHere;

describe('svc hooks', () => {
  beforeAll(async () => {
    gateway = await startGatewayHere();
    const agent = { org_id: 'acme', team_id: 'dev', agent_id: 'coder' };
    await gateway.call('POST', '/api/v1/agents', { agent, credential_token: TOKEN });
  });
  afterAll(() => gateway.stop());

  test.each(TOOLS)('%s: installs once, blocks without a gateway, and restores every byte', async (tool) => {
    const home = openHome();
    home.write(tool, EXISTING[tool]!);
    expect((await home.svc(['doctor', tool])).status).toBe(1);
    expect((await home.svc(['install', tool, '--url', gateway.url, '--agent', 'acme/dev/coder'])).status).toBe(0);
    const installed = home.read(tool);
    expect(installed).not.toContain(TOKEN);
    expect(installed).toContain(gateway.url);
    expect(statSync(home.path(tool)).mode & 0o777).toBe(0o640);
    const before = valueOf(tool, EXISTING[tool]!);
    for (const [event, hooks] of Object.entries(before.hooks))
      if (Array.isArray(hooks))
        for (const hook of hooks) expect(valueOf(tool, installed).hooks[event]).toContainEqual(hook);
    expect(await home.svc(['doctor', tool])).toMatchObject({ status: 0 });
    await home.svc(['install', tool, '--url', gateway.url, '--agent', 'acme/dev/coder']);
    expect(home.read(tool)).toBe(installed);
    expect((await home.svc(['uninstall', tool])).status).toBe(0);
    expect(home.read(tool)).toBe(EXISTING[tool]);
    expect((await home.svc(['doctor', tool])).status).toBe(1);
  });

  test.each(TOOLS)('%s: names a policy to start with, which is there', async (tool) => {
    const { stderr } = await openHome().svc(['install', tool]);
    const path = /A policy to start with: (.+)/.exec(stderr)?.[1] ?? '';
    expect(path.endsWith(join('examples', 'policies', `${tool}.yaml`))).toBe(true);
    expect(readFileSync(path, 'utf8')).toContain('rules:');
  });

  test.each(TOOLS)('%s: a file that was not there is gone afterwards', async (tool) => {
    const home = openHome();
    expect((await home.svc(['install', tool])).status).toBe(0);
    expect((await home.svc(['uninstall', tool])).status).toBe(0);
    expect(existsSync(home.path(tool))).toBe(false);
  });

  test.each([
    ['claude-code', '{ // a comment\n}'],
    ['claude-code', '{"hooks": {"PreToolUse": {}}}'],
    ['codex', 'model = '],
    ['codex', 'hooks = {}'],
    ['cursor', '[]'],
    ['gemini', '{"hooks": []}'],
  ])('%s: a file that it cannot use stays as it is: %s', async (tool, text) => {
    const home = openHome();
    home.write(tool, text);
    expect(await home.svc(['install', tool])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(FILES[tool]!),
    });
    expect(home.read(tool)).toBe(text);
  });

  test('keep later changes of the user when the hooks are removed', async () => {
    const home = openHome();
    home.write('claude-code', EXISTING['claude-code']!);
    await home.svc(['install', 'claude-code']);
    home.write('claude-code', home.read('claude-code').replace('opus', 'sonnet'));
    await home.svc(['uninstall', 'claude-code']);
    const { model, hooks } = JSON.parse(home.read('claude-code'));
    expect({ model, hooks }).toEqual({ model: 'sonnet', hooks: JSON.parse(EXISTING['claude-code']!).hooks });
  });

  test.each([
    ['claude-code', (text: string) => text.replace(/,\s*"onFailure": "block"/, '')],
    ['claude-code', (text: string) => text.replace('{', '{"disableAllHooks": true,')],
    ['codex', (text: string) => text.replaceAll(' || exit 2', '')],
    ['codex', (text: string) => `features = { hooks = false }\n${text}`],
    ['cursor', (text: string) => text.replaceAll('"failClosed": true', '"failClosed": false')],
    ['gemini', (text: string) => text.replaceAll('|| exit 2', '|| true')],
  ])('doctor finds that %s would run its tools without the gateway', async (tool, spoil) => {
    const home = openHome();
    await home.svc(['install', tool, '--url', gateway.url]);
    expect((await home.svc(['doctor', tool])).status).toBe(0);
    const spoiled = spoil(home.read(tool));
    expect(spoiled).not.toBe(home.read(tool));
    home.write(tool, spoiled);
    // With Codex, exit status 2 of the command itself already blocks; but not that of a shell that does not find it.
    if (tool === 'codex' && !spoiled.includes('features')) home.write(tool, spoiled.replaceAll('/main.js', '/gone.js'));
    expect((await home.svc(['doctor', tool])).status).toBe(1);
  });

  const problem = (text: string) => ({ status: 1, stderr: expect.stringContaining(text) });
  const examinations = (tool: string) => {
    const home = openHome();
    return async (url: string, token = TOKEN, ...more: readonly string[]) => {
      await home.svc(['uninstall', tool]);
      await home.svc(['install', tool, '--url', url, ...more]);
      return home.svc(['doctor', tool], '', token);
    };
  };

  test.each(TOOLS)('doctor asks the gateway as %s does, with the token', async (tool) => {
    const examined = examinations(tool);
    expect(await examined(gateway.url)).toMatchObject({
      status: 0,
      stderr: expect.stringContaining('as acme/dev/coder'),
    });
    expect(await examined(gateway.url, 'x')).toMatchObject(problem('does not know the token'));
    expect((await examined(gateway.url, ADMIN_KEY, '--agent', 'acme/dev/coder')).status).toBe(0);
  });

  test('doctor says what is wrong with the address or the credential', async () => {
    const examined = examinations('claude-code');
    expect(await examined(`http://${gateway.grpc}`)).toMatchObject(problem("as the gateway's gRPC port does"));
    expect(await examined(`http://127.0.0.1:${await freePort()}`)).toMatchObject(problem('no gateway answers there'));
    expect(await examined(gateway.url, '')).toMatchObject(problem('SVC_AGENT_TOKEN is not set here'));
    expect(await examined(gateway.url, TOKEN, '--agent', 'acme/dev/other')).toMatchObject(
      problem('is that of acme/dev/coder, and the hooks ask as acme/dev/other'),
    );
    expect(await examined(gateway.url, ADMIN_KEY)).toMatchObject(problem('is an API key'));
    const made = { name: 'globex', scopes: ['write'], org_id: 'globex' };
    const { key } = (await gateway.call('POST', '/api/v1/iam/api-keys', made)).body;
    expect(await examined(gateway.url, key, '--agent', 'acme/dev/coder')).toMatchObject(
      problem('does not take a check for acme/dev/coder'),
    );
  });

  test('doctor says which hook fired last to who may read the log, and no dry run', async () => {
    const home = openHome();
    const agent = { org_id: 'acme', team_id: 'dev', agent_id: 'fired' };
    const { credential_token: token } = (await gateway.call('POST', '/api/v1/agents', { agent })).body;
    await home.svc(['install', 'claude-code', '--url', gateway.url]);
    const examined = (...more: readonly string[]) => home.svc(['doctor', 'claude-code', ...more], '', token);
    const asAdmin = ['--api-url', gateway.url, '--api-key', ADMIN_KEY];
    expect(await examined()).toMatchObject({ status: 0, stderr: expect.stringContaining('fired last, log in') });
    const wrong = await examined('--api-url', gateway.url, '--api-key', 'wrong');
    expect(wrong).toMatchObject({ status: 0, stderr: expect.stringContaining('fired last, log in') });
    expect(await examined(...asAdmin)).toMatchObject({
      stderr: expect.stringContaining('No hook of it has fired yet'),
    });
    const tool = { tool_name: 'Bash', tool_input: { command: 'git status' }, tool_use_id: 'u' };
    await gateway.call(
      'POST',
      '/api/v1/hooks/claude-code',
      { session_id: 's', cwd: '/repo', hook_event_name: 'PreToolUse', ...tool },
      token,
    );
    expect((await examined(...asAdmin)).stderr).toMatch(
      /fired last at \S+: process\.exec git status, \w+ \(entry \d+\)/,
    );
  });

  test('an agent that it does not know is a mistake', async () => {
    const home = openHome();
    for (const verb of ['install', 'uninstall', 'doctor', 'run'])
      expect((await home.svc([verb, 'emacs'])).status, verb).toBe(2);
    expect((await home.svc(['install', 'copilot', '--managed'])).status).toBe(2);
  });

  test('run blocks with a reason when the gateway is away, and prints nothing', async () => {
    const event = JSON.stringify({ hook_event_name: 'PreToolUse' });
    expect(await openHome().svc(['run', 'codex', '--url', 'http://127.0.0.1:9'], event)).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringContaining('blocked'),
    });
  });

  test('run answers Copilot, which goes on after a hook that fails, with a denial', async () => {
    const event = JSON.stringify({ toolName: 'bash', toolArgs: '{}' });
    const { status, stdout } = await openHome().svc(['run', 'copilot', '--url', 'http://127.0.0.1:9'], event);
    expect({ status, answer: JSON.parse(stdout) }).toEqual({
      status: 0,
      answer: {
        permissionDecision: 'deny',
        permissionDecisionReason: expect.stringMatching(
          /^svc hooks: blocked, because the gateway at .* cannot be reached: the connection was refused/,
        ),
      },
    });
  });
});
