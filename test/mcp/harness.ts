/** A gateway with policies about MCP, agents of it, and real clients behind `svc mcp guard`. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { SVC } from '../support/cli.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';
import { endIfOrphaned } from '../support/orphans.ts';

export const AGENT = 'acme/mcp/bot';
const require = createRequire(import.meta.url);
/** The official server for trying clients out. */
export const EVERYTHING = join(
  require.resolve('@modelcontextprotocol/server-everything/package.json'),
  '..',
  'dist',
  'index.js',
);
/** A server that a test scripts: see the file. */
export const SCRIPTED = join(PACKAGE_ROOT, 'test', 'mcp', 'scripted-server.mjs');

export type World = {
  readonly gateway: GatewayHere;
  readonly folder: string;
  readonly token: string;
  /** Variables that `svc mcp` needs in its environment. */
  readonly env: Readonly<Record<string, string>>;
  writePolicy(yaml: string): Promise<void>;
  /** The newest entries of the audit log first. */
  logs(query?: string): Promise<readonly any[]>;
  /** Registers an agent and answers its token. */
  register(agentId: string): Promise<string>;
  close(): Promise<void>;
};

export async function startWorld(policy: string, env: Readonly<Record<string, string>> = {}): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-mcp-'));
  const policyPath = join(folder, 'policy.yaml');
  writeFileSync(policyPath, policy);
  const gateway = await startGatewayHere({ env: { SVC_POLICY_PATH: policyPath, ...env } });
  const register = async (agentId: string): Promise<string> => {
    const { body } = await gateway.call('POST', '/api/v1/agents', {
      agent: { org_id: 'acme', team_id: 'mcp', agent_id: agentId },
    });
    return body.credential_token as string;
  };
  const token = await register('bot');
  return {
    gateway,
    folder,
    token,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: folder,
      SVC_GATEWAY_URL: gateway.url,
      SVC_GATEWAY_GRPC: gateway.grpc,
      SVC_AGENT: AGENT,
      SVC_AGENT_TOKEN: token,
    },
    register,
    writePolicy: async (yaml) => {
      writeFileSync(policyPath, yaml);
      const { status, body } = await gateway.call('POST', '/api/v1/policies/reload');
      if (status !== 200) throw new Error(JSON.stringify(body));
    },
    logs: async (query = '') => (await gateway.call('GET', `/api/v1/logs?${query}`)).body.entries,
    close: async () => {
      await gateway.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export type Proxy = { readonly url: string; readonly stderr: () => string; stop(): Promise<number | null> };

export async function startProxy(world: World, config: string): Promise<Proxy> {
  const path = join(world.folder, 'mcp.yaml');
  writeFileSync(path, config);
  const { SVC_AGENT: _, SVC_AGENT_TOKEN: __, ...env } = world.env;
  const child: ChildProcess = spawn(process.execPath, [SVC, 'mcp', 'proxy', path], {
    env: { ...env, UPSTREAM_KEY: 'upstream-s3cret' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  endIfOrphaned(child);
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  let stderr = '';
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr?.on('data', (piece: Buffer) => {
      stderr += piece.toString();
      const found = /at (http:\S+)\/mcp,/.exec(stderr)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once('close', () => reject(new Error(stderr)));
  });
  return {
    url,
    stderr: () => stderr,
    stop: () => {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

export type Guarded = {
  readonly client: Client;
  readonly transport: StdioClientTransport;
  /** The guard's messages for people. */
  readonly stderr: () => string;
  close(): Promise<void>;
};

export type GuardOptions = {
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  readonly command?: readonly string[];
  readonly capabilities?: Readonly<Record<string, object>>;
  /** Prepares the client before it connects. */
  readonly prepare?: (client: Client) => void;
};

/** The official client, which starts `svc mcp guard` as it starts any server. */
export async function guarded(
  world: World,
  {
    env = {},
    args = [],
    command = [process.execPath, EVERYTHING, 'stdio'],
    capabilities = {},
    prepare,
  }: GuardOptions = {},
): Promise<Guarded> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [SVC, 'mcp', 'guard', '--server', 'every', ...args, '--', ...command],
    env: { ...world.env, ...env },
    stderr: 'pipe',
  });
  let stderr = '';
  transport.stderr?.on('data', (piece: Buffer) => {
    stderr += piece.toString();
  });
  const client = new Client({ name: 'test', version: '1' }, { capabilities });
  prepare?.(client);
  await client.connect(transport);
  return { client, transport, stderr: () => stderr, close: () => client.close() };
}

export const textOf = (result: unknown): string =>
  (result as { content: readonly { readonly text?: string }[] }).content.map(({ text }) => text ?? '').join('\n');
