/**
 * The hooks as `svc hooks install` writes them, in the coding agents themselves. They are large, and installed by hand
 * in a folder outside of the project:
 *
 *   npm i @anthropic-ai/claude-code-linux-x64@2.1.332 @openai/codex@0.171.0 @google/gemini-cli@0.61.0 @github/copilot@1.0.102
 *   SVC_TEST_CLAUDE=…/claude SVC_TEST_CODEX=…/codex SVC_TEST_GEMINI=…/.bin/gemini SVC_TEST_COPILOT=…/copilot \
 *     npx vitest run test/e2e/coding-agents.test.ts
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { auditEntries } from '../support/audit-log.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startModelServer } from '../support/model-server.ts';

const TOKEN = 'token-of-coder-0123456789-0123456789';
const POLICY = `
name: coding
scope: org:acme
rules:
  - { id: shell, actions: [process.exec], resources: ["*"], effect: allow, reason: fine }
  - { id: no, actions: [process.exec], resources: ["*forbidden*"], effect: deny, reason: it is forbidden }
`;

type CodingAgent = {
  readonly tool: string;
  readonly variable: string;
  readonly args: (modelUrl: string) => readonly string[];
  /** Variables beside those that all get, so that it asks the scripted model. */
  readonly env?: (modelUrl: string) => Readonly<Record<string, string>>;
  /** Below the home directory: settings that are there before ours. */
  readonly settings?: readonly [file: string, settings: object];
};

const AGENTS: readonly CodingAgent[] = [
  { tool: 'claude-code', variable: 'SVC_TEST_CLAUDE', args: () => ['-p', 'go', '--allowedTools', 'Bash'] },
  {
    tool: 'codex',
    variable: 'SVC_TEST_CODEX',
    args: (url) => [
      'exec',
      '--skip-git-repo-check',
      '--dangerously-bypass-hook-trust',
      '--dangerously-bypass-approvals-and-sandbox',
      ...['-c', 'model=scripted', '-c', 'model_provider=scripted'],
      ...[
        '-c',
        `model_providers.scripted={name="s",base_url="${url}/v1",wire_api="responses",env_key="OPENAI_API_KEY"}`,
      ],
      'go',
    ],
  },
  {
    tool: 'gemini',
    variable: 'SVC_TEST_GEMINI',
    args: () => ['-m', 'gemini-2.5-flash', '--yolo', '--skip-trust', '-p', 'go'],
    env: (url) => ({ GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: url }),
    settings: [
      '.gemini/settings.json',
      { security: { auth: { selectedType: 'gemini-api-key' } }, general: { enableAutoUpdate: false } },
    ],
  },
  {
    tool: 'copilot',
    variable: 'SVC_TEST_COPILOT',
    args: () => ['-p', 'go', '--allow-all-tools'],
    env: (url) => ({ COPILOT_OFFLINE: 'true', COPILOT_PROVIDER_BASE_URL: `${url}/v1`, COPILOT_MODEL: 'scripted' }),
  },
];

let gateway: TestGateway;

describe('coding agents', () => {
  beforeAll(async () => {
    const policies = mkdtempSync(join(inject('scratch'), 'agents-'));
    writeFileSync(join(policies, 'coding.yaml'), POLICY);
    gateway = await startTestGateway({ env: { SVC_POLICY_PATH: policies } });
    const agent = { org_id: 'acme', team_id: 'dev', agent_id: 'coder' };
    await gateway.call('POST', '/api/v1/agents', { agent, credential_token: TOKEN });
  });
  afterAll(() => gateway.stop());

  for (const { tool, variable, args, env: more, settings } of AGENTS) {
    const binary = process.env[variable] ?? '';
    if (binary === '') console.log(`${tool} is not tried: ${variable} names no binary`);

    /** Whether the command ran, and what the model got to read as its result. */
    const attempt = async (word: string, url: string, token: string) => {
      const home = mkdtempSync(join(inject('scratch'), 'home-'));
      const work = join(home, 'work');
      mkdirSync(work);
      const file = join(work, word);
      const model = await startModelServer(`touch ${file}`);
      const env = {
        PATH: process.env.PATH,
        HOME: home,
        SVC_AGENT_TOKEN: token,
        IS_SANDBOX: '1',
        OPENAI_API_KEY: 'none',
        ANTHROPIC_API_KEY: 'none',
        ANTHROPIC_BASE_URL: model.url,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        ...more?.(model.url),
      };
      if (settings !== undefined) {
        const path = join(home, settings[0]);
        mkdirSync(dirname(path));
        writeFileSync(path, JSON.stringify(settings[1]));
      }
      const svc = join(PACKAGE_ROOT, 'dist', 'src', 'cli', 'main.js');
      spawnSync(process.execPath, [svc, 'hooks', 'install', tool, '--url', url], { env });
      const child = spawn(binary, args(model.url), { cwd: work, env, stdio: 'ignore', timeout: 60_000 });
      await new Promise((resolve) => child.once('close', resolve));
      model.close();
      return { hasRun: existsSync(file), result: model.results.join('\n') };
    };

    test.skipIf(binary === '')(
      `${tool} runs what is allowed, and its operation completes`,
      { timeout: 90_000 },
      async () => {
        expect(await attempt(`allowed-${tool}`, gateway.url, TOKEN)).toMatchObject({ hasRun: true });
        const entries = auditEntries(gateway.dataDir);
        const allowed = entries.find(({ payload }) => String(payload.resource).endsWith(`allowed-${tool}`));
        expect(allowed).toMatchObject({ event_type: 'ActionAllowed', rule_id: 'shell' });
        const ofOp = entries.filter(({ op_id }) => op_id === allowed?.op_id).map(({ event_type }) => event_type);
        expect(ofOp).toEqual(['ActionAllowed', 'OpCompleted']);
      },
    );

    test.skipIf(binary === '')(`${tool} does not run what is denied, and learns why`, { timeout: 90_000 }, async () => {
      expect(await attempt('forbidden', gateway.url, TOKEN)).toEqual({
        hasRun: false,
        result: expect.stringContaining('it is forbidden'),
      });
    });

    test.skipIf(binary === '')(`${tool} runs nothing with an unknown token`, { timeout: 90_000 }, async () => {
      const { hasRun, result } = await attempt('unknown', gateway.url, 'of-nobody-0123456789-0123456789-01');
      expect({ hasRun, isToldWhy: result.includes('401') }).toEqual({ hasRun: false, isToldWhy: true });
    });

    test.skipIf(binary === '')(`${tool} runs nothing while the gateway is away`, { timeout: 90_000 }, async () => {
      const { hasRun, result } = await attempt('away', 'http://127.0.0.1:9', TOKEN);
      expect({ hasRun, isBlocked: /block/i.test(result) }).toEqual({ hasRun: false, isBlocked: true });
    });
  }
});
