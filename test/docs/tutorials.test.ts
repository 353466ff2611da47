/** The commands of the tutorials, typed one after the other at a gateway with the policies that they name. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';

const PAGE = readFileSync(join(PACKAGE_ROOT, 'docs', 'tutorials.md'), 'utf8');
const SCRIPTED = join(PACKAGE_ROOT, 'test', 'mcp', 'scripted-server.mjs');

/** Shell blocks of a tutorial, in their order. */
function blocksOf(heading: string): readonly string[] {
  const [, rest = ''] = PAGE.split(`\n## ${heading}\n`);
  const section = rest.split('\n## ')[0]!;
  return [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block!);
}

/** The line that starts the gateway names the policy. */
const policyOf = (blocks: readonly string[]): string =>
  blocks.map((block) => /^SVC_POLICY_PATH=(\S+) npm start$/m.exec(block)?.[1]).find((path) => path !== undefined)!;

/** In place of the dots, the token that the line before has shown. */
const withTokens = (block: string): string =>
  block
    .replace(/^(svc agents register \S+) +#.*$/m, `TOKEN=$($1 -o json | grep -oP '"credential_token": *"\\K[^"]+')`)
    .replace('SVC_AGENT_TOKEN=…', 'SVC_AGENT_TOKEN=$TOKEN');

describe('tutorials', () => {
  let folder: string;
  let gateway: TestGateway | undefined;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'svc-tutorials-'));
    mkdirSync(join(folder, 'bin'));
    symlinkSync(join(PACKAGE_ROOT, 'dist', 'src', 'cli', 'main.js'), join(folder, 'bin', 'svc'));
    // The clients are not installed; the guard, the hook and the gateway are the real ones.
    writeFileSync(join(folder, 'bin', 'npx'), `#!/bin/sh\nexec "${process.execPath}" "${SCRIPTED}"\n`, { mode: 0o755 });
    symlinkSync(join(PACKAGE_ROOT, 'examples'), join(folder, 'examples'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Types the lines before the start of the gateway, starts it with that policy, and types the others. */
  async function follow(heading: string): Promise<string> {
    const blocks = blocksOf(heading);
    const policy = policyOf(blocks);
    const started = blocks.findIndex((block) => block.includes('npm start'));
    const home = mkdtempSync(join(folder, 'home-'));
    const typed = (lines: string, env: Record<string, string> = {}): string => {
      const { status, stdout, stderr } = spawnSync('bash', ['--norc', '-eo', 'pipefail', '-c', lines], {
        cwd: folder,
        encoding: 'utf8',
        input: '',
        env: { HOME: home, PATH: `${join(folder, 'bin')}:${process.env.PATH}`, ...env },
      });
      expect({ status, said: stdout + stderr }).toMatchObject({ status: 0 });
      return stdout + stderr;
    };
    for (const block of blocks.slice(0, started).filter((each) => !/^(?:npm|pip) /.test(each))) typed(block);
    const copy = join(home, basename(policy));
    copyFileSync(join(folder, policy), copy);
    gateway = await startTestGateway({ env: { SVC_POLICY_PATH: copy } });
    try {
      const env = {
        SVC_CLI_API_URL: gateway.url,
        SVC_CLI_API_KEY: ADMIN_KEY,
        SVC_GATEWAY_URL: gateway.url,
        SVC_GATEWAY_GRPC: gateway.grpc,
      };
      const url = gateway.url;
      return typed(
        blocks
          .slice(started + 1)
          .map((block) => withTokens(block).replaceAll('http://127.0.0.1:8080', url))
          .join('\n'),
        env,
      );
    } finally {
      await gateway.stop();
    }
  }

  test('govern Claude Code', async () => {
    expect(await follow('Claude Code')).toContain('acme/dev/coder');
  });
  test('govern an MCP server', async () => {
    expect(await follow('An MCP server')).toContain('denied, as it should be');
  });
  test('look at a LangChain agent and reload its policy', async () => {
    expect(await follow('A LangChain agent')).toContain('passed');
  });
  test('keep a fleet to its budgets', async () => {
    const said = await follow('A fleet with budgets');
    expect(said).toContain('over its two dollars');
    expect(said).toContain('over its budget');
  });
});
